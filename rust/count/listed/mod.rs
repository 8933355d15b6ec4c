//! Sums of clipped values for listed items, and the number of listed items of each user.
//!
//! The items are few and known before the rows are read. So a worker keeps the rows of listed items alone, and
//! partitions them by user at once. Then all rows of a user are together: the values of equal pairs are added up, and a
//! user's items are chosen and counted.

mod dealt;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashTable;

use crate::columns::memo::Memo;
use crate::columns::values::units;
use crate::columns::{Batch, Column};
use crate::count::bound::candidates::Candidates;
use crate::count::listed::dealt::{Dealt, Total, Users};
use crate::count::morsels::{Morsel, Morsels};
use crate::count::threads::{STOPPED, run_jobs};
use crate::count::user_keys::UserKeys;
use crate::count::{Limits, make_ready, morsels};
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::labels::{LabelType, Labels};
use crate::memory::arena::release_memory;
use crate::string_prefix::PrefixedString;

/// Stands for the number of an item that is not listed.
const UNLISTED: u32 = u32::MAX;
/// Marks a dictionary value that was not looked up yet.
const UNKNOWN: u32 = u32::MAX - 1;
/// Rows processed at a time. This many rows stay in the L1 cache.
const AT_ONCE: usize = 1 << 9;

/// How the values of a user's rows are added up.
#[derive(Debug, Clone, Copy)]
pub struct Clipping {
    /// The least and the largest sum of a user for an item, in units: from -2^30 to 2^30.
    pub bounds: (i64, i64),
    /// The unit of the values.
    pub resolution: f64,
    /// The most items of a user that count, chosen uniformly among the user's listed items.
    pub l0: usize,
}

/// The most threads, and the memory limit in bytes without the batches.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Values outside 1 to 64 are clamped.
    pub threads: usize,
    /// `None` for no limit.
    pub memory: Option<usize>,
}

/// Returns the sum over users of their clipped sums for each of `items`. The batches have values. Rows whose value is
/// not a finite number do not count.
///
/// # Errors
/// The same as those of [`count_distinct`](crate::count::count_distinct).
pub fn clipped_sums(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    items: &Labels,
    clipping: Clipping,
    room: Room,
    tick: impl FnMut() -> Result<()>,
) -> Result<Vec<i64>> {
    let len = items.len();
    let begin = || (vec![0; len], Vec::new());
    let work = |(sums, placed): &mut (Vec<i64>, Vec<_>),
                own: (u128, &[Total]),
                listed: &Listed,
                keys: &HashKeys| {
        add_kept(sums, own, (placed, clipping), listed, keys);
    };
    let sums = grouped(batches, types, items, Some(clipping.resolution), room, tick, begin, work)?;
    let mut all = vec![0; len];
    for (own, _) in sums {
        all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
    }
    Ok(all)
}

/// Adds the clipped totals of a user to the sums of their items, for at most `l0` items, chosen uniformly.
fn add_kept(
    sums: &mut [i64],
    (user, own): (u128, &[Total]),
    (placed, clipping): (&mut Vec<(u64, u32)>, Clipping),
    listed: &Listed,
    keys: &HashKeys,
) {
    let (low, high) = clipping.bounds;
    let mut add = |(item, total): Total| {
        sums[item as usize] += total.clamp(low.into(), high.into()) as i64;
    };
    if own.len() <= clipping.l0 {
        own.iter().copied().for_each(add);
        return;
    }
    placed.clear();
    let place = |(item, _): Total| listed.items.place(user, item as usize, keys);
    placed.extend(own.iter().zip(0..).map(|(&total, number)| (place(total), number)));
    placed.select_nth_unstable(clipping.l0);
    placed[..clipping.l0].iter().for_each(|&(_, number)| add(own[number as usize]));
}

