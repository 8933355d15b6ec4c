//! Counts the rows that a count reads and the rows that it leaves out, by reason. The numbers are private.

use arrow_data::ArrayData;

use crate::columns::parts::{Columns, Part};
use crate::columns::times::{Period, moment};
use crate::columns::values::{Step, Values};
use crate::error::Result;
use crate::labels::LONGEST;
use crate::labels::composite::{Kind, push_cell};

/// The numbers of rows, by reason. A row with several reasons counts for each of them, but a row without a time or
/// outside the period counts only for this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// All rows.
    pub rows: u64,
    /// The rows that a count reads.
    pub counted: u64,
    /// The rows whose time is NULL or unreadable.
    pub untimed: u64,
    /// The rows whose time is outside the period.
    pub outside: u64,
    /// The rows whose columns of users are longer than a label when they are joined.
    pub long_user: u64,
    /// The rows whose columns of items are longer than a label when they are joined.
    pub long_item: u64,
    /// The rows that a sum reads.
    pub summed: u64,
    /// The rows whose value is NULL.
    pub no_value: u64,
    /// The rows whose value is no finite number.
    pub no_number: u64,
    /// The unusable cells of each column: first the columns of users, then the columns of items.
    pub cells: Vec<Unusable>,
}

/// The unusable cells of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unusable {
    /// The NULL cells.
    pub missing: u64,
    /// The cells longer than a label.
    pub long: u64,
    /// The cells of text that is not UTF-8.
    pub not_text: u64,
    /// The cells that are no label: dates outside the years 1 to 9999, and numbers beyond 64 bits.
    pub out_of_range: u64,
}

impl Tally {
    /// Adds the rows of some arrays. `joined` says whether users and items are joined into labels of bytes.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if a buffer is missing or too short.
    pub fn add(
        &mut self,
        columns: Columns,
        period: Option<&Period>,
        joined: (bool, bool),
    ) -> Result<()> {
        let len = columns.user.first().map_or(0, ArrayData::len);
        let parts = |columns: Vec<ArrayData>| {
            columns.into_iter().map(Part::new).collect::<Result<Vec<_>>>()
        };
        let (user, item) = (parts(columns.user)?, parts(columns.item)?);
        let time = columns.time.map(Part::new).transpose()?;
        let (values, step) = (columns.value.map(Values::new).transpose()?, Step::new(1.0)?);
        self.cells.resize(user.len() + item.len(), Unusable::default());
        let (mut label, mut cell) = (Vec::new(), Vec::new());
        for row in 0..len {
            self.rows += 1;
            label.clear();
            let mut timed = None;
            if let Some((time, period)) = time.as_ref().zip(period) {
                let found = time.moment(row)?.and_then(|(seconds, nanos)| moment(seconds, nanos));
                let Some(found) = found else {
                    self.untimed += 1;
                    continue;
                };
                if !period.has(found) {
                    self.outside += 1;
                    continue;
                }
                if !period.push_every(found, &mut label, &mut cell) {
                    self.untimed += 1;
                    continue;
                }
                timed = Some((period, found));
            }
            let (users, items) = self.cells.split_at_mut(user.len());
            let is_item = push(&item, row, &mut label, &mut cell, true, items)?;
            let is_long_item = is_item && joined.1 && label.len() > LONGEST;
            label.clear();
            if let Some((period, found)) = timed {
                period.push_unit(found, &mut label);
            }
            let is_user = push(&user, row, &mut label, &mut cell, false, users)?;
            let is_long_user = is_user && joined.0 && label.len() > LONGEST;
            self.long_item += u64::from(is_long_item);
            self.long_user += u64::from(is_long_user);
            let is_counted = is_item && is_user && !is_long_item && !is_long_user;
            self.counted += u64::from(is_counted);
            let Some(values) = &values else { continue };
            match values.get(row, &step)? {
                None => self.no_value += 1,
                Some(Some(_)) => self.summed += u64::from(is_counted),
                Some(None) => self.no_number += 1,
            }
        }
        Ok(())
    }
}

/// Adds the cells of a row to a label, and counts unusable cells. Returns whether all cells are usable.
fn push(
    parts: &[Part],
    row: usize,
    label: &mut Vec<u8>,
    cell: &mut Vec<u8>,
    is_text_checked: bool,
    unusable: &mut [Unusable],
) -> Result<bool> {
    let mut is_whole = true;
    for (part, unusable) in parts.iter().zip(unusable) {
        cell.clear();
        let reason = if part.is_missing(row)? {
            &mut unusable.missing
        } else if !part.push(row, cell)? {
            &mut unusable.out_of_range
        } else if cell.len() > LONGEST {
            &mut unusable.long
        } else if part.kind == Kind::Text && is_text_checked && std::str::from_utf8(cell).is_err() {
            &mut unusable.not_text
        } else {
            push_cell(label, part.kind.tag(), cell);
            continue;
        };
        *reason += 1;
        is_whole = false;
    }
    Ok(is_whole)
}
