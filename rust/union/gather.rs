//! Reads lists of every user's distinct items from batches of rows. It uses a small multiple of the memory that the
//! lists take.
//!
//! A row is a pair of a user and an item. Each thread partitions its rows by user into buckets, and deduplicates the
//! buckets when its rows have doubled. The merge then lists the users of one bucket at a time, with the rows of all
//! threads. With a limit `l0`, every user has a random order of items and keeps the first `l0` items. An item that is
//! not among the user's first `l0` items so far cannot be among the final `l0` items, so it is dropped.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::columns::Batch;
use crate::count::{make_ready, morsels, threads};
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::labels::{LabelType, Labels};
use crate::union::bucket::first;
use crate::union::label_numbers::Numbers;
use crate::union::reader::{Reader, Terms, priority};
use crate::union::user_items::{LabelHashes, Lists};

/// Users sorted or listed between two checks for an interrupt.
const USERS: usize = 1 << 16;
/// The least memory of a thread in bytes, unless there is only one thread.
const THREAD: usize = 1 << 26;
/// The number of rows that all threads together gather before they deduplicate, and the smallest number for one thread.
const GATHERED: (usize, usize) = (1 << 24, 1 << 20);

/// Limits on reading a table.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountOptions {
    /// The largest number of items kept for each user, chosen uniformly; `None` for all items.
    pub l0: Option<usize>,
    /// The memory limit in bytes, including the returned lists but not the batches; `None` for no limit.
    pub memory: Option<usize>,
    /// The most threads to use. Values outside 1 to 64 are clamped.
    pub threads: usize,
}

/// Read the items and the lists of all users. Calls `tick` often; an error of `tick` stops the work.
///
/// # Errors
/// The first error of the batches or of `tick`. [`Error::Input`](crate::error::Error::Input) if the columns of a batch
/// differ in length. [`Error::Resource`](crate::error::Error::Resource) if memory or threads do not suffice, or there
/// are too many users or items for 32-bit numbers. [`Error::Entropy`](crate::error::Error::Entropy) if the operating
/// system gives no randomness.
pub fn gather(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: CountOptions,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<(Labels, Lists)> {
    // Free the memory that counting keeps for its next run; lists do not use it.
    make_ready(Some(0));
    let keys = Arc::new(HashKeys::from_os()?);
    let memory = options.memory.unwrap_or(usize::MAX);
    let threads = options.threads.clamp(1, 64).min((memory / THREAD).max(1));
    let terms = Terms {
        types,
        l0: options.l0,
        room: memory / threads,
        gathered: GATHERED.1.max(GATHERED.0 / threads),
        are_merged: threads > 1,
    };
    let stop = AtomicBool::new(false);
    let job = || {
        let (reader, stop) = (Reader::new(Arc::clone(&keys), terms), &stop);
        move |morsels| reader.run(morsels, stop)
    };
    let mut readers = morsels::share(batches, threads, job, &stop, &mut tick)?;
    let items = Items::merged(&mut readers, types.1, &mut tick)?;
    let parts = listed(&readers, &items, options.l0, &keys, threads, &mut tick)?;
    drop(readers);
    let Items { labels, ranks, .. } = items;
    let lists = joined(&parts, &ranks, tick)?;
    drop(parts);
    make_ready(options.memory);
    Ok((labels, lists))
}

/// The items of all threads, numbered in the order of the table's rows. An item's place is its number in the order of
/// ranks. A rank is an integer, or a hash of a string.
struct Items {
    labels: Labels,
    /// The rank of each number.
    ranks: Vec<u128>,
    /// The number at each place.
    by_place: Vec<u32>,
    /// For each thread, the places of its items.
    places: Vec<Vec<u32>>,
}

impl Items {
    /// Merge the items of all threads into those of the thread with the most items.
    fn merged(
        readers: &mut [Reader],
        item_type: LabelType,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let most = (0..readers.len()).max_by_key(|&thread| readers[thread].items.len());
        let most = most.unwrap_or_default();
        let mut all = readers[most].items.take();
        let mut places = Vec::with_capacity(readers.len());
        for (thread, reader) in readers.iter_mut().enumerate() {
            if thread == most {
                places.push((0..all.len() as u32).collect());
            } else {
                places.push(all.add_all(&reader.items.take(), &mut tick)?);
            }
        }
        let mut ranks = all.ranks();
        let mut labels = all.into_labels(item_type);
        if let [_, _, ..] = readers {
            let (order, numbers) = by_arrival(readers, &places, ranks.len());
            tick()?;
            labels = labels.select(&order)?;
            ranks = order.iter().map(|&old| ranks[old]).collect();
            places.iter_mut().flatten().for_each(|item| *item = numbers[*item as usize]);
        }
        let by_place = by_rank(&ranks, tick)?;
        let mut place_of = vec![0; by_place.len()];
        by_place.iter().zip(0..).for_each(|(&number, place)| place_of[number as usize] = place);
        places.iter_mut().flatten().for_each(|item| *item = place_of[*item as usize]);
        Ok(Self { labels, ranks, by_place, places })
    }
}

/// Number items in the order of the table's rows. `merged` has the merged number of each thread's items. Return the
/// merged numbers in order, and the new number of each merged number.
fn by_arrival(readers: &[Reader], merged: &[Vec<u32>], len: usize) -> (Vec<usize>, Vec<u32>) {
    let mut arrivals = Vec::new();
    for (reader, merged) in readers.iter().zip(merged) {
        let mut start = 0;
        for &(rows, end) in &reader.arrivals {
            arrivals.push((rows, &merged[start..end]));
            start = end;
        }
    }
    arrivals.sort_unstable_by_key(|&(rows, _)| rows);
    let (mut order, mut numbers) = (Vec::with_capacity(len), vec![Numbers::NONE; len]);
    for &item in arrivals.into_iter().flat_map(|(_, items)| items) {
        if numbers[item as usize] == Numbers::NONE {
            numbers[item as usize] = order.len() as u32;
            order.push(item as usize);
        }
    }
    (order, numbers)
}

/// Return the numbers of items, sorted by rank.
fn by_rank(ranks: &[u128], tick: impl FnMut() -> Result<()>) -> Result<Vec<u32>> {
    // Sort by the 32 highest bits that are in use, and then the few equal ones by all bits.
    let used = 128 - ranks.iter().max().map_or(0, |most| most.leading_zeros());
    let high = |rank: u128| (rank >> used.saturating_sub(32)) as u64;
    let mut order: Vec<u64> =
        ranks.iter().zip(0..).map(|(&rank, number)| high(rank) << 32 | number).collect();
    sort_in_steps(&mut order, |&item| item, tick)?;
    let mut order: Vec<(u32, u32)> =
        order.into_iter().map(|item| ((item >> 32) as u32, item as u32)).collect();
    for equal in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
        equal.sort_by_key(|&(_, number)| ranks[number as usize]);
    }
    Ok(order.into_iter().map(|(_, number)| number).collect())
}

