//! The discrete Gaussian, `P[x] ∝ exp(-h x²)` over the integers with `h = 1/(2σ²)` rounded down
//! (Canonne, Kamath and Steinke 2020, Definition 1).

use rand::Rng;
use rand_distr::Distribution;

use super::decay::Decay;
use super::dyadic::Dyadic;
use super::magnitude::{Magnitude, scale_bits};
use crate::error::Result;
use crate::rng::SecureRng;

/// Integer noise with the tails of a Gaussian: zCDP like the continuous one (theorem 4 of the source).
#[derive(Debug, Clone)]
pub struct DiscreteGaussian(Magnitude);

impl DiscreteGaussian {
    /// The smallest and the largest σ that can be asked for.
    pub const SIGMA_RANGE: (f64, f64) = (1e-3, 1e9);

    /// Noise of scale `sigma` or a hair more.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] where `sigma` is not in [`Self::SIGMA_RANGE`].
    pub fn new(sigma: f64) -> Result<Self> {
        let message = "sigma must lie between 0.001 and 1e9";
        let bits = scale_bits(sigma, Self::SIGMA_RANGE, message)?;
        let sigma = Dyadic::from_f64(sigma);
        let coefficient = (sigma.clone() * sigma * Dyadic::new(2, 0)).reciprocal();
        Ok(Self(Magnitude::new(
            Decay { coefficient, square: true, limit: None, mirrored: true },
            bits,
        )))
    }

    /// Fills `out` with what as many samples would be, faster.
    pub fn fill(&self, rng: &mut SecureRng, out: &mut [i64]) {
        self.0.fill(rng, out);
    }

    /// The law of the magnitude.
    #[must_use]
    pub fn law(&self) -> &Decay {
        self.0.law()
    }
}

impl Distribution<i64> for DiscreteGaussian {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        self.0.sample(rng)
    }
}
