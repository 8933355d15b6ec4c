//! Which rows of four bytes have been seen: a bit for each that there can be, or a table of those that there are.

use crate::block::zeros;
use crate::hash::HashKeys;

/// The largest table to begin with, which stays in cache: only many distinct rows need a larger one.
const SLOTS: usize = 1 << 18;

/// How many rows are hashed at a time.
const AT_ONCE: usize = 1 << 6;

/// Rows that have been seen, none of them zero.
#[derive(Default)]
pub(crate) struct Seen {
    /// By row, where these are few enough; otherwise none.
    bits: Vec<u64>,
    /// The rows themselves in open addressing, zero where free, of which so many are taken.
    slots: Vec<u32>,
    taken: usize,
    /// The largest that the table has to become.
    most: usize,
}

impl Seen {
    /// Forgets all rows; so many will come at most, each below `end`.
    pub fn reset(&mut self, rows: usize, end: u64) {
        self.bits.clear();
        self.slots.clear();
        if Self::is_bits(rows, end) {
            self.bits.resize(end.div_ceil(64) as usize, 0);
        } else {
            self.taken = 0;
            let size = (4 * rows).next_power_of_two().clamp(64, SLOTS);
            self.most = Self::most(rows).max(size);
            self.slots.resize(size, 0);
        }
    }

    /// Whether bits take no more memory than a table might.
    fn is_bits(rows: usize, end: u64) -> bool {
        end <= 64 * rows as u64
    }

    /// A table for so many distinct rows, half of it free.
    fn most(rows: usize) -> usize {
        (2 * rows).next_power_of_two()
    }

    /// The most bytes that so many rows may take.
    pub fn held(rows: usize, end: u64) -> usize {
        if Self::is_bits(rows, end) {
            return 8 * rows;
        }
        // While a table grows, there are two.
        Self::most(rows).max(SLOTS) * size_of::<u32>() * 3 / 2
    }

    /// Takes some rows and calls `visit` with each, and with whether it is new.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        clippy::needless_bitwise_bool,
        reason = "the innermost loop of counting"
    )]
    pub fn extend(&mut self, rows: &[u32], keys: &HashKeys, mut visit: impl FnMut(u32, bool)) {
        if !self.bits.is_empty() {
            for &row in rows {
                let word = &mut self.bits[row as usize / 64];
                let bit = 1 << (row % 64);
                visit(row, *word & bit == 0);
                *word |= bit;
            }
            return;
        }
        if 2 * (self.taken + rows.len()) > self.slots.len() {
            self.grow(rows.len(), keys);
        }
        let slots = &mut self.slots[..];
        let mask = slots.len() - 1;
        let mut taken = 0;
        let mut hashes = [0; AT_ONCE];
        for rows in rows.chunks(AT_ONCE) {
            // Apart from the search, so that the processor finds several at once.
            hashes.iter_mut().zip(rows).for_each(|(hash, &row)| *hash = keys.short(row));
            for (&row, &hash) in rows.iter().zip(&hashes) {
                let mut place = hash as usize & mask;
                let mut slot = slots[place];
                // Whether a row is new is hard to foresee, so that the usual ways share one without a jump.
                while slot.min(slot ^ row) != 0 {
                    place = (place + 1) & mask;
                    slot = slots[place];
                }
                slots[place] = row;
                let is_new = slot == 0;
                taken += usize::from(is_new);
                visit(row, is_new);
            }
        }
        self.taken += taken;
    }

    /// Makes room for so many more rows.
    #[cold]
    fn grow(&mut self, more: usize, keys: &HashKeys) {
        let size = (4 * (self.taken + more)).next_power_of_two().min(self.most);
        if size <= self.slots.len() {
            return;
        }
        let old = std::mem::take(&mut self.slots);
        self.slots = zeros(size);
        for row in old.into_iter().filter(|&row| row != 0) {
            let mut place = keys.short(row) as usize & (size - 1);
            while self.slots[place] != 0 {
                place = (place + 1) & (size - 1);
            }
            self.slots[place] = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_row_is_new_once_in_bits_and_in_tables_of_any_size() {
        let keys = HashKeys::from_os().unwrap();
        let mut seen = Seen::default();
        for (rows, distinct, step) in [
            (1, 1, u32::MAX),
            (10_000, 700, 1),
            (10_000, 700, 5_000_011),
            (900_000, 300_000, 14_001),
        ] {
            let all: Vec<u32> = (0..rows).map(|n| (n % distinct + 1) * step).collect();
            seen.reset(all.len(), u64::from(distinct * step) + 1);
            let mut new = HashSet::new();
            for piece in all.chunks(2_032) {
                seen.extend(piece, &keys, |row, is_new| assert_eq!(is_new, new.insert(row)));
            }
            assert_eq!(new.len(), distinct as usize);
            assert_eq!(seen.bits.is_empty(), step > 1 << 10);
            let held = size_of_val(&*seen.bits) + size_of_val(&*seen.slots);
            assert!(held <= Seen::held(all.len(), u64::from(distinct * step) + 1));
        }
    }
}
