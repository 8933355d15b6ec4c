//! `Levels` and `confirm`: Confirmed Counts on exact counts.

use std::mem::take;
use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::rng::{PyRng, given_or_fresh};
use crate::error::{Error, Result};
use crate::release::confirmed_counts::{
    Confirmed, Ending, Level, Measurement, Row, ScaleCache, Setting, confirm,
};

type SigmaAndCost = (f64, u128);
type Line = (f64, i64, [SigmaAndCost; 4], SigmaAndCost, f64);
type Rows<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    u128,
    u64,
    State,
    &'static str,
);
/// The position, the bound and the level of its last measurement. Without a bound, the level is `NO_BOUND`.
type State = (i64, i64, i64);
type Resumed<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    u128,
    u64,
    State,
);

const NO_BOUND: i64 = 1 << 40;

/// The levels of Confirmed Counts, which depend on public parameters alone. To convert them takes longer than a release.
#[pyclass(name = "Levels", module = "discreet._core", frozen)]
pub struct PyLevels(Vec<Level>, Mutex<ScaleCache>);

#[pymethods]
impl PyLevels {
    #[new]
    fn new(levels: Vec<Line>, step_deltas: Vec<f64>, bound_deltas: Vec<f64>) -> Result<Self> {
        if step_deltas.len() != 4 * levels.len() || bound_deltas.len() != levels.len() {
            return Err(Error::Parameter(
                "every level needs four step_deltas and one of bound_deltas",
            ));
        }
        let deltas = step_deltas.chunks(4).zip(bound_deltas);
        let made = levels.into_iter().zip(deltas);
        let levels = made.map(|(line, (steps, bound))| level(line, steps, bound)).collect();
        Ok(Self(levels, Mutex::default()))
    }
}

/// Run Confirmed Counts. Return row numbers, noisy queries, scale numbers, the total price, the number of steps, the
/// state, and why the release ended. With `pause`, the release pauses before the total price exceeds this number. With
/// `resumed`, it continues a release of the same counts: all results of this release but the last one.
#[pyfunction(name = "confirm")]
#[pyo3(signature = (counts, limit, levels, setting, rng=None, *, pause=None, resumed=None))]
#[allow(clippy::too_many_arguments, reason = "some are keyword arguments in Python")]
fn release<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, i64>,
    limit: Option<usize>,
    levels: &PyLevels,
    setting: (i64, u128, usize, usize, i64, i64, i64, i64, i64),
    rng: Option<&mut PyRng>,
    pause: Option<u128>,
    resumed: Option<Resumed<'py>>,
) -> Result<Rows<'py>> {
    let PyLevels(levels, kept) = levels;
    let counts = counts.as_array().to_vec();
    let (lowest, budget, k_bar, most_rows, factor, users, noisy_users, start, highest) = setting;
    let largest_cost =
        levels.iter().flat_map(|l| l.steps.iter().chain([&l.outside])).map(|m| m.price).max();
    if budget.max(largest_cost.unwrap_or(0)) >= 1 << 100 || k_bar > 1 << 30 || most_rows > 1 << 30 {
        return Err(Error::Parameter(
            "the budget and all costs must be below 2^100, and k_bar and most at most 2^30",
        ));
    }
    let setting = Setting {
        lowest,
        budget,
        k_bar,
        most_rows,
        factor,
        users,
        noisy_users,
        start,
        highest,
        pause,
    };
    let resumed = resumed.map(paused).transpose()?;
    let mut fresh = None;
    let stream = given_or_fresh(rng, &mut fresh)?;
    // A release takes the cache, so no thread waits. A fork may leave the lock held: a child then keeps nothing.
    let mut cache = kept.try_lock().map(|mut kept| take(&mut *kept)).unwrap_or_default();
    let released =
        py.detach(|| confirm(&counts, limit, levels, &setting, resumed, &mut cache, stream));
    cache.shrink();
    if let Ok(mut kept) = kept.try_lock() {
        *kept = cache;
    }
    let released = released?;
    let column = |value: fn(&Row) -> i64| {
        released.rows.iter().map(value).collect::<Vec<_>>().into_pyarray(py)
    };
    let ending = match released.ending {
        Ending::Budget => "budget",
        Ending::Outside => "outside",
        Ending::Level => "level",
        Ending::Most => "most",
        Ending::Rows => "rows",
        Ending::Pause => "pause",
    };
    let (bound, last) = released.bound.unwrap_or((0, NO_BOUND));
    Ok((
        column(|row| row.row as i64),
        column(|row| row.value),
        column(|row| row.scale as i64),
        released.spent,
        released.steps,
        (released.position, bound, last),
        ending,
    ))
}

/// Returns a release that paused.
fn paused((rows, values, scales, spent, steps, state): Resumed<'_>) -> Result<Confirmed> {
    let (rows, values, scales) = (rows.as_array(), values.as_array(), scales.as_array());
    let (position, bound, last) = state;
    let in_range = |number: &i64| (0..1 << 40).contains(number);
    if rows.len() != values.len() || rows.len() != scales.len() || spent >= 1 << 100 {
        return Err(Error::Parameter("a resumed release has columns of equal length"));
    }
    if !rows.iter().chain(scales.iter()).all(in_range) {
        return Err(Error::Parameter("a resumed release has rows and scales of at least 0"));
    }
    let columns = rows.iter().zip(values).zip(scales);
    let rows = columns
        .map(|((&row, &value), &scale)| Row { row: row as usize, value, scale: scale as usize })
        .collect();
    Ok(Confirmed {
        rows,
        spent,
        steps,
        position,
        bound: (last != NO_BOUND).then_some((bound, last)),
        ending: Ending::Pause,
    })
}

fn level((gamma, ceiling, steps, outside, variance): Line, deltas: &[f64], delta: f64) -> Level {
    let priced = |(sigma, price): SigmaAndCost, delta| Measurement { sigma, price, delta };
    let steps = std::array::from_fn(|choice| priced(steps[choice], deltas[choice]));
    Level { gamma, ceiling, steps, outside: priced(outside, delta), variance }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLevels>()?;
    module.add_function(wrap_pyfunction!(release, module)?)
}
