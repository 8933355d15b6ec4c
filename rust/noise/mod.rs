//! Exact integer samplers: the law drawn from is the law stated, to the last bit.
//!
//! No floating-point number decides an outcome. Floating point only answers quickly where a rigorous
//! error bound shows that it must be right; the rest goes to exact integer arithmetic.

pub mod bernoulli;
pub mod discrete_gaussian;
pub mod dyadic;

pub use bernoulli::bernoulli_exp;
pub use discrete_gaussian::DiscreteGaussian;
pub use dyadic::Dyadic;
