//! Python sequences and numpy arrays as columns, and Python objects from labels. A label is the integer, text or
//! bytes of an item.

use std::sync::Arc;

use arrow_array::{Array, Int64Array, LargeBinaryArray, LargeStringArray, UInt64Array};
use arrow_data::ArrayData;
use numpy::{
    IntoPyArray, PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::panics::catch_panics;
use crate::error::{Error, Result};
use crate::labels::composite::{self, Field, Kind};
use crate::labels::known::KnownLabels;
use crate::labels::order::order;
use crate::labels::{LabelType, Labels, Strings};

/// The cells of a column; `None` is NULL.
pub enum Cells {
    Signed(Vec<Option<i64>>),
    Unsigned(Vec<Option<u64>>),
    Text(Vec<Option<String>>),
    Binary(Vec<Option<Vec<u8>>>),
}

pub const REPEATED: Error = Error::Parameter("items must be distinct and must not be missing");

fn refused() -> Error {
    Error::Schema(
        "a column must hold integers of 64 bits, text, bytes, dates, times or booleans, all of one type: cast it, and \
         round floats first; as times, cast seconds since 1970 by pandas.to_datetime(..., unit=\"s\")"
            .into(),
    )
}

impl Cells {
    /// Read a numpy array of integers or text, or any sequence. None, NaN and text that UTF-8 cannot encode become
    /// NULL.
    pub fn read(values: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = values.cast::<PyUntypedArray>() {
            if array.ndim() != 1 {
                return Err(Error::Schema("a column must be a one-dimensional array".into()).into());
            }
            return match array.dtype().kind() {
                b'i' => {
                    let cast = values.call_method1("astype", ("int64",))?;
                    let cells: PyReadonlyArray1<'_, i64> = cast.extract()?;
                    Ok(Self::Signed(cells.as_array().iter().map(|&cell| Some(cell)).collect()))
                }
                b'u' => {
                    let cast = values.call_method1("astype", ("uint64",))?;
                    let cells: PyReadonlyArray1<'_, u64> = cast.extract()?;
                    Ok(Self::Unsigned(cells.as_array().iter().map(|&cell| Some(cell)).collect()))
                }
                kind @ (b'U' | b'S' | b'O') => {
                    let cells = Self::read_list(&values.call_method0("tolist")?)?;
                    // A bytes array keeps its type even if it is empty.
                    Ok(match cells {
                        Self::Text(nulls) if kind == b'S' => Self::Binary(vec![None; nulls.len()]),
                        cells => cells,
                    })
                }
                _ => Err(refused().into()),
            };
        }
        if values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>() {
            return Err(refused().into());
        }
        Self::read_list(values)
    }

    fn read_list(values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let cells: Vec<Bound<'_, PyAny>> =
            values.try_iter().map_err(|_| refused())?.collect::<PyResult<_>>()?;
        let is_null = |cell: &Bound<'_, PyAny>| {
            cell.is_none() || cell.cast::<PyFloat>().is_ok_and(|float| float.value().is_nan())
        };
        let Some(first) = cells.iter().find(|cell| !is_null(cell)) else {
            return Ok(Self::Text(vec![None; cells.len()]));
        };
        let each = cells.iter().map(|cell| (!is_null(cell)).then_some(cell));
        if first.is_instance_of::<PyString>() {
            let text = |cell: &Bound<'_, PyAny>| -> Result<Option<String>> {
                let text = cell.cast::<PyString>().map_err(|_| refused())?;
                Ok(text.to_cow().ok().map(std::borrow::Cow::into_owned))
            };
            let cells: Result<_> = each.map(|cell| cell.map_or(Ok(None), text)).collect();
            return Ok(Self::Text(cells?));
        }
        if first.is_instance_of::<PyBytes>() {
            let bytes = |cell: &Bound<'_, PyAny>| -> Result<Option<Vec<u8>>> {
                let bytes = cell.cast::<PyBytes>().map_err(|_| refused())?;
                Ok(Some(bytes.as_bytes().to_vec()))
            };
            let cells: Result<_> = each.map(|cell| cell.map_or(Ok(None), bytes)).collect();
            return Ok(Self::Binary(cells?));
        }
        let whole = |cell: &Bound<'_, PyAny>| -> Result<Option<i128>> {
            let is_bool = cell.is_instance_of::<PyBool>();
            let is_whole = cell.is_instance_of::<PyInt>()
                || cell.hasattr("__index__").unwrap_or(false)
                    && !cell.hasattr("__len__").unwrap_or(true);
            if is_bool || !is_whole {
                return Err(refused());
            }
            let index = cell.call_method0("__index__").map_err(|_| refused())?;
            Ok(Some(index.extract::<i128>().map_err(|_| refused())?))
        };
        let cells: Result<Vec<Option<i128>>> =
            each.map(|cell| cell.map_or(Ok(None), whole)).collect();
        Self::of_whole(&cells?)
    }

    /// Return signed integers if all cells fit into `i64`. Otherwise, return unsigned integers if all cells fit into
    /// `u64`.
    fn of_whole(cells: &[Option<i128>]) -> PyResult<Self> {
        fn all<T: TryFrom<i128>>(cells: &[Option<i128>]) -> Option<Vec<Option<T>>> {
            cells
                .iter()
                .map(|cell| cell.map(|v| T::try_from(v).ok()).map_or(Some(None), |v| v.map(Some)))
                .collect()
        }
        if let Some(cells) = all::<i64>(cells) {
            return Ok(Self::Signed(cells));
        }
        all::<u64>(cells).map(Self::Unsigned).ok_or_else(|| {
            Error::Schema("integers must fit 64 bits; pass larger ones as text".into()).into()
        })
    }

    /// Return the type of the cells.
    pub fn label_type(&self) -> LabelType {
        match self {
            Self::Signed(_) => LabelType::Signed,
            Self::Unsigned(_) => LabelType::Unsigned,
            Self::Text(_) => LabelType::Text,
            Self::Binary(_) => LabelType::Binary,
        }
    }

    /// Call `work` with the bytes of every cell that is not NULL, in the form of `Labels::push_bytes`.
    pub fn for_each(&self, mut work: impl FnMut(&[u8])) {
        match self {
            Self::Signed(cells) => cells.iter().flatten().for_each(|v| work(&v.to_le_bytes())),
            Self::Unsigned(cells) => cells.iter().flatten().for_each(|v| work(&v.to_le_bytes())),
            Self::Text(cells) => cells.iter().flatten().for_each(|v| work(v.as_bytes())),
            Self::Binary(cells) => cells.iter().flatten().for_each(|v| work(v)),
        }
    }

    /// Return the cells as labels, or an error if a cell is NULL.
    fn into_labels(self) -> Result<Labels> {
        fn all<T>(cells: Vec<Option<T>>) -> Result<Vec<T>> {
            cells.into_iter().map(|cell| cell.ok_or(REPEATED)).collect()
        }
        fn strings<T: AsRef<[u8]>>(cells: Vec<Option<T>>) -> Result<Strings> {
            let mut strings = Strings::default();
            all(cells)?.iter().for_each(|cell| strings.push(cell.as_ref()));
            Ok(strings)
        }
        Ok(match self {
            Self::Signed(cells) => Labels::Signed(all(cells)?),
            Self::Unsigned(cells) => Labels::Unsigned(all(cells)?),
            Self::Text(cells) => Labels::Text(strings(cells)?),
            Self::Binary(cells) => Labels::Binary(strings(cells)?),
        })
    }

    /// Return the cells as an Arrow array.
    pub fn into_array(self) -> ArrayData {
        match self {
            Self::Signed(cells) => Int64Array::from(cells).into_data(),
            Self::Unsigned(cells) => UInt64Array::from(cells).into_data(),
            Self::Text(cells) => LargeStringArray::from(cells).into_data(),
            Self::Binary(cells) => LargeBinaryArray::from_iter(cells).into_data(),
        }
    }
}

