//! Property tests of whole counts, and tables for them.

mod agreement;
mod neighbours;
pub(crate) mod tables;
