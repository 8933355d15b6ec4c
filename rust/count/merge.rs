//! Merges each partition from all threads and their spilled runs, and deduplicates its rows. A
//! partition that is too large for memory takes several passes. The passes are over disjoint sets of
//! users, so the counts of the passes add up.
//!
//! Each thread and each spilled run has its own codes, which number its labels. The merged code of a
//! label is its number among the distinct labels of the partition.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::count::dedup::{Dedup, Items};
use crate::count::pairs::Pair;
use crate::count::rows::ThreadRows;
use crate::count::threads;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::labels::interner::Interner;

/// Accumulates the distinct rows of partitions.
pub(crate) trait Tally<P: Pair>: Send {
    /// Adds distinct rows of the current partition. No two calls for one partition share a user.
    ///
    /// # Errors
    /// Any error that keeps the tally from growing.
    fn add(
        &mut self,
        rows: &[P],
        items: &mut Items,
        labels: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()>;

    /// Ends the current partition. `items` are all items of the partition.
    ///
    /// # Errors
    /// Any error that keeps the tally from growing.
    fn close(&mut self, items: &Items, labels: Option<&Interner>) -> Result<()>;
}

/// Merges all partitions on `threads` threads, and returns one tally for each thread. Passes are
/// chosen so that the distinct rows of one thread take about `held` bytes.
pub(crate) fn merge_partitions<P: Pair, T: Tally<P>>(
    per_thread: &[ThreadRows<P>],
    keys: &HashKeys,
    (threads, held): (usize, usize),
    tick: impl FnMut() -> Result<()>,
    new: impl Fn() -> T + Sync,
) -> Result<Vec<T>> {
    let len =
        |partition: usize| per_thread.iter().map(|thread| thread.partition_len(partition)).sum();
    let has_labels = per_thread.iter().any(|thread| thread.labels.is_some());
    let at_once = (held / (3 * size_of::<P>())).max(1 << 12);
    let begin = || (Items::default(), Dedup::default(), Interner::default(), new());
    let work = |state: &mut (Items, Dedup<P>, _, T), partition, len: usize, stop: &AtomicBool| {
        let (items, dedup, interner, tally) = state;
        let sources = merge_labels(per_thread, partition, interner)?;
        let labels = has_labels.then_some(&*interner);
        items.reset(labels.map(|labels| labels.labels().len()));
        let passes = len.div_ceil(at_once).max(1) as u64;
        for pass in 0..passes {
            if stop.load(Ordering::Relaxed) {
                return Err(threads::STOPPED);
            }
            dedup.reset(if passes == 1 { len } else { at_once + at_once / 4 });
            for source in &sources {
                source.read(partition, (pass, passes), keys, dedup)?;
            }
            tally.add(dedup.distinct(keys), items, labels, keys)?;
        }
        tally.close(items, labels)
    };
    let done = threads::run_jobs(threads, (0..PARTITIONS).map(len), tick, begin, work)?;
    Ok(done.into_iter().map(|(.., tally)| tally).collect())
}

/// One thread's rows of a partition, and the merged codes of their items.
struct Source<'a, P: Pair> {
    thread: &'a ThreadRows<P>,
    /// The merged code of each of the thread's codes; `None` if the keys of items are integers.
    codes: Option<Vec<u32>>,
    /// The merged code of each code, for each spilled run.
    runs: Vec<Vec<u32>>,
}

/// Merges the labels of a partition from all threads into `interner`. Returns a source for each thread.
fn merge_labels<'a, P: Pair>(
    per_thread: &'a [ThreadRows<P>],
    partition: usize,
    interner: &mut Interner,
) -> Result<Vec<Source<'a, P>>> {
    interner.reset(per_thread.iter().map(|thread| thread.partition_labels(partition)).sum());
    let mut sources = Vec::new();
    for thread in per_thread {
        let mut codes = None;
        if let Some(labels) = &thread.labels {
            let codes = codes.insert(Vec::with_capacity(labels.partition_len(partition)));
            labels.visit(partition, |hash, label| {
                codes.push(interner.intern(hash, label)?);
                Ok(())
            })?;
        }
        let runs = match codes {
            Some(_) => thread.runs.intern_labels(partition, interner)?,
            None => Vec::new(),
        };
        sources.push(Source { thread, codes, runs });
    }
    Ok(sources)
}

impl<P: Pair> Source<'_, P> {
    /// Passes the rows of a partition to `into`. If there are several passes, skips the rows whose
    /// users belong to another pass.
    fn read(
        &self,
        partition: usize,
        (pass, passes): (u64, u64),
        keys: &HashKeys,
        into: &mut Dedup<P>,
    ) -> Result<()> {
        let Self { thread, codes, runs } = self;
        let is_now = |row: &P| {
            let user = row.user();
            (keys.pair(user as u64, (user >> 64) as u64) >> 32) % passes == pass
        };
        for rows in thread.rows.pieces(partition) {
            let most = rows.len();
            match codes {
                None if passes == 1 => into.extend(rows, most, keys),
                None => into.extend(rows.filter(is_now), most, keys),
                Some(codes) => {
                    let rows = rows.map(|row| row.with_item(codes[row.item() as usize].into()));
                    if passes == 1 {
                        into.extend(rows, most, keys);
                    } else {
                        into.extend(rows.filter(is_now), most, keys);
                    }
                }
            }
        }
        thread.runs.visit(partition, runs, |rows: &[P]| {
            into.extend(
                rows.iter().copied().filter(|row| passes == 1 || is_now(row)),
                rows.len(),
                keys,
            );
        })
    }
}
