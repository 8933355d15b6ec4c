//! Convolution of privacy-loss laws.

pub mod convolution;