/// The lists of the users of one bucket.
#[derive(Default)]
struct Part {
    bucket: usize,
    /// The keys of the users in order, and the number of items of each.
    users: Vec<(u128, u32)>,
    /// The items of all users, by number.
    items: Vec<u32>,
}

/// List the users of every bucket, ordered by key. A user's items are ordered by their number of rows and then by rank.
fn listed(
    readers: &[Reader],
    items: &Items,
    l0: Option<usize>,
    keys: &HashKeys,
    threads: usize,
    tick: impl FnMut() -> Result<()>,
) -> Result<Vec<Part>> {
    let rows = |bucket: usize| readers.iter().map(|reader| reader.buckets[bucket].len()).sum();
    let sizes = (0..PARTITIONS).map(rows);
    let work = |parts: &mut Vec<Part>, bucket, rows, _: &AtomicBool| {
        parts.push(part(
            readers,
            items,
            bucket,
            rows,
            |user, place: u32| {
                priority(keys, user, items.ranks[items.by_place[place as usize] as usize])
            },
            l0,
        ));
        Ok(())
    };
    let parts = threads::run_jobs(threads, sizes, tick, Vec::new, work)?;
    let mut parts: Vec<Part> = parts.into_iter().flatten().collect();
    parts.sort_unstable_by_key(|part| part.bucket);
    Ok(parts)
}

