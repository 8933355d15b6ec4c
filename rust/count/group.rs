//! Assigns each row a partition, by a keyed hash of its item, and a key that identifies the item
//! exactly. An integer is its own key. The key of a string is its code in the thread's
//! [`LabelLog`], so hash collisions never merge two items.

use std::ops::Range;
use std::sync::Arc;

use crate::columns::Column;
use crate::columns::integers::BROKEN;
use crate::columns::memo::Memo;
use crate::count::label_log::LabelLog;
use crate::error::Result;
use crate::hash::{HashKeys, partition_of};
use crate::labels::{LabelType, Labels, NO_CODE};
use crate::string_prefix::PrefixedString;

/// A row's partition and its item's key there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The partition's number, or [`Group::DROPPED`].
    pub partition: u32,
    /// The item's key in this partition.
    pub key: u64,
}

impl Group {
    /// The partition of a row that does not count: its user or item is NULL, or its text is not
    /// UTF-8.
    pub const DROPPED: u32 = u32::MAX;
    const UNKNOWN: Self = Self { partition: Self::DROPPED - 1, key: 0 };
    const NONE: Self = Self { partition: Self::DROPPED, key: 0 };
}

/// Groups one thread's rows and keeps their labels.
pub struct Grouper {
    keys: Arc<HashKeys>,
    labels: Option<LabelLog>,
    is_text: bool,
    memo: Memo<Group>,
    /// The cells or hashes, and the label codes, of the current rows.
    scratch: Vec<u64>,
    codes: Vec<u32>,
}

impl Grouper {
    /// Creates a grouper for items of a type. If `logged`, integers get codes too.
    #[must_use]
    pub fn new(keys: Arc<HashKeys>, items: LabelType, logged: bool) -> Self {
        Self {
            keys,
            labels: (logged || !items.is_integer()).then(LabelLog::default),
            is_text: items == LabelType::Text,
            memo: Group::memo(),
            scratch: Vec::new(),
            codes: Vec::new(),
        }
    }

