//! CSV files as Arrow streams.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use super::sources::watched;
use crate::csv::{Batches, Dialect, Place, Reason, Table};
use crate::error::Error;
use crate::files::{BLOCK, Encoding, Source};

const NO_FILE: Error = Error::Parameter("no file was given; pass at least one");
const READ_BEFORE: Error =
    Error::Input("standard input was already read; it can be read only once");

/// Read the cells of a file's first record.
#[pyfunction]
#[pyo3(signature = (path, delimiter, *, encoding="utf-8", block=BLOCK))]
fn csv_header<'py>(
    py: Python<'py>,
    path: PathBuf,
    delimiter: u8,
    encoding: &str,
    block: usize,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let table = open(py, Source::File(path), dialect(delimiter, encoding, None)?, block)?;
    Ok(to_python(py, &table))
}

/// Open an Arrow stream of the text in some columns of files with the same header. `columns` are distinct indices, and
/// `value` is the index among them of the column to sum.
#[pyfunction]
#[pyo3(signature = (paths, delimiter, columns, *, value=None, encoding="utf-8", headless=None, block=BLOCK))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
fn csv_stream<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    delimiter: u8,
    columns: Vec<usize>,
    value: Option<usize>,
    encoding: &str,
    headless: Option<usize>,
    block: usize,
) -> PyResult<Bound<'py, PyCapsule>> {
    let dialect = dialect(delimiter, encoding, headless)?;
    stream(py, batches(py, paths, dialect, &columns, value, block)?)
}

/// How many records have too few cells, a cell that is too long, or a cell that is not UTF-8; how many files end in a
/// quoted cell; and the reason, the file's number and the line of some of these records.
type Found = ((u64, u64, u64, u64), Vec<(&'static str, usize, u64)>);

/// Read some columns of files as `csv_stream` does. Return the records that it drops. They are private.
#[pyfunction]
#[pyo3(signature = (paths, delimiter, columns, *, value=None, encoding="utf-8", headless=None))]
fn csv_dropped(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    delimiter: u8,
    columns: Vec<usize>,
    value: Option<usize>,
    encoding: &str,
    headless: Option<usize>,
) -> PyResult<Found> {
    let dialect = dialect(delimiter, encoding, headless)?;
    let batches = batches(py, paths, dialect, &columns, value, BLOCK)?;
    let found = watched(py, None, |tick| batches.drain(tick))?;
    let place = |place: Place| {
        let reason = match place.reason {
            Reason::Short => "short",
            Reason::Long => "long",
            Reason::NotText => "not text",
            Reason::Unclosed => "unclosed",
        };
        (reason, place.file, place.line)
    };
    let dropped = found.dropped;
    let numbers = (dropped.short, dropped.long, dropped.not_text, found.unclosed);
    Ok((numbers, found.places.into_iter().map(place).collect()))
}

fn dialect(delimiter: u8, encoding: &str, headless: Option<usize>) -> PyResult<Dialect> {
    let encoding = Encoding::of_name(encoding)
        .ok_or(Error::Parameter("encoding must be utf-8, latin-1, windows-1252 or utf-16"))?;
    Ok(Dialect { delimiter, encoding, headless })
}

fn batches(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    dialect: Dialect,
    columns: &[usize],
    value: Option<usize>,
    block: usize,
) -> PyResult<Batches> {
    let mut sources = paths.into_iter().map(Source::File);
    let first = open(py, sources.next().ok_or(NO_FILE)?, dialect, block)?;
    Ok(Batches::new(first, sources, columns, value, block)?)
}

/// A CSV table on standard input, which can be read only once.
#[pyclass(name = "CsvInput", module = "discreet._core", frozen)]
pub struct PyCsvInput(Mutex<Option<Table>>);

#[pymethods]
impl PyCsvInput {
    /// Read the header. `head` is the first bytes of standard input, which the caller has already read.
    #[new]
    #[pyo3(signature = (head, delimiter, *, encoding="utf-8", headless=None))]
    fn new(
        py: Python<'_>,
        head: Vec<u8>,
        delimiter: u8,
        encoding: &str,
        headless: Option<usize>,
    ) -> PyResult<Self> {
        let table = open(py, Source::Input(head), dialect(delimiter, encoding, headless)?, BLOCK)?;
        Ok(Self(Mutex::new(Some(table))))
    }

    /// The cells of the first record; an empty list after `stream` was called.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.as_ref().map(|table| to_python(py, table)).unwrap_or_default()
    }

    /// Open an Arrow stream of the text in some columns, as `csv_stream` does. Can be called only once.
    #[pyo3(signature = (columns, *, value=None))]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<usize>,
        value: Option<usize>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        stream(py, Batches::new(table.ok_or(READ_BEFORE)?, [], &columns, value, BLOCK)?)
    }
}

fn open(py: Python<'_>, source: Source, dialect: Dialect, block: usize) -> PyResult<Table> {
    watched(py, None, |tick| Table::open(source, dialect, block, tick))
}

fn to_python<'py>(py: Python<'py>, table: &Table) -> Vec<Bound<'py, PyBytes>> {
    table.header().iter().map(|cell| PyBytes::new(py, cell)).collect()
}

fn stream(py: Python<'_>, batches: Batches) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCsvInput>()?;
    module.add_function(wrap_pyfunction!(csv_header, module)?)?;
    module.add_function(wrap_pyfunction!(csv_dropped, module)?)?;
    module.add_function(wrap_pyfunction!(csv_stream, module)?)
}
