//! The discrete Laplace distribution, `P[x] ∝ exp(-γ |x|)` over the integers, with `γ = 1/scale` rounded down.
//!
//! The tail of the distribution is `P[X >= m] = a^m / (1 + a)` for `m >= 0`, with `a = exp(-γ)`.

use super::decay::Decay;
use super::dyadic::Dyadic;
use super::sampler::{Sampler, integer_law, scale_bits};
use crate::error::Result;

/// The accepted scales of distributions that decay like `exp(-|x| / scale)`.
pub const SCALE_RANGE: (f64, f64) = (1.0 / (1 << 20) as f64, (1_u64 << 45) as f64);
pub(super) const SCALE_MESSAGE: &str = "scale must lie between 2^-20 and 2^45";

/// Integer noise with Laplace tails, also called two-sided geometric noise.
#[derive(Debug, Clone)]
pub struct DiscreteLaplace(Sampler);

impl DiscreteLaplace {
    /// Create noise of this scale. The exact scale is larger by a relative error below `2^-62`.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] if the scale is not in [`SCALE_RANGE`].
    pub fn new(scale: f64) -> Result<Self> {
        Ok(Self(exponential(scale, None)?))
    }
}

/// Create a sampler whose probabilities decay like `exp(-|x| / scale)`.
pub(super) fn exponential(scale: f64, limit: Option<u64>) -> Result<Sampler> {
    let bits = scale_bits(scale, SCALE_RANGE, SCALE_MESSAGE)?;
    // The sampler sizes its blocks by the scale, or by the bound if the bound is smaller.
    let bits = limit.map_or(bits, |limit| bits.min(limit.max(1).ilog2()));
    let coefficient = Dyadic::from_f64(scale).reciprocal();
    Ok(Sampler::new(Decay { coefficient, square: false, limit, mirrored: true }, bits))
}

integer_law!(DiscreteLaplace);