/// Returns the number of distinct items in `items` of each user who has any, in any order of the users.
///
/// # Errors
/// The same as those of [`clipped_sums`].
pub fn listed_sizes(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    items: &Labels,
    room: Room,
    tick: impl FnMut() -> Result<()>,
) -> Result<Vec<i64>> {
    let work = |sizes: &mut Vec<i64>, (_, own): (u128, &[Total]), _: &Listed, _: &HashKeys| {
        sizes.push(own.len() as i64);
    };
    Ok(grouped(batches, types, items, None, room, tick, Vec::new, work)?.concat())
}

/// Reads the rows of listed items and calls `work` for each user, with the totals of the user's items. Returns the
/// state of each thread, which begins as `begin()`.
#[allow(clippy::too_many_arguments, reason = "the steps of two functions")]
fn grouped<S: Send>(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    items: &Labels,
    resolution: Option<f64>,
    room: Room,
    mut tick: impl FnMut() -> Result<()>,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, (u128, &[Total]), &Listed, &HashKeys) + Sync,
) -> Result<Vec<S>> {
    let (keys, stop) = (Arc::new(HashKeys::from_os()?), AtomicBool::new(false));
    let listed = Listed::new(items, types.1, &keys)?;
    let limits = Limits::within(room.threads, room.memory);
    let job = || {
        let dealer = Dealer::new(&listed, &keys, resolution, limits.rows);
        let stop = &stop;
        move |morsels| dealer.run(morsels, stop)
    };
    let dealt = morsels::share(batches, limits.threads, job, &stop, &mut tick)?;
    release_memory(0);
    let len = |partition| dealt.iter().map(|rows: &Dealt| rows.partition_len(partition)).sum();
    let sizes = (0..PARTITIONS).map(len);
    let begin = || (begin(), Users::default());
    let done = run_jobs(limits.threads, sizes, tick, begin, |(own, users), partition, _, stop| {
        let mut spilled = Vec::new();
        for rows in &dealt {
            rows.read(partition, users, &mut spilled, &keys, stop)?;
        }
        let in_memory = dealt.iter().flat_map(|rows| rows.rows.pieces(partition));
        users.each(in_memory.chain([&*spilled]), &keys, |user, totals| {
            work(own, (user, totals), &listed, &keys);
        });
        Ok(())
    });
    make_ready(room.memory);
    Ok(done?.into_iter().map(|(own, _)| own).collect())
}

/// The listed items by number.
struct Listed {
    items: Candidates,
    /// The numbers of the items that the column can hold.
    table: HashTable<u32>,
}

impl Listed {
    fn new(labels: &Labels, item_type: LabelType, keys: &HashKeys) -> Result<Self> {
        let mut made = Self { items: Candidates::new(item_type), table: HashTable::new() };
        // In the other integer type, keys from 2^63 on stand for different numbers.
        let is_alike = labels.label_type() == item_type || !item_type.is_integer();
        for row in 0..labels.len() {
            let is_held = labels.with_bytes(row, |bytes| -> Result<bool> {
                made.items.push(bytes, keys)?;
                Ok(is_alike || bytes.last().is_some_and(|&high| high < 0x80))
            })?;
            if is_held {
                let Self { items, table } = &mut made;
                let hash_of = |number: u32| hash_of(items, number, keys);
                table.insert_unique(hash_of(row as u32), row as u32, |&other| hash_of(other));
            }
        }
        Ok(made)
    }

    fn of_integer(&self, cell: u64, keys: &HashKeys) -> u32 {
        let is = |&number: &u32| self.items.rank(number as usize) == cell;
        self.table.find(keys.integer(cell), is).copied().unwrap_or(UNLISTED)
    }

    fn of_string(&self, cell: PrefixedString<'_>, keys: &HashKeys) -> u32 {
        let is = |&number: &u32| match &self.items.labels {
            Labels::Text(strings) | Labels::Binary(strings) => strings.is(number as usize, cell),
            Labels::Signed(_) | Labels::Unsigned(_) => false,
        };
        self.table.find(keys.string(cell), is).copied().unwrap_or(UNLISTED)
    }
}

