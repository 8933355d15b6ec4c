//! `Noise`: exact draws from integer distributions, with bounds of their tails.

use pyo3::prelude::*;

use crate::error::Result;
use crate::noise::{DiscreteGaussian, DiscreteLaplace, Sampler, TruncatedGeometric};

/// An integer distribution with exact draws and rigorous upper bounds of its tail.
#[pyclass(name = "Noise", module = "discreet._core", frozen)]
pub struct PyNoise {
    sampler: Sampler,
    text: String,
}

impl PyNoise {
    fn new(sampler: impl Into<Sampler>, text: String) -> Self {
        Self { sampler: sampler.into(), text }
    }

    /// Return the sampler of the distribution.
    pub fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[pymethods]
impl PyNoise {
    /// Create the discrete Gaussian, `P[x] ∝ exp(-x² / (2 sigma²))`.
    #[staticmethod]
    fn discrete_gaussian(sigma: f64) -> Result<Self> {
        Ok(Self::new(DiscreteGaussian::new(sigma)?, format!("discrete_gaussian({sigma:?})")))
    }

    /// Create the discrete Laplace distribution, `P[x] ∝ exp(-|x| / scale)`.
    #[staticmethod]
    fn discrete_laplace(scale: f64) -> Result<Self> {
        Ok(Self::new(DiscreteLaplace::new(scale)?, format!("discrete_laplace({scale:?})")))
    }

    /// Create the truncated geometric distribution, `P[x] ∝ exp(-|x| / scale)` for `|x| <= bound`.
    #[staticmethod]
    fn truncated_geometric(scale: f64, bound: i64) -> Result<Self> {
        let text = format!("truncated_geometric({scale:?}, {bound})");
        Ok(Self::new(TruncatedGeometric::new(scale, bound)?, text))
    }

    /// Return an upper bound of `P[X >= m]`.
    fn tail(&self, py: Python<'_>, m: i64) -> f64 {
        py.detach(|| self.sampler.law().tail(m))
    }

    /// Return a lower and an upper bound of `P[X >= m]`. For most discrete Gaussians they differ by a relative 1e-8 at
    /// most, and are faster than `tail`.
    fn tail_bounds(&self, m: i64) -> (f64, f64) {
        self.sampler.law().tail_bounds(m)
    }

    /// Return true only if `P[X >= m] + P[X > m] <= p`.
    fn two_tails_are_at_most(&self, m: i64, p: f64) -> bool {
        self.sampler.law().two_tails_are_at_most(m, p)
    }

    /// Return the least `m >= 1` with `tail(m) <= p`.
    fn quantile(&self, py: Python<'_>, p: f64) -> Result<i64> {
        py.detach(|| self.sampler.law().quantile(p))
    }

    fn __repr__(&self) -> String {
        format!("Noise.{}", self.text)
    }
}
