//! CSV files as Arrow streams.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use super::sources::watched;
use crate::csv::{BLOCK, Batches, Source, Table};
use crate::error::Error;

const NO_FILE: Error = Error::Parameter("no file was given; pass at least one");
const READ_BEFORE: Error =
    Error::Input("standard input was already read; it can be read only once");

/// Read the cells of a file's first record.
#[pyfunction]
#[pyo3(signature = (path, delimiter, *, block=BLOCK))]
fn csv_header(
    py: Python<'_>,
    path: PathBuf,
    delimiter: u8,
    block: usize,
) -> PyResult<Vec<Bound<'_, PyBytes>>> {
    let table = open(py, Source::File(path), delimiter, block)?;
    Ok(to_python(py, &table))
}

/// Open an Arrow stream of the text in some columns of files with the same header. `columns` are distinct indices.
#[pyfunction]
#[pyo3(signature = (paths, delimiter, columns, *, block=BLOCK))]
fn csv_stream(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    delimiter: u8,
    columns: Vec<usize>,
    block: usize,
) -> PyResult<Bound<'_, PyCapsule>> {
    let mut sources = paths.into_iter().map(Source::File);
    let first = open(py, sources.next().ok_or(NO_FILE)?, delimiter, block)?;
    stream(py, Batches::new(first, sources, &columns, block)?)
}

/// A CSV table on standard input, which can be read only once.
#[pyclass(name = "CsvInput", module = "discreet._core", frozen)]
pub struct PyCsvInput(Mutex<Option<Table>>);

#[pymethods]
impl PyCsvInput {
    /// Read the header. `head` is the first bytes of standard input, which the caller has already read.
    #[new]
    fn new(py: Python<'_>, head: Vec<u8>, delimiter: u8) -> PyResult<Self> {
        let table = open(py, Source::Input(head), delimiter, BLOCK)?;
        Ok(Self(Mutex::new(Some(table))))
    }

    /// The cells of the first record; an empty list after `stream` was called.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.as_ref().map(|table| to_python(py, table)).unwrap_or_default()
    }

    /// Open an Arrow stream of the text in some columns. `columns` are distinct indices. Can be called only once.
    fn stream<'py>(&self, py: Python<'py>, columns: Vec<usize>) -> PyResult<Bound<'py, PyCapsule>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        stream(py, Batches::new(table.ok_or(READ_BEFORE)?, [], &columns, BLOCK)?)
    }
}

fn open(py: Python<'_>, source: Source, delimiter: u8, block: usize) -> PyResult<Table> {
    watched(py, None, |tick| Table::open(source, delimiter, block, tick))
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
    module.add_function(wrap_pyfunction!(csv_stream, module)?)
}
