//! Counts the distinct users of all counted rows.
//!
//! A user's key is an integer or a hash. A user with a key below 2^24 is a bit in a bitmap. Any
//! other user is a row without an item. These rows are partitioned by user, deduplicated each time
//! their number has doubled, and spilled if memory is full. At the end, a hash table counts each
//! partition.

use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Zeroable;

use crate::count::dedup::deduplicate_users;
use crate::count::pairs::Pair;
use crate::count::rows::ThreadRows;
use crate::count::threads;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS, partition_of};
use crate::memory::arena::zeros;

/// The smallest number of rows that triggers deduplication.
const FEWEST: usize = 1 << 22;
/// Only one in this many partitions is used. The write buffers of more partitions would not fit into
/// cache together with the write buffers of the items.
const USED: usize = 4;
/// Users with keys below this number are bits in a bitmap.
const SMALL: u128 = 1 << 24;
/// The number of 64-bit words of the bitmap.
const WORDS: usize = SMALL as usize / 64;

/// One thread's users.
pub(crate) struct Users<P: Pair> {
    /// One bit for each key below `SMALL`; empty until such a key arrives.
    small: Vec<u64>,
    /// A buffer for the rows that one call of [`Self::extend`] adds.
    new: Vec<P::User>,
    /// The rows in memory and the spilled rows.
    rows: ThreadRows<P::User>,
    /// The table that deduplicates rows. It is kept, so that its memory is used again.
    distinct: Distinct<P::User>,
    /// The number of rows in memory.
    len: usize,
    /// The number of rows in memory that triggers deduplication.
    compact_at: usize,
}

impl<P: Pair> Default for Users<P> {
    fn default() -> Self {
        Self {
            small: Vec::new(),
            new: Vec::new(),
            rows: ThreadRows::default(),
            distinct: Distinct::new(0x9e37_79b9_7f4a_7c15),
            len: 0,
            compact_at: FEWEST,
        }
    }
}

impl<P: Pair> Users<P> {
    /// Adds the users of counted rows.
    #[inline]
    pub fn extend(&mut self, users: impl Iterator<Item = u128> + Clone, keys: &HashKeys) {
        if users.clone().fold(0, |all, user| all | user) < SMALL {
            self.extend_small(users);
            return;
        }
        let (mut len, mut last, mut has_small) = (0, 0, false);
        let most = users.size_hint().1.unwrap_or(0);
        if self.new.len() <= most {
            self.new.resize(most + 1, P::user_row(SMALL, keys));
        }
        let new = &mut self.new[..];
        // Rows are often grouped by user, so successive rows of a user are added once. A row that
        // is not added is overwritten by the next row.
        for user in users.clone() {
            new[len] = P::user_row(user, keys);
            has_small |= user < SMALL;
            len += usize::from(user >= SMALL && user != last);
            last = user;
        }
        if has_small {
            self.extend_small(users.filter(|&user| user < SMALL));
        }
        self.len += len;
        self.rows.rows.extend(self.new[..len].iter().map(|&row| (part_of(row), row)));
        if self.len >= self.compact_at {
            self.compact();
            self.len = self.rows.rows.len();
            self.compact_at = FEWEST.max(2 * self.len);
        }
    }

    /// Adds users with keys below `SMALL`.
    #[inline]
    fn extend_small(&mut self, users: impl Iterator<Item = u128>) {
        if self.small.is_empty() {
            self.small = zeros(WORDS);
        }
        let small = &mut self.small[..WORDS];
        users.for_each(|user| small[user as usize / 64 % WORDS] |= 1 << (user % 64));
    }

    /// Deduplicates one partition after another.
    fn compact(&mut self) {
        let (store, distinct) = (&mut self.rows.rows, &mut self.distinct);
        let lens: Vec<usize> = (0..PARTITIONS).map(|place| store.partition_len(place)).collect();
        deduplicate_users(lens.into_iter(), |partition| {
            let before = store.partition_len(partition);
            distinct.reset(before);
            store.pieces(partition).for_each(|rows| distinct.extend(rows));
            store.clear(partition);
            distinct.rows().for_each(|row| store.push(partition, row));
            (before, distinct.len)
        });
    }

