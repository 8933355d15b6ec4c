//! `clipped_sums` and `listed_sizes`: sums and numbers of listed items.

use std::borrow::Cow;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::count::{listed, threads_or_all};
use super::sources::{Sources, watched};
use super::values::PyLabels;
use super::wanted::{Times, Wanted};
use crate::count::by_user::sums::{Clipping, Room, clipped_sums, listed_sizes};
use crate::count::make_ready;
use crate::error::{Error, Result};

/// Return `items` as labels of the column of items, and for each the sum over users of their clipped sums, in whole
/// units of `resolution`. Sources are as in `count_distinct`. At most `l0` items of each user count, chosen
/// uniformly.
#[pyfunction(name = "clipped_sums")]
#[pyo3(signature = (source, user, item, value, items, bounds, resolution, *, l0=None, threads=None, memory=None, times=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
fn sums<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    user: &Bound<'py, PyAny>,
    item: &Bound<'py, PyAny>,
    value: String,
    items: &PyLabels,
    bounds: (i64, i64),
    resolution: f64,
    l0: Option<usize>,
    threads: Option<usize>,
    memory: Option<usize>,
    times: Option<Times>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PyLabels, Bound<'py, PyArray1<i64>>)> {
    let wanted = Wanted::new(user, item, times)?.with(Some(value));
    let is_bounded = bounds.0 <= bounds.1 && bounds.0 >= -(1 << 30) && bounds.1 <= 1 << 30;
    if l0 == Some(0) || !is_bounded || !(resolution > 0.0 && resolution.is_finite()) {
        return Err(Error::Parameter("l0, the bounds or the resolution are out of range").into());
    }
    make_ready(memory);
    let mut sources = Sources::open(source, &wanted)?;
    let (types, fields) = (sources.types(), sources.fields());
    let items = listed(items, types.1, fields.as_deref())?;
    let clipping = Clipping { bounds, resolution, l0: l0.unwrap_or(usize::MAX) };
    let room = Room { threads: threads_or_all(threads), memory };
    let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
        clipped_sums(sources.batches(), types, &items, clipping, room, tick)
    };
    let sums = watched(py, progress, work)?.into_pyarray(py);
    let labels = match items {
        Cow::Owned(adopted) => PyLabels(adopted, fields),
        Cow::Borrowed(given) => PyLabels(given.clone(), None),
    };
    Ok((labels, sums))
}

/// Return the number of distinct items in `items` of each user who has any, in any order of the users.
#[pyfunction(name = "listed_sizes")]
#[pyo3(signature = (source, user, item, items, *, threads=None, memory=None, times=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
fn sizes<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    user: &Bound<'py, PyAny>,
    item: &Bound<'py, PyAny>,
    items: &PyLabels,
    threads: Option<usize>,
    memory: Option<usize>,
    times: Option<Times>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let wanted = Wanted::new(user, item, times)?;
    make_ready(memory);
    let mut sources = Sources::open(source, &wanted)?;
    let (types, fields) = (sources.types(), sources.fields());
    let items = listed(items, types.1, fields.as_deref())?;
    let room = Room { threads: threads_or_all(threads), memory };
    let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
        listed_sizes(sources.batches(), types, &items, room, tick)
    };
    Ok(watched(py, progress, work)?.into_pyarray(py))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sums, module)?)?;
    module.add_function(wrap_pyfunction!(sizes, module)?)
}
