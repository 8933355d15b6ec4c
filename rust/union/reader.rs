//! Reads lists of every user's distinct items from batches of rows.
//!
//! Workers partition the rows by item, as for a count. The merge numbers the items of each partition, and partitions
//! the distinct pairs by user. Then the items of one user are together, and are listed.

use std::sync::Arc;

use crate::columns::Batch;
use crate::count::bound::lister::{Items, Part};
use crate::count::bound::{Bounded, Contribution, TOO_MANY_USERS};
use crate::count::by_user::few::{self, Rows};
use crate::count::make_ready;
use crate::count::merge::merge_partitions;
use crate::count::pairs::{Hashed, Pair, Wide};
use crate::count::spill::Spill;
use crate::count::threads::Limits;
use crate::count::worker::Worker;
use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::{LabelType, Labels};
use crate::memory::arena::release_memory;
use crate::union::user_items::{LabelHashes, Lists, Piece};

/// Options of reading lists.
#[derive(Debug, Default, Clone, Copy)]
pub struct ListOptions {
    /// The largest number of items kept for each user, chosen uniformly; `None` for all items.
    pub l0: Option<usize>,
    /// Whether users may have any order, one that depends on the rows of other users. Some weights depend on the order.
    pub any_order: bool,
    /// The memory limit in bytes, not including the batches and the labels; `None` for no limit. Lists beyond half of
    /// it are in an encrypted file.
    pub memory: Option<usize>,
    /// The most threads to use. Values outside 1 to 64 are clamped.
    pub threads: usize,
}

/// Reads the items and the lists of all users. Calls `tick` often; an error of `tick` stops the work.
///
/// # Errors
/// The first error of the batches or of `tick`. [`Error::Input`](crate::error::Error::Input) if the columns of a batch
/// differ in length. [`Error::Resource`](crate::error::Error::Resource) if memory or threads do not suffice, or there
/// are too many users or items for 32-bit numbers. [`Error::Entropy`](crate::error::Error::Entropy) if the operating
/// system gives no randomness.
pub fn lists(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: ListOptions,
    tick: impl FnMut() -> Result<()>,
) -> Result<(Labels, Lists)> {
    let found = if types.0.is_integer() {
        of_rows::<Wide>(batches, types, options, tick)
    } else {
        of_rows::<Hashed>(batches, types, options, tick)
    };
    make_ready(options.memory);
    found
}