/// List the users of one bucket. `priority` gets a user's key and an item's place.
fn part(
    readers: &[Reader],
    items: &Items,
    bucket: usize,
    rows: usize,
    priority: impl Fn(u128, u32) -> u64,
    l0: Option<usize>,
) -> Part {
    let buckets = || readers.iter().map(|reader| &reader.buckets[bucket]);
    let mut known: Vec<u128> = buckets().flat_map(|own| own.users.iter().copied()).collect();
    known.sort_unstable();
    known.dedup();
    // The new number of each thread's users.
    let number = |user: &u128| known.partition_point(|other| other < user);
    let numbers: Vec<Vec<usize>> =
        buckets().map(|own| own.users.iter().map(number).collect()).collect();
    let entries = || {
        buckets().zip(&items.places).zip(&numbers).flat_map(|((own, places), numbers)| {
            own.entries().map(|(user, item, repeats)| {
                (
                    numbers[user as usize],
                    u64::from(places[item as usize]) << 32 | u64::from(repeats),
                )
            })
        })
    };
    let mut ends = vec![0; known.len() + 1];
    entries().for_each(|(user, _)| ends[user + 1] += 1);
    (1..ends.len()).for_each(|user| ends[user] += ends[user - 1]);
    // The place of each user's items in the high, and their number of rows in the low 32 bits. While they are written,
    // `ends` has the end of what each user has so far.
    let mut cells = vec![0; rows];
    for (user, cell) in entries() {
        cells[ends[user]] = cell;
        ends[user] += 1;
    }
    let mut made =
        Part { bucket, users: Vec::with_capacity(known.len()), items: Vec::with_capacity(rows) };
    let mut start = 0;
    for (&user, &end) in known.iter().zip(&ends) {
        let own = &mut cells[start..end];
        start = end;
        let len = summed(own);
        let own = &mut own[..len];
        let len = match l0 {
            Some(l0) => first(own, l0, |&cell| priority(user, (cell >> 32) as u32)),
            None => len,
        };
        let own = &mut own[..len];
        let repeats = |cell: u64| cell as u32;
        if l0.is_some() || own.iter().any(|&cell| repeats(cell) != repeats(own[0])) {
            own.sort_unstable_by_key(|&cell| (Reverse(repeats(cell)), cell));
        }
        made.items.extend(own.iter().map(|&cell| items.by_place[(cell >> 32) as usize]));
        made.users.push((user, own.len() as u32));
    }
    made.items.shrink_to_fit();
    made
}

/// Sort a user's cells by place, and sum the numbers of rows of equal places. Return the number of distinct places.
fn summed(cells: &mut [u64]) -> usize {
    cells.sort_unstable();
    let mut len = 0;
    for place in 0..cells.len() {
        let cell = cells[place];
        if len > 0 && cells[len - 1] >> 32 == cell >> 32 {
            let sum = (cells[len - 1] as u32).saturating_add(cell as u32);
            cells[len - 1] = cell >> 32 << 32 | u64::from(sum);
        } else {
            cells[len] = cell;
            len += 1;
        }
    }
    len
}

/// Join the lists of all buckets, with the users ordered by key.
fn joined(parts: &[Part], ranks: &[u128], mut tick: impl FnMut() -> Result<()>) -> Result<Lists> {
    let mut order = Vec::with_capacity(parts.iter().map(|part| part.users.len()).sum());
    for (number, part) in parts.iter().enumerate() {
        let mut start = 0;
        for &(user, len) in &part.users {
            order.push((user, number as u32, len, start));
            start += len as usize;
        }
    }
    sort_in_steps(&mut order, |user| user.0, &mut tick)?;
    let mut items = Vec::with_capacity(parts.iter().map(|part| part.items.len()).sum());
    let mut starts = Vec::with_capacity(order.len() + 1);
    let mut users = Vec::with_capacity(order.len());
    starts.push(0);
    for (turn, &(user, number, len, start)) in order.iter().enumerate() {
        users.push(user as u64);
        items.extend_from_slice(&parts[number as usize].items[start..start + len as usize]);
        starts.push(items.len());
        if turn % USERS == 0 {
            tick()?;
        }
    }
    let labels = ranks.iter().map(|&rank| rank as u64).collect();
    let hashes = Arc::new(LabelHashes { users, items: labels });
    Ok(Lists { starts, items, size: ranks.len(), hashes })
}

