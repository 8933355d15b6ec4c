//! The engine of `discreet`: rows in, exact counts out; counts in, noisy rows out. It knows no epsilon.
//!
//! Each room uses only rooms below it:
//!
//! ```text
//! tests         properties of whole counts (tests only)
//! bindings      Python: thin wrappers, and the only unsafe code (Arrow's C interface)
//! count union   distinct users per item; weights of items for set unions
//! csv columns   CSV files as columns of text; Arrow arrays as columns
//! labels        distinct labels by number, and their one order
//! memory        huge pages, prefetching, write-combining buffers
//! release       thresholds, partition selection, Gumbel, Private Count Release
//! stream        the noise of streams
//! noise         exact integer samplers, one law a file
//! hash          keyed hashes of users and items
//! random        the one source of randomness
//! accounting    convolution of privacy-loss laws
//! string_prefix error
//! ```
#![cfg_attr(not(feature = "python"), forbid(unsafe_code))]
#![deny(unsafe_code)]

pub mod accounting;
pub mod columns;
pub mod count;
pub mod csv;
pub mod error;
pub mod hash;
pub mod labels;
mod memory;
pub mod noise;
pub mod random;
pub mod release;
pub mod stream;
mod string_prefix;
#[cfg(test)]
mod tests;
pub mod union;

#[cfg(feature = "python")]
mod bindings;
