//! Counts exact distinct users per item, in parallel and without the GIL.
//!
//! A row is a pair of a user and an item. A morsel is a range of rows. A worker is a thread that
//! takes morsels. A worker finds the partition and the key of each row's item (see
//! [`crate::count::group`]), and appends the row to this partition. All rows of an item are in one
//! partition, so the merge deduplicates and counts one partition at a time.
//!
//! A worker deduplicates its rows each time their number has doubled. So memory stays a small
//! multiple of the distinct pairs. A worker that exceeds its memory limit spills its rows and
//! labels (see [`crate::count::spill::runs`]). The merge reads spilled rows back one partition at a
//! time.

pub mod bound;
pub mod by_user;
pub(crate) mod dedup;
pub(crate) mod dense;
mod dictionary;
mod group;
pub(crate) mod label_cache;
mod label_log;
pub(crate) mod merge;
pub(crate) mod morsels;
pub mod pairs;
mod result;
mod rows;
pub(crate) mod spill;
mod store;
pub(crate) mod threads;
pub(crate) mod user_keys;
mod users;
pub(crate) mod worker;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::columns::Batch;
use crate::count::bound::{Bounded, Contribution};
use crate::count::by_user::few::{self, Rows};
use crate::count::dedup::Items;
use crate::count::dense::{AllPacked, Layout, Packed};
use crate::count::merge::{Tally, merge_partitions};
use crate::count::pairs::{Hashed, Pair, Wide};
use crate::count::result::{CountsBuilder, SharedCounts};
use crate::count::threads::Limits;
use crate::count::users::Users;
use crate::count::worker::{Done, Worker};
use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::LabelType;
use crate::labels::interner::Interner;
use crate::memory::arena::release_memory;

pub use crate::count::result::Counts;

/// Options of a count.
pub struct CountOptions<'a> {
    /// The bound on each user's contribution; `None` if all items of a user count.
    pub bound: Option<&'a Contribution>,
    /// How many of the largest counts to return; `None` for all.
    pub limit: Option<usize>,
    /// The value at which counts are capped; `None` for no cap.
    pub cap: Option<i64>,
    /// Whether to also count the distinct users of all counted rows.
    pub users: bool,
    /// The secret key of the users' choices; `None` for new choices.
    pub secret: Option<[u8; 32]>,
    /// The most threads to use. Values outside 1 to 64 are clamped.
    pub threads: usize,
    /// The memory limit in bytes, not including the batches and the counts; `None` for no limit.
    pub memory: Option<usize>,
}

/// Counts the distinct users of each item over all batches. Calls `tick` between morsels and while
/// it waits for threads; an error of `tick` stops the count.
///
/// # Errors
/// An error of the batches, of `tick` or of a worker. [`Error::Resource`] if memory, threads or
/// labels run out, or the folder for temporary files is full. [`Error::Entropy`] if the operating
/// system gives no randomness.
pub fn count_distinct(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: &CountOptions<'_>,
    tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let counts = count_table(batches, types, options, tick);
    make_ready(options.memory);
    counts
}

/// Returns pooled memory to the system, except for a quarter of `memory`. Without a limit the pool
/// keeps its memory. [`count_distinct`] calls this function at its end. Callers should also call it
/// before they fetch the first rows of a count.
pub fn make_ready(memory: Option<usize>) {
    release_memory(memory.map_or(usize::MAX, |memory| memory / 4));
}

fn count_table(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: &CountOptions<'_>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let keys = options.secret.as_ref().map(HashKeys::of_secret);
    let keys = Arc::new(keys.map_or_else(HashKeys::from_os, Ok)?);
    let mut batches = batches.fuse();
    let mut first = batches.next().transpose()?;
    let second = batches.next();
    // Do not number dictionary values if there is a bound, because a bound needs the labels. Do not
    // number them either if there are several batches, because their dictionaries may differ.
    let is_coded = second.is_none()
        && options.bound.is_none()
        && first.as_ref().is_some_and(dictionary::can_be_numbered);
    let Some(batch) = first.take_if(|_| is_coded) else {
        let batches = first.map(Ok).into_iter().chain(second).chain(batches);
        return count_batches(batches, types, options, &keys, tick);
    };
    let (batch, names) = dictionary::number(batch, options.threads, &keys, &mut tick)?;
    let types = (batch.users.label_type(), batch.items.label_type());
    // Labels break ties at the limit, so the limit is applied after the labels have replaced the
    // numbers.
    let all = CountOptions { limit: None, ..*options };
    let mut counts =
        names.with_labels(count_batches([Ok(batch)].into_iter(), types, &all, &keys, tick)?)?;
    options.limit.map_or(Ok(()), |limit| counts.keep(limit))?;
    Ok(counts)
}

fn count_batches(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: &CountOptions<'_>,
    keys: &Arc<HashKeys>,
    tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    if types.0.is_integer() {
        count_rows::<Wide>(batches, types, options, keys, tick)
    } else {
        count_rows::<Hashed>(batches, types, options, keys, tick)
    }
}