fn of_rows<P: Pair>(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    ListOptions { l0, any_order, memory, threads }: ListOptions,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<(Labels, Lists)> {
    // Half of the memory is for rows and pairs, and half for the lists.
    let half = memory.map(|memory| memory / 2);
    let Limits { threads, rows, merge } = Limits::within(threads, half);
    let keys = Arc::new(HashKeys::from_os()?);
    let limits = Limits { threads, rows, merge };
    let (l0, room) = (l0.unwrap_or(usize::MAX), half.unwrap_or(usize::MAX));
    let new = |packed| Worker::<P>::new(Arc::clone(&keys), types, packed, false, (threads, rows));
    let done = match few::read(batches, types.1, (&keys, &limits), any_order, new, &mut tick)? {
        Rows::ByItem(done) => done,
        Rows::ByUser(few) => {
            let has_gaps = few.is_packed() || l0 < usize::MAX;
            let (made, files, items) = few.list(l0, room, (threads, &keys), &mut tick)?;
            let ranks = items.ranks().collect();
            return joined((made, files), items.labels, ranks, has_gaps, tick);
        }
    };
    let rows: Vec<_> = done.into_iter().map(|done| done.rows).collect();
    let bound = Contribution::of_each(l0);
    let new = || Bounded::new(types.1, &bound, merge);
    let parts = merge_partitions(&rows, &keys, (threads, merge), &mut tick, new)?;
    drop(rows);
    release_memory(0);
    let made = Bounded::list(&parts, l0, room, (threads, &keys), &mut tick)?;
    let items = Bounded::ranks(&parts);
    joined(made, Bounded::labels(parts, types.1)?, items, l0 < usize::MAX, tick)
}

/// Joins the lists of all partitions.
fn joined(
    (made, files): (Vec<Part>, Vec<Spill>),
    mut labels: Labels,
    mut items: Vec<u64>,
    has_gaps: bool,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<(Labels, Lists)> {
    if u32::try_from(made.iter().map(|part| part.users.len()).sum::<usize>()).is_err() {
        return Err(TOO_MANY_USERS);
    }
    let mut users = Vec::with_capacity(made.iter().map(|part| part.users.len()).sum());
    let mut starts = Vec::with_capacity(users.capacity() + 1);
    let mut pieces = Vec::with_capacity(made.len());
    let mut end = 0;
    starts.push(end);
    for part in made {
        let first = users.len();
        for (user, len) in part.users {
            users.push(user);
            end += len as usize;
            starts.push(end);
        }
        pieces.push(Piece { users: first..users.len(), items: part.items });
        tick()?;
    }
    let numbers = if has_gaps {
        drop_unused(&mut labels, &mut items, &mut pieces, &files)?
    } else {
        Vec::new()
    };
    let hashes = LabelHashes { users, items };
    Ok((labels, Lists::of_pieces(starts, pieces, (files, numbers), hashes)))
}

/// Drops the items that no user keeps, and numbers the other ones in the same order. Returns the new numbers, for items
/// in files.
fn drop_unused(
    labels: &mut Labels,
    items: &mut Vec<u64>,
    pieces: &mut [Piece],
    files: &[Spill],
) -> Result<Vec<u32>> {
    let mut numbers = vec![0_u32; items.len()];
    for piece in &*pieces {
        piece.items.read(files)?.iter().for_each(|&item| numbers[item as usize] = 1);
    }
    let used: Vec<usize> = (0..numbers.len()).filter(|&item| numbers[item] > 0).collect();
    if used.len() == numbers.len() {
        return Ok(Vec::new());
    }
    used.iter().zip(0..).for_each(|(&item, number)| numbers[item] = number);
    *labels = labels.select(&used)?;
    *items = used.iter().map(|&item| items[item]).collect();
    for piece in pieces {
        if let Items::Memory(items) = &mut piece.items {
            for item in items {
                *item = numbers[*item as usize];
            }
        }
    }
    Ok(if files.is_empty() { Vec::new() } else { numbers })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::hash::FIXED;
    use crate::random::rng::SecureRng;
    use crate::tests::tables::{self, Row, batches, label_type, number};

    /// The items of each user in order, by the user's hash.
    type Found = BTreeMap<u64, Vec<i64>>;

    fn read(rows: &[Row], as_text: bool, options: ListOptions) -> Result<(Labels, Found)> {
        let types = (label_type(as_text), label_type(as_text));
        let (labels, lists) =
            lists(batches(rows, (as_text, as_text), 20_000), types, options, || Ok(()))?;
        let (hashes, mut found) = (lists.hashes(), Found::new());
        assert_eq!((lists.size(), hashes.items.len()), (labels.len(), labels.len()));
        lists.each_user(|user, items| {
            let items = items.iter().map(|&item| number(&labels, item as usize));
            found.insert(hashes.users[user], items.collect());
        })?;
        assert_eq!(found.len(), lists.users());
        Ok((labels, found))
    }

    /// 60,000 distinct pairs of 300 users, each pair twice, and each user's first item three times.
    fn repeated() -> Vec<Row> {
        let once = (0..300).flat_map(|user| (0..200).map(move |item| (user, user * 7 + item * 11)));
        let firsts = (0..300).map(|user| (user, user * 7));
        once.clone().chain(firsts).chain(once).map(row).collect()
    }

    fn row((user, item): (i64, i64)) -> Row {
        (Some(user), Some(item))
    }

    #[test]
    fn each_users_items_are_distinct_and_integers_are_sorted() {
        for as_text in [false, true] {
            for memory in [None, Some(8 << 20)] {
                let options = ListOptions { memory, ..ListOptions::default() };
                let (_, found) = read(&repeated(), as_text, options).unwrap();
                assert_eq!(found.len(), 300);
                for (&user, items) in &found {
                    assert_eq!(items.iter().collect::<BTreeSet<_>>().len(), 200);
                    assert!(as_text || items[0] == 7 * user as i64 && items.is_sorted());
                }
            }
        }
    }

    #[test]
    fn neither_threads_nor_memory_change_the_lists() {
        FIXED
            .set(Some(std::array::from_fn(|n| (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))));
        let mut rng = SecureRng::seeded(3);
        let few = tables::rows(&mut rng, 200_000, 300, 50);
        let many = tables::rows(&mut rng, 300_000, 5000, 200_000);
        for (rows, as_text) in [(&few, false), (&few, true), (&many, false), (&many, true)] {
            let mut sets = BTreeSet::new();
            for (l0, any_order) in [(None, false), (None, true), (Some(3), false), (Some(3), true)]
            {
                let read = |threads, memory| {
                    read(rows, as_text, ListOptions { l0, any_order, memory, threads }).unwrap().1
                };
                let expected = read(1, None);
                let kept: BTreeSet<_> = expected.values().flatten().collect();
                assert!(kept.len() > 40);
                let set = |items: &Vec<i64>| items.iter().copied().collect::<BTreeSet<_>>();
                let all: Vec<_> =
                    expected.iter().map(|(&user, items)| (user, set(items))).collect();
                sets.insert((l0, all));
                for (threads, memory) in [(2, None), (7, Some(448 << 20)), (1, Some(1 << 20))] {
                    assert!(read(threads, memory) == expected, "{threads} threads");
                }
            }
            // The order of users does not decide which items are kept.
            assert_eq!(sets.len(), 2);
        }
        FIXED.set(None);
    }

    #[test]
    fn lists_beyond_the_memory_limit_are_in_a_file() {
        let rows = repeated();
        let has_files = |memory| {
            let types = (label_type(true), label_type(true));
            let options = ListOptions { memory, ..ListOptions::default() };
            lists(batches(&rows, (true, true), 20_000), types, options, || Ok(()))
                .unwrap()
                .1
                .has_files()
        };
        assert_eq!([None, Some(1 << 18)].map(has_files), [false, true]);
    }

    #[test]
    fn at_most_l0_items_are_kept_and_chosen_uniformly() {
        // One user has 400,000 items, and 3,000 users have the same five items.
        let many = (0..400_000).map(|item| (-1, item));
        let others = (0..3000).flat_map(|user| (0..5).map(move |item| (user, -1 - item)));
        let rows: Vec<Row> = many.chain(others).map(row).collect();
        for as_text in [false, true] {
            for any_order in [false, true] {
                let options = ListOptions { l0: Some(2), any_order, memory: None, threads: 2 };
                let (labels, found) = read(&rows, as_text, options).unwrap();
                assert!(found.values().all(|items| items.len() == 2));
                assert_eq!(labels.len(), 7, "items that nobody keeps are dropped");
                let mut counts = BTreeMap::new();
                for &item in found.values().flatten() {
                    *counts.entry(item).or_insert(0_u64) += 1;
                }
                for item in -5..0 {
                    // Binomial(3000, 2/5) has a standard deviation of 27.
                    assert!(counts[&item].abs_diff(1200) < 7 * 27, "{counts:?}");
                }
            }
        }
    }
}
