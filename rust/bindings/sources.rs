//! Sources of rows in Python, and work without the GIL that calls `progress` and checks for Ctrl-C.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_data::ArrayData;
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::panics::catch_panics;
use super::stream::PairStream;
use super::values::PyLabels;
use super::wanted::{Wanted, array, numbers};
use crate::columns::Batch;
use crate::columns::parts::Columns;
use crate::columns::projection::{Named, Projection, Rows};
use crate::error::{Error, Result};
use crate::labels::LabelType;
use crate::labels::composite::{Field, Kind};

/// The shortest time between two checks for Ctrl-C, and between two calls of `progress`.
const INTERVAL: Duration = Duration::from_millis(100);

/// Rows of users and items, in an Arrow stream or in sequences of the same length.
enum Source {
    Stream(Box<PairStream>),
    Sequences(Projection, Rows),
}

impl Source {
    fn open(source: &Bound<'_, PyAny>, wanted: &Wanted) -> PyResult<Self> {
        if let Ok(pairs) = source.cast::<PyTuple>() {
            let (users, items): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pairs.extract()?;
            let names = (&wanted.user, &wanted.item);
            let one = |values: &Bound<'_, PyAny>, names: &[String]| -> PyResult<_> {
                let name = names.first().cloned().unwrap_or_default();
                Ok(vec![(array(values, &name)?, name)])
            };
            let (user, item) = (one(&users, names.0)?, one(&items, names.1)?);
            return Self::of_arrays(user, item, None, None, wanted);
        }
        let Ok(table) = source.cast::<PyDict>() else {
            return PairStream::open(source, wanted).map(Box::new).map(Self::Stream);
        };
        let cells = |name: &String| -> PyResult<Bound<'_, PyAny>> {
            let missing = || Error::Schema(format!("there is no column {name:?}"));
            Ok(table.get_item(name)?.ok_or_else(missing)?)
        };
        let column = |name: &String| -> PyResult<(ArrayData, String)> {
            Ok((array(&cells(name)?, name)?, name.clone()))
        };
        let columns = |names: &[String]| names.iter().map(column).collect::<PyResult<Vec<_>>>();
        let time = wanted.time.as_ref().map(column).transpose()?;
        let value = |name: &String| -> PyResult<(ArrayData, String)> {
            Ok((numbers(&cells(name)?, name)?, name.clone()))
        };
        let value = wanted.value.as_ref().map(value).transpose()?;
        Self::of_arrays(columns(&wanted.user)?, columns(&wanted.item)?, time, value, wanted)
    }

    fn of_arrays(
        user: Vec<(ArrayData, String)>,
        item: Vec<(ArrayData, String)>,
        time: Option<(ArrayData, String)>,
        value: Option<(ArrayData, String)>,
        wanted: &Wanted,
    ) -> PyResult<Self> {
        let len = user.first().map_or(0, |(array, _)| array.len());
        if !user.iter().chain(&item).chain(&time).chain(&value).all(|(array, _)| array.len() == len)
        {
            return Err(Error::Parameter(
                "the columns, such as users and items, must have the same length",
            )
            .into());
        }
        let named = |(array, name): &(ArrayData, String)| -> Named {
            (name.clone(), array.data_type().clone())
        };
        let all = |columns: &[(ArrayData, String)]| columns.iter().map(named).collect::<Vec<_>>();
        let named_time = time.as_ref().map(named);
        let timed = named_time.as_ref().map(|time| (time, wanted.period.clone()));
        let named_value = value.as_ref().map(named);
        let projection = Projection::new(&all(&user), &all(&item), timed, named_value.as_ref())?;
        let data = |(array, _): (ArrayData, String)| match array.data_type() {
            DataType::Null => ArrayData::new_null(&DataType::Utf8, array.len()),
            _ => array,
        };
        let arrays = |columns: Vec<_>| columns.into_iter().map(data).collect::<Vec<_>>();
        let [time, value] = [time, value].map(|column| column.map(data));
        let columns = Columns { user: arrays(user), item: arrays(item), time, value };
        let rows = projection.rows(columns)?;
        Ok(Self::Sequences(projection, rows))
    }

    fn projection(&self) -> &Projection {
        match self {
            Self::Stream(stream) => stream.projection(),
            Self::Sequences(projection, _) => projection,
        }
    }
}

