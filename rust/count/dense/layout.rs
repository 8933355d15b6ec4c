//! The layout of four-byte rows: the bits of the item and of the user.

use crate::columns::{Batch, Column};
use crate::count::dense::seen::Extent;
use crate::hash::{HashKeys, PARTITIONS};

/// The number of bits of an item's product that choose the item's partition.
const PARTITION_BITS: u32 = PARTITIONS.trailing_zeros();
/// Items below this number are packed for any number of rows, because the tables of counts are
/// small.
const ITEMS: u64 = 1 << 20;

/// Returns a bound on the items of rows by user, of which all numbers below the largest take memory.
pub(crate) fn most_items(rows: usize) -> u64 {
    rows.clamp(1 << 12, 1 << 22) as u64
}

/// Converts users and items to rows. All threads of a count share one layout.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// The number of item bits in a row, below the user's bits.
    pub local: u32,
    /// The secret odd factor by which items are multiplied.
    factor: u32,
    /// The inverse of the factor modulo `2^32`.
    inverse: u32,
}

impl Layout {
    /// Returns a layout that probably fits a batch and similar ones, or `None`.
    pub fn of(batch: &Batch, keys: &HashKeys) -> Option<Self> {
        Self::of_columns(&batch.users, &batch.items, keys)
    }

    /// Returns the same for rows by user, in which users take the place of items.
    pub fn by_user(batch: &Batch, keys: &HashKeys) -> Option<Self> {
        let layout = Self::of_columns(&batch.items, &batch.users, keys)?;
        let items = estimate_largest(&batch.items)?;
        (items < most_items(32 * batch.items.len())).then_some(layout)
    }

    pub(super) fn of_columns(users: &Column, items: &Column, keys: &HashKeys) -> Option<Self> {
        let rows = items.len() as u64;
        let users = estimate_largest(users)?;
        let items = estimate_largest(items)?;
        if items >= ITEMS.max(2 * rows).min(1 << u32::BITS) {
            return None;
        }
        let bits = (u64::BITS - items.leading_zeros()).max(PARTITION_BITS);
        let factor = keys.factor();
        // Newton's iteration for the inverse modulo 2^32. Three bits are right at first, and each step
        // doubles the number of right bits.
        let inverse = (0..4).fold(factor, |inverse: u32, _| {
            inverse.wrapping_mul(2_u32.wrapping_sub(factor.wrapping_mul(inverse)))
        });
        let layout = Self { local: bits - PARTITION_BITS, factor, inverse };
        layout.holds_users(users | users.wrapping_add(1)).then_some(layout)
    }

    /// Returns whether all items of a set fit. `bits` is the bitwise OR of the items.
    pub fn holds_items(self, bits: u64) -> bool {
        bits >> (self.local + PARTITION_BITS) == 0
    }

    /// Returns whether all users of a set fit. `bits` is the bitwise OR of each user and each user
    /// plus one. A row holds the user plus one, so that no row is zero.
    pub fn holds_users(self, bits: u64) -> bool {
        bits >> (u32::BITS - self.local) == 0
    }

    /// Returns the mask of the item bits.
    pub fn mask(self) -> u32 {
        (1 << self.local) - 1
    }

    /// Returns an item's partition, and the row of a user and the item. Both numbers must fit.
    #[inline]
    pub fn pack(self, user: u64, item: u64) -> (usize, u32) {
        let mixed = (item as u32).wrapping_mul(self.factor);
        let row = (user as u32).wrapping_add(1) << self.local | mixed & self.mask();
        ((mixed >> self.local) as usize % PARTITIONS, row)
    }

    /// Returns the item of a row of a partition. Ignores the row's user bits.
    pub fn item(self, partition: usize, row: u32) -> u64 {
        let mixed = (partition as u32) << self.local | row & self.mask();
        let item = u64::from(mixed.wrapping_mul(self.inverse));
        item & (((PARTITIONS as u64) << self.local) - 1)
    }

    /// Returns the user of a row.
    pub fn user(self, row: u32) -> u64 {
        u64::from((row >> self.local) - 1)
    }

    /// Returns an extent that contains a set of rows. `bits` is the bitwise OR of the rows.
    pub fn extent(self, bits: u32) -> Extent {
        Extent { low: self.local, largest: bits >> self.local }
    }
}

/// Estimates the largest value of a column. Returns `None` if the column is empty or its cells are
/// not numbers. For codes, the estimate is the number of codes. For integers, it is 9/8 of the
/// largest of at most 4,096 values, which are taken at regular distances.
fn estimate_largest(column: &Column) -> Option<u64> {
    const SAMPLES: usize = 64;
    if let Some(codes) = column.codes() {
        return Some(codes as u64);
    }
    if !column.is_keyed() || column.is_empty() {
        return None;
    }
    let (mut cells, mut null) = (Vec::new(), Vec::new());
    let mut largest = 0;
    let len = column.len().min(SAMPLES);
    for number in 0..SAMPLES {
        let start = (column.len() - len) / (SAMPLES - 1) * number;
        let start = if number + 1 == SAMPLES { column.len() - len } else { start };
        null.clear();
        null.resize(len, false);
        column.keys(start..start + len, &mut null, &mut cells).ok()?;
        let met = cells.iter().zip(&null).filter(|(_, null)| !**null).map(|(&cell, _)| cell);
        largest = met.fold(largest, u64::max);
    }
    largest.checked_add(largest / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::dense::tests::batch;

    #[test]
    fn users_and_items_that_do_not_fit_four_bytes_have_no_layout() {
        let keys = HashKeys::from_os().unwrap();
        let found = |user, item| Layout::of(&batch(&[0, user], &[item, 1]), &keys).is_some();
        assert!(found(3_000_000_000, 900) && found(3_000_000, 900_000));
        for (user, item) in [(-1, 1), (1, -1), (i64::MAX, 1), (1, i64::MAX), (i64::MIN, i64::MIN)] {
            assert!(!found(user, item));
        }
        assert!(!found(5_000_000, 900_000) && !found(1, 2_000_000));
        assert!(Layout::of(&batch(&[], &[]), &keys).is_none());
        let last: Vec<i64> = (0..100_000).map(|n| n / 99_999 * (1 << 40)).collect();
        assert!(Layout::of(&batch(&last, &last), &keys).is_none());
    }
}
