//! Counts the distinct users of all counted rows.
//!
//! A user's key is an integer or a hash. Users with keys below 2^24 are bits in a bitmap. Other users
//! become rows of one item that every user has. A small cache of recent users drops most repeated
//! rows. The remaining rows are partitioned by user, then spilled, merged and deduplicated like
//! other rows.

use std::sync::atomic::AtomicBool;

use crate::count::dedup::Items;
use crate::count::merge::{Tally, merge_partitions};
use crate::count::pairs::Pair;
use crate::count::rows::ThreadRows;
use crate::error::Result;
use crate::hash::{HashKeys, partition_of};
use crate::labels::interner::Interner;

/// The number of entries of the cache.
const RECENT: usize = 1 << 15;
/// The smallest number of rows that triggers deduplication.
const FEWEST: usize = 1 << 20;
/// Keys below this are bits in a bitmap.
const SMALL: u128 = 1 << 24;

/// One thread's users.
pub(crate) struct Users<P: Pair> {
    /// One bit for each key below `SMALL`; empty until such a key arrives.
    small: Vec<u64>,
    /// A direct-mapped cache: the lower bits of a user's hash choose the entry. An entry has the
    /// item 1, and a free entry has the item 0.
    recent: Vec<P>,
    rows: ThreadRows<P>,
    /// The number of rows in memory.
    len: usize,
    /// The number of rows in memory that triggers deduplication.
    compact_at: usize,
}

impl<P: Pair> Default for Users<P> {
    fn default() -> Self {
        let recent = vec![P::new(0, 0); RECENT];
        let rows = ThreadRows::default();
        Self { small: Vec::new(), recent, rows, len: 0, compact_at: FEWEST }
    }
}

impl<P: Pair> Users<P> {
    /// Adds the users of counted rows.
    #[inline]
    pub fn extend(&mut self, users: impl Iterator<Item = u128>, keys: &HashKeys) {
        for user in users {
            if user < SMALL {
                if self.small.is_empty() {
                    self.small.resize(SMALL as usize / 64, 0);
                }
                self.small[user as usize / 64] |= 1 << (user % 64);
                continue;
            }
            let hash = keys.integer(user as u64 ^ (user >> 64) as u64);
            let (recent, row) = (&mut self.recent[hash as usize % RECENT], P::new(1, user));
            if *recent != row {
                *recent = row;
                self.rows.rows.push(partition_of(hash), row);
                self.len += 1;
            }
        }
        if self.len >= self.compact_at {
            self.rows.compact(keys);
            self.len = self.rows.rows.len();
            self.compact_at = FEWEST.max(2 * self.len);
        }
    }

    /// Returns the bytes of memory that the rows hold.
    pub fn bytes_used(&self) -> usize {
        self.rows.rows.bytes_used()
    }

    /// Spills all rows in memory. The bitmap stays in memory.
    pub fn spill(&mut self, stop: &AtomicBool) -> Result<()> {
        (self.len, self.compact_at) = (0, FEWEST);
        self.rows.spill(None, stop)
    }

    /// Counts the distinct users of all threads.
    pub fn count(
        per_thread: Vec<Self>,
        keys: &HashKeys,
        room: (usize, usize),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<u64> {
        let mut small = vec![0; SMALL as usize / 64];
        let mut rows = Vec::with_capacity(per_thread.len());
        for thread in per_thread {
            small.iter_mut().zip(&thread.small).for_each(|(all, own)| *all |= own);
            rows.push(thread.rows);
        }
        let small: u64 = small.iter().map(|bits: &u64| u64::from(bits.count_ones())).sum();
        let others = merge_partitions(&rows, keys, room, tick, || Total(0))?;
        Ok(others.into_iter().fold(small, |all, Total(users)| all + users))
    }
}

/// The number of users of some partitions.
struct Total(u64);

impl<P: Pair> Tally<P> for Total {
    fn add(
        &mut self,
        _: usize,
        rows: &[P],
        _: &mut Items,
        _: Option<&Interner>,
        _: &HashKeys,
    ) -> Result<()> {
        self.0 += rows.len() as u64;
        Ok(())
    }

    fn close(&mut self, _: &Items, _: Option<&Interner>) -> Result<()> {
        Ok(())
    }
}
