//! Properties of whole counts, and tables to test them on.

mod agreement;
mod neighbours;
pub(crate) mod tables;
