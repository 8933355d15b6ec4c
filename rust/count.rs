//! Exact distinct users per item, on all cores, with the GIL nowhere near.
//!
//! Workers take morsels of rows, group them (see [`crate::group`]) and append each row to its partition.
//! All rows of an item share a partition, so that in the end each partition is merged over the workers,
//! deduplicated and counted on its own, in cache. Where duplicates pile up, partitions are deduplicated
//! on the way: memory stays a small multiple of the distinct pairs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use crate::bound::{Bounded, Contribution};
use crate::column::LabelType;
use crate::error::{Error, Result};
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::labels::Labels;
use crate::pairs::{Pair, Table, count_items, distinct};
use crate::shelf::Post;
use crate::store::Store;
use crate::worker::{Batch, Morsel, Rows, Share, Worker};

/// How many rows a worker takes at a time.
const MORSEL: usize = 1 << 13;

/// A histogram before it is sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The distinct items.
    pub labels: Labels,
    /// How many distinct users each has.
    pub counts: Vec<i64>,
}

/// Counts the distinct users of each item over all batches; with a `bound` only some of each user's items
/// count. `tick` is called between morsels with the number of rows read so far and may stop the
/// work with an error.
///
/// # Errors
/// The first error of the batches, of `tick` or of a worker.
pub fn count_distinct(
    batches: impl Iterator<Item = Result<Batch>>,
    (user_type, item_type): (LabelType, LabelType),
    bound: Option<&Contribution>,
    threads: usize,
    mut tick: impl FnMut(u64) -> Result<()>,
) -> Result<Counts> {
    let threads = threads.clamp(1, 64);
    let keys = Arc::new(HashKeys::from_os()?);
    let failed = AtomicBool::new(false);
    let shares = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Morsel>(4 * threads);
        let receiver = Arc::new(Mutex::new(receiver));
        let handles: Vec<_> = Post::offices(threads)
            .into_iter()
            .map(|post| {
                let (receiver, failed) = (Arc::clone(&receiver), &failed);
                let worker = Worker::new(Arc::clone(&keys), post, user_type, item_type);
                scope.spawn(move || worker.run(&receiver, failed))
            })
            .collect();
        drop(receiver);
        let read = (|| {
            let mut rows = 0;
            for (number, batch) in batches.enumerate() {
                let batch = Arc::new(batch?);
                if batch.users.len() != batch.items.len() {
                    return Err(Error::Input("the columns are not equally long"));
                }
                let len = batch.users.len();
                for start in (0..len).step_by(MORSEL) {
                    let end = len.min(start + MORSEL);
                    let batch = Arc::clone(&batch);
                    let morsel = Morsel { batch, number: number as u64, start, end };
                    if failed.load(Ordering::Relaxed) || sender.send(morsel).is_err() {
                        return Ok(());
                    }
                    rows += (end - start) as u64;
                    tick(rows)?;
                }
            }
            Ok(())
        })();
        if read.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        drop(sender);
        let crashed = Error::Resource("a counting thread did not finish");
        let shares: Result<Vec<Share>> = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or(Err(crashed.clone())))
            .collect();
        read.and(shares)
    })?;
    finish(shares, item_type, bound, &keys, threads)
}

/// Merges the workers' partitions and counts each.
fn finish(
    shares: Vec<Share>,
    item_type: LabelType,
    bound: Option<&Contribution>,
    keys: &HashKeys,
    threads: usize,
) -> Result<Counts> {
    let any_wide = shares.iter().any(|share| matches!(share.rows, Rows::Wide(_)));
    let (mut narrow, mut wide, mut hashed) = (Vec::new(), Vec::new(), Vec::new());
    for Share { interners, rows } in shares {
        match rows {
            Rows::Narrow(rows) if any_wide => wide.push((interners, Rows::widen(&rows))),
            Rows::Narrow(rows) => narrow.push((interners, rows)),
            Rows::Wide(rows) => wide.push((interners, rows)),
            Rows::Hashed(rows) => hashed.push((interners, rows)),
        }
    }
    if !hashed.is_empty() {
        count_shares(hashed, item_type, bound, keys, threads)
    } else if !wide.is_empty() {
        count_shares(wide, item_type, bound, keys, threads)
    } else {
        count_shares(narrow, item_type, bound, keys, threads)
    }
}

