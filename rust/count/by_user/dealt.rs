//! One thread's rows by user: partitioned, in memory and spilled, and then grouped.

use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use hashbrown::HashTable;

use crate::count::bound::user_choices::{Choice, choice, item, user};
use crate::count::dedup::deduplicate_users;
use crate::count::spill::Spill;
use crate::count::threads::STOPPED;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS, partition_of};
use crate::memory::arena::release_memory;
use crate::memory::prefetch::prefetched;
use crate::memory::write_buffer::WriteBuffer;

/// Rows read from a file at a time.
const READ_AT_ONCE: usize = 1 << 15;

/// A row: a pair of a user and an item, alone or with a value.
pub(crate) trait Row: Pod + Send + Sync {
    /// The value of a row.
    type Value: Copy + Default + Send;
    /// The sum of the values of equal pairs.
    type Total: Copy + Default + Send;
    /// Returns the row of a pair.
    fn new(pair: Choice, value: Self::Value) -> Self;
    /// Returns the pair and the value.
    fn parts(&self) -> (Choice, Self::Value);
    /// Adds a value.
    fn add(total: &mut Self::Total, value: Self::Value);
    /// Takes a value out of a total, and returns whether some is left.
    fn take(total: &mut Self::Total) -> (Self::Value, bool);
}

/// A row without a value.
impl Row for Choice {
    type Value = ();
    type Total = ();
    fn new(pair: Choice, (): ()) -> Self {
        pair
    }
    fn parts(&self) -> (Choice, ()) {
        (*self, ())
    }
    fn add((): &mut (), (): ()) {}
    fn take((): &mut ()) -> ((), bool) {
        ((), false)
    }
}

/// One thread's rows by partition of the users.
pub(crate) struct Dealt<R> {
    rows: WriteBuffer<R, 21>,
    /// The number of rows in memory, and the most allowed.
    len: usize,
    room: usize,
    /// The number of rows at which the values of equal pairs are next added up, and its least value.
    add_at: usize,
    gathered: usize,
    file: Option<Spill>,
    /// For each partition, the positions of its rows in the file and their numbers.
    extents: Vec<Vec<(u64, usize)>>,
}