fn count_rows<P: Pair>(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: &CountOptions<'_>,
    keys: &Arc<HashKeys>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let limits = Limits::within(options.threads, options.memory);
    let mut batches = batches.peekable();
    let layout = match batches.peek() {
        // A bound needs the keys of users and items, which packed rows do not hold.
        Some(Ok(batch)) if options.bound.is_none() => Layout::of(batch, keys),
        _ => None,
    };
    let worker = |packed: Option<Packed>| {
        // With a bound, users are counted later, when the pairs are partitioned by user.
        let users = options.users && options.bound.is_none();
        let room = (limits.threads, limits.rows);
        Worker::new(
            Arc::clone(keys),
            types,
            packed.or_else(|| layout.map(Packed::new)),
            users,
            room,
        )
    };
    // A list of items is looked up by bytes once for each item, not for each row.
    if let Some(bound) = options.bound.filter(|bound| bound.is_of_all()) {
        let done = match few::read(batches, types.1, (keys, &limits), true, worker, &mut tick)? {
            Rows::ByItem(done) => done,
            Rows::ByUser(few) => {
                let workers = (limits.threads, &**keys);
                let mut counts = few.count(bound.most(), options.cap, workers, tick)?;
                options.limit.map_or(Ok(()), |limit| counts.keep(limit))?;
                return Ok(counts);
            }
        };
        return finish::<P>(done, types.1, options, keys, &limits, tick);
    }
    let stop = AtomicBool::new(false);
    let job = || {
        let (worker, stop) = (worker(None), &stop);
        move |morsels| worker.run(morsels, stop)
    };
    let done = morsels::share(batches, limits.threads, job, &stop, &mut tick)?;
    // Free the pooled blocks, because the merge needs the memory.
    release_memory(0);
    finish::<P>(done, types.1, options, keys, &limits, tick)
}

/// Counts the distinct users of each item in the rows of all workers. If requested, also counts the
/// distinct users of all rows.
fn finish<P: Pair>(
    mut done: Vec<Done<P>>,
    item_type: LabelType,
    options: &CountOptions<'_>,
    keys: &HashKeys,
    limits: &Limits,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let users: Option<Vec<_>> = done.iter_mut().map(|done| done.users.take()).collect();
    let room = (limits.threads, limits.merge);
    let users = users.map(|users| Users::count(users, room, &mut tick)).transpose()?;
    let mut counts = finish_counts(done, item_type, options, keys, limits, tick)?;
    counts.users = counts.users.or(users);
    Ok(counts)
}

fn finish_counts<P: Pair>(
    done: Vec<Done<P>>,
    item_type: LabelType,
    options: &CountOptions<'_>,
    keys: &HashKeys,
    limits: &Limits,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let packed: Option<Vec<_>> = done.iter().map(|done| done.packed.as_ref()).collect();
    let packed = packed.and_then(AllPacked::of);
    if let Some(rows) = packed.filter(|rows| rows.bytes_used() <= limits.merge) {
        let all = SharedCounts::new(item_type, options.limit, options.cap);
        rows.count(limits.threads, keys, &mut tick, &all)?;
        return all.into_counts();
    }
    let unpacked = |Done { packed, mut rows, .. }: Done<P>| {
        if let Some(packed) = packed {
            rows.rows = packed.unpack(keys);
        }
        rows
    };
    let rows: Vec<_> = done.into_iter().map(unpacked).collect();
    Ok(if let Some(bound) = options.bound {
        let half = limits.merge / 2;
        let new = || Bounded::new(item_type, bound, half);
        let room = (limits.threads, half);
        let tallies = merge_partitions(&rows, keys, room, &mut tick, new)?;
        drop(rows);
        let workers = (limits.threads, keys);
        let mut total = Bounded::count(tallies, item_type, options.cap, workers, tick)?;
        options.limit.map_or(Ok(()), |limit| total.keep(limit))?;
        total
    } else {
        let all = SharedCounts::new(item_type, options.limit, options.cap);
        let new = || Unbounded { found: all.begin(), counts: Vec::new() };
        let tallies = merge_partitions(&rows, keys, (limits.threads, limits.merge), tick, new)?;
        for tally in tallies {
            tally.found.finish()?;
        }
        all.into_counts()?
    })
}

/// Counts some partitions without a contribution bound.
struct Unbounded<'a> {
    found: CountsBuilder<'a>,
    /// The counts of the current partition.
    counts: Vec<i64>,
}

impl<P: Pair> Tally<P> for Unbounded<'_> {
    fn add(
        &mut self,
        rows: &[P],
        items: &mut Items,
        _: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()> {
        let counts = &mut self.counts;
        if let Some(codes) = items.codes() {
            counts.resize(codes, 0);
            for row in rows {
                counts[row.item() as usize] += 1;
            }
            return Ok(());
        }
        items.reserve(rows.len(), keys);
        items.tally(rows.iter().map(|row| row.item()), counts, keys);
        Ok(())
    }

    fn close(&mut self, items: &Items, labels: Option<&Interner>) -> Result<()> {
        self.found.add(self.counts.drain(..), |into| match labels {
            Some(interner) => into.append_strings(interner.labels()),
            None => {
                items.keys().iter().for_each(|&item| into.push_integer(item));
                Ok(())
            }
        })
    }
}
