//! A set of four-byte rows, stored as a bitmap of all possible rows or as a hash table of the present
//! rows.
//!
//! A slot is an entry of the hash table. It has room for two rows.

use std::hint::select_unpredictable;

use crate::hash::HashKeys;
use crate::memory::arena::zeros;

/// The most slots of a new table. Such a table stays in cache. It grows only if there are many
/// distinct rows.
const SLOTS: usize = 1 << 17;

/// Rows hashed at a time.
const AT_ONCE: usize = 1 << 6;

/// The possible rows. The `low` lower bits of a row identify an item. The bits above are a number up
/// to `largest`.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub low: u32,
    pub largest: u32,
}

impl Extent {
    /// Returns the number of bits reserved for each item. An item's bits are contiguous, so the
    /// bits of an item with many rows stay in cache.
    fn stride(self) -> u64 {
        (u64::from(self.largest) + 1).next_multiple_of(64)
    }

    /// Returns the number of bits of the bitmap.
    fn len(self) -> u64 {
        self.stride() << self.low
    }

    /// Returns the position of a row's bit.
    #[inline]
    fn place(self, row: u32, stride: usize) -> usize {
        (row & ((1 << self.low) - 1)) as usize * stride + (row >> self.low) as usize
    }

    /// Returns whether the bitmap takes at most 16 bytes for each of `rows` rows. A table may also
    /// take 16 bytes for each row.
    fn is_small(self, rows: usize) -> bool {
        self.len() <= 128 * rows as u64
    }
}

/// A set of nonzero rows.
pub(crate) struct Seen {
    extent: Extent,
    /// The bitmap, if it is small enough; otherwise empty.
    bits: Vec<u64>,
    /// Slots by open addressing. The later row of a slot is in the slot's lower half. A free half is
    /// zero.
    slots: Vec<u64>,
    /// The number of rows in the table.
    taken: usize,
    /// The number of slots to which the table may grow.
    most: usize,
}

impl Seen {
    /// Creates an empty set.
    pub fn new(extent: Extent) -> Self {
        Self { extent, bits: Vec::new(), slots: Vec::new(), taken: 0, most: 0 }
    }

    /// Removes all rows and prepares for at most `rows` new rows.
    pub fn reset(&mut self, rows: usize) {
        self.bits.clear();
        self.slots.clear();
        if self.extent.is_small(rows) {
            self.slots = Vec::new();
            self.bits.resize((self.extent.len() / 64) as usize, 0);
        } else {
            self.bits = Vec::new();
            // Shrink first. The next table begins small, and the memory of the old table must be free
            // when the next table grows.
            self.slots.shrink_to(SLOTS);
            self.taken = 0;
            let size = rows.next_power_of_two().clamp(32, SLOTS);
            self.most = rows.next_power_of_two().max(size);
            self.slots.resize(size, 0);
        }
    }

    /// Returns the most bytes of memory that `rows` rows may take.
    pub fn bytes_used(rows: usize, extent: Extent) -> usize {
        if extent.is_small(rows) {
            return (extent.len() / 8) as usize;
        }
        // While a table grows, the old table is in memory too.
        rows.next_power_of_two().max(SLOTS) * size_of::<u64>() * 3 / 2
    }

