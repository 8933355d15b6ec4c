//! Exact distinct users per item, on all cores, with the GIL nowhere near.
//!
//! Workers take morsels of rows, group them (see [`crate::count::group`]) and append each row to its partition.
//! All rows of an item share a partition, so that in the end each partition is merged over the workers, deduplicated and
//! counted on its own, in cache. Where duplicates pile up, partitions are deduplicated on the way: memory stays a small multiple of the distinct pairs. A worker that holds more than its part of the
//! memory puts its rows and labels away (see [`crate::count::spill::runs`]), and the merge reads them back partition by partition.

pub mod bound;
mod dedup;
pub(crate) mod dense;
mod dictionary;
mod group;
mod label_cache;
mod label_log;
mod merge;
pub mod pairs;
mod result;
mod rows;
mod spill;
mod store;
mod threads;
mod user_keys;
mod users;
mod worker;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use crate::columns::Batch;
use crate::count::bound::{Bounded, Contribution};
use crate::count::dedup::Items;
use crate::count::dense::{AllPacked, Layout};
use crate::count::merge::{Tally, each_partition};
use crate::count::pairs::{Hashed, Pair, Wide};
use crate::count::result::{CountsBuilder, SharedCounts};
use crate::count::users::Users;
use crate::count::worker::{Done, MORSEL, Morsel, Worker};
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::labels::LabelType;
use crate::labels::interner::Interner;
use crate::memory::arena::release_memory;

pub use crate::count::result::Counts;

/// The most rows that a worker is sent at a time: to wait for them costs as much as to count some thousand.
const MOST: usize = 8 * MORSEL;

/// How a table is to be counted.
pub struct CountOptions<'a> {
    /// Which of a user's items count: all where there is none.
    pub bound: Option<&'a Contribution>,
    /// How many of the largest counts are wanted: all where there is none.
    pub limit: Option<usize>,
    /// Where counts stop: those of more users are as large.
    pub cap: Option<i64>,
    /// Whether to count the users of all counted rows too.
    pub users: bool,
    /// How many threads there may be.
    pub threads: usize,
    /// How many bytes of memory may be held beside the batches and the counts themselves.
    pub memory: Option<usize>,
}

/// The parts of the memory: three quarters for the rows and labels of all threads, a quarter for the merge.
struct Parts {
    threads: usize,
    rows: usize,
    merge: usize,
}

impl Parts {
    /// Below this a thread would do nothing but put away.
    const THREAD: usize = 1 << 25;

    fn of(terms: &CountOptions<'_>) -> Self {
        let threads = terms.threads.clamp(1, 64);
        let Some(memory) = terms.memory else {
            return Self { threads, rows: usize::MAX, merge: usize::MAX };
        };
        let threads = threads.min((memory / Self::THREAD).max(1));
        Self { threads, rows: memory / 4 * 3 / threads, merge: memory / 4 / threads }
    }
}

/// Counts the distinct users of each item over all batches. `tick` is called between morsels and while threads
/// are waited for, and may stop the work with an error.
///
/// # Errors
/// The first error of the batches, of `tick` or of a worker; [`Error::Resource`] where the folder for temporary
/// files is needed and full.
pub fn count_distinct(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    terms: &CountOptions<'_>,
    tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let counts = count_table(batches, types, terms, tick);
    make_ready(terms.memory);
    counts
}

/// Gives back to the system what is kept of earlier counts beyond the merge's part of the memory, which nobody needs while
/// rows come. Every count ends with it; it should begin with it before rows are at hand.
pub fn make_ready(memory: Option<usize>) {
    release_memory(memory.map_or(usize::MAX, |memory| memory / 4));
}

fn count_table(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    terms: &CountOptions<'_>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let keys = Arc::new(HashKeys::from_os()?);
    let mut batches = batches.fuse();
    let mut first = batches.next().transpose()?;
    let second = batches.next();
    // What bounds a contribution looks at labels, and many dictionaries differ.
    let is_coded = second.is_none()
        && terms.bound.is_none()
        && first.as_ref().is_some_and(dictionary::is_worth_it);
    let Some(batch) = first.take_if(|_| is_coded) else {
        let batches = first.map(Ok).into_iter().chain(second).chain(batches);
        return count_batches(batches, types, terms, &keys, tick);
    };
    let (batch, names) = dictionary::number(batch, terms.threads, &keys, &mut tick)?;
    let types = (batch.users.label_type(), batch.items.label_type());
    // Ties at the limit are broken by label.
    let all = CountOptions { limit: None, ..*terms };
    let mut counts =
        names.give(count_batches([Ok(batch)].into_iter(), types, &all, &keys, tick)?)?;
    terms.limit.map_or(Ok(()), |limit| counts.keep(limit))?;
    Ok(counts)
}

fn count_batches(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    terms: &CountOptions<'_>,
    keys: &Arc<HashKeys>,
    tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    if types.0.is_integer() {
        count_rows::<Wide>(batches, types, terms, keys, tick)
    } else {
        count_rows::<Hashed>(batches, types, terms, keys, tick)
    }
}

