//! Exact facts about the rows of a table, for the owner of the data. They are private.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::count::threads_or_all;
use super::sources::{Sources, watched};
use super::stream::PairStream;
use super::wanted::{Times, Wanted};
use crate::columns::tally::Tally;
use crate::error::Result;
use crate::union::reader::{ListOptions, lists};

/// Count the rows of an Arrow stream that a count reads, and those that it leaves out, by reason. The list `cells` has
/// the unusable cells of each column of users and then of items: NULL, too long, not UTF-8, and out of range.
#[pyfunction]
#[pyo3(signature = (source, user, item, *, times=None, value=None))]
fn tally<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    user: &Bound<'py, PyAny>,
    item: &Bound<'py, PyAny>,
    times: Option<Times>,
    value: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut stream = PairStream::open(source, &Wanted::new(user, item, times)?.with(value))?;
    let found = watched(py, None, |tick| {
        let mut found = Tally::default();
        while stream.tally(&mut found)? {
            tick()?;
        }
        Ok(found)
    })?;
    let facts = PyDict::new(py);
    for (name, number) in [
        ("rows", found.rows),
        ("counted", found.counted),
        ("untimed", found.untimed),
        ("outside", found.outside),
        ("long_user", found.long_user),
        ("long_item", found.long_item),
        ("summed", found.summed),
        ("no_value", found.no_value),
        ("no_number", found.no_number),
    ] {
        facts.set_item(name, number)?;
    }
    let cells = found
        .cells
        .iter()
        .map(|cells| (cells.missing, cells.long, cells.not_text, cells.out_of_range));
    facts.set_item("cells", cells.collect::<Vec<_>>())?;
    Ok(facts)
}

/// Return the numbers of distinct users and items in the rows that a count reads, and quantiles of the number of
/// distinct items of a user: for each level, the number of the user at this place in the order of numbers. The last
/// number is that of the users of the item at `rank`, from 1, in the order of common items; 0 if there are fewer items.
#[pyfunction]
#[pyo3(signature = (source, user, item, levels, rank, *, memory=None, times=None))]
#[allow(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
fn items_per_user(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    user: &Bound<'_, PyAny>,
    item: &Bound<'_, PyAny>,
    levels: Vec<f64>,
    rank: usize,
    memory: Option<usize>,
    times: Option<Times>,
) -> PyResult<(u64, u64, Vec<u64>, i64)> {
    let mut sources = Sources::open(source, &Wanted::new(user, item, times)?)?;
    let types = sources.types();
    let options = ListOptions {
        any_order: true,
        memory,
        threads: threads_or_all(None),
        ..ListOptions::default()
    };
    let (labels, found) = watched(py, None, |tick: &mut (dyn FnMut() -> Result<()> + Send)| {
        lists(sources.batches(), types, options, tick)
    })?;
    let mut sizes: Vec<u64> = found.sizes()?.into_iter().map(i64::cast_unsigned).collect();
    sizes.sort_unstable();
    let quantile = |level: f64| {
        let place = (level * sizes.len() as f64).ceil() as usize;
        sizes.get(place.saturating_sub(1)).copied().unwrap_or(0)
    };
    let found_levels = levels.into_iter().map(quantile).collect();
    let (mut counts, _) = found.counts()?;
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let ranked = counts.get(rank.saturating_sub(1)).copied().unwrap_or(0);
    Ok((sizes.len() as u64, labels.len() as u64, found_levels, ranked))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tally, module)?)?;
    module.add_function(wrap_pyfunction!(items_per_user, module)?)
}
