//! `Threshold`, and the selection of partitions. A release reads the array of counts without a copy, so no other thread
//! may write to the array during the release (`SECURITY.md`).

use std::borrow::Cow;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::noise::PyNoise;
use super::rng::{PyRng, given_or_fresh};
use crate::error::Result;
use crate::release::threshold::Threshold;

/// Row numbers and noisy counts.
type Rows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

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
            text: noise.text().into(),
        })
    }

    /// Create the least threshold of at least `count` with `chance(count) <= p`.
    #[staticmethod]
    fn for_chance(py: Python<'_>, noise: &PyNoise, count: i64, p: f64) -> Result<Self> {
        let threshold = py.detach(|| Threshold::for_chance(noise.sampler().clone(), count, p))?;
        Ok(Self { threshold, text: noise.text().into() })
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
