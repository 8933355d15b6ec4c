//! Reads lists of every user's distinct items from batches of rows. It uses a small multiple of the memory that the
//! lists take.
//!
//! A row is a pair of a user and an item. Rows are partitioned by user into buckets, and a bucket is deduplicated
//! when its rows have doubled. With a limit `l0`, every user has a random order of items and keeps the first `l0`
//! items. An item that is not among the user's first `l0` items so far cannot be among the final `l0` items, so it is
//! dropped.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::columns::Batch;
use crate::error::{Error, Result};
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::memory::arena::release_memory;
use crate::union::bucket::{Bucket, Entry};
use crate::union::label_numbers::Numbers;
use crate::union::user_items::{LabelHashes, Lists};

/// Rows read at a time.
const MORSEL: usize = 1 << 13;
/// The number of buckets.
const BUCKETS: usize = 1 << 8;
/// Users sorted or listed between two checks for an interrupt.
const USERS: usize = 1 << 16;
const FULL: Error = Error::Resource(
    "the item lists of all users exceed the memory limit; raise `memory`, or keep fewer items per user with l0",
);

/// Limits on reading a table.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountOptions {
    /// The largest number of items kept for each user, chosen uniformly; `None` for all items.
    pub l0: Option<usize>,
    /// The memory limit in bytes, including the returned lists but not the batches; `None` for no limit.
    pub memory: Option<usize>,
}

