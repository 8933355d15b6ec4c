//! One thread's part of reading a table: the thread's users, items and rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashTable;

use crate::count::dedup::deduplicate;
use crate::count::morsels::{Morsel, Morsels};
use crate::count::threads::STOPPED;
use crate::count::user_keys::UserKeys;
use crate::error::{Error, Result};
use crate::hash::{HashKeys, PARTITIONS, partition_of};
use crate::labels::LabelType;
use crate::union::bucket::Bucket;
use crate::union::label_numbers::Numbers;

/// Rows read between two checks of the memory limit.
const CHECKED: usize = 1 << 13;
/// Rows read at a time.
const AT_ONCE: usize = 1 << 9;
const FULL: Error = Error::Resource(
    "the item lists of all users exceed the memory limit; raise `memory`, or keep fewer items per user with l0",
);

/// What a reader keeps.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// The type of users and of items.
    pub types: (LabelType, LabelType),
    /// The largest number of items kept for each user; `None` for all items.
    pub l0: Option<usize>,
    /// The bytes of memory for this thread, including its part of the lists.
    pub room: usize,
    /// The smallest number of rows that triggers deduplication.
    pub gathered: usize,
    /// Whether the items of several threads will be merged.
    pub are_merged: bool,
}

/// New items of a thread: the batch and the first row of the rows that they arrived in, and the end of their numbers.
pub(crate) type Arrivals = ((u64, usize), usize);

/// One thread's state while it reads.
pub(crate) struct Reader {
    keys: Arc<HashKeys>,
    terms: Terms,
    user_keys: UserKeys,
    null: Vec<bool>,
    numbers: Vec<u32>,
    /// The low 64 and the high 32 bits of each user's key, and the user's number in its bucket.
    users: HashTable<(u64, u32, u32)>,
    pub items: Numbers,
    pub arrivals: Vec<Arrivals>,
    pub buckets: Vec<Bucket>,
    /// The number of rows that triggers the next deduplication.
    compact_at: usize,
}

impl Reader {
    pub fn new(keys: Arc<HashKeys>, terms: Terms) -> Self {
        Self {
            user_keys: UserKeys::new(Arc::clone(&keys)),
            items: Numbers::new(Arc::clone(&keys)),
            keys,
            terms,
            null: Vec::new(),
            numbers: Vec::new(),
            users: HashTable::new(),
            arrivals: Vec::new(),
            buckets: vec![Bucket::default(); PARTITIONS],
            compact_at: terms.gathered,
        }
    }