fn count_rows<P: Pair>(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    terms: &CountOptions<'_>,
    keys: &Arc<HashKeys>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let parts = Parts::of(terms);
    let mut batches = batches.peekable();
    let layout = match batches.peek() {
        // A bound looks at the keys of users and items, which packed rows do not hold.
        Some(Ok(batch)) if terms.bound.is_none() => Layout::of(batch, keys),
        _ => None,
    };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel::<Morsel>();
    let (ticket, tickets) = channel();
    (0..4 * parts.threads).for_each(|_| ticket.send(()).unwrap_or_default());
    let receiver = Arc::new(Mutex::new(receiver));
    let jobs = (0..parts.threads).map(|_| {
        let (receiver, ticket, stop) = (Arc::clone(&receiver), ticket.clone(), &stop);
        // Where a bound deals pairs out by user, users are counted then.
        let users = terms.users && terms.bound.is_none();
        let room = (parts.threads, parts.rows);
        let worker = Worker::new(Arc::clone(keys), types, layout, users, room);
        move || worker.run(&receiver, &ticket, stop)
    });
    let jobs: Vec<_> = jobs.collect();
    drop((receiver, ticket));
    let done = threads::run(jobs.into_iter(), &stop, &mut tick, |tick| {
        for (number, batch) in batches.enumerate() {
            // A source that waits for data sends batches without rows, so that Ctrl-C is seen.
            tick()?;
            let batch = Arc::new(batch?);
            if batch.users.len() != batch.items.len() {
                return Err(Error::Input("the columns are not equally long"));
            }
            let len = batch.users.len();
            let mut start = 0;
            while start < len {
                // The fewer of a batch are left, the fewer at a time, so that all workers finish it together.
                let rows = ((len - start) / (4 * parts.threads)).clamp(MORSEL, MOST);
                let end = len.min(start + rows);
                let morsel =
                    Morsel { batch: Arc::clone(&batch), number: number as u64, start, end };
                while let Err(silence) = tickets.recv_timeout(threads::PATIENCE) {
                    if silence == RecvTimeoutError::Disconnected {
                        return Ok(());
                    }
                    tick()?;
                }
                if sender.send(morsel).is_err() {
                    return Ok(());
                }
                tick()?;
                start = end;
            }
        }
        drop(sender);
        Ok(())
    })?;
    // Free blocks would only take the merge's part of the memory.
    release_memory(0);
    finish::<P>(done, types.1, terms, keys, &parts, tick)
}

/// Brings the rows of all workers into one form and counts them.
fn finish<P: Pair>(
    mut done: Vec<Done<P>>,
    item_type: LabelType,
    terms: &CountOptions<'_>,
    keys: &HashKeys,
    parts: &Parts,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let users: Option<Vec<_>> = done.iter_mut().map(|done| done.users.take()).collect();
    let room = (parts.threads, parts.merge);
    let users = users.map(|users| Users::count(users, keys, room, &mut tick)).transpose()?;
    let mut counts = finish_counts(done, item_type, terms, keys, parts, tick)?;
    counts.users = counts.users.or(users);
    Ok(counts)
}

fn finish_counts<P: Pair>(
    done: Vec<Done<P>>,
    item_type: LabelType,
    terms: &CountOptions<'_>,
    keys: &HashKeys,
    parts: &Parts,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let packed: Option<Vec<_>> = done.iter().map(|done| done.packed.as_ref()).collect();
    let packed = packed.and_then(AllPacked::of);
    if let Some(rows) = packed.filter(|rows| rows.bytes_used() <= parts.merge) {
        let all = SharedCounts::new(item_type, terms.limit, terms.cap);
        rows.count(parts.threads, keys, &mut tick, &all)?;
        return all.into_counts();
    }
    let unpacked = |Done { packed, mut rows, .. }: Done<P>| {
        if let Some(packed) = packed {
            rows.rows = packed.unpack(keys);
        }
        rows
    };
    let rows: Vec<_> = done.into_iter().map(unpacked).collect();
    Ok(if let Some(bound) = terms.bound {
        let half = parts.merge / 2;
        let new = || Bounded::new(item_type, bound, half);
        let tallies = each_partition(&rows, keys, (parts.threads, half), &mut tick, new)?;
        drop(rows);
        let crew = (parts.threads, keys);
        let mut total = Bounded::count(tallies, item_type, terms.cap, crew, tick)?;
        terms.limit.map_or(Ok(()), |limit| total.keep(limit))?;
        total
    } else {
        let all = SharedCounts::new(item_type, terms.limit, terms.cap);
        let new = || Unbounded { found: all.begin(), here: Vec::new() };
        let tallies = each_partition(&rows, keys, (parts.threads, parts.merge), tick, new)?;
        for tally in tallies {
            tally.found.finish()?;
        }
        all.into_counts()?
    })
}

/// The counts of some partitions, of all items of each user.
struct Unbounded<'a> {
    found: CountsBuilder<'a>,
    /// Those of the partition that is being counted.
    here: Vec<i64>,
}

impl<P: Pair> Tally<P> for Unbounded<'_> {
    fn add(
        &mut self,
        _: usize,
        rows: &[P],
        items: &mut Items,
        _: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()> {
        let here = &mut self.here;
        if let Some(codes) = items.codes() {
            here.resize(codes, 0);
            for row in rows {
                here[row.item() as usize] += 1;
            }
            return Ok(());
        }
        items.reserve(rows.len(), keys);
        items.tally(rows.iter().map(|row| row.item()), here, keys);
        Ok(())
    }

    fn close(&mut self, items: &Items, labels: Option<&Interner>) -> Result<()> {
        self.found.add(self.here.drain(..), |into| match labels {
            Some(interner) => into.append_strings(interner.labels()),
            None => {
                items.keys().iter().for_each(|&item| into.push_integer(item));
                Ok(())
            }
        })
    }
}