fn count_shares<P: Pair>(
    shares: Vec<(Option<Vec<Interner>>, Store<P>)>,
    item_type: LabelType,
    bound: Option<&Contribution>,
    keys: &HashKeys,
    threads: usize,
) -> Result<Counts> {
    let Some(bound) = bound else {
        let new = || Counts::new(item_type);
        let mut counted = each_partition(shares, keys, threads, new, Counts::add)?.into_iter();
        let mut total = counted.next().unwrap_or_else(new);
        for part in counted {
            total.labels.append(&part.labels);
            total.counts.extend(part.counts);
        }
        return Ok(total);
    };
    let new = || Bounded::new(item_type);
    let parts = each_partition(shares, keys, threads, new, |part, rows, labels, keys, table| {
        part.add(bound, rows, labels, keys, table);
    })?;
    let counts = Bounded::count(&parts, bound, threads)?;
    let mut labels = Labels::new(item_type);
    for part in &parts {
        labels.append(part.labels());
    }
    Ok(Counts { labels, counts })
}

/// Merges the shares of every partition and hands its distinct rows to `add`, on all threads, each with a
/// state of its own.
fn each_partition<P: Pair, S: Send>(
    shares: Vec<(Option<Vec<Interner>>, Store<P>)>,
    keys: &HashKeys,
    threads: usize,
    new: impl Fn() -> S + Sync,
    add: impl Fn(&mut S, &[P], Option<&Interner>, &HashKeys, &mut Table) + Sync,
) -> Result<Vec<S>> {
    let mut stores = Vec::new();
    let mut interners: Vec<Vec<Option<Interner>>> = (0..PARTITIONS).map(|_| Vec::new()).collect();
    for (labels, store) in shares {
        let mut labels = labels.map(Vec::into_iter);
        for of_partition in &mut interners {
            of_partition.push(labels.as_mut().and_then(Iterator::next));
        }
        stores.push(store);
    }
    let mut waiting: Vec<_> =
        interners.into_iter().map(|i| Mutex::new(Some(i))).enumerate().collect();
    // The largest first, so that no thread is left with one at the end.
    waiting.sort_by_cached_key(|&(partition, _)| {
        std::cmp::Reverse(stores.iter().map(|store| store.partition_len(partition)).sum::<usize>())
    });
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || {
            let (mut table, mut rows) = (Table::default(), Vec::new());
            let mut state = new();
            while let Some((partition, labels)) = waiting.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let labels = labels.lock().unwrap_or_else(PoisonError::into_inner).take();
                let mut shares: Vec<_> =
                    labels.unwrap_or_default().into_iter().zip(&stores).collect();
                // Whoever has most of the labels keeps them; the others' are looked up there.
                shares.sort_by_key(|(labels, _)| {
                    std::cmp::Reverse(labels.as_ref().map_or(0, |labels| labels.labels().len()))
                });
                let labels = merge(shares, *partition, &mut rows)?;
                distinct(&mut rows, keys, &mut table);
                add(&mut state, &rows, labels.as_ref(), keys, &mut table);
            }
            Ok(state)
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let crashed = Error::Resource("a counting thread did not finish");
        handles.into_iter().map(|h| h.join().unwrap_or(Err(crashed.clone()))).collect()
    })
}

impl Counts {
    fn new(item_type: LabelType) -> Self {
        Self { labels: Labels::new(item_type), counts: Vec::new() }
    }

    /// Adds the items of one partition's distinct rows.
    fn add<P: Pair>(
        &mut self,
        rows: &[P],
        interner: Option<&Interner>,
        keys: &HashKeys,
        table: &mut Table,
    ) {
        let codes = interner.map(|interner| interner.labels().len());
        let (items, counts) = count_items(rows, codes, keys, table);
        match interner {
            Some(interner) => self.labels.append_strings(interner.labels()),
            None => items.iter().for_each(|&item| self.labels.push_integer(item)),
        }
        self.counts.extend(counts);
    }
}

/// Puts a partition's rows of all threads together in `rows`, under the codes of the first one's labels.
fn merge<P: Pair>(
    shares: Vec<(Option<Interner>, &Store<P>)>,
    partition: usize,
    rows: &mut Vec<P>,
) -> Result<Option<Interner>> {
    rows.clear();
    let mut known: Option<Interner> = None;
    for (labels, store) in shares {
        if let (Some(known), Some(labels)) = (&mut known, &labels) {
            let codes = known.absorb(labels)?;
            store.read(partition, rows, |row| row.with_item(codes[row.item() as usize].into()));
        } else {
            known = labels;
            store.read(partition, rows, |row| row);
        }
    }
    Ok(known)
}