impl<R: Row> Dealt<R>
where
    [R; 21]: Pod,
{
    /// Creates an empty set that holds about `held` bytes, half of them for rows. It adds up the values of equal pairs each time the rows have
    /// doubled, from `gathered` rows on.
    pub fn new(held: usize, gathered: usize) -> Self {
        let (room, extents) = (held / (2 * size_of::<R>()), vec![Vec::new(); PARTITIONS]);
        let rows = WriteBuffer::default();
        Self { rows, len: 0, room, add_at: gathered, gathered, file: None, extents }
    }

    /// Adds rows of users, items and values.
    #[inline]
    pub fn extend(&mut self, rows: impl Iterator<Item = (u128, u32, R::Value)>, keys: &HashKeys) {
        let Self { rows: into, len, .. } = self;
        into.extend(rows.map(|(user, item, value)| {
            let user = (user as u64, (user >> 64) as u64);
            *len += 1;
            (partition_of(keys.pair(user.0, user.1)), R::new(choice(user, item), value))
        }));
    }

    /// Adds up the values of equal pairs if the rows have doubled or are too many. Spills all if there are then too many.
    ///
    /// # Errors
    /// [`STOPPED`] if `stop` is set. Errors of the temporary file.
    pub fn spill_if_full(&mut self, keys: &HashKeys, stop: &AtomicBool) -> Result<()> {
        let is_full = self.len > self.room;
        if !is_full && self.len < self.add_at {
            return Ok(());
        }
        let (mut users, mut kept) = (Users::<R>::default(), Vec::new());
        let lens: Vec<usize> = (0..PARTITIONS).map(|one| self.rows.partition_len(one)).collect();
        deduplicate_users(lens.into_iter(), |partition| {
            let before = self.rows.partition_len(partition);
            if stop.load(Ordering::Relaxed) {
                return (before, before);
            }
            users.add_up(self.rows.pieces(partition), keys, &mut kept);
            self.rows.clear(partition);
            self.rows.extend(kept.iter().map(|&row| (partition, row)));
            (before, kept.len())
        });
        self.len = self.rows.len();
        self.add_at = self.gathered.max(2 * self.len);
        if is_full && 2 * self.len > self.room { self.spill(stop) } else { Ok(()) }
    }

    /// Spills all rows, if any were spilled: reading them back needs the memory.
    ///
    /// # Errors
    /// The same as those of [`Self::spill_if_full`].
    pub fn spill_rest(&mut self, stop: &AtomicBool) -> Result<()> {
        if self.file.is_some() { self.spill(stop) } else { Ok(()) }
    }

    fn spill(&mut self, stop: &AtomicBool) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Spill::new()?),
        };
        for (partition, extents) in self.extents.iter_mut().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED);
            }
            let len = self.rows.partition_len(partition);
            extents.extend((len > 0).then_some((file.end(), len)));
            for rows in self.rows.pieces(partition) {
                file.push(bytemuck::cast_slice(rows))?;
            }
        }
        self.rows = WriteBuffer::default();
        self.len = 0;
        release_memory(self.room * size_of::<R>() / 2);
        file.flush()
    }

    /// Returns the number of rows of a partition, in memory and spilled.
    pub fn partition_len(&self, partition: usize) -> usize {
        let spilled: usize = self.extents[partition].iter().map(|&(_, len)| len).sum();
        self.rows.partition_len(partition) + spilled
    }

    /// Removes the rows of a partition in memory.
    pub fn clear(&mut self, partition: usize) {
        self.rows.clear(partition);
    }

    /// Iterates over the rows of a partition in memory, piece by piece.
    pub fn pieces(&self, partition: usize) -> impl Iterator<Item = &[R]> + Clone {
        self.rows.pieces(partition)
    }

    /// Returns the spilled rows of a partition. If there are many, adds up the values of equal pairs on the way.
    ///
    /// # Errors
    /// [`STOPPED`] if `stop` is set. Errors of the temporary file.
    pub fn read(
        &self,
        partition: usize,
        users: &mut Users<R>,
        keys: &HashKeys,
        stop: &AtomicBool,
    ) -> Result<Vec<R>> {
        let mut all: Vec<R> = Vec::new();
        let Some(file) = &self.file else { return Ok(all) };
        let mut add_at = 2 * READ_AT_ONCE;
        for &(at, len) in &self.extents[partition] {
            for start in (0..len).step_by(READ_AT_ONCE) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                let (end, more) = (all.len(), (len - start).min(READ_AT_ONCE));
                all.resize(end + more, R::zeroed());
                let at = at + (start * size_of::<R>()) as u64;
                file.read(at, bytemuck::cast_slice_mut(&mut all[end..]))?;
                if all.len() > add_at {
                    let mut kept = Vec::new();
                    users.add_up(std::iter::once(&*all), keys, &mut kept);
                    all = kept;
                    add_at = 2 * all.len().max(READ_AT_ONCE);
                }
            }
        }
        Ok(all)
    }
}

/// Groups rows by user.
pub(crate) struct Users<R: Row> {
    all: Vec<(u64, u64)>,
    /// The number of each user.
    table: HashTable<u32>,
    /// For each user the number of rows, and then the end of the user's cells.
    ends: Vec<usize>,
    /// The number of each row's user.
    numbers: Vec<u32>,
    /// The item and the value of each row, grouped by user.
    cells: Vec<(u32, R::Value)>,
    /// The totals of one user.
    totals: Vec<(u32, R::Total)>,
}

