//! The items of a stream by row number.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::panics::catch_panics;
use super::values::{Cells, PyLabels, checked};
use crate::error::{Error, Result};
use crate::labels::item_table::ItemTable;

/// Distinct labels of one type by row number. The class has no methods to print, compare, copy or pickle them.
#[pyclass(name = "ItemTable", module = "discreet._core")]
#[derive(Default)]
pub struct PyItemTable(Option<ItemTable>);

#[pymethods]
impl PyItemTable {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Add labels. The labels of the first call determine the type.
    fn extend(&mut self, labels: &Bound<'_, PyAny>) -> PyResult<()> {
        let cells = self.cells(labels)?;
        if self.0.is_none() {
            self.0 = Some(ItemTable::new(cells.label_type())?);
        }
        let mut added = Ok(());
        if let Some(table) = &mut self.0 {
            cells.for_each(|label| {
                if added.is_ok() {
                    added = table.insert(label);
                }
            });
        }
        Ok(added?)
    }

    /// Return the row of each label, or -1 for an unknown label.
    fn find<'py>(
        &self,
        py: Python<'py>,
        labels: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let mut rows = Vec::new();
        self.cells(labels)?.for_each(|label| {
            let row = self.0.as_ref().and_then(|table| table.find(label));
            rows.push(row.map_or(-1, |row| row as i64));
        });
        Ok(rows.into_pyarray(py))
    }

    /// Return the labels of some rows.
    fn select(&self, rows: PyReadonlyArray1<'_, i64>) -> Result<PyLabels> {
        let table = self.0.as_ref().ok_or(Error::Parameter(
            "the table has no items yet; add items before selecting rows",
        ))?;
        Ok(PyLabels(table.labels().select(&checked(table.labels(), &rows)?)?, None))
    }

    /// Return the number of labels. This number is as private as the labels.
    fn items(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.labels().len())
    }
}

impl PyItemTable {
    /// Read labels. Return an error if their type is not the table's type.
    fn cells(&self, labels: &Bound<'_, PyAny>) -> PyResult<Cells> {
        let cells = catch_panics(|| Cells::read(labels))?;
        match &self.0 {
            Some(table) if table.label_type() != cells.label_type() => {
                Err(Error::Schema("all items of a stream must have one type".into()).into())
            }
            _ => Ok(cells),
        }
    }
}
