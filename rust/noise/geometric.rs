//! The geometric law, `P[x] ∝ exp(-γ x)` for `x >= 0`, with `γ = 1/scale` rounded down.

use rand::Rng;
use rand_distr::Distribution;

use super::decay::Decay;
use super::discrete_laplace::exponential;
use super::magnitude::Magnitude;
use crate::error::Result;
use crate::rng::SecureRng;

/// One-sided integer noise, the discrete exponential.
#[derive(Debug, Clone)]
pub struct Geometric(Magnitude);

impl Geometric {
    /// Noise of this scale or a hair more.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] where the scale is not in
    /// [`super::discrete_laplace::SCALE_RANGE`].
    pub fn new(scale: f64) -> Result<Self> {
        Ok(Self(exponential(scale, None, false)?))
    }

    /// Fills `out` with what as many samples would be, faster.
    pub fn fill(&self, rng: &mut SecureRng, out: &mut [i64]) {
        self.0.fill(rng, out);
    }

    /// The law.
    #[must_use]
    pub fn law(&self) -> &Decay {
        self.0.law()
    }
}

impl Distribution<i64> for Geometric {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        self.0.sample(rng)
    }
}
