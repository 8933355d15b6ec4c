//! Deduplicates one partition's rows and numbers its items with hash tables.
//!
//! A row is a pair of an item and a user. A slot is an entry of a hash table.

use crate::count::pairs::Pair;
use crate::hash::{HashKeys, PARTITIONS};

/// The number of slots of the largest table that stays in cache. If the distinct rows would fill
/// more than half of the slots, the rows are split by hash.
const SLOTS: usize = 1 << 18;

/// Deduplicates rows by open addressing. The lower bits of a slot hold a row's index, and the upper
/// bits hold part of the row's hash. So a probe rarely compares unequal rows. A free slot is zero.
pub struct Dedup<P> {
    slots: Vec<u32>,
    /// The distinct rows, at the indices `1..len`. Free slots point at index 0, which is not a row.
    rows: Vec<P>,
    len: usize,
    /// Rows that arrived when the table was full.
    overflow: Vec<P>,
}

impl<P: Pair> Default for Dedup<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), rows: vec![P::new(0, 0)], len: 1, overflow: Vec::new() }
    }
}

impl<P: Pair> Dedup<P> {
    /// Removes all rows and makes room for about `rows` new rows.
    pub fn reset(&mut self, rows: usize) {
        self.reset_to((4 * rows).next_power_of_two().min(SLOTS));
    }

    fn reset_to(&mut self, size: usize) {
        self.slots.clear();
        self.slots.resize(size.max(1 << 10), 0);
        self.len = 1;
        self.overflow.clear();
    }

    /// Adds at most `most` rows.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        clippy::needless_bitwise_bool,
        reason = "the innermost loop of counting"
    )]
    pub fn extend(&mut self, new: impl Iterator<Item = P>, most: usize, keys: &HashKeys) {
        let end = self.len + most;
        if 2 * end > self.slots.len() {
            self.overflow.extend(new);
            return;
        }
        if self.rows.len() <= end {
            self.rows.resize(2 * end, P::new(0, 0));
        }
        let (slots, rows) = (&mut self.slots[..], &mut self.rows[..]);
        let mut len = self.len;
        let mask = slots.len() - 1;
        let numbers = mask as u32;
        for row in new {
            let hash = row.hash(keys);
            let piece = (hash >> 32) as u32 & !numbers;
            let mut place = hash as usize & mask;
            let slot = slots[place];
            let is_free = slot == 0;
            // Whether a row is new is hard to predict, so the common cases share one path without a
            // branch.
            rows[len] = row;
            if is_free | (rows[(slot & numbers) as usize] == row) {
                slots[place] = if is_free { piece | len as u32 } else { slot };
                len += usize::from(is_free);
                continue;
            }
            loop {
                place = (place + 1) & mask;
                let slot = slots[place];
                if slot == 0 {
                    slots[place] = piece | len as u32;
                    len += 1;
                    break;
                }
                if slot & !numbers == piece && rows[(slot & numbers) as usize] == row {
                    break;
                }
            }
        }
        self.len = len;
    }

    /// Returns the distinct rows.
    pub fn distinct(&mut self, keys: &HashKeys) -> &[P] {
        if !self.overflow.is_empty() {
            // Split by the top bits of the hash, which do not choose a slot.
            let mut overflow = std::mem::take(&mut self.overflow);
            overflow.extend(&self.rows[1..self.len]);
            let bits = (overflow.len() / (SLOTS / 16)).next_power_of_two().trailing_zeros().min(16);
            let mut parts: Vec<Vec<P>> = (0..1_usize << bits).map(|_| Vec::new()).collect();
            for row in overflow {
                parts[(row.hash(keys) >> 1 >> (63 - bits)) as usize].push(row);
            }
            let mut kept = vec![P::new(0, 0)];
            for part in parts {
                let size = (4 * part.len()).next_power_of_two();
                for size in [size.min(SLOTS), size] {
                    self.reset_to(size);
                    for rows in part.chunks(SLOTS / 64) {
                        self.extend(rows.iter().copied(), rows.len(), keys);
                    }
                    if self.overflow.is_empty() {
                        break;
                    }
                }
                kept.extend(&self.rows[1..self.len]);
            }
            self.len = kept.len();
            self.rows = kept;
        }
        &self.rows[1..self.len]
    }
}

