//! `compose`: convolution powers of distributions on a grid.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::Result;

/// Return the cyclic convolution of all parts, and an error bound that holds for every entry. A part is a list of
/// masses and the number of times that it is repeated.
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
