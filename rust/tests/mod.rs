//! Property tests of counting, from rows to counts, and of the lists of users' items. Also random
//! tables for these tests.

mod agreement;
mod neighbours;
pub(crate) mod tables;
