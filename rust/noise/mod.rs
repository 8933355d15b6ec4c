//! Samplers of noise. The output distribution of an integer sampler equals the stated distribution exactly, provided
//! that the random bits are uniform.
//!
//! Parameters are floats, which are converted to exact numbers. The integer samplers then compute in integers with
//! rigorous error bounds. If an error bound does not decide an outcome, arithmetic of any precision decides it. The
//! lint below forbids float arithmetic. The exceptions are `float_tail`, whose errors are bounded, a guess in `tail`,
//! which affects only speed, and `continuous` and `float_gumbel`. No published count uses the last two.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

mod bernoulli;
mod bounded_beta;
mod bounds;
mod continuous;
mod decay;
mod discrete_gaussian;
mod discrete_laplace;
mod dyadic;
mod fixed;
mod float_gumbel;
mod float_tail;
mod geometric;
mod sampler;
mod table;
mod tail;
mod truncated_geometric;

pub use bernoulli::{bernoulli, bernoulli_exp_ratio};
pub(crate) use bernoulli::{bernoulli_exp, uniform_below};
pub use bounded_beta::BoundedBeta;
pub use continuous::Continuous;
pub use decay::Decay;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub(crate) use dyadic::Dyadic;
pub(crate) use fixed::Fixed;
pub use geometric::Geometric;
pub use sampler::Sampler;
pub use truncated_geometric::TruncatedGeometric;
