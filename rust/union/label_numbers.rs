//! Numbers items in order of arrival: integers by value, strings by their bytes.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::columns::Column;
use crate::columns::memo::Memo;
use crate::count::label_cache::{Entry, LabelCache};
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::labels::interner::Interner;
use crate::labels::{LabelType, Labels, NO_CODE};
use crate::string_prefix::PrefixedString;

const TOO_MANY: Error =
    Error::Resource("set union supports at most 2^32 distinct items; there are more");
/// Items added at a time.
const AT_ONCE: usize = 1 << 13;
/// A dictionary value that no row has used so far.
const UNSEEN: u32 = u32::MAX - 1;

/// The distinct items of a table.
pub(crate) struct Numbers {
    keys: Arc<HashKeys>,
    integers: HashTable<(u64, u32)>,
    order: Vec<u64>,
    strings: Interner,
    /// Recent short strings and their numbers.
    cache: LabelCache,
    /// The numbers of the current batch's dictionary values.
    memo: Memo<u32>,
    null: Vec<bool>,
    cells: Vec<u64>,
}

impl Numbers {
    /// The number of a cell that is NULL, or that should be text and is not valid UTF-8.
    pub const NONE: u32 = NO_CODE;

    pub fn new(keys: Arc<HashKeys>) -> Self {
        Self {
            keys,
            integers: HashTable::new(),
            order: Vec::new(),
            strings: Interner::default(),
            cache: LabelCache::default(),
            memo: Self::memo(),
            null: Vec::new(),
            cells: Vec::new(),
        }
    }

    fn memo() -> Memo<u32> {
        Memo::new(UNSEEN, Self::NONE)
    }

    /// Return the number of items.
    pub fn len(&self) -> usize {
        self.order.len() + self.strings.labels().len()
    }

    /// Return the bytes of memory in use.
    pub fn bytes_used(&self) -> usize {
        self.integers.allocation_size() + self.order.capacity() * 8 + self.strings.bytes_used()
    }

    /// Append the number of each cell of `rows` to `into`, or [`Self::NONE`]. `batch` numbers the column's batch.
    pub fn read(
        &mut self,
        column: &Column,
        batch: u64,
        rows: Range<usize>,
        is_text: bool,
        into: &mut Vec<u32>,
    ) -> Result<()> {
        let mut null = std::mem::take(&mut self.null);
        null.clear();
        null.resize(rows.len(), false);
        column.mark_nulls(rows.clone(), &mut null);
        let Some(values) = column.dictionary() else {
            self.read_cells(column, rows, is_text, &mut null, into)?;
            self.null = null;
            return Ok(());
        };
        let (mut memo, mut one) = (std::mem::replace(&mut self.memo, Self::memo()), Vec::new());
        // Dictionary values without a row get no number: they are not in the data.
        let read = memo.read(column, batch, rows, &null, into, |index| {
            one.clear();
            let mut null = [values.is_null(index)];
            self.read_cells(values, index..index + 1, is_text, &mut null, &mut one)?;
            Ok(one[0])
        });
        (self.memo, self.null) = (memo, null);
        read
    }

    /// Same as `read`, for cells of no dictionary, whose NULLs are already marked in `null`.
    fn read_cells(
        &mut self,
        column: &Column,
        rows: Range<usize>,
        is_text: bool,
        null: &mut [bool],
        into: &mut Vec<u32>,
    ) -> Result<()> {
        let mut cells = std::mem::take(&mut self.cells);
        if column.label_type().is_integer() {
            column.integers(rows, &mut cells);
            for (&cell, &null) in cells.iter().zip(&*null) {
                into.push(if null { Self::NONE } else { self.integer(cell)? });
            }
        } else {
            let strings = column.strings(rows, null)?;
            cells.clear();
            cells.extend(strings.iter().map(|&string| self.keys.string(string)));
            self.number_strings(&strings, &cells, null, is_text, into)?;
        }
        self.cells = cells;
        Ok(())
    }

    /// Append the numbers of strings with these hashes. The cache finds most of the strings that repeat.
    fn number_strings(
        &mut self,
        strings: &[PrefixedString<'_>],
        hashes: &[u64],
        null: &[bool],
        is_text: bool,
        into: &mut Vec<u32>,
    ) -> Result<()> {
        let mut found = Vec::new();
        let should_look_up = self.cache.should_look_up(strings.len());
        if should_look_up {
            self.cache.find_all(hashes, strings, null, &mut found);
        } else {
            found.resize(strings.len(), Self::NONE);
        }
        let Self { strings: all, cache, .. } = self;
        all.intern_missing(strings, hashes, null, is_text, &mut found, |place, number| {
            let mark = strings[place].mark;
            if should_look_up && mark.is_whole() {
                cache.remember(hashes[place], Entry::new(hashes[place], mark, 0, number));
            }
        })?;
        into.extend(found);
        if all.labels().len() > UNSEEN as usize { Err(TOO_MANY) } else { Ok(()) }
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

    /// Take out all items.
    pub fn take(&mut self) -> Self {
        let keys = Arc::clone(&self.keys);
        std::mem::replace(self, Self::new(keys))
    }

    /// Add the items of `others`, and return their numbers. Calls `tick` often.
    pub fn add_all(
        &mut self,
        others: &Self,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Vec<u32>> {
        let mut numbers = Vec::with_capacity(others.len());
        for &cell in &others.order {
            numbers.push(self.integer(cell)?);
        }
        let labels = others.strings.labels();
        for start in (0..labels.len()).step_by(AT_ONCE) {
            let some: Vec<_> = (start..labels.len().min(start + AT_ONCE))
                .map(|number| PrefixedString::new(labels.get(number)))
                .collect();
            self.strings.intern_all(
                &some,
                &vec![false; some.len()],
                false,
                &self.keys,
                &mut numbers,
            )?;
            tick()?;
        }
        Ok(numbers)
    }

    /// Return an item's rank, which depends only on the item and on this run's keys.
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

    /// Keep only the items that are `used`. Return the new numbers, which have the same order, and [`Self::NONE`] for
    /// dropped items.
    pub fn keep(&mut self, used: &[bool]) -> Result<Vec<u32>> {
        let old = self.take();
        let mut numbers = vec![Self::NONE; used.len()];
        for (number, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            numbers[number] = if let Some(&cell) = old.order.get(number) {
                self.integer(cell)?
            } else {
                let label = PrefixedString::new(old.strings.labels().get(number));
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
            let mut numbers = Numbers::new(Arc::new(HashKeys::from_os().unwrap()));
            let mut found = Vec::new();
            numbers.read(&column, 0, 0..5, true, &mut found).unwrap();
            assert_eq!(found, [0, 1, 2, 1, 3]);
            let ranks = numbers.ranks();
            let kept = numbers.keep(&[false, true, false, true]).unwrap();
            assert_eq!(kept, [Numbers::NONE, 0, Numbers::NONE, 1]);
            assert_eq!(numbers.ranks(), [ranks[1], ranks[3]]);
            found.clear();
            numbers.read(&column, 0, 0..5, true, &mut found).unwrap();
            assert_eq!(found, [2, 0, 3, 0, 1]);
        }
    }
}
