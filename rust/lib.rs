//! The engine of `discreet`: counts, scales and thresholds in, rows out. It knows no epsilon.
//!
//! The map of the house, each floor using only those below it:
//!
//! ```text
//! bindings                     Python: thin wrappers, the only unsafe code (Arrow's C interface)
//! group count top              rows of (user, item) -> exact distinct users per item -> the largest
//! selection price_list         counts and prices -> which row is chosen -> a whole release
//! noise                        exact integer samplers, one distribution a file
//! rng                          one fresh ChaCha20 per release
//! error                        what a kernel refuses
//! ```
#![cfg_attr(not(feature = "python"), forbid(unsafe_code))]
#![deny(unsafe_code)]

pub mod error;
pub mod rng;

#[cfg(feature = "python")]
mod bindings;
