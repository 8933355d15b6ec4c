//! The discrete Laplace law, `P[x] ∝ exp(-γ |x|)` over the integers with `γ = 1/scale` rounded down.
//!
//! Its tail is `P[X >= m] = a^m / (1 + a)` for `m >= 0`, with `a = exp(-γ)`.

use super::decay::Decay;
use super::dyadic::Dyadic;
use super::sampler::{Sampler, integer_law, scale_bits};
use crate::error::Result;

/// The range of scales of the laws that decay like `exp(-|x| / scale)`.
pub const SCALE_RANGE: (f64, f64) = (1.0 / (1 << 20) as f64, (1_u64 << 45) as f64);
pub(super) const SCALE_MESSAGE: &str = "scale must lie between 2^-20 and 2^45";

/// Integer noise with the tails of a Laplace law, also called two-sided geometric.
#[derive(Debug, Clone)]
pub struct DiscreteLaplace(Sampler);

impl DiscreteLaplace {
    /// Noise of this scale or a hair more.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] where the scale is not in [`SCALE_RANGE`].
    pub fn new(scale: f64) -> Result<Self> {
        Ok(Self(exponential(scale, None, true)?))
    }
}

/// A law that decays like `exp(-m / scale)`.
pub(super) fn exponential(scale: f64, limit: Option<u64>, mirrored: bool) -> Result<Sampler> {
    let bits = scale_bits(scale, SCALE_RANGE, SCALE_MESSAGE)?;
    // Within a bound the law spans no more than the bound.
    let bits = limit.map_or(bits, |limit| bits.min(limit.max(1).ilog2()));
    let coefficient = Dyadic::from_f64(scale).reciprocal();
    Ok(Sampler::new(Decay { coefficient, square: false, limit, mirrored }, bits))
}

integer_law!(DiscreteLaplace);
