//! Rows of listed items, partitioned by user in memory and spilled, and grouped by user.

use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashTable;

use crate::count::bound::user_choices::{choice, item, user};
use crate::count::spill::Spill;
use crate::count::threads::STOPPED;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS, partition_of};
use crate::memory::prefetch::prefetched;
use crate::memory::write_buffer::WriteBuffer;

/// Rows read from a file at a time.
const READ_AT_ONCE: usize = 1 << 15;

/// A pair and a value in units.
pub(super) type Row = [u64; 3];

/// The number of an item, and the sum of a user's values for it.
pub(super) type Total = (u32, i128);

/// One thread's rows of listed items by partition of the users, in memory and spilled.
pub(super) struct Dealt {
    pub rows: WriteBuffer<Row, 21>,
    /// The number of rows in memory, and the most allowed.
    len: usize,
    room: usize,
    file: Option<Spill>,
    /// For each partition, the positions of its rows in the file and their numbers.
    extents: Vec<Vec<(u64, usize)>>,
}

impl Dealt {
    pub fn new(held: usize) -> Self {
        let (room, extents) = (held / size_of::<Row>(), vec![Vec::new(); PARTITIONS]);
        Self { rows: WriteBuffer::default(), len: 0, room, file: None, extents }
    }

    #[inline]
    pub fn push(&mut self, user: u128, item: u32, value: i64, keys: &HashKeys) {
        let user = (user as u64, (user >> 64) as u64);
        let [low, high] = choice(user, item);
        let row = [low, high, value.cast_unsigned()];
        self.rows.push(partition_of(keys.pair(user.0, user.1)), row);
        self.len += 1;
    }

    /// If there are too many rows, adds up the values of equal pairs and, if that is not enough, spills all.
    pub fn spill_if_full(&mut self, keys: &HashKeys) -> Result<()> {
        if self.len <= self.room {
            return Ok(());
        }
        let (mut users, mut kept) = (Users::default(), Vec::new());
        self.len = 0;
        for partition in 0..PARTITIONS {
            users.add_up(self.rows.pieces(partition), keys, &mut kept);
            self.rows.clear(partition);
            self.len += kept.len();
            self.rows.extend(kept.iter().map(|&row| (partition, row)));
        }
        if 2 * self.len <= self.room {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Spill::new()?),
        };
        for (partition, extents) in self.extents.iter_mut().enumerate() {
            let len = self.rows.partition_len(partition);
            extents.extend((len > 0).then_some((file.end(), len)));
            for rows in self.rows.pieces(partition) {
                file.push(bytemuck::cast_slice(rows))?;
            }
            self.rows.clear(partition);
        }
        self.len = 0;
        file.flush()
    }

    pub fn partition_len(&self, partition: usize) -> usize {
        let spilled: usize = self.extents[partition].iter().map(|&(_, len)| len).sum();
        self.rows.partition_len(partition) + spilled
    }

    /// Appends the spilled rows of a partition. If there are many, adds up the values of equal pairs on the way.
    ///
    /// # Errors
    /// [`STOPPED`] if `stop` is set. Errors of the temporary file.
    pub fn read(
        &self,
        partition: usize,
        users: &mut Users,
        into: &mut Vec<Row>,
        keys: &HashKeys,
        stop: &AtomicBool,
    ) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut add_at = 2 * into.len().max(READ_AT_ONCE);
        for &(at, len) in &self.extents[partition] {
            for start in (0..len).step_by(READ_AT_ONCE) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                let (end, more) = (into.len(), (len - start).min(READ_AT_ONCE));
                into.resize(end + more, [0; 3]);
                let at = at + (start * size_of::<Row>()) as u64;
                file.read(at, bytemuck::cast_slice_mut(&mut into[end..]))?;
                if into.len() > add_at {
                    let all = std::mem::take(into);
                    users.add_up(std::iter::once(&*all), keys, into);
                    add_at = 2 * into.len().max(READ_AT_ONCE);
                }
            }
        }
        Ok(())
    }
}

/// Groups rows by user.
#[derive(Default)]
pub(super) struct Users {
    all: Vec<(u64, u64)>,
    /// The number of each user.
    table: HashTable<u32>,
    /// For each user the number of rows, and then the end of the user's cells.
    ends: Vec<usize>,
    /// The number of each row's user.
    numbers: Vec<u32>,
    /// The item and the value of each row, grouped by user.
    cells: Vec<(u32, i64)>,
    /// The totals of one user.
    totals: Vec<Total>,
}

impl Users {
    /// Calls `work` with the key of each user and the totals of the user's items.
    pub fn each<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [Row]> + Clone,
        keys: &HashKeys,
        mut work: impl FnMut(u128, &[Total]),
    ) {
        let Self { all, table, ends, numbers, cells, totals } = self;
        all.clear();
        table.clear();
        ends.clear();
        numbers.clear();
        cells.clear();
        // With the halves of a key swapped, users of one partition share no bits of their hashes.
        let hash_of = |user: (u64, u64)| keys.pair(user.1, user.0);
        for &[low, high, _] in prefetched(pieces.clone()).flatten() {
            let user = user(&[low, high]);
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
        let mut end = 0;
        for own in &mut *ends {
            end += std::mem::replace(own, end);
        }
        cells.resize(end, (0, 0));
        for (&[low, high, value], &number) in prefetched(pieces).flatten().zip(&*numbers) {
            let end = &mut ends[number as usize];
            cells[*end] = (item(&[low, high]), value.cast_signed());
            *end += 1;
        }
        let mut start = 0;
        for (&(low, high), &end) in all.iter().zip(&*ends) {
            let own = &mut cells[start..end];
            start = end;
            own.sort_unstable_by_key(|&(item, _)| item);
            totals.clear();
            for &(item, value) in &*own {
                match totals.last_mut().filter(|(last, _)| *last == item) {
                    Some((_, total)) => *total += i128::from(value),
                    None => totals.push((item, value.into())),
                }
            }
            work(u128::from(high) << 64 | u128::from(low), totals);
        }
    }

    /// Replaces `into` by rows with the same totals, one for each pair. A total beyond 64 bits has several.
    pub fn add_up<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [Row]> + Clone,
        keys: &HashKeys,
        into: &mut Vec<Row>,
    ) {
        into.clear();
        self.each(pieces, keys, |user, totals| {
            for &(item, total) in totals {
                let [low, high] = choice((user as u64, (user >> 64) as u64), item);
                let mut left = total;
                loop {
                    let part = left.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                    into.push([low, high, part.cast_unsigned()]);
                    left -= i128::from(part);
                    if left == 0 {
                        break;
                    }
                }
            }
        });
    }
}
