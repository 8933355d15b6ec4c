//! Exact distinct users per item, on all cores, with the GIL nowhere near.
//!
//! Workers take morsels of rows, group them (see [`crate::group`]) and append each row to its partition.
//! All rows of an item share a partition, so that in the end each partition is merged over the workers,
//! deduplicated and counted on its own, in cache. Where duplicates pile up, partitions are deduplicated
//! on the way: memory stays a small multiple of the distinct pairs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::column::{Column, LabelType};
use crate::error::{Error, Result};
use crate::group::{Group, Grouper, Sink};
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::labels::Labels;
use crate::pairs::{Hashed, Narrow, Pair, Table, Wide, count_items, distinct};
use crate::shelf::Post;
use crate::store::Store;

/// How many rows a worker takes at a time.
const MORSEL: usize = 1 << 13;
/// How many rows a worker gathers before it looks for duplicates.
const COMPACT_ROWS: usize = 1 << 22;

/// Keys that no user has: those have at most 96 bits.
const UNKNOWN: u128 = u128::MAX;
const NULL: u128 = u128::MAX - 1;

/// A histogram before it is sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The distinct items.
    pub labels: Labels,
    /// How many distinct users each has.
    pub counts: Vec<i64>,
}

/// Two columns of equal length.
pub struct Batch {
    /// Who.
    pub users: Column,
    /// What.
    pub items: Column,
}

struct Morsel {
    batch: Arc<Batch>,
    number: u64,
    start: usize,
    end: usize,
}

/// Counts the distinct users of each item over all batches. `tick` is called between morsels with the
/// number of rows read so far and may stop the work with an error.
///
/// # Errors
/// The first error of the batches, of `tick` or of a worker.
pub fn count_distinct(
    batches: impl Iterator<Item = Result<Batch>>,
    (user_type, item_type): (LabelType, LabelType),
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
    finish(shares, item_type, &keys, threads)
}

/// One thread's share of the rows.
struct Worker {
    keys: Arc<HashKeys>,
    grouper: Grouper,
    rows: Rows,
    compact_at: usize,
    users: Vec<u128>,
    integers: Vec<u64>,
    /// The keys of the dictionary of batch number `memo_of`, as far as they have been needed.
    memo: Vec<u128>,
    memo_of: u64,
    null: Vec<bool>,
    groups: Vec<Group>,
    table: Table,
}

/// What a thread has in the end.
struct Share {
    interners: Option<Vec<Interner>>,
    rows: Rows,
}

/// Rows by partition, in the narrowest form that holds them.
enum Rows {
    Narrow(Store<Narrow>),
    Wide(Store<Wide>),
    Hashed(Store<Hashed>),
}

/// Runs a body with `$store` bound to the rows, of whatever form.
macro_rules! with_store {
    ($rows:expr, $store:ident => $body:expr) => {
        match $rows {
            Rows::Narrow($store) => $body,
            Rows::Wide($store) => $body,
            Rows::Hashed($store) => $body,
        }
    };
}

impl Worker {
    fn new(keys: Arc<HashKeys>, post: Post, user_type: LabelType, item_type: LabelType) -> Self {
        let hashed = !user_type.is_integer();
        Self {
            grouper: Grouper::new(Arc::clone(&keys), post, item_type, hashed),
            keys,
            rows: if hashed {
                Rows::Hashed(Store::default())
            } else {
                Rows::Narrow(Store::default())
            },
            compact_at: COMPACT_ROWS,
            users: Vec::new(),
            integers: Vec::new(),
            memo: Vec::new(),
            memo_of: u64::MAX,
            null: Vec::new(),
            groups: Vec::new(),
            table: Table::default(),
        }
    }

    /// Works until there are no more morsels. After a failure they are only taken, so that the sender
    /// never waits for nobody.
    fn run(mut self, morsels: &Mutex<Receiver<Morsel>>, failed: &AtomicBool) -> Result<Share> {
        let mut outcome = Ok(());
        loop {
            let next = morsels.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(morsel) = next else { break };
            if failed.load(Ordering::Relaxed) {
                continue;
            }
            outcome = self.take(&morsel);
            if outcome.is_err() {
                failed.store(true, Ordering::Relaxed);
                break;
            }
        }
        if outcome.is_err() {
            while morsels.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok() {}
        }
        outcome?;
        let Self { grouper, mut rows, .. } = self;
        let mut interners = None;
        rows.fill(|sink| {
            interners = grouper.close(sink)?;
            Ok(())
        })?;
        Ok(Share { interners, rows })
    }

