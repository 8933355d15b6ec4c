//! `text_rows`: released rows as CSV and JSON text. `csv_of_json`: such JSON as CSV.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList, PyString};

use super::values::PyLabels;
use crate::error::Error;
use crate::labels::Labels;
use crate::output::{csv, decoded, json, json_rows, push_signed, push_unsigned};

/// A column of released values.
enum Values<'py> {
    Labels(Bound<'py, PyLabels>),
    Signed(PyReadonlyArray1<'py, i64>),
    Unsigned(PyReadonlyArray1<'py, u64>),
    Floats(PyReadonlyArray1<'py, f64>),
    List(Bound<'py, PyList>),
}

impl<'py> Values<'py> {
    /// Return the column, or None if it is of another type.
    fn read(values: &Bound<'py, PyAny>) -> Option<Self> {
        if let Ok(labels) = values.cast::<PyLabels>() {
            return Some(Self::Labels(labels.clone()));
        }
        if let Ok(list) = values.cast_exact::<PyList>() {
            return Some(Self::List(list.clone()));
        }
        let signed = || values.extract().ok().map(Self::Signed);
        let unsigned = || values.extract().ok().map(Self::Unsigned);
        let floats = || values.extract().ok().map(Self::Floats);
        signed().or_else(unsigned).or_else(floats)
    }

    fn len(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.get().0.len(),
            Self::Signed(array) => array.as_array().len(),
            Self::Unsigned(array) => array.as_array().len(),
            Self::Floats(array) => array.as_array().len(),
            Self::List(list) => list.len(),
        }
    }
}

/// The number of floats whose texts are remembered. Few mechanisms publish more different sigmas.
const FLOATS: usize = 64;

/// Writes cells in one of the formats.
struct Writer<'py> {
    py: Python<'py>,
    out: Vec<u8>,
    is_json: bool,
    has_escaped: bool,
    /// Bits of floats, and their texts.
    floats: Vec<Option<(u64, String)>>,
}

impl<'py> Writer<'py> {
    fn new(py: Python<'py>, is_json: bool) -> Self {
        Self { py, out: Vec::new(), is_json, has_escaped: false, floats: vec![None; FLOATS] }
    }

    /// Write a cell. Return false if Python must write it.
    fn push(&mut self, values: &Values<'py>, row: usize) -> PyResult<bool> {
        match values {
            Values::Labels(labels) => match &labels.get().0 {
                Labels::Signed(values) => push_signed(&mut self.out, values[row]),
                Labels::Unsigned(values) => push_unsigned(&mut self.out, values[row]),
                Labels::Text(strings) => self.text(&String::from_utf8_lossy(strings.get(row))),
                Labels::Binary(strings) => self.text(&decoded(strings.get(row))),
            },
            Values::Signed(array) => push_signed(&mut self.out, array.as_array()[row]),
            Values::Unsigned(array) => push_unsigned(&mut self.out, array.as_array()[row]),
            Values::Floats(array) => self.float(array.as_array()[row])?,
            Values::List(list) => return self.object(&list.get_item(row)?),
        }
        Ok(true)
    }

    fn text(&mut self, text: &str) {
        if self.is_json {
            json::push_string(&mut self.out, text);
        } else {
            self.has_escaped |= csv::push_cell(&mut self.out, text);
        }
    }

    /// Write a float as Python does. Python makes the text, unless it is remembered.
    fn float(&mut self, value: f64) -> PyResult<()> {
        let bits = value.to_bits();
        let place = (bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % FLOATS;
        if let Some((known, text)) = &self.floats[place]
            && *known == bits
        {
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let text = match value {
            f64::INFINITY if self.is_json => "Infinity".to_owned(),
            f64::NEG_INFINITY if self.is_json => "-Infinity".to_owned(),
            _ if value.is_nan() && self.is_json => "NaN".to_owned(),
            _ => PyFloat::new(self.py, value).repr()?.to_str()?.to_owned(),
        };
        self.out.extend_from_slice(text.as_bytes());
        self.floats[place] = Some((bits, text));
        Ok(())
    }

    fn object(&mut self, cell: &Bound<'py, PyAny>) -> PyResult<bool> {
        if let Ok(text) = cell.cast_exact::<PyString>() {
            // A lone surrogate is no UTF-8.
            let Ok(text) = text.to_str() else { return Ok(false) };
            self.text(text);
        } else if let Ok(bytes) = cell.cast_exact::<PyBytes>() {
            self.text(&decoded(bytes.as_bytes()));
        } else if let Ok(number) = cell.cast_exact::<PyInt>() {
            if let Ok(number) = number.extract::<i64>() {
                push_signed(&mut self.out, number);
            } else if let Ok(number) = number.extract::<u64>() {
                push_unsigned(&mut self.out, number);
            } else {
                return Ok(false);
            }
        } else if let Ok(number) = cell.cast_exact::<PyFloat>() {
            self.float(number.value())?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Return the rows from `start` to `stop` as text in UTF-8. A row consists of the `pieces` with a cell after each but
/// the last. Return None if Python must write the rows, because it can write more types.
#[pyfunction]
fn text_rows<'py>(
    py: Python<'py>,
    columns: Vec<Bound<'py, PyAny>>,
    pieces: Vec<Vec<u8>>,
    is_json: bool,
    start: usize,
    stop: usize,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some((last, pieces)) = pieces.split_last().filter(|(_, rest)| rest.len() == columns.len())
    else {
        return Err(Error::Parameter("a row needs one more piece than it has columns").into());
    };
    let columns: Option<Vec<_>> = columns.iter().map(Values::read).collect();
    let Some(columns) = columns else { return Ok(None) };
    if columns.iter().any(|values| values.len() < stop) {
        return Err(Error::Parameter("a row number is out of range").into());
    }
    let mut writer = Writer::new(py, is_json);
    for row in start..stop {
        let begin = writer.out.len();
        for (piece, values) in pieces.iter().zip(&columns) {
            writer.out.extend_from_slice(piece);
            if !writer.push(values, row)? {
                return Ok(None);
            }
        }
        if !is_json {
            csv::end_row(&mut writer.out, begin);
        }
        writer.out.extend_from_slice(last);
    }
    Ok(Some(PyBytes::new(py, &writer.out)))
}

/// Return whether CSV escapes a cell of a column. Return None if Python must examine the column.
#[pyfunction]
fn csv_escapes<'py>(py: Python<'py>, values: &Bound<'py, PyAny>) -> PyResult<Option<bool>> {
    let Some(values) = Values::read(values) else { return Ok(None) };
    let is_number = match &values {
        Values::Labels(labels) => labels.get().0.label_type().is_integer(),
        Values::List(_) => false,
        _ => true,
    };
    if is_number {
        return Ok(Some(false));
    }
    let mut writer = Writer::new(py, false);
    for row in 0..values.len() {
        writer.out.clear();
        if !writer.push(&values, row)? {
            return Ok(None);
        }
        if writer.has_escaped {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

/// Return the rows of `text` from `start` to `stop`, in JSON that `text_rows` wrote, as CSV. The first row lacks the
/// first `skipped` bytes. Return None if the text is not exactly what `text_rows` writes.
#[pyfunction]
fn csv_of_json<'py>(
    py: Python<'py>,
    text: &[u8],
    pieces: Vec<Vec<u8>>,
    skipped: usize,
    start: usize,
    stop: usize,
) -> Option<Bound<'py, PyBytes>> {
    let text = text.get(start..stop)?;
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut known = (String::new(), String::new());
    let float = |number: &str| -> Option<String> {
        if known.0 != number {
            known = (number.to_owned(), float_of_json(py, number)?);
        }
        Some(known.1.clone())
    };
    json_rows::push_csv_rows(&mut out, text, &pieces, skipped, float)?;
    Some(PyBytes::new(py, &out))
}

/// Return the text in CSV of a float in JSON, or None if Python would write the float in another way.
fn float_of_json(py: Python<'_>, number: &str) -> Option<String> {
    match number {
        "NaN" => return Some("nan".to_owned()),
        "Infinity" => return Some("inf".to_owned()),
        "-Infinity" => return Some("-inf".to_owned()),
        _ => {}
    }
    let begins_with_digit =
        number.strip_prefix('-').unwrap_or(number).starts_with(|char: char| char.is_ascii_digit());
    let text = PyFloat::new(py, number.parse().ok()?).repr().ok()?.to_str().ok()?.to_owned();
    (begins_with_digit && text == number).then_some(text)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(csv_escapes, module)?)?;
    module.add_function(wrap_pyfunction!(csv_of_json, module)?)?;
    module.add_function(wrap_pyfunction!(text_rows, module)?)
}
