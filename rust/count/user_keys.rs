//! The key of each user: an integer is its own key, a string's key is its hash.

use std::ops::Range;
use std::sync::Arc;

use crate::columns::{Column, OUT_OF_RANGE};
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
    /// The keys of the dictionary of batch `memo_of`, filled on demand.
    memo: Vec<u128>,
    memo_of: u64,
}

impl UserKeys {
    pub fn new(keys: Arc<HashKeys>) -> Self {
        Self { keys, hashes: Vec::new(), integers: Vec::new(), memo: Vec::new(), memo_of: u64::MAX }
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
            if self.memo_of != batch {
                self.memo.clear();
                self.memo.resize(values.len(), UNKNOWN);
                self.memo_of = batch;
            }
            column.integers(rows, &mut self.integers);
            for (index, null) in self.integers.iter().zip(null) {
                let mut key = 0;
                if !*null {
                    let index = usize::try_from(*index).unwrap_or(usize::MAX);
                    if index >= values.len() {
                        return Err(OUT_OF_RANGE);
                    }
                    if self.memo[index] == UNKNOWN {
                        self.memo[index] = key_of(values, index, &self.keys)?.unwrap_or(NULL);
                    }
                    *null = self.memo[index] == NULL;
                    key = if *null { 0 } else { self.memo[index] };
                }
                self.hashes.push(key);
            }
        } else if column.label_type().is_integer() {
            column.integers(rows, &mut self.integers);
        } else {
            let names = column.strings(rows, null)?;
            self.hashes.extend(names.into_iter().map(|name| self.keys.user(name)));
        }
        Ok(())
    }
}

/// Returns the key of a dictionary value, or `None` if it is NULL or too long.
fn key_of(values: &Column, index: usize, keys: &HashKeys) -> Result<Option<u128>> {
    if values.is_null(index) {
        return Ok(None);
    }
    if values.label_type().is_integer() {
        let mut cell = Vec::new();
        values.integers(index..index + 1, &mut cell);
        return Ok(Some(cell[0].into()));
    }
    let mut null = [false];
    let names = values.strings(index..index + 1, &mut null)?;
    Ok(names.first().filter(|_| !null[0]).map(|&name| keys.user(name)))
}
