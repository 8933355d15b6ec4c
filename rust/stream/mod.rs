//! Noise for continually released counts.

pub mod node_noise;
pub mod weighted_noise;
