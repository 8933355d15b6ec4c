//! Noise for counts that are published again and again.

pub mod node_noise;
pub mod weighted_noise;
