//! What is distinct among the rows of one partition, and which items they have: tables that stay in cache.

use crate::count::pairs::Pair;
use crate::hash::{HashKeys, PARTITIONS};

/// The largest table that stays in cache; with more rows than half its slots, they are split by their hash.
const SLOTS: usize = 1 << 18;

/// Keeps one of each row, in open addressing: a slot has the place of a row in its lower bits and a piece of the
/// row's hash above them, so that a search rarely looks at a row that is not the one. It is zero where free.
pub struct Dedup<P> {
    slots: Vec<u32>,
    /// The distinct rows, up to `len`. The first is none of them: it is what a free slot points at.
    rows: Vec<P>,
    len: usize,
    /// What came when the table was full.
    waiting: Vec<P>,
}

impl<P: Pair> Default for Dedup<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), rows: vec![P::new(0, 0)], len: 1, waiting: Vec::new() }
    }
}

impl<P: Pair> Dedup<P> {
    /// Forgets all rows; about so many will come.
    pub fn reset(&mut self, rows: usize) {
        self.reset_to((4 * rows).next_power_of_two().min(SLOTS));
    }

    fn reset_to(&mut self, size: usize) {
        self.slots.clear();
        self.slots.resize(size.max(1 << 10), 0);
        self.len = 1;
        self.waiting.clear();
    }

    /// Takes rows, at most so many.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        clippy::needless_bitwise_bool,
        reason = "the innermost loop of counting"
    )]
    pub fn extend(&mut self, new: impl Iterator<Item = P>, most: usize, keys: &HashKeys) {
        let end = self.len + most;
        if 2 * end > self.slots.len() {
            self.waiting.extend(new);
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
            // Whether a row is new is hard to foresee, so that the usual ways share one without a jump.
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

    /// One of each row that came.
    pub fn distinct(&mut self, keys: &HashKeys) -> &[P] {
        if !self.waiting.is_empty() {
            // The top bits of the hash, which the places of a table do not use, choose the part.
            let mut waiting = std::mem::take(&mut self.waiting);
            waiting.extend(&self.rows[1..self.len]);
            let bits = (waiting.len() / (SLOTS / 16)).next_power_of_two().trailing_zeros().min(16);
            let mut parts: Vec<Vec<P>> = (0..1_usize << bits).map(|_| Vec::new()).collect();
            for row in waiting {
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
                    if self.waiting.is_empty() {
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

/// The items of one partition by number. Codes are their own numbers; other keys are found by hash.
#[derive(Default)]
pub struct Items {
    codes: Option<usize>,
    keys: Vec<u64>,
    /// Open addressing: the number plus one, zero where free.
    slots: Vec<u32>,
}

impl Items {
    /// Forgets all items; with `codes` the items are the numbers below it.
    pub fn reset(&mut self, codes: Option<usize>) {
        self.codes = codes;
        self.keys.clear();
        self.slots.clear();
    }

    /// Makes room for so many more items.
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

    /// The number of an item, the next one where it is new, for which there must be room.
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

    /// Adds one to the count of each item, for all of which there must be room. They are no codes.
    pub fn tally(
        &mut self,
        items: impl Iterator<Item = u64>,
        counts: &mut Vec<i64>,
        keys: &HashKeys,
    ) {
        // The loop keeps in registers where the slots are.
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

    /// The slot of an item, or the free one where it belongs.
    #[inline]
    fn find(slots: &[u32], known: &[u64], item: u64, keys: &HashKeys) -> usize {
        let mask = slots.len() - 1;
        let mut place = keys.pair(item, 1) as usize & mask;
        while slots[place] != 0 && known[slots[place] as usize - 1] != item {
            place = (place + 1) & mask;
        }
        place
    }
}

/// Deduplicates one partition after another, and stops if a sample of partitions has few duplicates: a sample of rows
/// would mislead where one item has most rows. `one` deduplicates a partition and returns its rows before and after.
pub(crate) fn deduplicate(mut one: impl FnMut(usize) -> (usize, usize)) {
    const SAMPLE: usize = PARTITIONS / 64;
    let (mut tried, mut in_vain) = (0, 0);
    // From everywhere: those side by side may be of one item, too, or of none.
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
    fn one_of_each_row_is_kept_whatever_the_number_of_rows() {
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
    fn items_have_one_number_each_and_codes_are_their_own() {
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
    fn duplicates_are_looked_for_as_far_as_it_pays_among_partitions_that_have_rows() {
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
