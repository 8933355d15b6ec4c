//! Random streams for releases, random keys for hashes, and parallel work that gives each chunk of rows its own stream.

pub(crate) mod entropy;
pub(crate) mod keystream;
pub(crate) mod parallel;
pub mod rng;
