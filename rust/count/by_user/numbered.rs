//! Items by number: a list that is given, or the items that a thread finds.

use std::ops::Range;

use hashbrown::HashTable;

use crate::columns::Column;
use crate::columns::memo::Memo;
use crate::count::bound::candidates::Candidates;
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::labels::{LabelType, Labels};
use crate::string_prefix::PrefixedString;

/// Stands for the number of an item that does not count.
pub(super) const UNLISTED: u32 = u32::MAX;
/// Marks a dictionary value that was not looked up yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// Returned for a list that has an item twice.
const REPEATED: Error = Error::Parameter(
    "two of the listed items are the same item; list each item once, in one spelling",
);

/// Items by number.
pub(crate) struct Numbered {
    pub items: Candidates,
    /// The rank and the number of each item that the column can hold.
    table: HashTable<(u64, u32)>,
}

impl Numbered {
    pub fn new(item_type: LabelType) -> Self {
        Self { items: Candidates::new(item_type), table: HashTable::new() }
    }

    /// Numbers listed items by row.
    ///
    /// # Errors
    /// [`Error::Resource`] if there is no memory for an item. [`Error::Parameter`] if an item repeats.
    pub fn listed(labels: &Labels, item_type: LabelType, keys: &HashKeys) -> Result<Self> {
        let mut made = Self::new(item_type);
        // In the other integer type, keys from 2^63 on stand for different numbers.
        let is_alike = labels.label_type() == item_type || !item_type.is_integer();
        for row in 0..labels.len() {
            let is_held = labels.with_bytes(row, |bytes| -> Result<bool> {
                made.items.push(bytes, keys)?;
                Ok(is_alike || bytes.last().is_some_and(|&high| high < 0x80))
            })?;
            if is_held {
                let entry = (made.items.rank(row), row as u32);
                let hash = made.hash(entry.0, keys);
                // Two texts of one time are one item.
                let is_known = labels.with_bytes(row, |bytes| {
                    let is_integer = item_type.is_integer();
                    let is = |&(rank, _): &(u64, u32)| rank == entry.0;
                    let cell = PrefixedString::new(bytes);
                    if is_integer {
                        made.table.find(hash, is).is_some()
                    } else {
                        made.found(cell, hash).is_some()
                    }
                });
                if is_known {
                    return Err(REPEATED);
                }
                let is_integer = item_type.is_integer();
                made.table.insert_unique(hash, entry, |&(rank, _)| hash_of(rank, is_integer, keys));
            }
        }
        Ok(made)
    }

    /// Returns the number here of each of other items. New ones are added if `grows`, and are [`UNLISTED`] if not.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is no memory for an item.
    pub fn join(&mut self, others: &Candidates, grows: bool, keys: &HashKeys) -> Result<Vec<u32>> {
        (0..others.labels.len())
            .map(|row| {
                others.labels.with_bytes(row, |bytes| {
                    if others.labels.label_type().is_integer() {
                        return self.of_integer(others.rank(row), grows, keys);
                    }
                    let (cell, hash) = (PrefixedString::new(bytes), others.rank(row));
                    match self.found(cell, hash) {
                        Some(number) => Ok(number),
                        None if grows => self.push(bytes, hash, hash, keys),
                        None => Ok(UNLISTED),
                    }
                })
            })
            .collect()
    }

    fn hash(&self, rank: u64, keys: &HashKeys) -> u64 {
        hash_of(rank, self.items.labels.label_type().is_integer(), keys)
    }

    /// Returns the number of an integer; a new one is added if `grows`.
    #[inline]
    fn of_integer(&mut self, cell: u64, grows: bool, keys: &HashKeys) -> Result<u32> {
        let hash = keys.integer(cell);
        if let Some(&(_, number)) = self.table.find(hash, |&(rank, _)| rank == cell) {
            return Ok(number);
        }
        if grows { self.push(&cell.to_le_bytes(), cell, hash, keys) } else { Ok(UNLISTED) }
    }

    #[inline]
    fn found(&self, cell: PrefixedString<'_>, hash: u64) -> Option<u32> {
        let is = |&(rank, number): &(u64, u32)| {
            rank == hash
                && match &self.items.labels {
                    Labels::Text(strings) | Labels::Binary(strings) => {
                        strings.is(number as usize, cell)
                    }
                    Labels::Signed(_) | Labels::Unsigned(_) => false,
                }
        };
        self.table.find(hash, is).map(|&(_, number)| number)
    }

