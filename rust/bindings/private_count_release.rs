//! `private_count_release`: Private Count Release on exact counts.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::rng::{PyRng, given_or_fresh};
use crate::error::{Error, Result};
use crate::release::private_count_release::{Level, Limits, Release, private_count_release};

type Line = (f64, f64, f64, u128, u128);
type Rows<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    u64,
    u128,
    bool,
);

/// Run Private Count Release. Return row numbers, noisy counts, levels, the number of steps, the total price, and
/// whether a truncated histogram ran out of rows.
#[pyfunction(name = "private_count_release")]
#[pyo3(signature = (counts, limit, levels, budget, calls, k_bar, rng=None))]
#[allow(clippy::too_many_arguments)]
fn release<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, i64>,
    limit: Option<usize>,
    levels: Vec<Line>,
    budget: u128,
    calls: u64,
    k_bar: usize,
    rng: Option<&mut PyRng>,
) -> Result<Rows<'py>> {
    let counts = counts.as_array().to_vec();
    let levels: Vec<Level> = levels.into_iter().map(level).collect();
    if budget >= 1 << 126 || levels.iter().any(|l| l.call_price.max(l.count_price) >= 1 << 126) {
        return Err(Error::Parameter("the budget and all costs must be below 2^126"));
    }
    let limits = Limits { budget, calls, k_bar };
    let mut fresh = None;
    let stream = given_or_fresh(rng, &mut fresh)?;
    let released: Release =
        py.detach(|| private_count_release(&counts, limit, &levels, limits, stream))?;
    let column = |value: fn(&crate::release::private_count_release::Row) -> i64| {
        released.rows.iter().map(value).collect::<Vec<_>>().into_pyarray(py)
    };
    Ok((
        column(|row| row.row as i64),
        column(|row| row.count),
        column(|row| row.level as i64),
        released.calls,
        released.spent,
        released.stopped_early,
    ))
}

fn level((gamma, offset, sigma, call_price, count_price): Line) -> Level {
    Level { gamma, offset, sigma, call_price, count_price }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(release, module)?)
}
