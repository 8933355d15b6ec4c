//! Every partition is put together from all threads and all that they have put away, deduplicated, and handed on.
//! One that is too large for memory is read several times, each time for some of its users: users do not meet, so
//! that what comes of them adds up.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::crew;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::pairs::Pair;
use crate::share::Share;
use crate::sieve::{Items, Sieve};
use crate::store::Store;

/// What is made of the distinct rows of partitions.
pub(crate) trait Tally<P: Pair>: Send {
    /// Adds distinct rows of a partition, of users that no other call for it has.
    ///
    /// # Errors
    /// What keeps the tally from growing.
    fn add(
        &mut self,
        rows: &[P],
        items: &mut Items,
        labels: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()>;

    /// Ends a partition that has these items.
    fn close(&mut self, items: &Items, labels: Option<&Interner>);
}

/// The tallies of all partitions, made on `threads` threads, each with one of its own and of at most `held` bytes
/// beside it.
pub(crate) fn each_partition<P: Pair, T: Tally<P>>(
    mut shares: Vec<Share<Store<P>>>,
    keys: &HashKeys,
    (threads, held): (usize, usize),
    tick: impl FnMut() -> Result<()>,
    new: impl Fn() -> T + Sync,
) -> Result<Vec<T>> {
    let mut interners: Vec<Vec<Option<Interner>>> = (0..PARTITIONS).map(|_| Vec::new()).collect();
    for share in &mut shares {
        let mut labels = share.interners.take().map(Vec::into_iter);
        for of_partition in &mut interners {
            of_partition.push(labels.as_mut().and_then(Iterator::next));
        }
    }
    let len = |partition: usize| shares.iter().map(|share| share.partition_len(partition)).sum();
    let mut waiting: Vec<(usize, Mutex<_>, usize)> = interners
        .into_iter()
        .enumerate()
        .map(|(partition, labels)| (partition, Mutex::new(labels), len(partition)))
        .collect();
    // The largest first, so that no thread is left with one at the end.
    waiting.sort_by_key(|&(_, _, len)| std::cmp::Reverse(len));
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let at_once = (held / (3 * size_of::<P>())).max(1 << 12);
    let work = || {
        let (mut items, mut sieve) = (Items::default(), Sieve::default());
        let mut tally = new();
        while let Some((partition, labels, len)) = waiting.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let labels =
                std::mem::take(&mut *labels.lock().unwrap_or_else(PoisonError::into_inner));
            let (labels, sources) = merge_labels(labels, &shares, *partition)?;
            items.reset(labels.as_ref().map(|labels| labels.labels().len()));
            let passes = len.div_ceil(at_once).max(1) as u64;
            for pass in 0..passes {
                if stop.load(Ordering::Relaxed) {
                    return Err(crew::STOPPED);
                }
                sieve.reset(if passes == 1 { *len } else { at_once + at_once / 4 });
                for source in &sources {
                    source.read(*partition, (pass, passes), keys, &mut sieve)?;
                }
                tally.add(sieve.distinct(keys), &mut items, labels.as_ref(), keys)?;
            }
            tally.close(&items, labels.as_ref());
        }
        Ok(tally)
    };
    crew::run((0..threads).map(|_| &work), &stop, tick, |_| Ok(()))
}

/// Where rows of a partition come from, and what their codes are called now.
struct Source<'a, P: Pair> {
    share: &'a Share<Store<P>>,
    /// Of the rows in memory; they keep theirs where there are none.
    codes: Option<Vec<u32>>,
    /// Of the rows put away, by chapter.
    chapters: Vec<Vec<u32>>,
}

/// Puts a partition's labels of all threads together. Whoever has most of them keeps them; the others' are looked
/// up there.
fn merge_labels<P: Pair>(
    labels: Vec<Option<Interner>>,
    shares: &[Share<Store<P>>],
    partition: usize,
) -> Result<(Option<Interner>, Vec<Source<'_, P>>)> {
    let mut sources: Vec<_> = labels.into_iter().zip(shares).collect();
    sources.sort_by_key(|(labels, _)| {
        std::cmp::Reverse(labels.as_ref().map_or(0, |labels| labels.labels().len()))
    });
    let mut known: Option<Interner> = None;
    let mut merged = Vec::new();
    for (labels, share) in sources {
        let codes = match (&mut known, labels) {
            (Some(known), Some(labels)) => Some(known.absorb(&labels)?),
            (None, labels) => {
                known = labels;
                None
            }
            _ => None,
        };
        merged.push(Source { share, codes, chapters: Vec::new() });
    }
    if let Some(known) = &mut known {
        for source in &mut merged {
            source.chapters = source.share.chapters.absorb(partition, known)?;
        }
    }
    Ok((known, merged))
}

impl<P: Pair> Source<'_, P> {
    /// Hands the rows of a partition to `sieve`, or those of one pass of so many.
    fn read(
        &self,
        partition: usize,
        (pass, passes): (u64, u64),
        keys: &HashKeys,
        sieve: &mut Sieve<P>,
    ) -> Result<()> {
        let Self { share, codes, chapters } = self;
        let mut take = |row: P| {
            let user = row.user();
            let part = || keys.pair(user as u64, (user >> 64) as u64) >> 32;
            if passes == 1 || part() % passes == pass {
                sieve.push(row, keys);
            }
        };
        match codes {
            None => share.rows.visit(partition, &mut take),
            Some(codes) => share
                .rows
                .visit(partition, |row| take(row.with_item(codes[row.item() as usize].into()))),
        }
        share.chapters.visit(partition, chapters, take)
    }
}