/// Numbers the items of one partition from zero. An item's key is a code or an integer. A code is
/// already such a number. Integers are numbered by a hash table.
#[derive(Default)]
pub struct Items {
    /// The number of codes, if keys are codes.
    codes: Option<usize>,
    /// The integers by number.
    keys: Vec<u64>,
    /// Slots by open addressing. Each holds an item's number plus one, or zero if it is free.
    slots: Vec<u32>,
}

impl Items {
    /// Removes all items. If `codes` is given, the keys are codes below this number.
    pub fn reset(&mut self, codes: Option<usize>) {
        self.codes = codes;
        self.keys.clear();
        self.slots.clear();
    }

    /// Makes room for `more` items.
    pub fn reserve(&mut self, more: usize, keys: &HashKeys) {
        let size = (2 * (self.keys.len() + more)).next_power_of_two();
        if self.codes.is_none() && size > self.slots.len() {
            self.slots.clear();
            self.slots.resize(size, 0);
            for number in 0..self.keys.len() {
                let place = Self::find(&self.slots, &self.keys, self.keys[number], keys);
                self.slots[place] = number as u32 + 1;
            }
        }
    }

    /// Returns the number of codes, if keys are codes.
    #[must_use]
    pub fn codes(&self) -> Option<usize> {
        self.codes
    }

    /// Returns the integers by number, if keys are integers.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Returns the number of the item with the key `item`. A new item gets the next number. The
    /// caller must have reserved room for it.
    #[inline]
    pub fn number(&mut self, item: u64, keys: &HashKeys) -> usize {
        if self.codes.is_some() {
            return item as usize;
        }
        let place = Self::find(&self.slots, &self.keys, item, keys);
        if self.slots[place] == 0 {
            self.keys.push(item);
            self.slots[place] = self.keys.len() as u32;
        }
        self.slots[place] as usize - 1
    }

    /// Adds one to the count of the item for each key in `items`. The keys must be integers, and the
    /// caller must have reserved room for all of them.
    pub fn tally(
        &mut self,
        items: impl Iterator<Item = u64>,
        counts: &mut Vec<i64>,
        keys: &HashKeys,
    ) {
        // The local slice keeps the address of the slots in registers.
        let slots = &mut self.slots[..];
        for item in items {
            let place = Self::find(slots, &self.keys, item, keys);
            if slots[place] == 0 {
                self.keys.push(item);
                counts.push(1);
                slots[place] = self.keys.len() as u32;
            } else {
                counts[slots[place] as usize - 1] += 1;
            }
        }
    }

    /// Returns the slot of an item, or the free slot where it belongs.
    #[inline]
    fn find(slots: &[u32], items: &[u64], item: u64, keys: &HashKeys) -> usize {
        let mask = slots.len() - 1;
        let mut place = keys.pair(item, 1) as usize & mask;
        while slots[place] != 0 && items[slots[place] as usize - 1] != item {
            place = (place + 1) & mask;
        }
        place
    }
}

/// Deduplicates the partitions with many times the mean number of rows, and then all in turn as
/// [`deduplicate`] does. If rows are partitioned by user, the rows of a few heavy users are in a few partitions, which
/// its sample can miss.
pub(crate) fn deduplicate_users(
    lens: impl Iterator<Item = usize> + Clone,
    mut one: impl FnMut(usize) -> (usize, usize),
) {
    let used = lens.clone().filter(|&len| len > 0).count().max(1);
    let many = 4 * lens.clone().sum::<usize>() / used;
    let large: Vec<usize> =
        (0..).zip(lens).filter(|&(_, len)| len > many).map(|one| one.0).collect();
    for partition in large {
        one(partition);
    }
    deduplicate(one);
}

