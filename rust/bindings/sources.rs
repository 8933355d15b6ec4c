//! Sources of rows in Python, and work without the GIL that calls `progress` and checks for Ctrl-C.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::guard::guarded;
use super::stream::PairStream;
use super::values::Cells;
use crate::columns::Batch;
use crate::error::{Error, Result};
use crate::labels::LabelType;

/// The shortest time between two checks for Ctrl-C, and between two calls of `progress`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Rows of users and items, in an Arrow stream or in two sequences of the same length.
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
            return Err(Error::Parameter("users and items must have the same length").into());
        }
        Ok(Self::Pairs(Some(Box::new(Batch { users, items }))))
    }

    /// Return the types of users and items, or `None` if the rows were already taken.
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

/// The rows of a source or a list of sources. A source is an Arrow stream, an object that offers an Arrow stream, or
/// a tuple of two sequences of the same length. Columns must have the same type in all sources.
pub struct Sources {
    all: Vec<Source>,
    types: (LabelType, LabelType),
}

impl Sources {
    /// Open the sources and check their types. Reads no rows of Arrow streams.
    pub fn open(source: &Bound<'_, PyAny>, user: &str, item: &str) -> PyResult<Self> {
        let open = |source: &Bound<'_, PyAny>| guarded(|| Source::open(source, user, item));
        let all: Vec<Source> = match source.cast::<PyList>() {
            Ok(list) => list.iter().map(|source| open(&source)).collect::<PyResult<_>>()?,
            Err(_) => vec![open(source)?],
        };
        let mut types = all.iter().filter_map(Source::types);
        let first =
            types.next().ok_or(Error::Parameter("no table was given; pass at least one"))?;
        if !types.all(|others| others == first) {
            let text = "the tables' columns have different types; cast them to one type";
            return Err(Error::Schema(text.into()).into());
        }
        Ok(Self { types: first, all })
    }

    /// Return the types of users and items.
    pub fn types(&self) -> (LabelType, LabelType) {
        self.types
    }

    /// Return all rows as batches.
    pub fn batches(&mut self) -> impl Iterator<Item = Result<Batch>> + Send {
        self.all.iter_mut().flatten()
    }
}

/// Run `work` without the GIL. If `work` calls `tick` often enough, check for Ctrl-C and call `progress` every 100 ms.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut (dyn FnMut() -> Result<()> + Send)) -> Result<T> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let mut last = Instant::now();
    let mut tick = || {
        if last.elapsed() < INTERVAL {
            return Ok(());
        }
        last = Instant::now();
        let called = Python::attach(|py| {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |call| call.call0(py).map(drop))
        });
        called.map_err(|error| {
            raised = Some(error);
            Error::Resource("interrupted")
        })
    };
    let done = guarded(|| Ok(py.detach(|| work(&mut tick))?));
    raised.map_or(done, Err)
}