impl<R: Row> Default for Users<R> {
    fn default() -> Self {
        let (all, table, ends) = (Vec::new(), HashTable::new(), Vec::new());
        Self { all, table, ends, numbers: Vec::new(), cells: Vec::new(), totals: Vec::new() }
    }
}

impl<R: Row> Users<R> {
    /// Calls `work` with the key of each user, and the items of the user with their totals, ordered by item.
    pub fn each<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [R]> + Clone,
        keys: &HashKeys,
        work: impl FnMut(u128, &mut [(u32, R::Total)]),
    ) {
        // Nothing stops it, so there is no error.
        let _ =
            self.each_of(std::iter::once((pieces, &[][..])), keys, work, &AtomicBool::new(false));
    }

    /// Does the same for the rows of several threads. The item of a row is an index of the thread's list of numbers, if
    /// the list is not empty.
    ///
    /// # Errors
    /// [`STOPPED`] if `stop` is set.
    pub fn each_of<'a, 'b, I: Iterator<Item = &'a [R]> + Clone>(
        &mut self,
        parts: impl Iterator<Item = (I, &'b [u32])> + Clone,
        keys: &HashKeys,
        mut work: impl FnMut(u128, &mut [(u32, R::Total)]),
        stop: &AtomicBool,
    ) -> Result<()> {
        let Self { all, table, ends, numbers, cells, totals } = self;
        all.clear();
        table.clear();
        ends.clear();
        numbers.clear();
        // With the halves of a key swapped, users of one partition share no bits of their hashes.
        let hash_of = |user: (u64, u64)| keys.pair(user.1, user.0);
        for row in parts.clone().flat_map(|(pieces, _)| prefetched(pieces)).flatten() {
            let user = user(&row.parts().0);
            let is = |&number: &u32| all[number as usize] == user;
            let entry = table.entry(hash_of(user), is, |&other| hash_of(all[other as usize]));
            let number = *entry.or_insert(all.len() as u32).get();
            if number as usize == all.len() {
                all.push(user);
                ends.push(0);
            }
            ends[number as usize] += 1;
            numbers.push(number);
        }
        let go_on = || if stop.load(Ordering::Relaxed) { Err(STOPPED) } else { Ok(()) };
        go_on()?;
        let mut end = 0;
        for own in &mut *ends {
            end += std::mem::replace(own, end);
        }
        cells.clear();
        cells.resize(end, (0, R::Value::default()));
        let mut numbers = numbers.iter();
        for (pieces, names) in parts {
            for (row, &number) in prefetched(pieces).flatten().zip(&mut numbers) {
                let (pair, value) = row.parts();
                let item = item(&pair);
                let item = names.get(item as usize).copied().unwrap_or(item);
                let end = &mut ends[number as usize];
                cells[*end] = (item, value);
                *end += 1;
            }
        }
        let mut start = 0;
        for (&(low, high), &end) in all.iter().zip(&*ends) {
            go_on()?;
            let own = &mut cells[start..end];
            start = end;
            own.sort_unstable_by_key(|&(item, _)| item);
            totals.clear();
            for &(item, value) in &*own {
                if totals.last().is_none_or(|&(last, _)| last != item) {
                    totals.push((item, R::Total::default()));
                }
                if let Some((_, total)) = totals.last_mut() {
                    R::add(total, value);
                }
            }
            work(u128::from(high) << 64 | u128::from(low), totals);
        }
        Ok(())
    }

    /// Replaces `into` by rows with the same totals, one for each pair. A total beyond 64 bits has several.
    pub fn add_up<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [R]> + Clone,
        keys: &HashKeys,
        into: &mut Vec<R>,
    ) {
        into.clear();
        self.each(pieces, keys, |user, totals| {
            for (item, total) in totals {
                let pair = choice((user as u64, (user >> 64) as u64), *item);
                loop {
                    let (value, is_more) = R::take(total);
                    into.push(R::new(pair, value));
                    if !is_more {
                        break;
                    }
                }
            }
        });
    }
}