/// The columns of items, if they are several or have types that labels do not have.
pub type Schema = Option<Arc<[Field]>>;

/// Distinct labels by row. The class has no methods to print, compare, copy or pickle them.
#[pyclass(name = "Labels", module = "discreet._core", frozen)]
pub struct PyLabels(pub Labels, pub Schema);

#[pymethods]
impl PyLabels {
    /// Create labels from a sequence of distinct integers, strings or bytes, or of tuples of these.
    #[staticmethod]
    fn from_sequence(values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (known, schema) = known_labels(values)?;
        Ok(Self(known.into_labels(), schema))
    }

    /// Create labels of several columns from their bytes, as an engine encoded them. `columns` has the name and the
    /// type of each column.
    #[staticmethod]
    fn of_encoded(values: Vec<Vec<u8>>, columns: Vec<(String, String)>) -> PyResult<Self> {
        let unknown = Error::Parameter("unknown type of a column of items");
        let field = |(name, kind): (String, String)| {
            Kind::of_name(&kind).map(|kind| Field { name, kind }).ok_or_else(|| unknown.clone())
        };
        let fields = columns.into_iter().map(field).collect::<Result<Vec<_>>>()?;
        let mut strings = Strings::default();
        for value in &values {
            strings.push(value);
        }
        composite::columns(&strings, &fields)?;
        Ok(Self(Labels::Binary(strings), Some(fields.into())))
    }

