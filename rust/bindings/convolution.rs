//! `compose`: convolution powers of distributions on a grid.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::Result;

/// Return the cyclic convolution of all parts, each repeated as often as its number says, and an error bound for
/// every entry.
#[pyfunction]
pub fn compose<'py>(
    py: Python<'py>,
    parts: Vec<(PyReadonlyArray1<'py, f64>, u64)>,
) -> Result<(Bound<'py, PyArray1<f64>>, f64)> {
    let parts: Vec<(Vec<f64>, u64)> =
        parts.iter().map(|(masses, power)| (masses.as_array().to_vec(), *power)).collect();
    let (composed, error) = py.detach(|| crate::accounting::convolution::compose(&parts))?;
    Ok((composed.into_pyarray(py), error))
}
