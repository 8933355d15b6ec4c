//! The truncated symmetric geometric law, `P[x] ∝ exp(-γ |x|)` for `|x| <= bound`, with `γ = 1/scale`
//! rounded down (Desfontaines et al. 2020, Definition 6).

use super::discrete_laplace::exponential;
use super::sampler::{Sampler, integer_law};
use crate::error::{Error, Result};

/// Bounded integer noise: a noisy count above `bound` came from a true count above zero.
#[derive(Debug, Clone)]
pub struct TruncatedGeometric(Sampler);

impl TruncatedGeometric {
    /// The largest bound.
    pub const BOUND_LIMIT: i64 = 1 << 52;

    /// Noise of this scale or a hair more, between `-bound` and `bound`.
    ///
    /// # Errors
    /// [`Error::Parameter`] where the scale is not in [`super::discrete_laplace::SCALE_RANGE`] or the
    /// bound not between 0 and [`Self::BOUND_LIMIT`].
    pub fn new(scale: f64, bound: i64) -> Result<Self> {
        match u64::try_from(bound) {
            Ok(limit) if bound <= Self::BOUND_LIMIT => {
                Ok(Self(exponential(scale, Some(limit), true)?))
            }
            _ => Err(Error::Parameter("bound must lie between 0 and 2^52")),
        }
    }
}

integer_law!(TruncatedGeometric);
