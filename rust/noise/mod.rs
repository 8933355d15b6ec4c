//! Exact integer samplers. Their output distribution equals the stated distribution to the last bit.
//!
//! No floating-point number decides an outcome. Parameters are floats, taken at their exact value, and the lint below
//! forbids float arithmetic. The fast path computes in integers with a rigorous error bound; if that bound cannot
//! decide, exact arithmetic of any precision does. Exceptions: `continuous` and `float_gumbel`, which no published
//! count uses.
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
