//! `Pairs`: the rows of all users, and several sums over one choice of each user's items.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use super::count::{listed, threads_or_all};
use super::sources::{Sources, watched};
use super::values::{PyLabels, Schema};
use super::wanted::{Times, Wanted};
use crate::columns::values::Step;
use crate::count::by_user::measured::{Measure, Pairs, Reading, Room};
use crate::count::by_user::weighted::{BINS, Column, Kind, Multipliers, Weighted};
use crate::count::make_ready;
use crate::error::{Error, Result};
use crate::labels::Labels;

/// A kind of measure, its bounds in steps, the most rows of a pair, the parts of a step of a mean, and the power of two
/// of steps in which sums are.
type Given = (String, i128, i128, i64, i64, u32);

const MOST: i64 = 1 << 30;

/// The rows of all users. The class has no methods to print, compare, copy or pickle them.
#[pyclass(name = "Pairs", module = "discreet._core", frozen)]
pub struct PyPairs(Pairs, Schema);

#[pymethods]
impl PyPairs {
    /// Read a source or a list of sources, as in `count_distinct`, with a column of values or without; of the items
    /// `only`, if they are given. With `valued`, rows without a value are left out. With `like`, other pairs, users
    /// choose the same items.
    #[staticmethod]
    #[pyo3(signature = (source, user, item, *, value=None, resolution=1.0, valued=false, only=None, like=None, threads=None, memory=None, times=None, progress=None))]
    #[allow(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
    fn read(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        item: &Bound<'_, PyAny>,
        value: Option<String>,
        resolution: f64,
        valued: bool,
        only: Option<&PyLabels>,
        like: Option<&Self>,
        threads: Option<usize>,
        memory: Option<usize>,
        times: Option<Times>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let step = Step::new(resolution)?;
        let wanted = Wanted::new(user, item, times)?.with(value);
        make_ready(memory);
        let mut sources = Sources::open(source, &wanted)?;
        let (types, fields) = (sources.types(), sources.fields());
        let only = only.map(|only| listed(only, types.1, fields.as_deref())).transpose()?;
        let room = Room { threads: threads_or_all(threads), memory };
        let keys = like.map(|like| like.0.keys());
        let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
            let reading = Reading { only: only.as_deref(), step, valued };
            Pairs::read(sources.batches(), types.1, reading, keys, room, tick)
        };
        Ok(Self(watched(py, progress, work)?, fields))
    }

    /// Return the number of items of each user, in any order of the users.
    #[pyo3(signature = (*, progress=None))]
    fn sizes<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(watched(py, progress, |tick| self.0.sizes(tick))?.into_pyarray(py))
    }

    /// Return for each user the absolute value of the sum of one of the user's items, chosen uniformly, in steps and in
    /// any order of the users.
    #[pyo3(signature = (*, progress=None))]
    fn extents<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        Ok(watched(py, progress, |tick| self.0.extents(tick))?.into_pyarray(py))
    }

    /// Return the items and the number of users of each. Each user keeps at most `l0` items, chosen uniformly.
    #[pyo3(signature = (l0, *, progress=None))]
    fn counts<'py>(
        &self,
        py: Python<'py>,
        l0: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(PyLabels, Bound<'py, PyArray1<i64>>)> {
        let counts = watched(py, progress, |tick| self.0.counts(require(l0)?, tick))?;
        Ok((PyLabels(counts.labels, self.1.clone()), counts.counts.into_pyarray(py)))
    }

    /// Return the given items as labels of the column of items, and for each item the sums of all measures, over the
    /// choice of items that `counts` makes. A measure is "rows", "sum" or "mean" with its least and largest value in
    /// steps, the most rows of a user for an item, the parts of a step and the power of two of steps in which sums are; a
    /// mean has two sums.
    #[pyo3(signature = (items, l0, measures, *, progress=None))]
    fn measured<'py>(
        &self,
        py: Python<'py>,
        items: &PyLabels,
        l0: usize,
        measures: Vec<Given>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(PyLabels, Bound<'py, PyArray2<i64>>)> {
        let measures = measures.iter().map(measure).collect::<Result<Vec<_>>>()?;
        let labels = listed(items, self.0.item_type(), self.1.as_deref())?;
        let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
            self.0.measured(&labels, require(l0)?, &measures, tick)
        };
        let sums = watched(py, progress, work)?;
        let width = measures.iter().map(|measure| measure.sums()).sum();
        let shape = [labels.len(), width];
        Ok((PyLabels(labels.into_owned(), self.1.clone()), sums.into_pyarray(py).reshape(shape)?))
    }
}