    /// Returns the bytes of memory that the rows hold. The bitmap of 2 MiB does not count.
    pub fn bytes_used(&self) -> usize {
        self.rows.rows.bytes_used()
    }

    /// Spills all rows in memory. The bitmap stays in memory.
    pub fn spill(&mut self, stop: &AtomicBool) -> Result<()> {
        self.compact();
        (self.len, self.compact_at) = (0, FEWEST);
        self.distinct.slots = Vec::new();
        self.rows.spill(None, stop)
    }

    /// Counts the distinct users of all threads. A large partition takes several passes, so that
    /// the hash table of one thread takes at most about `held` bytes.
    pub fn count(
        per_thread: Vec<Self>,
        (threads, held): (usize, usize),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        let mut small = vec![0; WORDS];
        let mut all = Vec::with_capacity(per_thread.len());
        for thread in per_thread {
            small.iter_mut().zip(&thread.small).for_each(|(all, own)| *all |= own);
            all.push(thread.rows);
        }
        let small: u64 = small.iter().map(|bits: &u64| u64::from(bits.count_ones())).sum();
        let len = |partition: usize| all.iter().map(|rows| rows.partition_len(partition)).sum();
        let at_once = (held / Distinct::<P::User>::BYTES).max(1 << 12);
        let begin = || (Distinct::new(0xd129_0d3c_5f1a_93ab), 0);
        let work = |state: &mut (Distinct<_>, u64), partition, len: usize, stop: &AtomicBool| {
            let (distinct, total) = state;
            let mut passes = vec![Pass { bits: 0, class: 0 }];
            while let Some(mut pass) = passes.pop() {
                distinct.reset(len.min(at_once));
                for rows in &all {
                    if stop.load(Ordering::Relaxed) {
                        return Err(threads::STOPPED);
                    }
                    distinct.read(rows, partition, at_once, &mut pass, &mut passes)?;
                }
                *total += distinct.len as u64;
            }
            Ok(())
        };
        let done = threads::run_jobs(threads, (0..PARTITIONS).map(len), tick, begin, work)?;
        Ok(done.into_iter().fold(small, |all, (_, users)| all + users))
    }
}

/// Returns the keyed hash that is part of a user's row.
#[inline]
fn hash<P: Pair>(row: P) -> u64 {
    row.user() as u64
}

/// Returns the partition of a user.
#[inline]
fn part_of<P: Pair>(row: P) -> usize {
    partition_of(hash(row)) / USED * USED
}

/// A pass over the rows of a partition, for the users with some bits in their hash. The number of
/// passes depends on the number of users, and not on their rows: one user can have most rows.
struct Pass {
    /// The number of bits.
    bits: u32,
    class: u64,
}

impl Pass {
    /// Returns whether the user of a row belongs to this pass.
    #[inline]
    fn has<P: Pair>(&self, row: P) -> bool {
        (hash(row) >> 16) & ((1 << self.bits) - 1) == self.class
    }

    /// Splits the pass by one more bit. Keeps one half and returns the other half.
    fn split(&mut self) -> Self {
        self.bits += 1;
        Self { bits: self.bits, class: self.class | 1 << (self.bits - 1) }
    }
}

/// A set of users: a hash table with open addressing. Zero is a free slot, because no row is zero.
struct Distinct<P: Pair> {
    slots: Vec<P::Bits>,
    len: usize,
    /// The number of users to expect: about an eighth more than the last nonempty set had.
    expected: usize,
    /// An odd factor of the hash, which changes with each reset. With a fixed factor, users that
    /// come in the order of an old table's slots would fill a smaller table from one end.
    factor: u64,
}

