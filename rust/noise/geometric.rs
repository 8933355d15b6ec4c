//! The geometric distribution, `P[x] ∝ exp(-γ x)` for `x >= 0`, with `γ = 1/scale` rounded down.

use super::discrete_laplace::exponential;
use super::sampler::{Sampler, integer_law};
use crate::error::Result;

/// One-sided integer noise with geometric tails (discrete exponential).
#[derive(Debug, Clone)]
pub struct Geometric(Sampler);

impl Geometric {
    /// Create noise of this scale. The exact scale is larger by a relative error below `2^-62`.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] if the scale is not in
    /// [`super::discrete_laplace::SCALE_RANGE`].
    pub fn new(scale: f64) -> Result<Self> {
        Ok(Self(exponential(scale, None, false)?))
    }
}

integer_law!(Geometric);
