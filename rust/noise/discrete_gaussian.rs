//! The discrete Gaussian, `P[x] ∝ exp(-h x²)` over the integers with `h = 1/(2σ²)` rounded down
//! (Canonne, Kamath and Steinke 2020, Definition 1).

use super::decay::Decay;
use super::dyadic::Dyadic;
use super::sampler::{Sampler, integer_law, scale_bits};
use crate::error::Result;

/// Integer noise with the tails of a Gaussian: zCDP like the continuous one (theorem 4 of the source).
#[derive(Debug, Clone)]
pub struct DiscreteGaussian(Sampler);

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
        Ok(Self(Sampler::new(
            Decay { coefficient, square: true, limit: None, mirrored: true },
            bits,
        )))
    }
}

integer_law!(DiscreteGaussian);
