//! Exact integer samplers: the law drawn from is the law stated, to the last bit.
//!
//! No floating-point number decides an outcome: floats are parameters, taken at their exact value, and
//! the lint below refuses to compute with them. Quick answers come from integers with a rigorous error
//! bound; what they leave open goes to exact arithmetic of any precision. The one exception is
//! [`continuous`], which no published count rests on.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

pub mod bernoulli;
pub mod continuous;
pub mod decay;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod dyadic;
pub mod fixed;
pub mod float_gumbel;
pub mod geometric;
pub mod sampler;
pub mod table;
pub mod tail;
pub mod truncated_geometric;

pub use bernoulli::{bernoulli, bernoulli_exp, bernoulli_exp_ratio, uniform_below};
pub use continuous::Continuous;
pub use decay::Decay;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use dyadic::Dyadic;
pub use fixed::Fixed;
pub use geometric::Geometric;
pub use sampler::Sampler;
pub use truncated_geometric::TruncatedGeometric;