impl<P: Pair> Distinct<P> {
    /// The most bytes of memory for each row: while a table grows, the old table is in memory too.
    const BYTES: usize = 6 * size_of::<P>();
    /// The fewest and the most slots of a table after a reset. Such a table stays in cache.
    const SLOTS: (usize, usize) = (1 << 8, 1 << 16);

    /// Creates an empty set. `factor` must be odd.
    fn new(factor: u64) -> Self {
        Self { slots: Vec::new(), len: 0, expected: usize::MAX, factor }
    }

    /// Removes all users and prepares for about `rows` new rows.
    fn reset(&mut self, rows: usize) {
        if self.len > 0 {
            self.expected = self.len + self.len / 8 + 16;
        }
        let users = rows.min(self.expected);
        let size = (users + users / 3).next_power_of_two().clamp(Self::SLOTS.0, Self::SLOTS.1);
        self.slots.clear();
        self.slots.shrink_to(Self::SLOTS.1);
        self.slots.resize(size, P::Bits::zeroed());
        self.len = 0;
        self.factor = self.factor.wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    /// Adds the users of a partition from one thread who belong to `pass`. Splits the pass if the set
    /// gets more than `most` users, and adds the other half to `passes`.
    fn read(
        &mut self,
        all: &ThreadRows<P>,
        partition: usize,
        most: usize,
        pass: &mut Pass,
        passes: &mut Vec<Pass>,
    ) -> Result<()> {
        for rows in all.rows.pieces(partition) {
            self.extend_pass(rows, most, pass, passes);
        }
        all.runs.visit(partition, &[], |rows: &[P]| {
            self.extend_pass(rows.iter().copied(), most, pass, passes);
        })
    }

    fn extend_pass(
        &mut self,
        rows: impl Iterator<Item = P>,
        most: usize,
        pass: &mut Pass,
        passes: &mut Vec<Pass>,
    ) {
        if pass.bits == 0 {
            self.extend(rows);
        } else {
            self.extend(rows.filter(|&row| pass.has(row)));
        }
        while self.len > most {
            passes.push(pass.split());
            let old = std::mem::take(&mut self.slots);
            self.reset(most);
            let left = old.into_iter().map(P::of_bits).filter(|&row| pass.has(row));
            left.filter(|row| row.bits() != P::Bits::zeroed())
                .for_each(|row| self.extend(std::iter::once(row)));
        }
    }

    /// Adds users.
    #[inline]
    fn extend(&mut self, rows: impl Iterator<Item = P>) {
        let more = rows.size_hint().1.unwrap_or(0);
        if 4 * (self.len + more) > 3 * self.slots.len() {
            self.grow(more);
        }
        let (slots, factor) = (&mut self.slots[..], self.factor);
        let (mask, shift) = (slots.len() - 1, u64::BITS - slots.len().trailing_zeros());
        let mut len = self.len;
        for row in rows {
            let mut place = (hash(row).wrapping_mul(factor) >> shift) as usize & mask;
            while slots[place] != row.bits() && slots[place] != P::Bits::zeroed() {
                place = (place + 1) & mask;
            }
            // Whether a user is new is hard to predict, so no branch depends on it.
            len += usize::from(slots[place] != row.bits());
            slots[place] = row.bits();
        }
        self.len = len;
    }

    /// Replaces the table with a larger table, which has room for `more` more users.
    #[cold]
    fn grow(&mut self, more: usize) {
        let size = (2 * (self.len + more)).next_power_of_two();
        let old = std::mem::replace(&mut self.slots, zeros(size));
        self.len = 0;
        self.extend(old.into_iter().filter(|&bits| bits != P::Bits::zeroed()).map(P::of_bits));
    }

    /// Iterates over the users.
    fn rows(&self) -> impl Iterator<Item = P> {
        self.slots.iter().filter(|&&bits| bits != P::Bits::zeroed()).map(|&bits| P::of_bits(bits))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::count::pairs::{Hashed, Wide};

    /// Counts users that several threads add in pieces. One of 1,000 pieces is followed by a
    /// deduplication, and one by a spill.
    fn counted<P: Pair>(users: &[u128], threads: usize, held: usize, keys: &HashKeys) -> u64 {
        let mut all: Vec<Users<P>> = (0..threads).map(|_| Users::default()).collect();
        for (number, piece) in users.chunks(256).enumerate() {
            let own = &mut all[number % threads];
            own.extend(piece.iter().copied(), keys);
            match number % 1000 {
                300 => own.compact(),
                700 => own.spill(&AtomicBool::new(false)).unwrap(),
                _ => (),
            }
        }
        Users::count(all, (threads, held), || Ok(())).unwrap()
    }

    #[test]
    fn every_user_is_counted_once() {
        let keys = HashKeys::from_os().unwrap();
        let user = |n: u64| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for (rows, distinct) in [(0, 1), (1, 1), (300, 300), (400_000, 9), (400_000, 350_000)] {
            let users: Vec<u128> =
                (0..rows).flat_map(|n| [user(n % distinct), (n % 7).into()]).collect();
            let expected = users.iter().collect::<HashSet<_>>().len() as u64;
            for (threads, held) in [(1, usize::MAX), (2, usize::MAX), (2, 1 << 13)] {
                assert_eq!(counted::<Wide>(&users, threads, held, &keys), expected);
                let hashed: Vec<u128> = users.iter().map(|user| user * (1 << 30)).collect();
                assert_eq!(counted::<Hashed>(&hashed, threads, held, &keys), expected);
            }
        }
    }

    #[test]
    fn few_users_with_most_rows_are_deduplicated_and_counted_in_few_passes() {
        let keys = HashKeys::from_os().unwrap();
        let user = |n: u64| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1 << 30;
        // Nineteen of twenty rows belong to three users, and each other row to a user of its own.
        let all: Vec<u128> =
            (0..600_000).map(|n| user(if n % 20 == 0 { n + 9 } else { n % 3 })).collect();
        let mut users = Users::<Wide>::default();
        all.chunks(256).for_each(|piece| users.extend(piece.iter().copied(), &keys));
        users.compact();
        assert!(users.rows.rows.len() < 50_000);
        let mut passes = Vec::new();
        let mut set = Distinct::<<Wide as Pair>::User>::new(1);
        let mut pass = Pass { bits: 0, class: 0 };
        set.reset(1000);
        let rows = all.iter().map(|&user| Wide::user_row(user, &keys));
        set.extend_pass(rows.clone().take(10_000), 1000, &mut pass, &mut passes);
        assert_eq!(passes.len(), 0, "{} users", set.len);
        set.extend_pass(rows, 1000, &mut pass, &mut passes);
        assert!(set.len <= 1000 && passes.len() < 12);
    }

    #[test]
    fn successive_rows_of_a_user_are_added_once() {
        let keys = HashKeys::from_os().unwrap();
        let mut users = Users::<Wide>::default();
        for run in 0..100 {
            users.extend((0..1000_u128).map(|n| (n / 50 + run) << 40), &keys);
        }
        assert!(users.len <= 2000, "{} rows", users.len);
    }

    #[test]
    fn sets_filled_in_the_order_of_an_old_table_stay_fast() {
        let keys = HashKeys::from_os().unwrap();
        let mut set = Distinct::<<Wide as Pair>::User>::new(1);
        set.reset(1);
        set.extend((1..100_000).map(|n| Wide::user_row(n << 30, &keys)));
        for _ in 0..3 {
            let rows: Vec<_> = set.rows().collect();
            set.expected = 10;
            set.reset(10);
            let started = std::time::Instant::now();
            rows.chunks(64).for_each(|rows| set.extend(rows.iter().copied()));
            assert_eq!(set.len, 99_999);
            assert!(started.elapsed().as_secs() < 5);
        }
    }
}
