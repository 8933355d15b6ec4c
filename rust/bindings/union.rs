//! `Lists`: the items of every user, and the weights of items for set union. Python code cannot read a user's items.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::count::{bound, threads_or_all};
use super::panics::catch_panics;
use super::sources::{Sources, watched};
use super::values::PyLabels;
use super::wanted::{Times, Wanted};
use crate::error::{Error, Result};
use crate::union::Weighting;
use crate::union::reader::{ListOptions, lists};
use crate::union::user_items::Lists;

const NO_ITEM: Error = Error::Parameter("l0 must be at least 1");

/// The items of every user. The class has no methods to print, compare, copy or pickle them.
#[pyclass(name = "Lists", module = "discreet._core", frozen)]
pub struct PyLists(Lists);

#[pymethods]
impl PyLists {
    /// Read a source or a list of sources, as in `count_distinct`. Return the item labels and the lists of all users.
    /// With `any_order`, users may have any order, for weights that do not depend on it.
    #[staticmethod]
    #[pyo3(signature = (source, user, item, *, l0=None, any_order=false, threads=None, memory=None, times=None, progress=None))]
    #[allow(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
    fn read(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        item: &Bound<'_, PyAny>,
        l0: Option<usize>,
        any_order: bool,
        threads: Option<usize>,
        memory: Option<usize>,
        times: Option<Times>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(PyLabels, Self)> {
        if l0 == Some(0) {
            return Err(NO_ITEM.into());
        }
        let mut sources = Sources::open(source, &Wanted::new(user, item, times)?)?;
        let options = ListOptions { l0, any_order, memory, threads: threads_or_all(threads) };
        let (types, fields) = (sources.types(), sources.fields());
        let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
            lists(sources.batches(), types, options, tick)
        };
        let (labels, found) = watched(py, progress, work)?;
        Ok((PyLabels(labels, fields), Self(found)))
    }

    /// Choose uniformly at most `l0` items of each user among the items whose rows are not in `found`. The random key
    /// has four numbers of 64 bits. With `shared_order`, all users choose the first items in one random order of all
    /// items.
    #[pyo3(signature = (l0, found, key, *, shared_order=false))]
    fn bounded(
        &self,
        py: Python<'_>,
        l0: usize,
        found: PyReadonlyArray1<'_, i64>,
        key: [u64; 4],
        shared_order: bool,
    ) -> PyResult<Self> {
        if l0 == 0 {
            return Err(NO_ITEM.into());
        }
        let mut flags = vec![false; self.0.size()];
        for &row in found.as_array() {
            let flag = usize::try_from(row).ok().and_then(|row| flags.get_mut(row));
            *flag.ok_or(Error::Parameter("a row number is out of range"))? = true;
        }
        catch_panics(|| Ok(Self(py.detach(|| self.0.bounded(l0, &flags, key, shared_order))?)))
    }

    /// Return the number of users of each item, and of all of them together. Each user keeps at most `l0` items, chosen
    /// uniformly among the items `only`.
    #[pyo3(signature = (labels, key, *, l0=None, only=None))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        labels: &PyLabels,
        key: [u64; 4],
        l0: Option<usize>,
        only: Option<&PyLabels>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, u64)> {
        if l0 == Some(0) {
            return Err(NO_ITEM.into());
        }
        if labels.0.len() != self.0.size() {
            return Err(Error::Parameter("the labels are not those of the lists").into());
        }
        let bound = bound(l0, only, labels.0.label_type(), labels.1.as_deref())?;
        let (counts, users) = catch_panics(|| {
            Ok(py.detach(|| match bound {
                None => self.0.counts(),
                Some(bound) => {
                    let is_left_out = |row| labels.0.with_bytes(row, |bytes| !bound.counts(bytes));
                    let left_out: Vec<bool> = (0..self.0.size()).map(is_left_out).collect();
                    self.0.bounded(l0.unwrap_or(usize::MAX), &left_out, key, false)?.counts()
                }
            })?)
        })?;
        Ok((counts.into_pyarray(py), users))
    }

    /// Return the number of items of each user.
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let sizes = catch_panics(|| Ok(py.detach(|| self.0.sizes())?))?;
        Ok(sizes.into_pyarray(py))
    }

    /// Return the lists of the users in the order of their keys, with new numbers of items. `order` has all rows of the
    /// labels, in their new order. With `sort_items`, each user's items are sorted by their new numbers.
    #[pyo3(signature = (order, *, sort_items=false))]
    fn ordered(
        &self,
        py: Python<'_>,
        order: PyReadonlyArray1<'_, i64>,
        sort_items: bool,
    ) -> PyResult<Self> {
        let order: Vec<usize> = order.as_array().iter().map(|&row| row as usize).collect();
        if order.len() != self.0.size() || order.iter().any(|&row| row >= order.len()) {
            return Err(Error::Parameter("order must have all rows").into());
        }
        catch_panics(|| Ok(Self(py.detach(|| self.0.ordered(&order, sort_items))?)))
    }

    /// Return the weights of all items under the policy `weighting`, in units of `2^-bits`.
    #[pyo3(signature = (weighting, bits, *, target=1, few=1))]
    fn weights<'py>(
        &self,
        py: Python<'py>,
        weighting: &str,
        bits: u32,
        target: u64,
        few: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let weighting = match weighting {
            "even_squares" => Weighting::EvenSquares(1),
            "capped_squares" if (1..1_u64 << 40).contains(&(few as u64)) => {
                Weighting::EvenSquares(few as u64)
            }
            "even" => Weighting::Even,
            "water" => Weighting::Water(target),
            "step" => Weighting::Step(target),
            _ => return Err(Error::Parameter("unknown weighting or few is 0; use even_squares, capped_squares, even, water or step").into()),
        };
        let weights = catch_panics(|| Ok(py.detach(|| weighting.weights(&self.0, bits))?))?;
        Ok(weights.into_pyarray(py))
    }
}