    /// Returns the group of every row of `rows` in `into`. Drops the rows marked in `null`, and
    /// marks further ones. `batch` numbers the array, so that a dictionary is decoded once.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if the array's buffers contradict its layout.
    /// [`Error::Resource`](crate::error::Error::Resource) beyond 2^32 labels.
    pub fn group(
        &mut self,
        items: &Column,
        batch: u64,
        rows: Range<usize>,
        null: &mut [bool],
        into: &mut Vec<Group>,
    ) -> Result<()> {
        into.clear();
        items.mark_nulls(rows.clone(), null);
        if let Some(values) = items.dictionary() {
            let mut memo = std::mem::replace(&mut self.memo, Group::memo());
            let mut found = Vec::new();
            let read = memo.read(items, batch, rows, null, into, |index| {
                self.group(values, batch, index..index + 1, &mut [false], &mut found)?;
                Ok(found[0])
            });
            self.memo = memo;
            return read;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        if !items.label_type().is_integer() {
            let cells = items.strings(rows, null)?;
            scratch.clear();
            scratch.extend(cells.iter().map(|&cell| self.keys.string(cell)));
            self.group_labels(&cells, &scratch, null, into)?;
        } else if self.labels.is_some() {
            items.integers(rows, &mut scratch);
            let bytes: Vec<_> = scratch.iter().map(|cell| cell.to_le_bytes()).collect();
            let cells: Vec<_> = bytes.iter().map(|cell| PrefixedString::new(cell)).collect();
            for cell in &mut scratch {
                *cell = self.keys.integer(*cell);
            }
            self.group_labels(&cells, &scratch, null, into)?;
        } else {
            items.integers(rows, &mut scratch);
            let group = |cell| Group::of_integer(self.keys.integer(cell), cell);
            let cells = scratch.iter().zip(null);
            into.extend(cells.map(|(&cell, null)| if *null { Group::NONE } else { group(cell) }));
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Returns the groups of labels.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) beyond 2^32 labels.
    pub fn of_labels(&mut self, labels: &Labels) -> Result<Vec<Group>> {
        let mut groups = Vec::with_capacity(labels.len());
        let integers = match labels {
            Labels::Signed(values) => values.iter().map(|value| value.cast_unsigned()).collect(),
            Labels::Unsigned(values) => values.clone(),
            Labels::Text(strings) | Labels::Binary(strings) => {
                let cells = (0..strings.len()).map(|row| PrefixedString::new(strings.get(row)));
                let cells: Vec<_> = cells.collect();
                let hashes: Vec<_> = cells.iter().map(|&cell| self.keys.string(cell)).collect();
                self.group_labels(&cells, &hashes, &vec![false; cells.len()], &mut groups)?;
                return Ok(groups);
            }
        };
        let hashes: Vec<_> = integers.iter().map(|&value| self.keys.integer(value)).collect();
        if self.labels.is_none() {
            let group = |(&hash, &value)| Group::of_integer(hash, value);
            groups.extend(hashes.iter().zip(&integers).map(group));
            return Ok(groups);
        }
        let bytes: Vec<_> = integers.iter().map(|value| value.to_le_bytes()).collect();
        let cells: Vec<_> = bytes.iter().map(|cell| PrefixedString::new(cell)).collect();
        self.group_labels(&cells, &hashes, &vec![false; cells.len()], &mut groups)?;
        Ok(groups)
    }

    /// Returns whether the cells of a column are used as keys as they are.
    #[must_use]
    pub fn keeps_keys(&self, items: &Column) -> bool {
        self.labels.is_none() && items.is_keyed()
    }

    /// Returns the bytes of memory that the labels hold.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.labels.as_ref().map_or(0, LabelLog::bytes_used)
    }

    /// Takes out the labels, if items have codes.
    #[must_use]
    pub fn take(&mut self) -> Option<LabelLog> {
        self.memo.clear();
        self.labels.as_mut().map(std::mem::take)
    }

    /// Groups cells by their hashes. If labels repeat, looks all of them up in the cache at once;
    /// then adds the others one by one.
    fn group_labels(
        &mut self,
        cells: &[PrefixedString<'_>],
        hashes: &[u64],
        null: &[bool],
        into: &mut Vec<Group>,
    ) -> Result<()> {
        let Self { labels: Some(labels), is_text, codes, .. } = self else { return Err(BROKEN) };
        let should_look_up = labels.should_look_up(hashes.len());
        if should_look_up {
            labels.find_all(hashes, cells, null, codes);
        } else {
            codes.clear();
            codes.resize(hashes.len(), NO_CODE);
        }
        let rows = cells.iter().zip(hashes).zip(null);
        for (code, ((&cell, &hash), &null)) in codes.iter_mut().zip(rows) {
            if *code == NO_CODE && !null {
                let new = if should_look_up {
                    labels.code(hash, cell, *is_text)?
                } else {
                    labels.add(hash, cell, *is_text)?
                };
                *code = new.unwrap_or(NO_CODE);
            }
        }
        into.extend(
            hashes
                .iter()
                .zip(&*codes)
                .map(|(&hash, &code)| Group::of(hash, (code != NO_CODE).then_some(code))),
        );
        Ok(())
    }
}

impl Group {
    /// Returns an empty memo.
    fn memo() -> Memo<Self> {
        Memo::new(Self::UNKNOWN, Self::NONE)
    }

    /// Returns the group of an integer that is its own key.
    #[inline]
    fn of_integer(hash: u64, key: u64) -> Self {
        Self { partition: partition_of(hash) as u32, key }
    }

    #[inline]
    fn of(hash: u64, code: Option<u32>) -> Self {
        code.map_or(Self::NONE, |code| Self {
            partition: partition_of(hash) as u32,
            key: code.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, BinaryArray};

    use super::*;

    #[test]
    fn dropped_rows_have_no_group_and_others_keep_theirs() {
        let long = [b'a'; 300];
        let cells = [Some(&b"a"[..]), None, Some(b""), Some(b"\xff"), Some(&long), Some(b"a")];
        let items = Column::new(BinaryArray::from(cells.to_vec()).into_data()).unwrap();
        let keys = Arc::new(HashKeys::from_os().unwrap());
        let mut grouper = Grouper::new(keys, LabelType::Text, false);
        let (mut groups, mut before) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut null = [false, false, false, false, false, false];
            grouper.group(&items, 0, 0..6, &mut null, &mut groups).unwrap();
            assert_eq!([groups[1], groups[3]], [Group::NONE; 2]);
            assert!([0, 2, 4].iter().all(|&row| groups[row].partition != Group::DROPPED));
            assert!(groups[0] == groups[5] && groups[0] != groups[2]);
            assert!(before.is_empty() || before == groups);
            before.clone_from(&groups);
        }
    }
}