/// Returns the hash by which the table finds an item.
fn hash_of(items: &Candidates, number: u32, keys: &HashKeys) -> u64 {
    let rank = items.rank(number as usize);
    if items.labels.label_type().is_integer() { keys.integer(rank) } else { rank }
}

/// One thread's state while it partitions rows.
struct Dealer<'a> {
    listed: &'a Listed,
    keys: Arc<HashKeys>,
    /// The unit of the values; `None` if there are none.
    resolution: Option<f64>,
    rows: Dealt,
    users: UserKeys,
    memo: Memo<u32>,
    cells: Vec<u64>,
    items: Vec<u32>,
    values: Vec<f64>,
    null: Vec<bool>,
}

impl<'a> Dealer<'a> {
    /// Creates a dealer that spills when its rows take more than `held` bytes.
    fn new(listed: &'a Listed, keys: &Arc<HashKeys>, resolution: Option<f64>, held: usize) -> Self {
        Self {
            listed,
            keys: Arc::clone(keys),
            resolution,
            rows: Dealt::new(held),
            users: UserKeys::new(Arc::clone(keys)),
            memo: Memo::new(UNKNOWN, UNLISTED),
            cells: Vec::new(),
            items: Vec::new(),
            values: Vec::new(),
            null: Vec::new(),
        }
    }

    fn run(mut self, morsels: Morsels, stop: &AtomicBool) -> Result<Dealt> {
        for morsel in morsels {
            for start in (morsel.start..morsel.end).step_by(AT_ONCE) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                self.take(&morsel, start..morsel.end.min(start + AT_ONCE))?;
            }
            self.rows.spill_if_full(&self.keys)?;
        }
        Ok(self.rows)
    }

    fn take(&mut self, morsel: &Morsel, rows: Range<usize>) -> Result<()> {
        let Batch { users, items, values } = &*morsel.batch;
        self.null.clear();
        self.null.resize(rows.len(), false);
        self.users.read(users, morsel.number, rows.clone(), &mut self.null)?;
        self.number(items, morsel.number, rows.clone())?;
        let Self { keys, rows: dealt, items, values: own, null, .. } = self;
        match (values, self.resolution) {
            (Some(values), Some(_)) => values.read(rows, own)?,
            _ => {
                own.clear();
                own.resize(null.len(), 0.0);
            }
        }
        let resolution = self.resolution.unwrap_or(1.0);
        let mut push = |row: usize, user: u128| {
            if !null[row]
                && items[row] != UNLISTED
                && let Some(value) = units(own[row], resolution)
            {
                dealt.push(user, items[row], value, keys);
            }
        };
        let UserKeys { hashes, integers, .. } = &self.users;
        if hashes.is_empty() {
            integers.iter().enumerate().for_each(|(row, &user)| push(row, user.into()));
        } else {
            hashes.iter().enumerate().for_each(|(row, &user)| push(row, user));
        }
        Ok(())
    }

    /// Finds the number of each row's item.
    fn number(&mut self, column: &Column, batch: u64, rows: Range<usize>) -> Result<()> {
        let Self { listed, keys, memo, cells, items, null, .. } = self;
        items.clear();
        column.mark_nulls(rows.clone(), null);
        if let Some(values) = column.dictionary() {
            return memo.read(column, batch, rows, null, items, |index| {
                if values.is_null(index) {
                    return Ok(UNLISTED);
                }
                let row = index..index + 1;
                if values.label_type().is_integer() {
                    values.integers(row, cells);
                    return Ok(listed.of_integer(cells[0], keys));
                }
                Ok(listed.of_string(values.strings(row, &mut [false])?[0], keys))
            });
        }
        if column.label_type().is_integer() {
            column.integers(rows, cells);
            items.extend(cells.iter().map(|&cell| listed.of_integer(cell, keys)));
        } else {
            let strings = column.strings(rows, null)?;
            items.extend(strings.into_iter().map(|cell| listed.of_string(cell, keys)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