    #[cold]
    fn push(&mut self, bytes: &[u8], rank: u64, hash: u64, keys: &HashKeys) -> Result<u32> {
        let number = self.items.labels.len() as u32;
        self.items.push(bytes, keys)?;
        let is_integer = self.items.labels.label_type().is_integer();
        self.table
            .insert_unique(hash, (rank, number), |&(rank, _)| hash_of(rank, is_integer, keys));
        Ok(number)
    }
}

/// Returns the hash of an item in the table, of its rank.
#[inline]
fn hash_of(rank: u64, is_integer: bool, keys: &HashKeys) -> u64 {
    if is_integer { keys.integer(rank) } else { rank }
}

/// How one thread numbers the items of its rows.
pub(crate) struct Numbering<'a> {
    /// The list, if items are listed.
    listed: Option<&'a Numbered>,
    /// The items that the thread found, if they are not.
    pub own: Numbered,
    /// Whether items must be UTF-8.
    is_text: bool,
    memo: Memo<u32>,
    cells: Vec<u64>,
}

impl<'a> Numbering<'a> {
    /// Numbers the items of `listed` alone, or all items of a type.
    pub fn new(listed: Option<&'a Numbered>, item_type: LabelType) -> Self {
        let memo = Memo::new(UNKNOWN, UNLISTED);
        let is_text = item_type == LabelType::Text;
        Self { listed, own: Numbered::new(item_type), is_text, memo, cells: Vec::new() }
    }

    /// Finds the number of each item of `rows`, [`UNLISTED`] if it does not count. Marks NULL cells in `null`.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if the array's buffers contradict its layout.
    pub fn number(
        &mut self,
        column: &Column,
        batch: u64,
        rows: Range<usize>,
        null: &mut [bool],
        into: &mut Vec<u32>,
        keys: &HashKeys,
    ) -> Result<()> {
        let Self { listed, own, is_text, memo, cells } = self;
        into.clear();
        column.mark_nulls(rows.clone(), null);
        if let Some(values) = column.dictionary() {
            return memo.read(column, batch, rows, null, into, |index| {
                if values.is_null(index) {
                    return Ok(UNLISTED);
                }
                let (row, mut is_long) = (index..index + 1, [false]);
                if values.label_type().is_integer() {
                    values.integers(row, cells);
                    return integer(*listed, own, cells[0], keys);
                }
                let cell = values.strings(row, &mut is_long)?[0];
                if is_long[0] {
                    return Ok(UNLISTED);
                }
                string(*listed, own, cell, *is_text, keys)
            });
        }
        if column.label_type().is_integer() {
            column.integers(rows, cells);
            for (&cell, &null) in cells.iter().zip(&*null) {
                into.push(if null { UNLISTED } else { integer(*listed, own, cell, keys)? });
            }
        } else {
            let strings = column.strings(rows, null)?;
            for (cell, &null) in strings.into_iter().zip(&*null) {
                into.push(if null {
                    UNLISTED
                } else {
                    string(*listed, own, cell, *is_text, keys)?
                });
            }
        }
        Ok(())
    }
}

/// Returns the number of an integer of the list, or of a thread's own items.
#[inline]
fn integer(
    listed: Option<&Numbered>,
    own: &mut Numbered,
    cell: u64,
    keys: &HashKeys,
) -> Result<u32> {
    let Some(listed) = listed else { return own.of_integer(cell, true, keys) };
    let found = listed.table.find(keys.integer(cell), |&(rank, _)| rank == cell);
    Ok(found.map_or(UNLISTED, |&(_, number)| number))
}

/// Returns the number of a string of the list, or of a thread's own items. Text that is not UTF-8 does not count.
#[inline]
fn string(
    listed: Option<&Numbered>,
    own: &mut Numbered,
    cell: PrefixedString<'_>,
    is_text: bool,
    keys: &HashKeys,
) -> Result<u32> {
    let hash = keys.string(cell);
    match (listed.unwrap_or(own).found(cell, hash), listed) {
        (Some(number), _) => Ok(number),
        (None, Some(_)) => Ok(UNLISTED),
        (None, None) if is_text && !cell.is_utf8() => Ok(UNLISTED),
        (None, None) => own.push(cell.bytes, hash, hash, keys),
    }
}