impl Iterator for Source {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Stream(stream) => stream.next(),
            Self::Sequences(_, rows) => rows.next(),
        }
    }
}

/// The rows of a source or a list of sources. A source is an Arrow stream, an object that offers an Arrow stream, a
/// tuple of two sequences of the same length, or a dict of sequences. Columns must have the same type in all sources; one
/// of the type null has that of the others, or of listed items, if these are in the list, too.
pub struct Sources {
    all: Vec<Source>,
    types: (LabelType, LabelType),
    fields: Option<Arc<[Field]>>,
    untyped: Vec<bool>,
}

impl Sources {
    /// Open the sources and check their types. Reads no rows of Arrow streams.
    pub fn open(source: &Bound<'_, PyAny>, wanted: &Wanted) -> PyResult<Self> {
        let open = |source: &Bound<'_, PyAny>| catch_panics(|| Source::open(source, wanted));
        let given: Vec<Bound<'_, PyAny>> = match source.cast::<PyList>() {
            Ok(list) => list.iter().collect(),
            Err(_) => vec![source.clone()],
        };
        let (listed, tables): (Vec<_>, Vec<_>) =
            given.iter().partition(|one| one.is_instance_of::<PyLabels>());
        let all = tables.into_iter().map(open).collect::<PyResult<Vec<Source>>>()?;
        let projections = || all.iter().map(Source::projection);
        let none = Error::Parameter("no table was given; pass at least one");
        let first = projections().next().ok_or(none)?;
        let typed = |is_user| projections().find(|other| other.is_typed(is_user)).unwrap_or(first);
        let (users, items) = (typed(true), typed(false));
        if !projections().all(|other| other.is_like(users, true) && other.is_like(items, false)) {
            let text = "the tables' columns have different types; cast them to one type";
            return Err(Error::Schema(text.into()).into());
        }
        let types = (users.types().0, items.types().1);
        let (fields, untyped) = (items.fields().cloned(), items.untyped_fields());
        let mut sources = Self { all, types, fields, untyped };
        if let Some(Ok(listed)) = listed.first().map(|listed| listed.cast::<PyLabels>()) {
            sources.adopt(listed.get());
        }
        Ok(sources)
    }

    /// Give columns of items that have no type those of listed items.
    fn adopt(&mut self, PyLabels(labels, given): &PyLabels) {
        let kinds = given.as_ref().map_or_else(
            || vec![Kind::of_labels(labels.label_type())],
            |given| given.iter().map(|field| field.kind).collect(),
        );
        if labels.is_empty() || kinds.len() != self.untyped.len() {
            return;
        }
        if let Some(fields) = &self.fields {
            let typed = |((own, kind), &untyped): ((&Field, Kind), _)| Field {
                kind: if untyped { kind } else { own.kind },
                name: own.name.clone(),
            };
            self.fields = Some(fields.iter().zip(kinds).zip(&self.untyped).map(typed).collect());
        } else if self.untyped == [true] {
            self.types.1 = labels.label_type();
        }
    }

    /// Return the types of users and items.
    pub fn types(&self) -> (LabelType, LabelType) {
        self.types
    }

    /// Return the columns of items, or `None` if they are one column of integers, text or bytes.
    pub fn fields(&self) -> Option<Arc<[Field]>> {
        self.fields.clone()
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
    let done = catch_panics(|| Ok(py.detach(|| work(&mut tick))?));
    raised.map_or(done, Err)
}