    /// Return the labels of each column, which may repeat. Dates, times and booleans are text.
    fn columns(&self) -> PyResult<Vec<Self>> {
        let columns = self.split()?.unwrap_or_else(|| vec![self.0.clone()]);
        Ok(columns.into_iter().map(|labels| Self(labels, None)).collect())
    }

    /// Return the labels of some rows as Python objects. Labels of several columns are tuples.
    fn take<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.objects(py, checked(&self.0, &rows)?.into_iter())
    }

    /// Return all labels as Python objects.
    pub fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.objects(py, 0..self.0.len())
    }

    /// Return integer labels as an array, and None for other labels.
    fn integers<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.0 {
            Labels::Signed(values) => Some(PyArray1::from_slice(py, values).into_any()),
            Labels::Unsigned(values) => Some(PyArray1::from_slice(py, values).into_any()),
            _ => None,
        }
    }

    /// Return the number of labels. This number is as private as the labels.
    fn items(&self) -> usize {
        self.0.len()
    }

    /// Return the labels of some rows by descending count and then by label, and the place of each among `rows`. There
    /// is one count for each of the rows.
    fn ordered<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, i64>,
        counts: PyReadonlyArray1<'py, i64>,
    ) -> Result<(Self, Bound<'py, PyArray1<i64>>)> {
        let mut rows = checked(&self.0, &rows)?;
        let counts = counts.as_array().to_vec();
        if counts.len() != rows.len() {
            return Err(Error::Parameter("there must be one count for each row"));
        }
        let (labels, order) = py.detach(|| -> Result<_> {
            let order = order(&self.0, &counts, |place| rows[place]);
            rows = order.iter().map(|&place| rows[place]).collect();
            Ok((self.0.select(&rows)?, order))
        })?;
        let order: Vec<i64> = order.into_iter().map(|place| place as i64).collect();
        Ok((Self(labels, self.1.clone()), order.into_pyarray(py)))
    }

    /// Return the labels of some rows.
    fn select(&self, rows: PyReadonlyArray1<'_, i64>) -> PyResult<Self> {
        Ok(Self(self.0.select(&checked(&self.0, &rows)?)?, self.1.clone()))
    }

    /// The Arrow type: int64, uint64, string or binary. For several columns and for other types, a tuple with the name
    /// and the type of each column.
    #[getter]
    fn type_name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let plain = |kind: Kind| Ok(PyString::new(py, kind.name()).into_any());
        match self.1.as_deref() {
            None => plain(Kind::of_labels(self.0.label_type())),
            Some(
                [
                    Field {
                        name,
                        kind: kind @ (Kind::Signed | Kind::Unsigned | Kind::Text | Kind::Binary),
                    },
                ],
            ) if name == "item" => plain(*kind),
            Some(fields) => {
                let pairs = fields.iter().map(|field| (field.name.as_str(), field.kind.name()));
                Ok(PyTuple::new(py, pairs.collect::<Vec<_>>())?.into_any())
            }
        }
    }
}

