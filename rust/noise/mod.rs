//! Samplers of noise. The output distribution of an integer sampler equals the stated distribution exactly, provided
//! that the random bits are uniform.
//!
//! Parameters are floats, which are converted to exact numbers. The integer samplers then compute in integers with
//! rigorous error bounds. If an error bound does not decide an outcome, arithmetic of any precision decides it. The
//! lint below forbids float arithmetic. The exceptions are `float_tail`, whose errors are bounded, and a guess in
//! `tail`, which affects only speed.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

mod bernoulli;
mod bounded_beta;
mod bounds;
mod decay;
mod discrete_gaussian;
mod discrete_laplace;
mod dyadic;
mod fixed;
mod float_tail;
mod sampler;
mod table;
mod tail;
mod truncated_geometric;

pub(crate) use bernoulli::{bernoulli_exp, uniform_below};
pub use bounded_beta::BoundedBeta;
pub use decay::Decay;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub(crate) use dyadic::Dyadic;
pub(crate) use fixed::Fixed;
pub use sampler::Sampler;
pub use truncated_geometric::TruncatedGeometric;
