//! `arrow_stream`: a small table of released values as an Arrow stream, for other libraries. Its buffers are new
//! copies.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::guard::guarded;
use crate::error::Error;

/// Return columns of (name, values, type) as an Arrow stream of one batch. The type is int64, uint64, float64, string
/// or binary. The schema does not depend on the values.
#[pyfunction]
fn arrow_stream<'py>(
    py: Python<'py>,
    columns: Vec<(String, Bound<'py, PyAny>, String)>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, values, type_name) in columns {
        let array = guarded(|| array(&values, &type_name))?;
        fields.push(Field::new(name, array.data_type().clone(), false));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)
        .map_err(|_| Error::Parameter("the columns of a table must have the same length"))?;
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

fn array(values: &Bound<'_, PyAny>, type_name: &str) -> PyResult<ArrayRef> {
    let values =
        if values.hasattr("tolist")? { values.call_method0("tolist")? } else { values.clone() };
    Ok(match type_name {
        "int64" => Arc::new(Int64Array::from(values.extract::<Vec<i64>>()?)),
        "uint64" => Arc::new(UInt64Array::from(values.extract::<Vec<u64>>()?)),
        "float64" => Arc::new(Float64Array::from(values.extract::<Vec<f64>>()?)),
        "string" => Arc::new(StringArray::from(values.extract::<Vec<String>>()?)),
        "binary" => {
            let cells = values.extract::<Vec<Vec<u8>>>()?;
            Arc::new(BinaryArray::from_iter_values(cells))
        }
        _ => {
            return Err(Error::Parameter(
                "unknown column type; use int64, uint64, float64, string or binary",
            )
            .into());
        }
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(arrow_stream, module)?)
}
