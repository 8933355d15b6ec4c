//! Look before choosing: where a table is one batch whose columns are integers or dictionaries of few values, the
//! values are numbered once, and the rows are counted as integers.

use crate::column::{Batch, Column};
use crate::error::Result;
use crate::hash::HashKeys;
use crate::interner::Interner;
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::mark::Marked;

/// A dictionary of at most one value for so many rows is numbered.
const ROWS: usize = 16;
/// How many values are read at a time.
const AT_ONCE: usize = 1 << 10;

/// What numbered items are called; items that are their own labels are not numbered.
pub(crate) struct Names(Option<(Interner, LabelType)>);

impl Names {
    /// The labels of some items.
    pub fn of(&self, items: Labels) -> Labels {
        let (Some((names, item_type)), Labels::Unsigned(numbers)) = (&self.0, &items) else {
            return items;
        };
        let mut labels = Labels::new(*item_type);
        for &number in numbers {
            labels.push_bytes(names.labels().get(number as usize));
        }
        labels
    }
}

/// Whether a batch can be numbered, and need be.
pub(crate) fn is_worth_it(batch: &Batch) -> bool {
    let columns = [&batch.users, &batch.items];
    let is_small = |column: &Column| {
        column.dictionary().is_some_and(|values| ROWS * values.len() <= column.len())
    };
    columns.iter().all(|column| column.is_keyed() || is_small(column))
        && columns.iter().any(|column| !column.is_keyed())
}

/// The batch with numbers for the values of its dictionaries, and what the items are called.
///
/// # Errors
/// [`crate::error::Error::Input`] where an array contradicts itself.
pub(crate) fn number(batch: Batch, keys: &HashKeys) -> Result<(Batch, Names)> {
    let item_type = batch.items.label_type();
    let (users, _) = number_column(batch.users, keys, false)?;
    let (items, names) = number_column(batch.items, keys, item_type == LabelType::Text)?;
    Ok((Batch { users, items }, Names(names.map(|names| (names, item_type)))))
}

/// A column under the numbers of its dictionary's distinct values. A value that is NULL, or should be text and is
/// not, has none.
fn number_column(
    column: Column,
    keys: &HashKeys,
    is_text: bool,
) -> Result<(Column, Option<Interner>)> {
    let Some(values) = column.dictionary() else { return Ok((column, None)) };
    let mut names = Interner::default();
    let mut null = vec![false; values.len()];
    values.mark_nulls(0..values.len(), &mut null);
    let mut codes = Vec::with_capacity(values.len());
    let mut visit = |string: Marked<'_>| {
        let is_null = null[codes.len()];
        let hash = keys.string(string) as u32;
        let code = if is_null { None } else { names.intern_valid(hash, string, is_text)? };
        codes.push(code.unwrap_or(Column::NONE));
        Ok(())
    };
    if values.label_type().is_integer() {
        let mut cells = Vec::new();
        values.integers(0..values.len(), &mut cells);
        cells.iter().try_for_each(|cell| visit(Marked::new(&cell.to_le_bytes())))?;
    } else {
        for start in (0..values.len()).step_by(AT_ONCE) {
            let rows = start..values.len().min(start + AT_ONCE);
            values.strings(rows.clone(), &null[rows])?.into_iter().try_for_each(&mut visit)?;
        }
    }
    Ok((column.coded(codes)?, Some(names)))
}
