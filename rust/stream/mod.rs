//! Noise for continually released counts.

pub mod node_noise;
pub mod node_sums;
pub mod weighted_noise;
