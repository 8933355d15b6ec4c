//! Numbers the dictionary values of a table that is one batch of integers and small dictionaries.
//! The rows of the table are then counted as integers.
//!
//! A name is the label of a numbered item.

use std::sync::atomic::AtomicBool;

use crate::columns::{Batch, Column};
use crate::count::result::Counts;
use crate::count::threads;
use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::labels::interner::Interner;
use crate::string_prefix::PrefixedString;

/// A dictionary is small if it has at most one value for every 16 rows.
const ROWS: usize = 16;
/// Dictionary values read at a time.
const AT_ONCE: usize = 1 << 10;

/// The labels of numbered items; `None` if the item column was not a dictionary.
pub(crate) struct Names(Option<(Interner, LabelType)>);

impl Names {
    /// Replaces item numbers by labels.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is no memory for the labels.
    pub fn with_labels(self, counted: Counts) -> Result<Counts> {
        let (Some((names, item_type)), Labels::Unsigned(items)) = (self.0, &counted.labels) else {
            return Ok(counted);
        };
        // Take all labels, because few labels have no users. Then drop the labels without users, which
        // are not items of the table.
        let mut counts = vec![0; names.labels().len()];
        items.iter().zip(counted.counts).for_each(|(&item, count)| counts[item as usize] = count);
        let labels = Labels::of_bytes(item_type, names.into_labels());
        let mut named = Counts { labels, counts, users: counted.users };
        named.drop_zeros()?;
        Ok(named)
    }
}

/// Returns whether a batch has a dictionary, and each column is a small dictionary or can be used as
/// keys.
pub(crate) fn can_be_numbered(batch: &Batch) -> bool {
    let columns = [&batch.users, &batch.items];
    let is_small = |column: &Column| {
        column.dictionary().is_some_and(|values| ROWS * values.len() <= column.len())
    };
    columns.iter().all(|column| column.is_keyed() || is_small(column))
        && columns.iter().any(|column| !column.is_keyed())
}

/// Replaces dictionary values with numbers, on at most two and at most `threads` threads. Also
/// returns the labels of the items.
///
/// # Errors
/// [`crate::error::Error::Input`] if an array contradicts its layout.
/// [`crate::error::Error::Resource`] if memory or threads run out. Any error of `tick`.
pub(crate) fn number(
    batch: Batch,
    threads: usize,
    keys: &HashKeys,
    tick: impl FnMut() -> Result<()>,
) -> Result<(Batch, Names)> {
    let Batch { users, items, values } = batch;
    let item_type = items.label_type();
    let columns = [(&users, false), (&items, item_type == LabelType::Text)];
    let sizes = columns.iter().map(|(column, _)| column.dictionary().map_or(0, Column::len));
    let work = |made: &mut [Option<Codes>; 2], number: usize, _, _: &AtomicBool| {
        let (column, is_text) = columns[number];
        made[number] =
            column.dictionary().map(|values| number_values(values, keys, is_text)).transpose()?;
        Ok(())
    };
    let made = threads::run_jobs(threads.clamp(1, 2), sizes, tick, Default::default, work)?;
    let [of_users, of_items] =
        made.into_iter().fold([None, None], |[users, items], [u, i]| [users.or(u), items.or(i)]);
    let users = match of_users {
        Some((codes, _)) => users.coded(codes)?,
        None => users,
    };
    let (items, names) = match of_items {
        Some((codes, names)) => (items.coded(codes)?, Some(names)),
        None => (items, None),
    };
    Ok((Batch { users, items, values }, Names(names.map(|names| (names, item_type)))))
}

/// The number of every dictionary value, and the distinct values by number.
type Codes = (Vec<u32>, Interner);

/// Numbers the distinct values of a dictionary. A value has no number if it is NULL, or if it should
/// be text but is not UTF-8.
fn number_values(values: &Column, keys: &HashKeys, is_text: bool) -> Result<Codes> {
    let mut names = Interner::default();
    names.reset(values.len());
    let mut null = vec![false; values.len()];
    values.mark_nulls(0..values.len(), &mut null);
    let mut codes = Vec::with_capacity(values.len());
    for start in (0..values.len()).step_by(AT_ONCE) {
        let rows = start..values.len().min(start + AT_ONCE);
        let null = &mut null[rows.clone()];
        if values.label_type().is_integer() {
            let mut cells = Vec::new();
            values.integers(rows, &mut cells);
            let bytes: Vec<_> = cells.iter().map(|cell| cell.to_le_bytes()).collect();
            let strings: Vec<_> = bytes.iter().map(|cell| PrefixedString::new(cell)).collect();
            names.intern_all(&strings, null, is_text, keys, &mut codes)?;
        } else {
            let strings = values.strings(rows, null)?;
            names.intern_all(&strings, null, is_text, keys, &mut codes)?;
        }
    }
    Ok((codes, names))
}
