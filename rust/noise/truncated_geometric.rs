//! The truncated symmetric geometric distribution, `P[x] ∝ exp(-γ |x|)` for `|x| <= bound`, with `γ = 1/scale`
//! rounded down (Desfontaines et al. 2020, Definition 6).

use super::discrete_laplace::exponential;
use super::sampler::{Sampler, integer_law};
use crate::error::{Error, Result};

/// Integer noise between `-bound` and `bound`. If a noisy count is above `bound`, the true count is above zero.
#[derive(Debug, Clone)]
pub struct TruncatedGeometric(Sampler);

impl TruncatedGeometric {
    /// The largest bound.
    pub const BOUND_LIMIT: i64 = 1 << 52;

    /// Create noise of this scale between `-bound` and `bound`. The exact scale is larger by a relative error below
    /// `2^-62`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the scale is not in [`super::discrete_laplace::SCALE_RANGE`] or the
    /// bound not between 0 and [`Self::BOUND_LIMIT`].
    pub fn new(scale: f64, bound: i64) -> Result<Self> {
        match u64::try_from(bound) {
            Ok(limit) if bound <= Self::BOUND_LIMIT => Ok(Self(exponential(scale, Some(limit))?)),
            _ => Err(Error::Parameter("bound must lie between 0 and 2^52")),
        }
    }
}

integer_law!(TruncatedGeometric);
