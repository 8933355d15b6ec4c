//! (item, user) pairs as integers: what is distinct among those of one partition, and how many each item has.

use crate::hash::HashKeys;

/// A row as one integer, the item above the user.
pub trait Pair: Copy + Eq + Send {
    /// The plain integer.
    type Bits: Copy + Default + Send + Sync;
    /// The plain integer of a row.
    fn bits(self) -> Self::Bits;
    /// The row of a plain integer.
    fn of_bits(bits: Self::Bits) -> Self;
    /// The row of an item's key and a user's key.
    fn new(item: u64, user: u128) -> Self;
    /// The item's key.
    fn item(self) -> u64;
    /// The user's key.
    fn user(self) -> u128;
    /// The same row with another key for its item.
    #[must_use]
    fn with_item(self, item: u64) -> Self;
    /// A keyed hash.
    fn hash(self, keys: &HashKeys) -> u64;
    /// Adds the row's bytes.
    fn write(self, into: &mut Vec<u8>);
    /// The row of its bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// Defines a row of so many bits, the item's key above so many of the user's.
macro_rules! pair {
    ($(#[$doc:meta])* $name:ident, $bits:ty, $user_bits:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name($bits);

        impl $name {
            const USER: $bits = (1 << $user_bits) - 1;
        }

        impl Pair for $name {
            type Bits = $bits;
            fn bits(self) -> $bits {
                self.0
            }
            fn of_bits(bits: $bits) -> Self {
                Self(bits)
            }
            #[inline]
            fn new(item: u64, user: u128) -> Self {
                debug_assert!(user <= Self::USER.into(), "a row is too narrow for its user");
                Self(<$bits>::from(item) << $user_bits | user as $bits & Self::USER)
            }
            #[inline]
            fn item(self) -> u64 {
                (self.0 >> $user_bits) as u64
            }
            fn user(self) -> u128 {
                u128::from(self.0 & Self::USER)
            }
            fn with_item(self, item: u64) -> Self {
                Self(<$bits>::from(item) << $user_bits | self.0 & Self::USER)
            }
            #[inline]
            fn hash(self, keys: &HashKeys) -> u64 {
                let bits = u128::from(self.0);
                keys.pair(bits as u64, (bits >> 64) as u64)
            }
            fn write(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.0.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Self {
                let mut bits = [0; size_of::<$bits>()];
                bits.copy_from_slice(bytes);
                Self(<$bits>::from_le_bytes(bits))
            }
        }
    };
}

pair!(
    /// Two keys below 2^32.
    Narrow, u64, 32
);
pair!(
    /// Two keys of 64 bits.
    Wide, u128, 64
);
pair!(
    /// An item's key below 2^32 and 96 bits that stand for a user.
    Hashed, u128, 96
);

impl Narrow {
    /// The same row with room for larger keys.
    #[must_use]
    pub fn widen(self) -> Wide {
        Wide::new(self.item(), (self.0 & Self::USER).into())
    }
}

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
                part.into_iter().for_each(|row| self.push(row, keys));
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

    fn parts_come_back<P: Pair + std::fmt::Debug>(item: u64, user: u128) {
        let row = P::new(item, user);
        assert_eq!((row.item(), P::of_bits(row.bits())), (item, row));
        let mut bytes = Vec::new();
        row.write(&mut bytes);
        assert_eq!((bytes.len(), P::read(&bytes)), (size_of::<P>(), row));
        assert_eq!(row.with_item(1), P::new(1, user));
        assert_ne!(row, P::new(item, user ^ 1));
    }

    #[test]
    fn rows_hold_both_keys() {
        parts_come_back::<Narrow>(u32::MAX.into(), u32::MAX.into());
        parts_come_back::<Wide>(u64::MAX, u64::MAX.into());
        parts_come_back::<Hashed>(u32::MAX.into(), (1 << 96) - 1);
        assert_eq!(Narrow::new(7, 9).widen(), Wide::new(7, 9));
    }

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
                    (0..rows).map(|n| row(n).0).collect();
                let kept: std::collections::HashSet<u64> = made.iter().map(|row| row.0).collect();
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
