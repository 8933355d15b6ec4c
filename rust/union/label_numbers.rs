//! Numbers labels in order of arrival: integers by value, strings by their bytes.

use std::ops::Range;

use hashbrown::HashTable;

use crate::columns::{Column, OUT_OF_RANGE};
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::labels::interner::Interner;
use crate::labels::{LabelType, Labels, NO_CODE};
use crate::string_prefix::PrefixedString;

const TOO_MANY: Error =
    Error::Resource("set union supports at most 2^32 distinct users and items; there are more");
/// A dictionary value that no row has used so far.
const UNSEEN: u32 = u32::MAX - 1;

/// The distinct users or the distinct items of a table.
pub(crate) struct Numbers {
    keys: HashKeys,
    integers: HashTable<(u64, u32)>,
    order: Vec<u64>,
    strings: Interner,
    /// The numbers of the current batch's dictionary values.
    memo: Vec<u32>,
    null: Vec<bool>,
    cells: Vec<u64>,
}

impl Numbers {
    /// The number of a cell that is NULL, or that should be text and is not valid UTF-8.
    pub const NONE: u32 = NO_CODE;

    pub fn new() -> Result<Self> {
        Ok(Self {
            keys: HashKeys::from_os()?,
            integers: HashTable::new(),
            order: Vec::new(),
            strings: Interner::default(),
            memo: Vec::new(),
            null: Vec::new(),
            cells: Vec::new(),
        })
    }

    /// Return the number of labels.
    pub fn len(&self) -> usize {
        self.order.len() + self.strings.labels().len()
    }

    /// Return the bytes of memory in use.
    pub fn bytes_used(&self) -> usize {
        let integers = self.integers.allocation_size() + self.order.capacity() * 8;
        integers + self.strings.bytes_used() + self.memo.capacity() * 4
    }

    /// Forget the dictionary of the previous batch.
    pub fn next_batch(&mut self) {
        self.memo.clear();
    }

    /// Write the number of each cell of `rows` into `into`, or [`Self::NONE`].
    pub fn read(
        &mut self,
        column: &Column,
        rows: Range<usize>,
        is_text: bool,
        into: &mut Vec<u32>,
    ) -> Result<()> {
        into.clear();
        let Some(values) = column.dictionary() else {
            self.null.clear();
            self.null.resize(rows.len(), false);
            column.mark_nulls(rows.clone(), &mut self.null);
            return self.read_cells(column, rows, is_text, into);
        };
        self.memo.resize(values.len(), UNSEEN);
        let mut indices = Vec::new();
        column.integers(rows.clone(), &mut indices);
        let mut one = Vec::new();
        for (row, index) in rows.zip(indices) {
            if column.is_null(row) {
                into.push(Self::NONE);
                continue;
            }
            let index = usize::try_from(index).map_err(|_| OUT_OF_RANGE)?;
            // Dictionary values without a row get no number: they are not in the data.
            if *self.memo.get(index).ok_or(OUT_OF_RANGE)? == UNSEEN {
                one.clear();
                self.null.clear();
                self.null.push(values.is_null(index));
                self.read_cells(values, index..index + 1, is_text, &mut one)?;
                self.memo[index] = one[0];
            }
            into.push(self.memo[index]);
        }
        Ok(())
    }

    /// Same as `read`, for cells whose NULLs are already marked in `self.null`.
    fn read_cells(
        &mut self,
        column: &Column,
        rows: Range<usize>,
        is_text: bool,
        into: &mut Vec<u32>,
    ) -> Result<()> {
        let Self { keys, strings, null, cells, .. } = self;
        if column.label_type().is_integer() {
            column.integers(rows, cells);
            for place in 0..self.cells.len() {
                let cell = self.cells[place];
                into.push(if self.null[place] { Self::NONE } else { self.integer(cell)? });
            }
            return Ok(());
        }
        let cells = column.strings(rows, null)?;
        strings.intern_all(&cells, null, is_text, keys, into)?;
        if strings.labels().len() > UNSEEN as usize { Err(TOO_MANY) } else { Ok(()) }
    }

    fn integer(&mut self, cell: u64) -> Result<u32> {
        let next = u32::try_from(self.order.len()).ok().filter(|&next| next < UNSEEN);
        let next = next.ok_or(TOO_MANY)?;
        let hash = |&(other, _): &(u64, u32)| self.keys.integer(other);
        let known = self.integers.entry(hash(&(cell, next)), |&(other, _)| other == cell, hash);
        let number = known.or_insert((cell, next)).get().1;
        if number == next {
            self.order.push(cell);
        }
        Ok(number)
    }

    /// Return a label's rank, which depends only on the label and on this run's keys.
    pub fn rank(&self, number: u32) -> u128 {
        match self.order.get(number as usize) {
            Some(&cell) => cell.into(),
            None => self.keys.user(PrefixedString::new(self.strings.labels().get(number as usize))),
        }
    }

    /// Return all ranks, by number.
    pub fn ranks(&self) -> Vec<u128> {
        (0..self.len()).map(|number| self.rank(number as u32)).collect()
    }

    /// Return the priority of an item among a user's items, from both ranks. Priorities are uniform for every user.
    pub fn priority(&self, user: u128, item: u128) -> u64 {
        self.keys.priority(user, self.keys.pair(item as u64, (item >> 64) as u64))
    }

    /// Keep only the labels that are `used`. Return the new numbers, [`Self::NONE`] for dropped labels.
    pub fn keep(&mut self, used: &[bool]) -> Result<Vec<u32>> {
        let order = std::mem::take(&mut self.order);
        let strings = std::mem::take(&mut self.strings);
        self.integers = HashTable::new();
        self.memo.clear();
        let mut numbers = vec![Self::NONE; used.len()];
        for (number, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            numbers[number] = if let Some(&cell) = order.get(number) {
                self.integer(cell)?
            } else {
                let label = PrefixedString::new(strings.labels().get(number));
                self.strings.intern(self.keys.string(label) as u32, label)?
            };
        }
        Ok(numbers)
    }

    pub fn into_labels(self, label_type: LabelType) -> Labels {
        if self.order.is_empty() {
            return Labels::of_bytes(label_type, self.strings.into_labels());
        }
        let mut labels = Labels::new(label_type);
        self.order.iter().for_each(|&key| labels.push_integer(key));
        labels
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn kept_labels_have_new_numbers_and_the_same_rank() {
        let integers = Column::new(Int64Array::from(vec![5, 7, -1, 7, 9]).into_data()).unwrap();
        let texts =
            Column::new(StringArray::from(vec!["a", "b", "", "b", "c"]).into_data()).unwrap();
        for column in [integers, texts] {
            let mut numbers = Numbers::new().unwrap();
            let mut found = Vec::new();
            numbers.read(&column, 0..5, true, &mut found).unwrap();
            assert_eq!(found, [0, 1, 2, 1, 3]);
            let ranks = numbers.ranks();
            let kept = numbers.keep(&[false, true, false, true]).unwrap();
            assert_eq!(kept, [Numbers::NONE, 0, Numbers::NONE, 1]);
            assert_eq!(numbers.ranks(), [ranks[1], ranks[3]]);
            numbers.read(&column, 0..5, true, &mut found).unwrap();
            assert_eq!(found, [2, 0, 3, 0, 1]);
        }
    }
}
