//! `count_distinct` and `top`: from rows to labels and exact counts.

use std::borrow::Cow;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::panics::catch_panics;
use super::sources::{Sources, watched};
use super::values::PyLabels;
use super::wanted::{Times, Wanted};
use crate::columns::times::written;
use crate::count::bound::Contribution;
use crate::count::{CountOptions, count_distinct, make_ready};
use crate::error::{Error, Result};
use crate::labels::composite::{Field, adopted};
use crate::labels::top::top;
use crate::labels::{LONGEST, LabelType, Labels};

type Counted<'py> = (PyLabels, Bound<'py, PyArray1<i64>>, Option<u64>);

/// Exact counts. The class has no methods to print, compare, copy or pickle them. Tools that list the attributes of
/// Python objects do not find the counts.
#[pyclass(name = "Counts", module = "discreet._core", frozen)]
pub struct PyCounts(Py<PyArray1<i64>>);

#[pymethods]
impl PyCounts {
    #[new]
    fn new(counts: Bound<'_, PyArray1<i64>>) -> Self {
        Self(counts.unbind())
    }

    /// Return the counts as an array.
    fn array(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.0.clone_ref(py)
    }
}

/// Count the distinct users of each item in a source or a list of sources. A source is an Arrow stream, an object
/// that offers an Arrow stream, or a tuple of two sequences of the same length. Columns must have the same type in
/// all sources. If `value` is the name of a column, only rows with a finite number there count. With `users`, the
/// distinct users of all counted rows are counted too. Two calls with one `secret` choose the same items of users.
#[pyfunction(name = "count_distinct")]
#[pyo3(signature = (source, user, item, *, l0=None, only=None, limit=None, cap=None, threads=None, memory=None, times=None, value=None, users=false, secret=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
fn count_sources<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    user: &Bound<'py, PyAny>,
    item: &Bound<'py, PyAny>,
    l0: Option<usize>,
    only: Option<&PyLabels>,
    limit: Option<usize>,
    cap: Option<i64>,
    threads: Option<usize>,
    memory: Option<usize>,
    times: Option<Times>,
    value: Option<String>,
    users: bool,
    secret: Option<[u8; 32]>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Counted<'py>> {
    let wanted = Wanted::new(user, item, times)?.with(value);
    make_ready(memory);
    let mut sources = Sources::open(source, &wanted)?;
    let (types, fields) = (sources.types(), sources.fields());
    if l0 == Some(0) || cap.is_some_and(|cap| cap < 1) {
        return Err(Error::Parameter("l0 and cap must be at least 1").into());
    }
    let bound = bound(l0, only, types.1, fields.as_deref())?;
    let terms = CountOptions {
        bound: bound.as_ref(),
        limit,
        cap,
        users,
        secret,
        threads: threads_or_all(threads),
        memory,
    };
    let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
        count_distinct(sources.batches(), types, &terms, tick)
    };
    let counts = watched(py, progress, work)?;
    Ok((
        PyLabels(counts.labels, fields),
        counts.counts.into_pyarray(py),
        counts.users.filter(|_| users),
    ))
}

/// Return the contribution bound, or an error if the types of the listed items and of the item column do not fit.
pub(super) fn bound(
    l0: Option<usize>,
    only: Option<&PyLabels>,
    items: LabelType,
    fields: Option<&[Field]>,
) -> Result<Option<Contribution>> {
    let only = only.map(|labels| listed(labels, items, fields)).transpose()?;
    Contribution::new(l0, only.as_deref(), items)
}

/// Return listed items as labels of the column of items, or an error if their types do not fit.
pub(super) fn listed<'a>(
    only: &'a PyLabels,
    items: LabelType,
    fields: Option<&[Field]>,
) -> Result<Cow<'a, Labels>> {
    if let Some(fields) = fields {
        return adopted(&only.0, only.1.as_deref(), fields, written).map(Cow::Owned);
    }
    let own = only.0.label_type();
    if only.0.is_empty() || own == items || own.is_integer() && items.is_integer() {
        return Ok(Cow::Borrowed(&only.0));
    }
    Err(Error::ItemType(
        "the listed items and the item column have different types; cast one of them",
    ))
}

/// Return the number of threads to use by default: one for each core, up to 16.
pub(super) fn threads_or_all(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from).min(16))
}

/// Return the row numbers of the `n` largest counts, ordered by count and then by label.
#[pyfunction(name = "top")]
fn largest<'py>(
    py: Python<'py>,
    labels: &PyLabels,
    counts: PyReadonlyArray1<'py, i64>,
    n: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let counts = counts.as_array();
    let counts = counts.to_slice().map_or_else(|| counts.to_vec().into(), Cow::Borrowed);
    if counts.len() != labels.0.len() {
        return Err(Error::Parameter("labels and counts must have the same length").into());
    }
    let rows = catch_panics(|| Ok(py.detach(|| top(&labels.0, &counts, n))))?;
    Ok(rows.into_iter().map(|row| row as i64).collect::<Vec<_>>().into_pyarray(py))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LONGEST", LONGEST)?;
    module.add_class::<PyLabels>()?;
    module.add_class::<PyCounts>()?;
    module.add_function(wrap_pyfunction!(count_sources, module)?)?;
    module.add_function(wrap_pyfunction!(largest, module)?)
}
