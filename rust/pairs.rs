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
    /// The same row with another key for its item.
    #[must_use]
    fn with_item(self, item: u64) -> Self;
    /// A keyed hash.
    fn hash(self, keys: &HashKeys) -> u64;
}

/// Two keys below 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Narrow(u64);

impl Narrow {
    /// The same row with room for larger keys.
    #[must_use]
    pub fn widen(self) -> Wide {
        Wide(u128::from(self.0 >> 32) << 64 | u128::from(self.0 as u32))
    }
}

/// Two keys of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide(u128);

/// An item's key below 2^32 and 96 bits that stand for a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hashed(u128);

impl Pair for Narrow {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.0
    }
    fn of_bits(bits: u64) -> Self {
        Self(bits)
    }
    fn new(item: u64, user: u128) -> Self {
        Self(item << 32 | u64::from(user as u32))
    }
    fn item(self) -> u64 {
        self.0 >> 32
    }
    fn with_item(self, item: u64) -> Self {
        Self(item << 32 | u64::from(self.0 as u32))
    }
    #[inline]
    fn hash(self, keys: &HashKeys) -> u64 {
        keys.pair(self.0, 0)
    }
}

impl Pair for Wide {
    type Bits = u128;
    fn bits(self) -> u128 {
        self.0
    }
    fn of_bits(bits: u128) -> Self {
        Self(bits)
    }
    fn new(item: u64, user: u128) -> Self {
        Self(u128::from(item) << 64 | u128::from(user as u64))
    }
    fn item(self) -> u64 {
        (self.0 >> 64) as u64
    }
    fn with_item(self, item: u64) -> Self {
        Self(u128::from(item) << 64 | u128::from(self.0 as u64))
    }
    #[inline]
    fn hash(self, keys: &HashKeys) -> u64 {
        keys.pair(self.0 as u64, (self.0 >> 64) as u64)
    }
}

impl Pair for Hashed {
    type Bits = u128;
    fn bits(self) -> u128 {
        self.0
    }
    fn of_bits(bits: u128) -> Self {
        Self(bits)
    }
    fn new(item: u64, user: u128) -> Self {
        Self(u128::from(item) << 96 | user)
    }
    fn item(self) -> u64 {
        (self.0 >> 96) as u64
    }
    fn with_item(self, item: u64) -> Self {
        Self(u128::from(item) << 96 | self.0 & ((1 << 96) - 1))
    }
    #[inline]
    fn hash(self, keys: &HashKeys) -> u64 {
        keys.pair(self.0 as u64, (self.0 >> 64) as u64)
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
pub fn distinct<P: Pair>(rows: &mut Vec<P>, keys: &HashKeys, table: &mut Table) {
    if rows.len() <= CACHED_ROWS {
        let kept = distinct_prefix(rows, keys, table);
        rows.truncate(kept);
        return;
    }
    // The top bits of the hash, which the places of the table do not use, choose the part.
    let bits = (rows.len() / (CACHED_ROWS / 4)).next_power_of_two().trailing_zeros().min(16);
    let mut parts: Vec<Vec<P>> = (0..1_usize << bits).map(|_| Vec::new()).collect();
    for row in std::mem::take(rows) {
        parts[(row.hash(keys) >> (64 - bits)) as usize].push(row);
    }
    for mut part in parts {
        let kept = distinct_prefix(&mut part, keys, table);
        rows.extend_from_slice(&part[..kept]);
    }
}

fn distinct_prefix<P: Pair>(rows: &mut [P], keys: &HashKeys, table: &mut Table) -> usize {
    table.reset(rows.len());
    let mut kept = 0;
    for index in 0..rows.len() {
        let row = rows[index];
        let hash = row.hash(keys);
        let place = table.find(hash, |other| rows[other] == row);
        if table.is_free(place) {
            rows[kept] = row;
            table.set(place, hash, kept);
            kept += 1;
        }
    }
    kept
}

/// The items of distinct rows and how many rows each has. Keys below `codes` are counted in place, by
/// code; where that is `None` items are found by hash.
pub fn count_items<P: Pair>(
    rows: &[P],
    codes: Option<usize>,
    keys: &HashKeys,
    table: &mut Table,
) -> (Vec<u64>, Vec<i64>) {
    if let Some(codes) = codes {
        let mut counts = vec![0; codes];
        for row in rows {
            counts[row.item() as usize] += 1;
        }
        return ((0..codes as u64).collect(), counts);
    }
    let (mut items, mut counts) = (Vec::new(), Vec::new());
    let hash = |item: u64| keys.pair(item, 1);
    table.reset(64);
    for row in rows {
        let item = row.item();
        let place = table.find(hash(item), |other| items[other] == item);
        if table.is_free(place) {
            table.set(place, hash(item), items.len());
            items.push(item);
            counts.push(1);
            if 2 * items.len() > table.slots.len() {
                // Few items have most of the rows: the table starts in the nearest cache and grows.
                table.reset(2 * items.len());
                for (number, &item) in items.iter().enumerate() {
                    let place = table.find(hash(item), |_| false);
                    table.set(place, hash(item), number);
                }
            }
        } else {
            counts[table.number(place)] += 1;
        }
    }
    (items, counts)
}
