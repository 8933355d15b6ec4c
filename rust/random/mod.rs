//! The only source of randomness: a fresh stream for each release.

pub(crate) mod entropy;
pub(crate) mod keystream;
pub(crate) mod parallel;
pub mod rng;
