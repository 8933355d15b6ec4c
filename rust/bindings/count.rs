//! `count_distinct`, `count_pairs` and `top`: rows in, labels and counts out.

use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::stream::PairStream;
use super::values::{Cells, PyLabels};
use crate::bound::Contribution;
use crate::column::LabelType;
use crate::count::{Counts, Terms, count_distinct};
use crate::error::{Error, Result};
use crate::labels::Labels;
use crate::top::top;
use crate::worker::Batch;

type Counted<'py> = (PyLabels, Bound<'py, PyArray1<i64>>);

/// How often the work looks for Ctrl-C and tells its progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// Rows of users and items: an Arrow stream, or two equally long sequences.
enum Source {
    Stream(PairStream),
    Pairs(Option<Box<Batch>>),
}

impl Source {
    fn open(source: &Bound<'_, PyAny>, user: &str, item: &str) -> PyResult<Self> {
        let Ok(pairs) = source.cast::<PyTuple>() else {
            return PairStream::open(source, user, item).map(Self::Stream);
        };
        let (users, items): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pairs.extract()?;
        let (users, items) =
            (Cells::read(&users)?.into_column()?, Cells::read(&items)?.into_column()?);
        if users.len() != items.len() {
            return Err(Error::Parameter("users and items must be equally long").into());
        }
        Ok(Self::Pairs(Some(Box::new(Batch { users, items }))))
    }

    /// What users and items are, unless there is none of either.
    fn types(&self) -> Option<(LabelType, LabelType)> {
        match self {
            Self::Stream(stream) => Some(stream.types()),
            Self::Pairs(Some(batch)) => Some((batch.users.label_type(), batch.items.label_type())),
            Self::Pairs(None) => None,
        }
    }
}

impl Iterator for Source {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Stream(stream) => stream.next(),
            Self::Pairs(batch) => batch.take().map(|batch| Ok(*batch)),
        }
    }
}

/// The distinct users of each item of a source or of a list of sources: Arrow streams, objects that offer one, and
/// tuples of two equally long sequences. Columns must be of the same kind in all of them.
#[pyfunction(name = "count_distinct")]
#[pyo3(signature = (source, user, item, *, l0=None, only=None, limit=None, enough=None, threads=None, memory=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "most go by name in Python")]
fn count_sources<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    user: &str,
    item: &str,
    l0: Option<usize>,
    only: Option<&PyLabels>,
    limit: Option<usize>,
    enough: Option<i64>,
    threads: Option<usize>,
    memory: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Counted<'py>> {
    let open = |source: &Bound<'_, PyAny>| Source::open(source, user, item);
    let mut sources: Vec<Source> = match source.cast::<PyList>() {
        Ok(list) => list.iter().map(|source| open(&source)).collect::<PyResult<_>>()?,
        Err(_) => vec![open(source)?],
    };
    let mut all_types = sources.iter().filter_map(Source::types);
    let types = all_types.next().ok_or(Error::Parameter("there must be a table to count"))?;
    if !all_types.all(|others| others == types) {
        let text = "the tables' columns are of different types; cast them to the same";
        return Err(Error::Schema(text.into()).into());
    }
    let bound = bound(l0, only, types.1)?;
    let terms =
        Terms { bound: bound.as_ref(), limit, enough, threads: threads_or_all(threads), memory };
    let batches = sources.iter_mut().flatten();
    watched(py, progress, |tick| count_distinct(batches, types, &terms, tick))
}

/// Counts without the GIL; now and then looks for Ctrl-C and calls `progress`.
fn watched(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    count: impl FnOnce(&mut (dyn FnMut() -> Result<()> + Send)) -> Result<Counts> + Send,
) -> PyResult<Counted<'_>> {
    let mut raised = None;
    let mut last = Instant::now();
    let mut tick = || {
        if last.elapsed() < INTERVAL {
            return Ok(());
        }
        last = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |call| call.call0(py).map(drop))
        });
        told.map_err(|error| {
            raised = Some(error);
            Error::Resource("interrupted")
        })
    };
    let counted = py.detach(|| count(&mut tick));
    match (counted, raised) {
        (_, Some(error)) => Err(error),
        (Ok(counts), None) => Ok(shown(py, counts)),
        (Err(error), None) => Err(error.into()),
    }
}

/// The distinct users of each item of two equally long sequences.
#[pyfunction]
#[pyo3(signature = (users, items, *, l0=None, only=None, limit=None, enough=None, threads=None, memory=None))]
#[allow(clippy::too_many_arguments, reason = "most go by name in Python")]
fn count_pairs<'py>(
    py: Python<'py>,
    users: &Bound<'py, PyAny>,
    items: &Bound<'py, PyAny>,
    l0: Option<usize>,
    only: Option<&PyLabels>,
    limit: Option<usize>,
    enough: Option<i64>,
    threads: Option<usize>,
    memory: Option<usize>,
) -> PyResult<Counted<'py>> {
    let pair = PyTuple::new(py, [users, items])?;
    count_sources(py, &pair, "", "", l0, only, limit, enough, threads, memory, None)
}

/// What bounds a user's contribution, where the listed items are of the column's kind.
fn bound(
    l0: Option<usize>,
    only: Option<&PyLabels>,
    items: LabelType,
) -> Result<Option<Contribution>> {
    let integers = |labels: &Labels| matches!(labels, Labels::Signed(_) | Labels::Unsigned(_));
    match only {
        Some(labels) if !labels.0.is_empty() && integers(&labels.0) != items.is_integer() => Err(
            Error::Schema("the listed items and the column of items are of different types".into()),
        ),
        _ => Ok(Contribution::new(l0, only.map(|labels| &labels.0))),
    }
}

fn threads_or_all(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from).min(16))
}

fn shown(py: Python<'_>, counts: Counts) -> Counted<'_> {
    (PyLabels(counts.labels), counts.counts.into_pyarray(py))
}

/// The row numbers of the `n` largest counts: by count, then by label.
#[pyfunction(name = "top")]
fn largest<'py>(
    py: Python<'py>,
    labels: &PyLabels,
    counts: PyReadonlyArray1<'py, i64>,
    n: usize,
) -> Result<Bound<'py, PyArray1<i64>>> {
    let counts = counts.as_array().to_vec();
    if counts.len() != labels.0.len() {
        return Err(Error::Parameter("labels and counts must be equally long"));
    }
    let rows = py.detach(|| top(&labels.0, &counts, n));
    Ok(rows.into_iter().map(|row| row as i64).collect::<Vec<_>>().into_pyarray(py))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLabels>()?;
    module.add_function(wrap_pyfunction!(count_sources, module)?)?;
    module.add_function(wrap_pyfunction!(count_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(largest, module)?)
}
