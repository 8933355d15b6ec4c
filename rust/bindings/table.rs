//! `arrow_stream`: a small table of released values as an Arrow stream, for other libraries. Its buffers are new
//! copies.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{Field, Schema};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::panics::catch_panics;
use super::values::PyLabels;
use crate::columns::times::{moment, nanoseconds, parse};
use crate::error::{Error, Result};
use crate::labels::composite::Kind;
use crate::labels::{Labels, Strings};

/// Return columns of (name, values, type) as an Arrow stream of one batch. The type is int64, uint64, float64, string,
/// binary, or with text as values bool, date, timestamp[us], timestamp[ns], timestamp[us, UTC] or timestamp[ns, UTC]. The schema does not depend on the values.
#[pyfunction]
fn arrow_stream<'py>(
    py: Python<'py>,
    columns: Vec<(String, Bound<'py, PyAny>, String)>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, values, type_name) in columns {
        let array = catch_panics(|| array(&values, &type_name))?;
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
    if let Ok(labels) = values.cast::<PyLabels>() {
        let labels = labels.get();
        if labels.1.is_none() && labels.plain_type() == type_name {
            return Ok(labels_array(&labels.0)?);
        }
        return array(labels.to_list(values.py())?.as_any(), type_name);
    }
    if let Some(array) = numbers(values, type_name) {
        return Ok(array);
    }
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
        _ => typed(values.extract::<Vec<String>>()?, type_name)?,
    })
}

/// Return booleans, dates or times in ISO 8601 as an array of their type.
fn typed(texts: Vec<String>, type_name: &str) -> Result<ArrayRef> {
    const DAY: i64 = 86_400;
    let wrong = || Error::Parameter("a released date, time or boolean is not written as such");
    let moments = || texts.iter().map(|text| parse(text.as_bytes()).ok_or_else(wrong));
    let nanos = |(seconds, nanos): (i64, u32)| nanoseconds(seconds, nanos);
    let micros = |(seconds, nanos): (i64, u32)| moment(seconds, nanos);
    Ok(match Kind::of_name(type_name) {
        Some(Kind::Bool) => {
            Arc::new(texts.iter().map(|text| Some(text == "true")).collect::<BooleanArray>())
        }
        Some(Kind::Date) => {
            let days =
                moments().map(|moment| moment.map(|(seconds, _)| seconds.div_euclid(DAY) as i32));
            Arc::new(Date32Array::from(days.collect::<Result<Vec<_>>>()?))
        }
        Some(Kind::Time { has_nanos, is_zoned }) => {
            let cells = moments().map(|moment| {
                (if has_nanos { nanos(moment?) } else { micros(moment?) }).ok_or_else(wrong)
            });
            let cells = cells.collect::<Result<Vec<_>>>()?;
            match (has_nanos, is_zoned) {
                (true, true) => {
                    Arc::new(TimestampNanosecondArray::from(cells).with_timezone("UTC"))
                }
                (true, false) => Arc::new(TimestampNanosecondArray::from(cells)),
                (false, true) => {
                    Arc::new(TimestampMicrosecondArray::from(cells).with_timezone("UTC"))
                }
                (false, false) => Arc::new(TimestampMicrosecondArray::from(cells)),
            }
        }
        _ => {
            return Err(Error::Parameter(
                "unknown column type; use int64, uint64, float64, string, binary, bool, date or a timestamp",
            ));
        }
    })
}

/// Return a numpy array of exactly this type of numbers as an array, and None for other values.
fn numbers(values: &Bound<'_, PyAny>, type_name: &str) -> Option<ArrayRef> {
    match type_name {
        "int64" => {
            let cells: PyReadonlyArray1<'_, i64> = values.extract().ok()?;
            Some(Arc::new(Int64Array::from(cells.as_array().to_vec())))
        }
        "uint64" => {
            let cells: PyReadonlyArray1<'_, u64> = values.extract().ok()?;
            Some(Arc::new(UInt64Array::from(cells.as_array().to_vec())))
        }
        "float64" => {
            let cells: PyReadonlyArray1<'_, f64> = values.extract().ok()?;
            Some(Arc::new(Float64Array::from(cells.as_array().to_vec())))
        }
        _ => None,
    }
}

/// Return labels as an array, whose buffers are copies of the labels' memory.
fn labels_array(labels: &Labels) -> Result<ArrayRef> {
    Ok(match labels {
        Labels::Signed(values) => Arc::new(Int64Array::from(values.clone())),
        Labels::Unsigned(values) => Arc::new(UInt64Array::from(values.clone())),
        Labels::Text(strings) => {
            let array = StringArray::try_new(offsets(strings)?, bytes(strings), None);
            // Labels that are not UTF-8 are published with replacement characters.
            let lossy = || (0..strings.len()).map(|row| String::from_utf8_lossy(strings.get(row)));
            Arc::new(array.unwrap_or_else(|_| StringArray::from_iter_values(lossy())))
        }
        Labels::Binary(strings) => {
            Arc::new(BinaryArray::new(offsets(strings)?, bytes(strings), None))
        }
    })
}

fn bytes(strings: &Strings) -> Buffer {
    Buffer::from(strings.bytes().to_vec())
}

fn offsets(strings: &Strings) -> Result<OffsetBuffer<i32>> {
    let offsets = std::iter::once(0).chain(strings.ends()).map(i32::try_from);
    let offsets: std::result::Result<Vec<i32>, _> = offsets.collect();
    let offsets = offsets.map_err(|_| {
        Error::Resource(
            "the items exceed 2 GiB, the most text of an Arrow column; write them as CSV or JSON lines",
        )
    })?;
    Ok(OffsetBuffer::new(offsets.into()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(arrow_stream, module)?)
}
