//! `KnownLabels`: labels that are known in advance, found among the labels of a histogram. Arrays are read without a
//! copy, so no other thread may write to them (`SECURITY.md`).

use std::borrow::Cow;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::panics::catch_panics;
use super::values::{PyLabels, REPEATED, Schema, checked, known_labels};
use crate::columns::times::written;
use crate::error::{Error, Result};
use crate::labels::composite::adopted;
use crate::labels::known::KnownLabels;

type Column<'py> = Bound<'py, PyArray1<i64>>;
/// The counts of other labels, the counts of known labels, and the rows of known labels.
type Split<'py> = (Column<'py>, Column<'py>, Column<'py>);
type Rows<'py> = PyReadonlyArray1<'py, i64>;

const DIFFERENT: Error = Error::Parameter("labels and counts must have the same length");

/// Distinct labels with a hash table of their rows. The class has no methods to print, compare, copy or pickle them.
#[pyclass(name = "KnownLabels", module = "discreet._core", frozen)]
pub struct PyKnownLabels(Arc<KnownLabels>, Schema);

#[pymethods]
impl PyKnownLabels {
    /// Create known labels from a sequence of distinct integers, strings or bytes, or of tuples of these.
    #[staticmethod]
    fn from_sequence(values: &Bound<'_, PyAny>) -> PyResult<Self> {
        known_labels(values).map(|(labels, schema)| Self(Arc::new(labels), schema))
    }

    /// Raise an error unless the columns of `labels` can hold the known labels.
    fn require_like(&self, labels: &PyLabels) -> PyResult<()> {
        catch_panics(|| Ok(self.like(labels).map(drop)?))
    }

    /// Split the counts of `labels` into two arrays. The first has the rows of `labels`, with a zero for each known
    /// label. The second has the rows of the known labels, with a zero for each label that `labels` lacks. Also return
    /// the row in `labels` of each known label, -1 if absent.
    fn split<'py>(
        &self,
        py: Python<'py>,
        labels: &PyLabels,
        counts: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Split<'py>> {
        let counts = values(&counts);
        if counts.len() != labels.0.len() {
            return Err(DIFFERENT.into());
        }
        let typed = self.like(labels)?;
        let split = catch_panics(|| Ok(py.detach(|| typed.split(&labels.0, &counts))))?;
        let [others, known, places] =
            [split.others, split.known, split.places].map(|column| column.into_pyarray(py));
        Ok((others, known, places))
    }

    /// Return the known labels `kept` and the `rows` of `labels`, with their noisy counts. If they have no type in
    /// common, return the known labels alone. `noisy` has a count for each known label, and `passed` for each of `rows`;
    /// `places` are from `split`.
    fn join<'py>(
        &self,
        py: Python<'py>,
        known: (Rows<'py>, Rows<'py>, Rows<'py>),
        labels: &PyLabels,
        others: (Rows<'py>, Rows<'py>),
    ) -> PyResult<(PyLabels, Column<'py>)> {
        let ((kept, noisy, places), (rows, passed)) = (known, others);
        let typed = self.like(labels)?;
        let kept = checked(typed.labels(), &kept)?;
        let rows = checked(&labels.0, &rows)?;
        let [noisy, places, passed] = [&noisy, &places, &passed].map(values);
        let len = typed.labels().len();
        if noisy.len() != len || places.len() != len || passed.len() != rows.len() {
            return Err(DIFFERENT.into());
        }
        let join =
            || Ok(py.detach(|| typed.join((&kept, &noisy, &places), &labels.0, (&rows, &passed)))?);
        let (joined, counts) = catch_panics(join)?;
        Ok((PyLabels(joined, labels.1.clone()), counts.into_pyarray(py)))
    }
}

impl PyKnownLabels {
    /// Return the known labels with the columns of `labels`.
    fn like(&self, labels: &PyLabels) -> Result<Arc<KnownLabels>> {
        match (self.1.as_deref(), labels.1.as_deref()) {
            (None, None) => Ok(Arc::clone(&self.0)),
            (given, fields) => {
                let fields = fields.unwrap_or_default();
                let found = adopted(self.0.labels(), given, fields, written)?;
                Ok(Arc::new(KnownLabels::new(found)?.ok_or(REPEATED)?))
            }
        }
    }
}

/// Return the values of an array, without a copy if they are contiguous.
fn values<'a>(column: &'a Rows<'_>) -> Cow<'a, [i64]> {
    column.as_slice().map_or_else(|_| column.as_array().to_vec().into(), Cow::Borrowed)
}
