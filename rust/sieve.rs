//! What is distinct among the rows of one partition, and which items they have: tables that stay in cache.

use crate::hash::HashKeys;
use crate::pairs::Pair;

/// A table of row numbers plus one in the lower bits and a piece of the hash above them, zero where free,
/// so that a search rarely looks at a row that is not the one; kept between uses.
#[derive(Default)]
pub struct Table {
    slots: Vec<u32>,
    mask: usize,
    /// The bits that hold a row number.
    numbers: u32,
}

impl Table {
    fn reset(&mut self, rows: usize) {
        let size = (2 * rows).next_power_of_two().max(16);
        self.slots.clear();
        self.slots.resize(size, 0);
        self.mask = size - 1;
        self.numbers = (size as u32).wrapping_sub(1);
    }

    /// The place of the number for which `is_same` holds, or the free place where it belongs.
    #[inline]
    fn find(&self, hash: u64, is_same: impl Fn(usize) -> bool) -> usize {
        let mut place = hash as usize & self.mask;
        let piece = (hash >> 32) as u32 & !self.numbers;
        loop {
            let slot = self.slots[place];
            if slot == 0 || (slot & !self.numbers == piece && is_same(self.number(place))) {
                return place;
            }
            place = (place + 1) & self.mask;
        }
    }

    #[inline]
    fn is_free(&self, place: usize) -> bool {
        self.slots[place] == 0
    }

    #[inline]
    fn number(&self, place: usize) -> usize {
        (self.slots[place] & self.numbers) as usize - 1
    }

    #[inline]
    fn set(&mut self, place: usize, hash: u64, number: usize) {
        self.slots[place] = (hash >> 32) as u32 & !self.numbers | (number as u32 + 1);
    }
}

/// Beyond this many rows a table would leave the cache, and the rows are split by their hash first.
const CACHED_ROWS: usize = 1 << 16;

/// Keeps one of each row.
pub struct Sieve<P> {
    rows: Vec<P>,
    table: Table,
    /// Whether all rows are gathered first.
    gathers: bool,
}

impl<P: Pair> Default for Sieve<P> {
    fn default() -> Self {
        Self { rows: Vec::new(), table: Table::default(), gathers: false }
    }
}

impl<P: Pair> Sieve<P> {
    /// Forgets all rows; about so many will come.
    pub fn reset(&mut self, rows: usize) {
        self.rows.clear();
        self.gathers = rows > CACHED_ROWS;
        self.table.reset(if self.gathers { 0 } else { rows });
    }

    /// Takes a row.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the innermost loop of counting; a tenth of its time")]
    pub fn push(&mut self, row: P, keys: &HashKeys) {
        if self.gathers {
            self.rows.push(row);
            return;
        }
        let hash = row.hash(keys);
        let place = self.table.find(hash, |other| self.rows[other] == row);
        if self.table.is_free(place) {
            self.table.set(place, hash, self.rows.len());
            self.rows.push(row);
            // More came than was said: these are distinct, and the others are gathered.
            self.gathers = 2 * self.rows.len() > self.table.slots.len();
        }
    }

    /// One of each row that came.
    pub fn distinct(&mut self, keys: &HashKeys) -> &[P] {
        if self.gathers {
            // The top bits of the hash, which the places of the table do not use, choose the part.
            let rows = std::mem::take(&mut self.rows);
            let bits =
                (rows.len() / (CACHED_ROWS / 4)).next_power_of_two().trailing_zeros().min(16);
            let mut parts: Vec<Vec<P>> = (0..1_usize << bits).map(|_| Vec::new()).collect();
            for row in rows {
                parts[(row.hash(keys) >> 1 >> (63 - bits)) as usize].push(row);
            }
            let mut kept = Vec::new();
            for part in parts {
                self.rows.clear();
                self.gathers = false;
                self.table.reset(part.len());
                for row in part {
                    self.push(row, keys);
                }
                kept.append(&mut self.rows);
            }
            self.rows = kept;
        }
        &self.rows
    }
}

/// The items of one partition by number. Codes are their own numbers; other keys are found by hash, in a table that
/// starts in the nearest cache and grows, since few items have most of the rows.
#[derive(Default)]
pub struct Items {
    codes: Option<usize>,
    keys: Vec<u64>,
    table: Table,
}

impl Items {
    /// Forgets all items; with `codes` the items are the numbers below it.
    pub fn reset(&mut self, codes: Option<usize>) {
        self.codes = codes;
        self.keys.clear();
        self.table.reset(64);
    }

    /// How many items there are, where they are codes.
    #[must_use]
    pub fn codes(&self) -> Option<usize> {
        self.codes
    }

    /// The keys of those that are not codes, in the order of their numbers.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The number of an item, the next one where it is new.
    #[inline]
    pub fn number(&mut self, item: u64, keys: &HashKeys) -> usize {
        if self.codes.is_some() {
            return item as usize;
        }
        let hash = keys.pair(item, 1);
        let place = self.table.find(hash, |other| self.keys[other] == item);
        if !self.table.is_free(place) {
            return self.table.number(place);
        }
        self.table.set(place, hash, self.keys.len());
        self.keys.push(item);
        if 2 * self.keys.len() > self.table.slots.len() {
            self.table.reset(2 * self.keys.len());
            for (number, &item) in self.keys.iter().enumerate() {
                let hash = keys.pair(item, 1);
                let place = self.table.find(hash, |_| false);
                self.table.set(place, hash, number);
            }
        }
        self.keys.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Narrow;

    #[test]
    fn one_of_each_row_is_kept_whatever_the_number_of_rows() {
        let keys = HashKeys::from_os().unwrap();
        for (rows, users) in [(0, 1), (10, 3), (CACHED_ROWS, 500), (3 * CACHED_ROWS, 150_000)] {
            let row = |n: usize| Narrow::new((n % 7) as u64, (n % users) as u128);
            let mut sieve = Sieve::default();
            for _ in 0..2 {
                sieve.reset(rows / 3);
                (0..rows).for_each(|n| sieve.push(row(n), &keys));
                let made = sieve.distinct(&keys);
                let expected: std::collections::HashSet<u64> =
                    (0..rows).map(|n| row(n).bits()).collect();
                let kept: std::collections::HashSet<u64> =
                    made.iter().map(|row| row.bits()).collect();
                assert_eq!((made.len(), kept), (expected.len(), expected));
            }
        }
    }

    #[test]
    fn items_have_one_number_each_and_codes_are_their_own() {
        let keys = HashKeys::from_os().unwrap();
        let mut items = Items::default();
        for codes in [None, Some(1009), None] {
            items.reset(codes);
            let numbers: Vec<usize> =
                (0..5000_u64).map(|n| items.number(n * n % 1009, &keys)).collect();
            for (number, n) in numbers.iter().zip(0..5000_u64) {
                let key = codes.map_or_else(|| items.keys()[*number], |_| *number as u64);
                assert_eq!(key, n * n % 1009);
            }
        }
        assert_eq!(items.keys().len(), 505);
    }
}
