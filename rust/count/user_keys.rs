//! The key of each user: an integer is its own key, a string's key is its hash.

use std::ops::Range;
use std::sync::Arc;

use crate::columns::Column;
use crate::columns::memo::Memo;
use crate::error::Result;
use crate::hash::HashKeys;

/// Keys that no user has: real keys have at most 96 bits.
const UNKNOWN: u128 = u128::MAX;
const NULL: u128 = u128::MAX - 1;

/// The keys of the users of the rows that were read last.
pub(crate) struct UserKeys {
    keys: Arc<HashKeys>,
    /// Keys of strings and of dictionary values; empty if users are integers.
    pub hashes: Vec<u128>,
    pub integers: Vec<u64>,
    memo: Memo<u128>,
}

impl UserKeys {
    pub fn new(keys: Arc<HashKeys>) -> Self {
        let memo = Memo::new(UNKNOWN, NULL);
        Self { keys, hashes: Vec::new(), integers: Vec::new(), memo }
    }

    /// Reads `rows` of batch number `batch`, and marks NULL users in `null`.
    pub fn read(
        &mut self,
        column: &Column,
        batch: u64,
        rows: Range<usize>,
        null: &mut [bool],
    ) -> Result<()> {
        column.mark_nulls(rows.clone(), null);
        self.hashes.clear();
        if let Some(values) = column.dictionary() {
            let Self { keys, hashes, memo, .. } = self;
            memo.read(column, batch, rows, null, hashes, |index| key_of(values, index, keys))?;
            null.iter_mut().zip(hashes).for_each(|(null, key)| *null = *key == NULL);
        } else if column.label_type().is_integer() {
            column.integers(rows, &mut self.integers);
        } else {
            let names = column.strings(rows, null)?;
            self.hashes.extend(names.into_iter().map(|name| self.keys.user(name)));
        }
        Ok(())
    }
}

/// Returns the key of a dictionary value, or [`NULL`] if it is NULL or too long.
fn key_of(values: &Column, index: usize, keys: &HashKeys) -> Result<u128> {
    let (row, mut null) = (index..index + 1, [values.is_null(index)]);
    if values.label_type().is_integer() {
        let mut cell = Vec::new();
        values.integers(row, &mut cell);
        return Ok(if null[0] { NULL } else { cell[0].into() });
    }
    let name = values.strings(row, &mut null)?[0];
    Ok(if null[0] { NULL } else { keys.user(name) })
}