/// Deduplicates partitions in turn. Stops if more than half of the first 16 partitions with rows
/// have few duplicates. A sample of rows would mislead if one item has most rows. `one` deduplicates
/// a partition, and returns its number of rows before and after.
pub(crate) fn deduplicate(mut one: impl FnMut(usize) -> (usize, usize)) {
    const SAMPLE: usize = PARTITIONS / 64;
    let (mut tried, mut in_vain) = (0, 0);
    // The stride spreads the sample, because all partitions with nearby numbers may be empty.
    for partition in (0..PARTITIONS).map(|number| number * 389 % PARTITIONS) {
        if tried == SAMPLE && 2 * in_vain > SAMPLE {
            break;
        }
        let (before, after) = one(partition);
        tried += usize::from(before > 0);
        in_vain += usize::from(4 * after > 3 * before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::pairs::Wide;

    #[test]
    fn distinct_rows_are_kept_once_for_any_number_of_rows() {
        let keys = HashKeys::from_os().unwrap();
        for (rows, users) in [(0, 1), (10, 3), (SLOTS, 500), (SLOTS, 150_000)] {
            let row = |n: usize| Wide::new((n % 7) as u64, (n % users) as u128);
            let mut dedup = Dedup::default();
            for _ in 0..2 {
                dedup.reset(rows / 3);
                for start in (0..rows).step_by(300) {
                    dedup.extend((start..rows.min(start + 300)).map(row), 300, &keys);
                }
                let made = dedup.distinct(&keys);
                let expected: std::collections::HashSet<u128> =
                    (0..rows).map(|n| row(n).bits()).collect();
                let kept: std::collections::HashSet<u128> =
                    made.iter().map(|row| row.bits()).collect();
                assert_eq!((made.len(), kept), (expected.len(), expected));
            }
        }
    }

    #[test]
    fn an_integer_keeps_its_number_and_a_code_is_its_number() {
        let keys = HashKeys::from_os().unwrap();
        let mut items = Items::default();
        for codes in [None, Some(1009), None] {
            items.reset(codes);
            items.reserve(10, &keys);
            items.reserve(505, &keys);
            let numbers: Vec<usize> =
                (0..5000_u64).map(|n| items.number(n * n % 1009, &keys)).collect();
            for (number, n) in numbers.iter().zip(0..5000_u64) {
                let key = codes.map_or_else(|| items.keys()[*number], |_| *number as u64);
                assert_eq!(key, n * n % 1009);
            }
        }
        assert_eq!(items.keys().len(), 505);
        let mut counts = vec![0; items.keys().len()];
        items.reserve(5000, &keys);
        items.tally((0..5000).map(|n| n * n % 1013), &mut counts, &keys);
        assert_eq!(counts.len(), items.keys().len());
        for (&key, count) in items.keys().iter().zip(counts) {
            assert_eq!((0..5000).filter(|n| n * n % 1013 == key).count(), count as usize);
        }
    }

    #[test]
    fn deduplication_stops_if_a_sample_has_few_duplicates() {
        let tried = |of: fn(usize) -> (usize, usize)| {
            let mut tried = [0; PARTITIONS];
            deduplicate(|partition| {
                tried[partition] += 1;
                of(partition)
            });
            assert!(tried.iter().all(|&times| times < 2));
            (0..PARTITIONS).filter(|&partition| tried[partition] > 0 && of(partition).0 > 0).count()
        };
        assert_eq!(tried(|_| (10, 5)), PARTITIONS);
        assert_eq!(tried(|_| (10, 10)), PARTITIONS / 64);
        assert_eq!(tried(|n| if n < 700 { (10, 10) } else { (0, 0) }), PARTITIONS / 64);
        assert_eq!(tried(|n| if n < 900 { (10, 1) } else { (10, 10) }), PARTITIONS);
    }
}