impl PyLabels {
    /// Return the Arrow type of labels of one column.
    pub fn plain_type(&self) -> &'static str {
        Kind::of_labels(self.0.label_type()).name()
    }

    /// Return each column, or `None` if the labels are those of one column.
    fn split(&self) -> Result<Option<Vec<Labels>>> {
        match (&self.0, &self.1) {
            (Labels::Binary(strings), Some(fields)) => {
                composite::columns(strings, fields).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn of_tuples(list: &Bound<'_, PyList>) -> PyResult<Self> {
        let width = list.get_item(0)?.len()?;
        let mut columns = vec![Vec::with_capacity(list.len()); width];
        for tuple in list {
            let tuple = tuple.cast_into::<PyTuple>().map_err(|_| refused())?;
            if tuple.len() != width || width == 0 {
                let text = "items of several columns must be tuples of one length";
                return Err(Error::Schema(text.into()).into());
            }
            columns.iter_mut().zip(tuple).for_each(|(column, cell)| column.push(cell));
        }
        let mut labels = Vec::new();
        for column in columns {
            let cells = catch_panics(|| Cells::read(PyList::new(list.py(), column)?.as_any()))?;
            labels.push(cells.into_labels()?);
        }
        let field = |column: &Labels| Field {
            name: String::new(),
            kind: Kind::of_labels(column.label_type()),
        };
        let fields: Arc<[Field]> = labels.iter().map(field).collect();
        Ok(Self(Labels::Binary(composite::joined(&labels)?), Some(fields)))
    }

    /// Return the labels of some rows as Python objects.
    fn objects<'py>(
        &self,
        py: Python<'py>,
        rows: impl ExactSizeIterator<Item = usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        if self.1.is_some() {
            let rows: Vec<usize> = rows.collect();
            let chosen = Self(self.0.select(&rows)?, self.1.clone());
            let columns = chosen.columns()?;
            let lists =
                columns.iter().map(|column| column.to_list(py)).collect::<PyResult<Vec<_>>>()?;
            if let [list] = lists.as_slice() {
                return Ok(list.clone());
            }
            let tuple = |row: usize| -> PyResult<_> {
                let cells =
                    lists.iter().map(|list| list.get_item(row)).collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(py, cells)
            };
            return PyList::new(py, (0..rows.len()).map(tuple).collect::<PyResult<Vec<_>>>()?);
        }
        match &self.0 {
            Labels::Signed(values) => PyList::new(py, rows.map(|row| values[row])),
            Labels::Unsigned(values) => PyList::new(py, rows.map(|row| values[row])),
            Labels::Text(strings) => PyList::new(
                py,
                rows.map(|row| PyString::new(py, &String::from_utf8_lossy(strings.get(row)))),
            ),
            Labels::Binary(strings) => {
                PyList::new(py, rows.map(|row| PyBytes::new(py, strings.get(row))))
            }
        }
    }
}

/// Read distinct labels, and the columns of tuples. Return an error if a cell is missing or repeats.
pub fn known_labels(values: &Bound<'_, PyAny>) -> PyResult<(KnownLabels, Schema)> {
    catch_panics(|| {
        let (labels, schema) = if let Some(tuples) = tuples(values)? {
            let PyLabels(labels, schema) = PyLabels::of_tuples(&tuples)?;
            (labels, schema)
        } else if let Some(labels) = plain_labels(values) {
            (labels, None)
        } else {
            (Cells::read(values)?.into_labels()?, None)
        };
        Ok((values.py().detach(|| KnownLabels::new(labels))?.ok_or(REPEATED)?, schema))
    })
}

/// Return a list or a tuple of tuples as a list, and `None` for other values.
fn tuples<'py>(values: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    let listed = values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>();
    if !listed || !values.get_item(0).is_ok_and(|first| first.is_instance_of::<PyTuple>()) {
        return Ok(None);
    }
    PyList::new(values.py(), values.try_iter()?.collect::<PyResult<Vec<_>>>()?).map(Some)
}

/// Read a list or a tuple of text, or of integers that fit into `i64`, without a copy of each cell. Return `None` for
/// other cells.
fn plain_labels(values: &Bound<'_, PyAny>) -> Option<Labels> {
    if !values.is_exact_instance_of::<PyList>() && !values.is_exact_instance_of::<PyTuple>() {
        return None;
    }
    let first = values.get_item(0).ok()?;
    let cells = values.try_iter().ok()?;
    if first.is_exact_instance_of::<PyInt>() {
        let whole = |cell: PyResult<Bound<'_, PyAny>>| {
            cell.ok()?.cast_exact::<PyInt>().ok()?.extract().ok()
        };
        return cells.map(whole).collect::<Option<_>>().map(Labels::Signed);
    }
    let mut strings = Strings::default();
    for cell in cells {
        let cell = cell.ok()?;
        let text = cell.cast::<PyString>().ok()?.to_cow().ok()?;
        strings.make_room(1, text.len()).ok()?;
        strings.push(text.as_bytes());
    }
    Some(Labels::Text(strings))
}

/// Check that all row numbers are in range.
pub fn checked(labels: &Labels, rows: &PyReadonlyArray1<'_, i64>) -> Result<Vec<usize>> {
    let valid = |&row: &i64| usize::try_from(row).ok().filter(|&row| row < labels.len());
    let rows: Option<Vec<usize>> = rows.as_array().iter().map(valid).collect();
    rows.ok_or(Error::Parameter("a row number is out of range"))
}
