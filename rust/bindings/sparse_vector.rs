//! `shuffled`, `first_above` and `corrected`: random orders and searches of the sparse-vector mechanisms. The arrays
//! are read without a copy, so no other thread may write to them (`SECURITY.md`). Ctrl-C ends a search, which then
//! returns no answer; its draws are used up.

use std::borrow::Cow;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::noise::PyNoise;
use super::rng::PyRng;
use super::sources::watched;
use crate::error::Error;
use crate::release::sparse_vector::{Search, correct, shuffled};

/// Return the numbers below `size` in a uniformly random order.
#[pyfunction(name = "shuffled")]
fn order<'py>(
    py: Python<'py>,
    size: usize,
    rng: &mut PyRng,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let stream = rng.stream()?;
    let order = watched(py, None, |_| {
        Ok(shuffled(size, stream)?.into_iter().map(i64::from).collect::<Vec<_>>())
    })?;
    Ok(order.into_pyarray(py))
}

/// Return the place of the first noisy value that reaches the noisy threshold, or `None`.
#[pyfunction]
fn first_above(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, i64>,
    threshold: i64,
    of_threshold: &PyNoise,
    of_query: &PyNoise,
    rng: &mut PyRng,
) -> PyResult<Option<usize>> {
    let values = values.as_array();
    let values = values.to_slice().map_or_else(|| values.to_vec().into(), Cow::Borrowed);
    let search = search(threshold, of_threshold, of_query);
    let stream = rng.stream()?;
    watched(py, None, |tick| search.first(&values, 0, stream, tick))
}

/// Search `runs` times, in one random order, for an answer whose distance from its value reaches the threshold. Return
/// the answers, with each answer that a run finds measured again.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the parameters of a stage")]
fn corrected<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, i64>,
    answers: PyReadonlyArray1<'py, i64>,
    runs: usize,
    threshold: i64,
    of_threshold: &PyNoise,
    of_query: &PyNoise,
    again: &PyNoise,
    rng: &mut PyRng,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let values = values.as_array();
    let values = values.to_slice().map_or_else(|| values.to_vec().into(), Cow::Borrowed);
    let mut answers = answers.as_array().to_vec();
    if values.len() != answers.len() {
        return Err(Error::Parameter("values and answers must have the same length").into());
    }
    let search = search(threshold, of_threshold, of_query);
    let stream = rng.stream()?;
    let again = again.sampler();
    watched(py, None, |tick| correct(&values, &mut answers, runs, search, again, stream, tick))?;
    Ok(answers.into_pyarray(py))
}

fn search<'a>(threshold: i64, of_threshold: &'a PyNoise, of_query: &'a PyNoise) -> Search<'a> {
    Search { threshold, of_threshold: of_threshold.sampler(), of_query: of_query.sampler() }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(order, module)?)?;
    module.add_function(wrap_pyfunction!(first_above, module)?)?;
    module.add_function(wrap_pyfunction!(corrected, module)?)
}
