//! Convolution of privacy-loss distributions.

pub mod convolution;
