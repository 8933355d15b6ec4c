//! `Lists`: the items of every user, which only Rust reads, and the weights that users give to items.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::stream::PairStream;
use super::values::{Cells, PyLabels};
use crate::error::{Error, Result};
use crate::lists::Lists;
use crate::union::Weighting;
use crate::worker::Batch;

/// The items of every user. It is not shown, compared, copied or pickled.
#[pyclass(name = "Lists", module = "discreet._core", frozen)]
pub struct PyLists(Lists);

#[pymethods]
impl PyLists {
    /// The items' labels and the lists of an Arrow stream.
    #[staticmethod]
    fn from_stream(
        py: Python<'_>,
        stream: &Bound<'_, PyAny>,
        user: &str,
        item: &str,
    ) -> PyResult<(PyLabels, Self)> {
        let mut stream = PairStream::open(stream, user, item)?;
        let types = stream.types();
        let mut raised = None;
        let tick = || {
            #[allow(clippy::redundant_closure_for_method_calls, reason = "of any lifetime")]
            Python::attach(|py| py.check_signals()).map_err(|error| {
                raised = Some(error);
                Error::Resource("interrupted")
            })
        };
        let read = py.detach(|| Lists::read(&mut stream, types.1, tick));
        match (read, raised) {
            (_, Some(error)) => Err(error),
            (Ok((labels, lists)), None) => Ok((PyLabels(labels), Self(lists))),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// The same of two equally long sequences.
    #[staticmethod]
    fn from_pairs(
        py: Python<'_>,
        users: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
    ) -> PyResult<(PyLabels, Self)> {
        let batch = Batch {
            users: Cells::read(users)?.into_column()?,
            items: Cells::read(items)?.into_column()?,
        };
        if batch.users.len() != batch.items.len() {
            return Err(Error::Parameter("users and items must be equally long").into());
        }
        let item_type = batch.items.label_type();
        let read = py.detach(|| Lists::read([Ok(batch)].into_iter(), item_type, || Ok(())));
        let (labels, lists) = read?;
        Ok((PyLabels(labels), Self(lists)))
    }

    /// At most `l0` of each user's items that are not among the rows `found`, chosen uniformly by a key of four words, by
    /// all users alike where they choose `together`.
    #[pyo3(signature = (l0, found, key, *, together=false))]
    fn bounded(
        &self,
        py: Python<'_>,
        l0: usize,
        found: PyReadonlyArray1<'_, i64>,
        key: [u64; 4],
        together: bool,
    ) -> Result<Self> {
        if l0 == 0 {
            return Err(Error::Parameter("l0 must be at least 1"));
        }
        let mut marks = vec![false; self.0.size];
        for &row in found.as_array() {
            let mark = usize::try_from(row).ok().and_then(|row| marks.get_mut(row));
            *mark.ok_or(Error::Parameter("a row number is out of range"))? = true;
        }
        Ok(Self(py.detach(|| self.0.bounded(l0, &marks, key, together))))
    }

    /// The weights of all items, in units of `2^-bits`.
    #[pyo3(signature = (weighting, bits, *, target=1, few=1))]
    fn weights<'py>(
        &self,
        py: Python<'py>,
        weighting: &str,
        bits: u32,
        target: u64,
        few: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        let weighting = match weighting {
            "even_squares" => Weighting::EvenSquares,
            "even" => Weighting::Even,
            "water" => Weighting::Water(target),
            "greedy" => Weighting::Greedy(target),
            "step" => Weighting::Step(target),
            "adaptive" if few > 0 => Weighting::Adaptive(target, few),
            _ => return Err(Error::Parameter("there is no such weighting")),
        };
        let weights = py.detach(|| weighting.weights(&self.0, bits))?;
        Ok(weights.into_pyarray(py))
    }
}
