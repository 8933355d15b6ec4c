//! The columns that Python asks for, and columns of Python sequences as arrays.

use arrow_array::{
    Array, BooleanArray, Date32Array, Float64Array, NullArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use arrow_data::ArrayData;
use numpy::{PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use super::values::Cells;
use crate::columns::times::Period;
use crate::columns::times::{Every, moment, nanoseconds, parse};
use crate::error::{Error, Result};

/// The name of a column of times, the length of the periods of items, the first moments that count and do not count,
/// and the length of the periods of users.
pub type Times = (String, Option<String>, Option<i64>, Option<i64>, Option<String>);

/// The names of the columns that a count reads.
pub struct Wanted {
    pub user: Vec<String>,
    pub item: Vec<String>,
    pub time: Option<String>,
    pub period: Period,
    pub value: Option<String>,
}

impl Wanted {
    /// Read the names. `user` and `item` are one name or a list of names.
    pub fn new(
        user: &Bound<'_, PyAny>,
        item: &Bound<'_, PyAny>,
        times: Option<Times>,
    ) -> PyResult<Self> {
        let (time, period) = match times {
            None => (None, Period::default()),
            Some((time, every, since, until, unit)) => {
                let length = |name: String| {
                    Every::of_name(&name)
                        .ok_or(Error::Parameter("a period must be 1h, 1d, 1w or 1mo"))
                };
                let (every, unit) = (every.map(length).transpose()?, unit.map(length).transpose()?);
                (Some(time), Period { every, unit, since, until })
            }
        };
        Ok(Self { user: names(user)?, item: names(item)?, time, period, value: None })
    }

    /// Also read a column of values.
    pub fn with(self, value: Option<String>) -> Self {
        Self { value, ..self }
    }
}

fn names(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let names: Vec<String> = if given.is_instance_of::<PyString>() {
        vec![given.extract()?]
    } else {
        given.extract()?
    };
    if names.is_empty() {
        return Err(Error::Parameter("user and item must each name at least one column").into());
    }
    Ok(names)
}

/// Read a numpy array or a sequence as an Arrow array. Dates, times and booleans keep their types. A cell of a list
/// that has another type than the first cell is an error.
pub fn array(values: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayData> {
    let Ok(array) = values.cast::<PyUntypedArray>() else {
        return list(values);
    };
    if array.ndim() != 1 {
        return Err(Error::Schema("a column must be a one-dimensional array".into()).into());
    }
    match array.dtype().kind() {
        b'O' => list(&values.call_method0("tolist")?),
        b'b' => {
            let cells: PyReadonlyArray1<'_, bool> = values.extract()?;
            Ok(BooleanArray::from(cells.as_array().to_vec()).into_data())
        }
        b'M' => moments(values),
        b'f' | b'c' => Err(Error::Schema(format!(
            "column {name:?} holds floats; floats are no labels, because equal numbers can differ in their last bits; \
             round it, and cast it to text or to integers, or seconds since 1970 to times: .astype(\"M8[s]\")"
        ))
        .into()),
        _ => Ok(Cells::read(values)?.into_array()),
    }
}

/// Read an array of values: floats of 64 bits, or text.
pub fn numbers(values: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayData> {
    if let Ok(cells) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(Float64Array::from(cells.as_array().to_vec()).into_data());
    }
    array(values, name)
}

/// Read an array of datetime64. The unit decides the type.
fn moments(values: &Bound<'_, PyAny>) -> PyResult<ArrayData> {
    let dtype = values.getattr("dtype")?.str()?.to_string();
    let integers = |unit: &str| -> PyResult<Vec<Option<i64>>> {
        let cells = values.call_method1("astype", (format!("datetime64[{unit}]"),))?;
        let cells = cells.call_method1("astype", ("int64",))?;
        let cells: PyReadonlyArray1<'_, i64> = cells.extract()?;
        // The least integer is a missing time.
        Ok(cells.as_array().iter().map(|&cell| (cell != i64::MIN).then_some(cell)).collect())
    };
    Ok(match dtype.split(['[', ']']).nth(1) {
        Some("D") => {
            let days = integers("D")?;
            let days = days.into_iter().map(|day| day.and_then(|day| i32::try_from(day).ok()));
            days.collect::<Date32Array>().into_data()
        }
        Some("ns") => TimestampNanosecondArray::from(integers("ns")?).into_data(),
        Some("us") => TimestampMicrosecondArray::from(integers("us")?).into_data(),
        // A cast to smaller units wraps around: larger numbers are out of range anyway.
        Some("ms") => TimestampMicrosecondArray::from(scaled(integers("ms")?, 1000)).into_data(),
        Some("s") => TimestampMicrosecondArray::from(scaled(integers("s")?, 1_000_000)).into_data(),
        _ => {
            return Err(Error::Schema(
                "times of numpy need the unit D, s, ms, us or ns: cast them, such as by .astype(\"M8[s]\")".into(),
            )
            .into());
        }
    })
}

fn scaled(cells: Vec<Option<i64>>, scale: i64) -> Vec<Option<i64>> {
    cells.into_iter().map(|cell| cell.and_then(|cell| cell.checked_mul(scale))).collect()
}

/// Read a list whose first cell that is not missing decides the type. Without one, the type is null.
fn list(values: &Bound<'_, PyAny>) -> PyResult<ArrayData> {
    let plain = || -> PyResult<ArrayData> { Ok(Cells::read(values)?.into_array()) };
    // Other iterables may give their cells only once.
    if !values.is_instance_of::<PyList>() && !values.is_instance_of::<PyTuple>() {
        return plain();
    }
    let cells = || values.try_iter().and_then(Iterator::collect::<PyResult<Vec<_>>>);
    let mut first = None;
    for cell in values.try_iter()? {
        let cell = cell?;
        if !is_missing(&cell) {
            first = Some(cell);
            break;
        }
    }
    let Some(first) = first else { return Ok(NullArray::new(values.len()?).into_data()) };
    if first.is_instance_of::<PyBool>() {
        let cells = cells()?;
        let bools = cells.iter().map(|cell| {
            if is_missing(cell) {
                Ok(None)
            } else {
                cell.extract::<bool>().map(Some).map_err(|_| mixed())
            }
        });
        return Ok(BooleanArray::from(bools.collect::<Result<Vec<_>>>()?).into_data());
    }
    if !first.hasattr("isoformat")? {
        return plain();
    }
    let cells = cells()?;
    let is_date = !first.hasattr("hour")?;
    let is_zoned = !is_date && !first.getattr("tzinfo")?.is_none();
    let texts = cells.iter().map(|cell| -> PyResult<Option<(i64, u32)>> {
        if is_missing(cell) {
            return Ok(None);
        }
        let is_like = cell.hasattr("isoformat")?
            && cell.hasattr("hour")? != is_date
            && (is_date || cell.getattr("tzinfo")?.is_none() != is_zoned);
        if !is_like {
            return Err(mixed().into());
        }
        let text: String = cell.call_method0("isoformat")?.extract()?;
        Ok(parse(text.as_bytes()))
    });
    let found = texts.collect::<PyResult<Vec<_>>>()?;
    if is_date {
        let days =
            found.into_iter().map(|moment| moment.map(|(seconds, _)| (seconds / 86_400) as i32));
        return Ok(days.collect::<Date32Array>().into_data());
    }
    let zone = is_zoned.then_some("UTC");
    // Times of pandas may have nanoseconds.
    if found.iter().flatten().any(|(_, nanos)| nanos % 1000 > 0) {
        let cells: TimestampNanosecondArray = found
            .into_iter()
            .map(|found| found.and_then(|(seconds, nanos)| nanoseconds(seconds, nanos)))
            .collect();
        return Ok(cells.with_timezone_opt(zone).into_data());
    }
    let micros =
        found.into_iter().map(|found| found.and_then(|(seconds, nanos)| moment(seconds, nanos)));
    Ok(micros.collect::<TimestampMicrosecondArray>().with_timezone_opt(zone).into_data())
}

/// Return the microseconds since 1970 in UTC of a time in the form of a column of text, or None for other text.
#[pyfunction]
fn moment_of(text: &str) -> Option<i64> {
    parse(text.as_bytes()).and_then(|(seconds, nanos)| moment(seconds, nanos))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(moment_of, module)?)
}

fn mixed() -> Error {
    Error::Schema("a column must hold cells of one type; cast it".into())
}

/// Return whether a cell is `None`, `NaN` or `NaT`.
fn is_missing(cell: &Bound<'_, PyAny>) -> bool {
    cell.is_none() || cell.ne(cell).unwrap_or(false)
}