/// Read the items and the lists of all users. Calls `tick` often; an error of `tick` stops the work.
///
/// # Errors
/// The first error of the batches or of `tick`. [`Error::Input`] if the columns of a batch differ in length.
/// [`Error::Resource`] if memory does not suffice, or there are too many users or items for 32-bit numbers.
/// [`Error::Entropy`] if the operating system gives no randomness.
pub fn gather(
    batches: impl Iterator<Item = Result<Batch>>,
    item_type: LabelType,
    terms: CountOptions,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<(Labels, Lists)> {
    // Free the memory that counting keeps for its next run; lists do not use it.
    release_memory(0);
    let mut gathering = Gathering::new(terms)?;
    for batch in batches {
        // A source that waits for data sends empty batches, so that `tick` can check for Ctrl-C.
        tick()?;
        gathering.read(&batch?, item_type, &mut tick)?;
    }
    gathering.settle(&mut tick)?;
    let lists = gathering.lists(&mut tick)?;
    Ok((gathering.items.into_labels(item_type), lists))
}

/// The state of reading a table.
struct Gathering {
    terms: CountOptions,
    users: Numbers,
    items: Numbers,
    buckets: Vec<Bucket>,
}

impl Gathering {
    fn new(terms: CountOptions) -> Result<Self> {
        let (users, items) = (Numbers::new()?, Numbers::new()?);
        Ok(Self { terms, users, items, buckets: vec![Bucket::default(); BUCKETS] })
    }

    fn read(
        &mut self,
        batch: &Batch,
        item_type: LabelType,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let len = batch.users.len();
        if len != batch.items.len() {
            return Err(Error::Input("the user and item columns differ in length"));
        }
        self.users.next_batch();
        self.items.next_batch();
        let (mut users, mut items) = (Vec::new(), Vec::new());
        for start in (0..len).step_by(MORSEL) {
            let rows = start..(start + MORSEL).min(len);
            self.users.read(&batch.users, rows.clone(), false, &mut users)?;
            self.items.read(&batch.items, rows, item_type == LabelType::Text, &mut items)?;
            self.add(&users, &items);
            self.make_room(&mut tick)?;
            tick()?;
        }
        Ok(())
    }

    fn add(&mut self, users: &[u32], items: &[u32]) {
        let Self { terms, users: all_users, items: all_items, buckets } = self;
        for (&user, &item) in users.iter().zip(items) {
            if user != Numbers::NONE && item != Numbers::NONE {
                let bucket = &mut buckets[user as usize % BUCKETS];
                if bucket.push(user, item) {
                    bucket.settle(terms.l0, all_users, all_items);
                }
            }
        }
    }

    /// Deduplicate all buckets and release unused capacity.
    fn settle(&mut self, mut tick: impl FnMut() -> Result<()>) -> Result<()> {
        let Self { terms, users, items, buckets } = self;
        for bucket in buckets {
            bucket.settle(terms.l0, users, items);
            bucket.shrink_to_fit();
            tick()?;
        }
        Ok(())
    }

    /// Return the bytes of memory in use, plus the bytes that are needed to make the lists.
    fn bytes_used(&self) -> usize {
        let pairs: usize = self.buckets.iter().map(Bucket::len).sum();
        let to_come = 4 * pairs + 80 * self.users.len() + 24 * self.items.len();
        self.buckets.iter().map(Bucket::bytes_used).sum::<usize>()
            + self.users.bytes_used()
            + self.items.bytes_used()
            + to_come
    }

    /// Free memory if more than the limit is in use. [`Error::Resource`] if more than 3/4 of the limit is then still
    /// in use.
    fn make_room(&mut self, tick: impl FnMut() -> Result<()>) -> Result<()> {
        let room = self.terms.memory.unwrap_or(usize::MAX);
        if self.bytes_used() <= room {
            return Ok(());
        }
        self.settle(tick)?;
        if self.terms.l0.is_some() {
            self.forget_items()?;
        }
        if self.bytes_used() > room / 4 * 3 { Err(FULL) } else { Ok(()) }
    }

    /// Drop the items that no user keeps, if they are at least half of all items.
    fn forget_items(&mut self) -> Result<()> {
        let mut used = vec![false; self.items.len()];
        let entries = || self.buckets.iter().flat_map(|bucket| &bucket.kept);
        entries().for_each(|&(_, item, _)| used[item as usize] = true);
        if 2 * used.iter().filter(|used| **used).count() > used.len() {
            return Ok(());
        }
        let numbers = self.items.keep(&used)?;
        for (_, item, _) in self.buckets.iter_mut().flat_map(|bucket| &mut bucket.kept) {
            *item = numbers[*item as usize];
        }
        // The new numbers have the same order as the old numbers, so the pairs remain sorted.
        Ok(())
    }

    /// Make the lists. Users are ordered by rank. A user's items are ordered by their number of rows and then by
    /// rank. A rank is an integer, or a hash of a string.
    fn lists(&self, mut tick: impl FnMut() -> Result<()>) -> Result<Lists> {
        let entries = |bucket: usize| &self.buckets[bucket].kept;
        let mut firsts = vec![(0, 0); self.users.len()];
        for bucket in 0..BUCKETS {
            for (place, &(user, _, _)) in entries(bucket).iter().enumerate() {
                let (first, len) = &mut firsts[user as usize];
                *first = if *len == 0 { place } else { *first };
                *len += 1;
            }
            tick()?;
        }
        let ranks = self.items.ranks();
        let mut items = Vec::with_capacity((0..BUCKETS).map(|bucket| entries(bucket).len()).sum());
        let mut starts = Vec::with_capacity(firsts.len() + 1);
        starts.push(0);
        let mut own: Vec<Entry> = Vec::new();
        let mut users = Vec::with_capacity(firsts.len());
        for (turn, (rank, user)) in self.users_in_order(&mut tick)?.into_iter().enumerate() {
            users.push(rank as u64);
            let (first, len) = firsts[user as usize];
            own.clear();
            own.extend(&entries(user as usize % BUCKETS)[first..first + len]);
            own.sort_unstable_by_key(|&(_, item, repeats)| {
                (Reverse(repeats), ranks[item as usize])
            });
            items.extend(own.iter().map(|&(_, item, _)| item));
            starts.push(items.len());
            if turn % USERS == 0 {
                tick()?;
            }
        }
        let (size, labels) = (ranks.len(), ranks.into_iter().map(|rank| rank as u64).collect());
        let hashes = Arc::new(LabelHashes { users, items: labels });
        Ok(Lists { starts, items, size, hashes })
    }

    /// Return the users' ranks and numbers, sorted by rank.
    fn users_in_order(&self, mut tick: impl FnMut() -> Result<()>) -> Result<Vec<(u128, u32)>> {
        let mut order: Vec<(u128, u32)> = self.users.ranks().into_iter().zip(0..).collect();
        // Sort longer and longer chunks, so that `tick` is called between short steps.
        let mut run = USERS;
        loop {
            for users in order.chunks_mut(run) {
                users.sort_by_key(|user| user.0);
                tick()?;
            }
            if run >= order.len() {
                return Ok(order);
            }
            run *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::tests::tables::{Row, batches, label_type, number};

    fn gathered(rows: &[Row], as_text: bool, terms: CountOptions) -> Result<(Labels, Lists)> {
        gather(batches(rows, (as_text, as_text), 20_000), label_type(as_text), terms, || Ok(()))
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
    fn too_little_memory_is_a_resource_error() {
        for l0 in [None, Some(100)] {
            let terms = CountOptions { l0, memory: Some(1 << 18) };
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
            let terms = CountOptions { l0: Some(2), memory: Some(6 << 20) };
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
