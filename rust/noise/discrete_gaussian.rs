//! The discrete Gaussian, `P[x] ∝ exp(-h x²)` over the integers, with `h = 1/(2σ²)` rounded down (Canonne, Kamath and
//! Steinke 2020, Definition 1).

use super::decay::Decay;
use super::dyadic::Dyadic;
use super::sampler::{Sampler, integer_law, scale_bits};
use crate::error::Result;

/// Integer noise with Gaussian tails. This noise satisfies zCDP like the continuous Gaussian (Theorem 4 of the source).
#[derive(Debug, Clone)]
pub struct DiscreteGaussian(Sampler);

impl DiscreteGaussian {
    /// The smallest and largest accepted σ.
    pub const SIGMA_RANGE: (f64, f64) = (1e-3, 1e9);

    /// Create noise of scale `sigma`. The exact scale is larger by a relative error below `2^-62`.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] if `sigma` is not in [`Self::SIGMA_RANGE`].
    pub fn new(sigma: f64) -> Result<Self> {
        Ok(Self(Sampler::new(Self::law(sigma)?, Self::bits(sigma)?)))
    }

    /// Return the law of the noise, without the tables of a sampler.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] if `sigma` is not in [`Self::SIGMA_RANGE`].
    pub fn law(sigma: f64) -> Result<Decay> {
        Self::bits(sigma)?;
        let sigma = Dyadic::from_f64(sigma);
        let coefficient = (sigma.clone() * sigma * Dyadic::new(2, 0)).reciprocal();
        Ok(Decay { coefficient, square: true, limit: None, mirrored: true })
    }

    fn bits(sigma: f64) -> Result<u32> {
        scale_bits(sigma, Self::SIGMA_RANGE, "sigma must lie between 0.001 and 1e9")
    }
}

integer_law!(DiscreteGaussian);