/// Sort longer and longer chunks, so that `tick` is called between short steps.
fn sort_in_steps<T, K: Ord>(
    values: &mut [T],
    key: impl Fn(&T) -> K,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut run = USERS;
    loop {
        for chunk in values.chunks_mut(run) {
            chunk.sort_by_key(&key);
            tick()?;
        }
        if run >= values.len() {
            return Ok(());
        }
        run *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::error::Error;
    use crate::hash::FIXED;
    use crate::random::rng::SecureRng;
    use crate::tests::tables::{self, Row, batches, label_type, number};

    fn gathered(rows: &[Row], as_text: bool, terms: CountOptions) -> Result<(Labels, Lists)> {
        let types = (label_type(as_text), label_type(as_text));
        gather(batches(rows, (as_text, as_text), 20_000), types, terms, || Ok(()))
    }

    /// 60,000 distinct pairs of 300 users, each pair twice, and each user's first item three times.
    fn rows() -> Vec<Row> {
        let once = (0..300).flat_map(|user| (0..200).map(move |item| (user, user * 7 + item * 11)));
        let firsts = (0..300).map(|user| (user, user * 7));
        once.clone().chain(firsts).chain(once).map(row).collect()
    }

    fn row((user, item): (i64, i64)) -> Row {
        (Some(user), Some(item))
    }

    #[test]
    fn the_order_of_users_and_items_does_not_depend_on_memory() {
        for as_text in [false, true] {
            let (labels, lists) = gathered(&rows(), as_text, CountOptions::default()).unwrap();
            assert_eq!((lists.users(), lists.items.len()), (300, 60_000));
            let little = CountOptions { memory: Some(3 << 20), ..CountOptions::default() };
            let again = gathered(&rows(), as_text, little).unwrap();
            for user in 0..300 {
                let own = |labels: &Labels, lists: &Lists| -> Vec<i64> {
                    lists.of_user(user).iter().map(|&item| number(labels, item as usize)).collect()
                };
                let items = own(&labels, &lists);
                assert_eq!(items.iter().collect::<BTreeSet<_>>().len(), 200);
                assert_eq!(items[0] % 7, items[1..].iter().min().unwrap().min(&items[0]) % 7);
                if !as_text {
                    assert_eq!(items[0], 7 * user as i64);
                    assert!(items[1..].is_sorted());
                    assert_eq!(items, own(&again.0, &again.1));
                }
            }
        }
    }

    #[test]
    fn neither_threads_nor_deduplication_change_the_lists() {
        FIXED
            .set(Some(std::array::from_fn(|n| (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))));
        let mut rng = SecureRng::seeded(3);
        let few = tables::rows(&mut rng, 200_000, 300, 50);
        let many = tables::rows(&mut rng, 300_000, 5000, 200_000);
        for (rows, as_text) in [(&few, false), (&few, true), (&many, false), (&many, true)] {
            for l0 in [None, Some(3)] {
                let read = |threads, memory| {
                    gathered(rows, as_text, CountOptions { l0, memory, threads }).unwrap()
                };
                let (labels, lists) = read(1, None);
                for (threads, memory) in [(2, None), (3, None), (7, Some(448 << 20))] {
                    let (others, again) = read(threads, memory);
                    // The items are numbered in the order of the rows.
                    assert!(labels == others, "{threads} threads");
                    assert!(lists == again, "{threads} threads");
                }
                if rows == &few {
                    // Rows that repeat are deduplicated when they fill the memory.
                    let (others, again) = read(1, Some(2 << 20));
                    assert!(labels == others && lists == again);
                }
            }
        }
        FIXED.set(None);
    }

    #[test]
    fn too_little_memory_is_a_resource_error() {
        for l0 in [None, Some(100)] {
            let terms = CountOptions { l0, memory: Some(1 << 18), threads: 2 };
            assert!(matches!(gathered(&rows(), true, terms), Err(Error::Resource(_))));
        }
    }

    #[test]
    fn at_most_l0_items_are_kept_and_chosen_uniformly() {
        // One user has 400,000 items, and 3,000 users have the same five items.
        let many = (0..400_000).map(|item| (-1, item));
        let others = (0..3000).flat_map(|user| (0..5).map(move |item| (user, -1 - item)));
        let rows: Vec<Row> = many.chain(others).map(row).collect();
        for as_text in [false, true] {
            let terms = CountOptions { l0: Some(2), memory: Some(6 << 20), threads: 2 };
            let (labels, lists) = gathered(&rows, as_text, terms).unwrap();
            assert!(labels.len() < 300_000, "{}", labels.len());
            assert!((0..lists.users()).all(|user| lists.of_user(user).len() == 2));
            let mut counts = BTreeMap::new();
            for &item in &lists.items {
                *counts.entry(number(&labels, item as usize)).or_insert(0_u64) += 1;
            }
            for item in -5..0 {
                // Binomial(3000, 2/5) has a standard deviation of 27.
                assert!(counts[&item].abs_diff(1200) < 6 * 27, "{counts:?}");
            }
        }
    }
}
