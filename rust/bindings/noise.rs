//! `Noise` and `Threshold`: noise with bounds of its tails, and thresholds for noisy counts. A release reads the
//! array of counts without a copy, so no other thread may write to the array during the release (`SECURITY.md`).

use std::borrow::Cow;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::rng::{PyRng, given_or_fresh};
use crate::error::Result;
use crate::noise::{DiscreteGaussian, DiscreteLaplace, Sampler, TruncatedGeometric};
use crate::release::threshold::Threshold;

/// Row numbers and noisy counts.
type Rows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

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

/// A threshold for noisy counts. A noisy count passes and is released if it is larger than `value`.
#[pyclass(name = "Threshold", module = "discreet._core", frozen)]
pub struct PyThreshold {
    threshold: Threshold,
    text: String,
}

#[pymethods]
impl PyThreshold {
    #[new]
    fn new(noise: &PyNoise, value: i64) -> Result<Self> {
        Ok(Self {
            threshold: Threshold::new(noise.sampler().clone(), value)?,
            text: noise.text.clone(),
        })
    }

    /// Create the least threshold of at least `count` with `chance(count) <= p`.
    #[staticmethod]
    fn for_chance(py: Python<'_>, noise: &PyNoise, count: i64, p: f64) -> Result<Self> {
        let threshold = py.detach(|| Threshold::for_chance(noise.sampler().clone(), count, p))?;
        Ok(Self { threshold, text: noise.text.clone() })
    }

    /// The value that a noisy count must exceed.
    #[getter]
    fn value(&self) -> i64 {
        self.threshold.value()
    }

    /// Return whether a noisy count is released.
    fn passes(&self, noisy: i64) -> bool {
        self.threshold.passes(noisy)
    }

    /// Return an upper bound of the probability that the noisy count of `count` passes.
    fn chance(&self, py: Python<'_>, count: i64) -> f64 {
        py.detach(|| self.threshold.chance(count))
    }

    /// Return the rows whose noisy counts pass, and these noisy counts.
    #[pyo3(signature = (counts, rng=None))]
    fn release<'py>(
        &self,
        py: Python<'py>,
        counts: PyReadonlyArray1<'py, i64>,
        rng: Option<&mut PyRng>,
    ) -> Result<Rows<'py>> {
        let mut fresh = None;
        let stream = given_or_fresh(rng, &mut fresh)?;
        let counts = counts.as_array();
        let counts = counts.to_slice().map_or_else(|| counts.to_vec().into(), Cow::Borrowed);
        let (rows, noisy) = py.detach(|| self.threshold.release(&counts, stream));
        let rows: Vec<i64> = rows.into_iter().map(|row| row as i64).collect();
        Ok((rows.into_pyarray(py), noisy.into_pyarray(py)))
    }

    fn __repr__(&self) -> String {
        format!("Threshold(Noise.{}, {})", self.text, self.threshold.value())
    }
}

/// Return the table of `partition_selection`, from e^epsilon, e^-epsilon and delta as limbs of 64 bits in units of
/// `2^-192`.
#[pyfunction]
pub fn chance_table(
    py: Python<'_>,
    growth: Vec<u64>,
    decay: [u64; 3],
    share: [u64; 3],
) -> Result<Bound<'_, PyArray1<u64>>> {
    let table = py.detach(|| crate::release::chance_table::chance_table(&growth, decay, share))?;
    Ok(table.into_pyarray(py))
}

/// Return the released rows. A row with count `n` is released with probability `chances[n]`, in units of `2^-64`.
/// Counts beyond the table are always released, and counts of zero and below never.
#[pyfunction]
#[pyo3(signature = (counts, chances, rng=None))]
pub fn partition_selection<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, i64>,
    chances: PyReadonlyArray1<'py, u64>,
    rng: Option<&mut PyRng>,
) -> Result<Bound<'py, PyArray1<i64>>> {
    let (counts, chances) = (counts.as_array(), chances.as_array().to_vec());
    let counts = counts.to_slice().map_or_else(|| counts.to_vec().into(), Cow::Borrowed);
    let mut fresh = None;
    let stream = given_or_fresh(rng, &mut fresh)?;
    let rows = py.detach(|| {
        crate::release::partition_selection::partition_selection(&counts, &chances, stream)
    });
    Ok(rows.into_iter().map(|row| row as i64).collect::<Vec<_>>().into_pyarray(py))
}
