//! JSON lines files as Arrow streams.

use std::path::PathBuf;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::sources::watched;
use crate::files::{BLOCK, Source};
use crate::json::{Batches, Fault, Field, LONGEST_LINE, Loss, Reason};

/// Open an Arrow stream of the text of some keys in files. The keys are distinct. The key `value` is
/// summed: its values are any numbers, and drop no line.
#[pyfunction]
#[pyo3(signature = (paths, keys, *, value=None, block=BLOCK))]
fn json_stream(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    keys: Vec<String>,
    value: Option<String>,
    block: usize,
) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches(paths, keys, value.as_ref(), block)?));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// The number of lines that are dropped. For each reason: its name, the index of the key or `None`, the number of lines,
/// and the file's number and the line of the first ones.
type Found = (u64, Vec<(&'static str, Option<usize>, u64, Vec<(usize, u64)>)>);

/// Read some keys of files as `json_stream` does. Return the lines that it drops. They are private.
#[pyfunction]
#[pyo3(signature = (paths, keys, *, value=None))]
fn json_dropped(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    keys: Vec<String>,
    value: Option<String>,
) -> PyResult<Found> {
    let batches = batches(paths, keys, value.as_ref(), BLOCK)?;
    let found = watched(py, None, |tick| batches.drain(tick))?;
    let shown = |(reason, loss): (Reason, Loss)| {
        let (name, key) = match reason {
            Reason::Long => ("long line", None),
            Reason::NotText => ("not UTF-8", None),
            Reason::NotObject => ("not an object", None),
            Reason::Value(key, fault) => (name_of(fault), Some(key)),
        };
        (name, key, loss.lines, loss.places)
    };
    Ok((found.dropped, found.losses.into_iter().map(shown).collect()))
}

fn name_of(fault: Fault) -> &'static str {
    match fault {
        Fault::Missing => "missing",
        Fault::Null => "null",
        Fault::Type => "type",
        Fault::NotText => "not text",
        Fault::Long => "long",
    }
}

fn batches(
    paths: Vec<PathBuf>,
    keys: Vec<String>,
    value: Option<&String>,
    block: usize,
) -> PyResult<Batches> {
    let field = |key: String| Field { is_value: Some(&key) == value, key };
    let fields = keys.into_iter().map(field).collect();
    Ok(Batches::new(paths.into_iter().map(Source::File), fields, block)?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LONGEST_LINE", LONGEST_LINE)?;
    module.add_function(wrap_pyfunction!(json_dropped, module)?)?;
    module.add_function(wrap_pyfunction!(json_stream, module)?)
}