    /// Adds rows and calls `visit` with each row and whether it is new.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        clippy::needless_bitwise_bool,
        reason = "the innermost loop of counting"
    )]
    pub fn extend(&mut self, rows: &[u32], keys: &HashKeys, mut visit: impl FnMut(u32, bool)) {
        if !self.bits.is_empty() {
            let (extent, stride) = (self.extent, self.extent.stride() as usize);
            for &row in rows {
                let place = extent.place(row, stride);
                let word = &mut self.bits[place / 64];
                let bit = 1 << (place % 64);
                visit(row, *word & bit == 0);
                *word |= bit;
            }
            return;
        }
        if self.taken + rows.len() > self.slots.len() {
            self.grow(rows.len(), keys);
        }
        let slots = &mut self.slots[..];
        let mask = slots.len() - 1;
        let mut taken = 0;
        let mut hashes = [0; AT_ONCE];
        for rows in rows.chunks(AT_ONCE) {
            // Hash before probing, so that the processor overlaps several hashes.
            hashes.iter_mut().zip(rows).for_each(|(hash, &row)| *hash = keys.short(row));
            for (&row, &hash) in rows.iter().zip(&hashes) {
                let mut place = hash as usize & mask;
                let mut slot = slots[place];
                let mut is_there = is_in(row, slot);
                while !is_there & is_full(slot) {
                    place = (place + 1) & mask;
                    slot = slots[place];
                    is_there = is_in(row, slot);
                }
                // Whether a row is new is hard to predict, so both cases share one path without a
                // branch.
                slots[place] = select_unpredictable(is_there, slot, with(row, slot));
                taken += usize::from(!is_there);
                visit(row, !is_there);
            }
        }
        self.taken += taken;
    }

    /// Replaces the table with a larger table, which has room for `more` rows.
    #[cold]
    fn grow(&mut self, more: usize, keys: &HashKeys) {
        let size = (2 * (self.taken + more)).next_power_of_two().min(self.most);
        assert!(size > self.slots.len(), "more rows than announced");
        let old = std::mem::replace(&mut self.slots, zeros(size));
        let rows = old.into_iter().flat_map(|slot| [slot as u32, (slot >> 32) as u32]);
        for row in rows.filter(|&row| row != 0) {
            let mut place = keys.short(row) as usize & (size - 1);
            while is_full(self.slots[place]) {
                place = (place + 1) & (size - 1);
            }
            self.slots[place] = with(row, self.slots[place]);
        }
    }
}

/// Returns whether a slot contains `row`.
#[inline]
#[allow(clippy::needless_bitwise_bool, reason = "avoids a branch")]
fn is_in(row: u32, slot: u64) -> bool {
    (slot as u32 == row) | ((slot >> 32) as u32 == row)
}

/// Returns whether a slot is full.
#[inline]
fn is_full(slot: u64) -> bool {
    slot >> 32 != 0
}

/// Returns a slot with one more row. The slot must not be full.
#[inline]
fn with(row: u32, slot: u64) -> u64 {
    slot << 32 | u64::from(row)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_row_is_new_once_in_bitmaps_and_tables_of_any_size() {
        let keys = HashKeys::from_os().unwrap();
        for (rows, distinct, step) in [
            (1, 1, u32::MAX),
            (10_000, 700, 1),
            (10_000, 700, 5_000_011),
            (150_000, 150_000, 28_001),
            (900_000, 300_000, 14_001),
        ] {
            let all: Vec<u32> = (0..rows).map(|n| (n % distinct + 1) * step).collect();
            for low in [0, 7, 22] {
                let extent = Extent { low, largest: (distinct * step) >> low };
                each_is_new_once(&mut Seen::new(extent), &all, &keys);
            }
        }
    }

    #[test]
    fn bits_of_different_items_do_not_overlap() {
        let keys = HashKeys::from_os().unwrap();
        let all: Vec<u32> =
            (1..3001).flat_map(|user| (0..100).map(move |n| user << 7 | n)).collect();
        let mut seen = Seen::new(Extent { low: 7, largest: 3000 });
        // The set is a bitmap, then a table, then a bitmap again.
        for rows in [&all[..], &all[..1000], &all[..150_000]] {
            each_is_new_once(&mut seen, rows, &keys);
        }
    }

    fn each_is_new_once(seen: &mut Seen, all: &[u32], keys: &HashKeys) {
        let mut rows = HashSet::with_capacity(all.len());
        let expected: Vec<(u32, bool)> = all.iter().map(|&row| (row, rows.insert(row))).collect();
        let mut found = Vec::with_capacity(all.len());
        for _ in 0..2 {
            seen.reset(all.len());
            found.clear();
            for piece in all.chunks(2_032) {
                seen.extend(piece, keys, |row, is_new| found.push((row, is_new)));
            }
            assert!(found == expected);
            assert_ne!(seen.bits.is_empty(), seen.extent.is_small(all.len()));
            let held = 8 * (seen.bits.capacity() + seen.slots.capacity());
            assert!(held <= Seen::bytes_used(all.len(), seen.extent));
        }
    }
}