    /// Read morsels until there are no more or `stop` is set.
    pub fn run(mut self, morsels: Morsels, stop: &AtomicBool) -> Result<Self> {
        for morsel in morsels {
            for start in (morsel.start..morsel.end).step_by(CHECKED) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                self.read(&morsel, start..morsel.end.min(start + CHECKED))?;
            }
        }
        Ok(self)
    }

    fn read(&mut self, morsel: &Morsel, rows: Range<usize>) -> Result<()> {
        let known = self.items.len();
        for start in rows.clone().step_by(AT_ONCE) {
            self.add(morsel, start..rows.end.min(start + AT_ONCE))?;
        }
        if self.items.len() > known {
            self.arrivals.push(((morsel.number, rows.start), self.items.len()));
        }
        self.compact();
        self.make_room()
    }

    fn add(&mut self, morsel: &Morsel, rows: Range<usize>) -> Result<()> {
        let batch = &morsel.batch;
        let is_text = self.terms.types.1 == LabelType::Text;
        self.null.clear();
        self.null.resize(rows.len(), false);
        self.user_keys.read(&batch.users, morsel.number, rows.clone(), &mut self.null)?;
        self.numbers.clear();
        self.items.read(&batch.items, morsel.number, rows, is_text, &mut self.numbers)?;
        // Rows of one user often follow each other.
        let (mut last, mut place) = (None, (0, 0));
        for row in 0..self.null.len() {
            if self.null[row] {
                continue;
            }
            let user = match self.user_keys.hashes.get(row) {
                Some(&hash) => hash,
                None => self.user_keys.integers[row].into(),
            };
            if last != Some(user) {
                (last, place) = (Some(user), self.user(user)?);
            }
            if self.numbers[row] != Numbers::NONE {
                self.buckets[place.0].push(place.1, self.numbers[row]);
            }
        }
        Ok(())
    }

    /// Return a user's bucket, and the user's number in it. Keys of strings are hashes, and their first bits select the
    /// bucket, so the buckets are in the order of these keys.
    fn user(&mut self, key: u128) -> Result<(usize, u32)> {
        let Self { keys, terms, users, buckets, .. } = self;
        let is_integer = terms.types.0.is_integer();
        let hash = |low: u64| if is_integer { keys.integer(low) } else { low };
        let (low, high) = (key as u64, (key >> 64) as u32);
        let partition = if is_integer { hash(low) } else { u64::from(high) << 32 };
        let bucket = partition_of(partition);
        let known = &mut buckets[bucket].users;
        let next = u32::try_from(known.len()).map_err(|_| FULL)?;
        let is = |&(other, above, _): &(u64, u32, u32)| (other, above) == (low, high);
        let entry = users.entry(hash(low), is, |&(low, ..)| hash(low));
        let number = entry.or_insert((low, high, next)).get().2;
        if number == next {
            known.push(key);
        }
        Ok((bucket, number))
    }

    /// Deduplicate if there are at least `compact_at` rows.
    fn compact(&mut self) {
        let len = |buckets: &[Bucket]| buckets.iter().map(Bucket::len).sum::<usize>();
        if len(&self.buckets) >= self.compact_at {
            deduplicate(|bucket| {
                let before = self.buckets[bucket].len();
                self.settle(bucket);
                (before, self.buckets[bucket].len())
            });
            self.compact_at = self.terms.gathered.max(2 * len(&self.buckets));
        }
    }

    fn settle(&mut self, bucket: usize) {
        let Self { keys, terms, items, buckets, .. } = self;
        buckets[bucket].settle(terms.l0, |user, item| priority(keys, user, items.rank(item)));
    }

    /// Return the bytes of memory in use, plus the bytes that are needed to make the lists.
    fn bytes_used(&self) -> usize {
        let (mut rows, mut most, mut used) = (0, 0, 0);
        for bucket in &self.buckets {
            rows += bucket.len();
            most = most.max(bucket.len());
            used += bucket.bytes_used();
        }
        let merged = if self.terms.are_merged { self.items.bytes_used() } else { 0 };
        let to_come = 4 * rows + 8 * most + 80 * self.users.len() + 40 * self.items.len() + merged;
        used + self.users.allocation_size() + self.items.bytes_used() + to_come
    }

    /// Free memory if more than the limit is in use. [`Error::Resource`] if more than 3/4 of the limit is then still
    /// in use.
    fn make_room(&mut self) -> Result<()> {
        let room = self.terms.room;
        if self.bytes_used() <= room {
            return Ok(());
        }
        (0..PARTITIONS).for_each(|bucket| self.settle(bucket));
        if self.terms.l0.is_some() {
            self.forget_items()?;
        }
        if self.bytes_used() > room / 4 * 3 { Err(FULL) } else { Ok(()) }
    }

    /// Drop the items that no user keeps, if they are at least half of all items.
    fn forget_items(&mut self) -> Result<()> {
        let mut used = vec![false; self.items.len()];
        let entries = self.buckets.iter().flat_map(Bucket::entries);
        entries.for_each(|(_, item, _)| used[item as usize] = true);
        if 2 * used.iter().filter(|used| **used).count() > used.len() {
            return Ok(());
        }
        let numbers = self.items.keep(&used)?;
        self.buckets.iter_mut().for_each(|bucket| bucket.renumber(&numbers));
        let (mut seen, mut kept) = (0, 0);
        for (_, end) in &mut self.arrivals {
            kept += used[seen..*end].iter().filter(|used| **used).count();
            seen = std::mem::replace(end, kept);
        }
        Ok(())
    }
}

/// Return the priority of an item among a user's items, from the user's key and the item's rank. Priorities are uniform
/// for every user.
pub(crate) fn priority(keys: &HashKeys, user: u128, item: u128) -> u64 {
    keys.priority(user, keys.pair(item as u64, (item >> 64) as u64))
}
