//! The engine of `discreet`, which turns rows into exact counts, and counts into noisy rows. The
//! engine does not know epsilon: Python computes scales, thresholds, prices and probabilities from it.
//!
//! Each module uses only modules below it:
//!
//! ```text
//! tests         property tests of whole counts
//! bindings      Python: thin wrappers, and the only unsafe code (Arrow's C interface)
//! union         lists of users' items, and weights of items for set unions
//! count         distinct users per item, sums of values, and threads
//! csv json      CSV and JSON lines files as columns of text
//! columns       Arrow arrays as columns
//! files         blocks of bytes of files and standard input
//! labels        distinct labels by number, and their order
//! memory        huge pages, prefetching, write-combining buffers
//! release       thresholds, partition selection, Gumbel, Private Count Release, confirmed counts, sparse vector
//! stream        noise of streams
//! noise         exact samplers of integer noise
//! hash          keyed hashes of users and items
//! random        the only source of randomness
//! accounting    convolution of privacy-loss distributions
//! string_prefix output error
//! ```
#![cfg_attr(not(feature = "python"), forbid(unsafe_code))]
#![deny(unsafe_code)]

pub mod accounting;
pub mod columns;
pub mod count;
pub mod csv;
pub mod error;
pub mod files;
pub mod hash;
pub mod json;
pub mod labels;
mod memory;
pub mod noise;
pub mod output;
pub mod random;
pub mod release;
pub mod stream;
mod string_prefix;
#[cfg(test)]
mod tests;
pub mod union;

// Tests of Rust link no Python.
#[cfg(all(feature = "python", not(test)))]
mod bindings;