    fn take(&mut self, morsel: &Morsel) -> Result<()> {
        let Batch { users, items } = &*morsel.batch;
        let rows = morsel.start..morsel.end;
        self.null.clear();
        self.null.resize(rows.len(), false);
        let shelved = Grouper::shelves(items);
        self.read_users(users, morsel, shelved)?;
        if shelved {
            self.make_room(0);
            let Self { grouper, rows: all, null, users, .. } = self;
            all.fill(|sink| grouper.shelve(items, rows, null, users, sink))?;
        } else {
            self.grouper.group(items, morsel.number, rows, &mut self.null, &mut self.groups)?;
            self.append();
        }
        let gathered = with_store!(&self.rows, store => store.len());
        if gathered >= self.compact_at {
            let (keys, table) = (&self.keys, &mut self.table);
            let left = with_store!(&mut self.rows, store => compact(store, keys, table));
            self.compact_at = COMPACT_ROWS.max(2 * left);
        }
        Ok(())
    }

    /// The keys of the users: hashes of strings in `users`, integers in `integers` and, where they are to
    /// be `keys`, in `users` too. NULL is marked.
    fn read_users(&mut self, column: &Column, morsel: &Morsel, keys: bool) -> Result<()> {
        let rows = morsel.start..morsel.end;
        column.mark_nulls(rows.clone(), &mut self.null);
        self.users.clear();
        if let Some(values) = column.dictionary() {
            if self.memo_of != morsel.number {
                self.memo.clear();
                self.memo.resize(values.len(), UNKNOWN);
                self.memo_of = morsel.number;
            }
            column.integers(rows, &mut self.integers);
            for (index, null) in self.integers.iter().zip(&mut self.null) {
                let mut key = 0;
                if !*null {
                    let index = usize::try_from(*index).unwrap_or(usize::MAX);
                    if index >= values.len() {
                        return Err(Error::Input("a dictionary index is out of range"));
                    }
                    if self.memo[index] == UNKNOWN {
                        self.memo[index] = user_key(values, index, &self.keys)?.unwrap_or(NULL);
                    }
                    *null = self.memo[index] == NULL;
                    key = if *null { 0 } else { self.memo[index] };
                }
                self.users.push(key);
            }
        } else if column.label_type().is_integer() {
            column.integers(rows, &mut self.integers);
            if keys {
                self.users.extend(self.integers.iter().map(|&key| u128::from(key)));
            }
        } else {
            let (users, keys) = (&mut self.users, &self.keys);
            column.bytes(rows, &self.null, |bytes| {
                users.push(keys.user(bytes));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Appends the rows that have been grouped.
    fn append(&mut self) {
        let keys = self.groups.iter().fold(0, |all, group| all | group.key);
        self.make_room(keys);
        let (groups, users) = (&self.groups, &self.users);
        if users.is_empty() {
            let users = self.integers.iter().map(|&user| u128::from(user));
            with_store!(&mut self.rows, store => append(store, groups, users));
        } else {
            let users = users.iter().copied();
            with_store!(&mut self.rows, store => append(store, groups, users));
        }
    }

    /// Widens the rows where a user, or an item with bits among those of `keys`, does not fit.
    fn make_room(&mut self, keys: u64) {
        if let Rows::Narrow(store) = &mut self.rows {
            let narrow = self.integers.iter().fold(keys, |all, user| all | user);
            let all = self.users.iter().fold(u128::from(narrow), |all, user| all | user);
            if all >> 32 != 0 {
                self.rows = Rows::Wide(widen(&std::mem::take(store)));
            }
        }
    }
}

/// The key of a dictionary's value, or nothing where it is NULL.
fn user_key(values: &Column, index: usize, keys: &HashKeys) -> Result<Option<u128>> {
    if values.is_null(index) {
        return Ok(None);
    }
    if values.label_type().is_integer() {
        let mut cell = Vec::new();
        values.integers(index..index + 1, &mut cell);
        return Ok(Some(cell[0].into()));
    }
    let mut key = 0;
    values.bytes(index..index + 1, &[false], |bytes| {
        key = keys.user(bytes);
        Ok(())
    })?;
    Ok(Some(key))
}

impl Rows {
    /// Lets `source` push rows of partition, item and user.
    fn fill(&mut self, source: impl FnOnce(Sink<'_>) -> Result<()>) -> Result<()> {
        fn sink<P: Pair>(store: &mut Store<P>) -> impl FnMut(usize, u64, u128) {
            |partition, item, user| store.push(partition, P::new(item, user))
        }
        with_store!(self, store => source(&mut sink(store)))
    }
}

fn append<P: Pair>(store: &mut Store<P>, groups: &[Group], users: impl Iterator<Item = u128>) {
    for (group, user) in groups.iter().zip(users) {
        if group.partition != Group::DROPPED {
            store.push(group.partition as usize, P::new(group.key, user));
        }
    }
}

fn widen(narrow: &Store<Narrow>) -> Store<Wide> {
    let (mut wide, mut rows) = (Store::default(), Vec::new());
    for partition in 0..PARTITIONS {
        rows.clear();
        narrow.read(partition, &mut rows, Narrow::widen);
        for &row in &rows {
            wide.push(partition, row);
        }
    }
    wide
}

/// Deduplicates every partition if a sample of them says that it pays; returns the rows left.
fn compact<P: Pair>(store: &mut Store<P>, keys: &HashKeys, table: &mut Table) -> usize {
    const SAMPLE: usize = PARTITIONS / 16;
    let before: usize = (0..SAMPLE).map(|partition| store.partition_len(partition)).sum();
    let mut rows = Vec::new();
    let mut after = 0;
    for partition in 0..PARTITIONS {
        if partition == SAMPLE && 4 * after > 3 * before {
            break;
        }
        rows.clear();
        store.take(partition, &mut rows);
        distinct(&mut rows, keys, table);
        after += rows.len();
        for &row in &rows {
            store.push(partition, row);
        }
    }
    store.len()
}

/// Merges the workers' partitions and counts each.
fn finish(
    shares: Vec<Share>,
    item_type: LabelType,
    keys: &HashKeys,
    threads: usize,
) -> Result<Counts> {
    let any_wide = shares.iter().any(|share| matches!(share.rows, Rows::Wide(_)));
    let (mut narrow, mut wide, mut hashed) = (Vec::new(), Vec::new(), Vec::new());
    for Share { interners, rows } in shares {
        match rows {
            Rows::Narrow(rows) if any_wide => wide.push((interners, widen(&rows))),
            Rows::Narrow(rows) => narrow.push((interners, rows)),
            Rows::Wide(rows) => wide.push((interners, rows)),
            Rows::Hashed(rows) => hashed.push((interners, rows)),
        }
    }
    if !hashed.is_empty() {
        count_shares(hashed, item_type, keys, threads)
    } else if !wide.is_empty() {
        count_shares(wide, item_type, keys, threads)
    } else {
        count_shares(narrow, item_type, keys, threads)
    }
}

fn count_shares<P: Pair>(
    shares: Vec<(Option<Vec<Interner>>, Store<P>)>,
    item_type: LabelType,
    keys: &HashKeys,
    threads: usize,
) -> Result<Counts> {
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
    let counted: Result<Vec<Counts>> = std::thread::scope(|scope| {
        let work = || {
            let (mut table, mut rows) = (Table::default(), Vec::new());
            let mut total = Counts::new(item_type);
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
                total.add(&rows, labels.as_ref(), keys, &mut table);
            }
            Ok(total)
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let crashed = Error::Resource("a counting thread did not finish");
        handles.into_iter().map(|h| h.join().unwrap_or(Err(crashed.clone()))).collect()
    });
    let mut counted = counted?.into_iter();
    let mut total = counted.next().unwrap_or_else(|| Counts::new(item_type));
    for part in counted {
        total.labels.append(&part.labels);
        total.counts.extend(part.counts);
    }
    Ok(total)
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