/// Weighted sums of all numbers of a user, over several pairs with the same keys: a column of the first ones of users
/// and of rows, and a column of values of each.
#[pyclass(name = "WeightedPairs", module = "discreet._core", frozen)]
pub struct PyWeightedPairs {
    pairs: Vec<Py<PyPairs>>,
    columns: Vec<Column>,
    items: Labels,
}

/// The index of the pairs of a column, "users", "rows", "sum" or "values", and the bounds of a number.
type GivenColumn = (usize, String, i128, i128);

#[pymethods]
impl PyWeightedPairs {
    /// Choose items.
    #[new]
    fn new(pairs: Vec<Py<PyPairs>>, columns: Vec<GivenColumn>, items: &PyLabels) -> PyResult<Self> {
        let column = |(pairs, kind, low, high): GivenColumn| {
            let kind = match kind.as_str() {
                "users" => Kind::Users,
                "rows" => Kind::Rows,
                "sum" => Kind::Sum,
                "values" => Kind::Values,
                _ => {
                    return Err(Error::Parameter("a column must have users, rows, a sum or values"));
                }
            };
            if low > high {
                return Err(Error::Parameter("the bounds of a column must not be reversed"));
            }
            Ok(Column { pairs, kind, low, high })
        };
        let columns = columns.into_iter().map(column).collect::<Result<Vec<_>>>()?;
        let first = pairs.first().ok_or(Error::Parameter("pairs must be given"))?.get();
        let items = listed(items, first.0.item_type(), first.1.as_deref())?.into_owned();
        Ok(Self { pairs, columns, items })
    }

    /// Return the items as labels of their column.
    #[getter]
    fn items(&self) -> PyLabels {
        PyLabels(self.items.clone(), self.pairs[0].get().1.clone())
    }

    /// Return for each column the numbers of users by the binary exponent of the norm of their weighted numbers.
    #[pyo3(signature = (weights, *, progress=None))]
    fn norms<'py>(
        &self,
        py: Python<'py>,
        weights: Vec<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let found = watched(py, progress, |tick| self.weighted()?.norms(&weights, tick))?;
        Ok(found.into_pyarray(py).reshape([self.columns.len(), BINS])?)
    }

    /// Return for each item the sum of the users' weighted numbers in each column, each user's vector shortened to a
    /// norm of 2^bits. A multiplier has a factor for each item and a number of binary places.
    #[pyo3(signature = (multipliers, bits, *, progress=None))]
    fn sums<'py>(
        &self,
        py: Python<'py>,
        multipliers: Vec<(Vec<u64>, u32)>,
        bits: u32,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let own = multipliers.into_iter().map(|(factors, shift)| Multipliers { factors, shift });
        let own: Vec<_> = own.collect();
        let found = watched(py, progress, |tick| self.weighted()?.sums(&own, bits, tick))?;
        Ok(found.into_pyarray(py).reshape([self.items.len(), self.columns.len()])?)
    }

    /// Return the sums over users of three layers of a user's total in a column.
    #[pyo3(signature = (column, factors, shift, cap, *, progress=None))]
    fn layers(
        &self,
        py: Python<'_>,
        column: usize,
        factors: Vec<i64>,
        shift: u32,
        cap: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<[i128; 3]> {
        let work = |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
            self.weighted()?.layers(column, &factors, shift, cap, tick)
        };
        Ok(watched(py, progress, work)?)
    }
}

impl PyWeightedPairs {
    fn weighted(&self) -> Result<Weighted<'_>> {
        let pairs = self.pairs.iter().map(|one| &one.get().0).collect();
        Weighted::new(pairs, self.columns.clone(), &self.items)
    }
}

fn require(l0: usize) -> Result<usize> {
    if l0 == 0 { Err(Error::Parameter("l0 must be at least 1")) } else { Ok(l0) }
}

fn measure((kind, low, high, most, parts, shift): &Given) -> Result<Measure> {
    let (low, high, most, parts, shift) = (*low, *high, *most, *parts, *shift);
    let measure = match kind.as_str() {
        "rows" => Measure::Rows(most),
        "sum" => Measure::Sum(low, high, shift),
        "mean" => Measure::Mean(low, high, most, parts, shift),
        _ => return Err(Error::Parameter("a measure must be rows, sum or mean")),
    };
    let are_right = (1..=MOST).contains(&most) && (1..=1 << 16).contains(&parts) && shift < 127;
    let widest = 1_i128 << 95;
    let are_bounds = -widest <= low && low <= high && high <= widest;
    // A sum of 2^32 users has 64 bits.
    if are_right && are_bounds && measure.largest().is_some_and(|largest| largest <= 1 << 31) {
        Ok(measure)
    } else {
        Err(Error::Parameter("the bounds of a measure are out of range"))
    }
}
