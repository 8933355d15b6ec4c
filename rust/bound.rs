//! At most `l0` items of each user: a uniform choice among the distinct ones, by keyed hashes of the user and
//! the item, so that it depends on neither the order of the rows nor on anyone else. Where only some items
//! count, the choice is among these.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::column::LabelType;
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::interner::Interner;
use crate::labels::Labels;
use crate::pairs::{Pair, Table, number_items};

/// How many parts users are dealt out to.
const BUCKETS: usize = 128;

/// A distinct pair: its user, its place in the order of that user's items, and its item's number.
type Choice = (u128, u64, usize);

/// What bounds a user's contribution.
#[derive(Debug)]
pub struct Contribution {
    l0: usize,
    /// The items that count, by their bytes, an integer's being those of its key, the lowest first.
    only: Option<HashSet<Vec<u8>>>,
}

impl Contribution {
    /// At most `l0` items of each user, of these alone; nothing where neither is given.
    #[must_use]
    pub fn new(l0: Option<usize>, only: Option<&Labels>) -> Option<Self> {
        let only = only.map(|labels| match labels {
            Labels::Signed(keys) => keys.iter().map(|key| key.to_le_bytes().to_vec()).collect(),
            Labels::Unsigned(keys) => keys.iter().map(|key| key.to_le_bytes().to_vec()).collect(),
            Labels::Text(strings) | Labels::Binary(strings) => {
                (0..strings.len()).map(|row| strings.get(row).to_vec()).collect()
            }
        });
        (l0.is_some() || only.is_some()).then(|| Self { l0: l0.unwrap_or(usize::MAX), only })
    }

    fn counts(&self, bytes: &[u8]) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(bytes))
    }
}

/// One thread's items, and its distinct pairs dealt out by their users.
pub(crate) struct Bounded {
    labels: Labels,
    buckets: Vec<Vec<Choice>>,
    numbers: Vec<u32>,
}

impl Bounded {
    pub fn new(item_type: LabelType) -> Self {
        Self {
            labels: Labels::new(item_type),
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            numbers: Vec::new(),
        }
    }

    /// The items, in the order of their numbers.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Adds one partition's distinct rows.
    pub fn add<P: Pair>(
        &mut self,
        bound: &Contribution,
        rows: &[P],
        interner: Option<&Interner>,
        keys: &HashKeys,
        table: &mut Table,
    ) {
        let first = self.labels.len();
        let codes = interner.map(|interner| interner.labels().len());
        let items = number_items(rows, codes, keys, table, &mut self.numbers);
        // The keyed hash of each item that counts.
        let hashes: Vec<Option<u64>> = if let Some(interner) = interner {
            let strings = interner.labels();
            self.labels.append_strings(strings);
            let bytes = (0..strings.len()).map(|code| strings.get(code));
            bytes.map(|bytes| bound.counts(bytes).then(|| keys.string(bytes))).collect()
        } else {
            for &item in &items {
                self.labels.push_integer(item);
            }
            let hash = |&item: &u64| bound.counts(&item.to_le_bytes()).then(|| keys.integer(item));
            items.iter().map(hash).collect()
        };
        for (row, &number) in rows.iter().zip(&self.numbers) {
            let (user, number) = (row.user(), number as usize);
            if let Some(hash) = hashes[number] {
                let bucket = keys.pair(user as u64, (user >> 64) as u64) as usize % BUCKETS;
                let choice = (user, keys.priority(user, hash), first + number);
                self.buckets[bucket].push(choice);
            }
        }
    }

    /// How many users keep each item, where each keeps the first few of theirs; the items of one part follow
    /// those of the one before.
    pub fn count(parts: &[Self], bound: &Contribution, threads: usize) -> Result<Vec<i64>> {
        let items = parts.iter().map(|part| part.labels.len()).sum();
        let counts: Vec<AtomicI64> = (0..items).map(|_| AtomicI64::new(0)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut pairs: Vec<Choice> = Vec::new();
            loop {
                let bucket = next.fetch_add(1, Ordering::Relaxed);
                if bucket >= BUCKETS {
                    return;
                }
                pairs.clear();
                let mut first = 0;
                for part in parts {
                    let moved = |&(user, place, item): &Choice| (user, place, first + item);
                    pairs.extend(part.buckets[bucket].iter().map(moved));
                    first += part.labels.len();
                }
                pairs.sort_unstable();
                for of_user in pairs.chunk_by(|a, b| a.0 == b.0) {
                    for &(_, _, item) in &of_user[..of_user.len().min(bound.l0)] {
                        counts[item].fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let crashed = Error::Resource("a counting thread did not finish");
            handles.into_iter().try_for_each(|h| h.join().map_err(|_| crashed.clone()))
        })?;
        Ok(counts.into_iter().map(AtomicI64::into_inner).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Narrow;

    #[test]
    fn everyone_keeps_at_most_so_many_and_all_where_they_have_no_more() {
        let keys = HashKeys::from_os().unwrap();
        let rows = |items: std::ops::Range<u64>| -> Vec<Narrow> {
            let of_user = |user: u64| items.clone().filter(move |item| *item < user % 5);
            (0..1000)
                .flat_map(|user| of_user(user).map(move |i| Narrow::new(i, user.into())))
                .collect()
        };
        let mut parts = [Bounded::new(LabelType::Signed), Bounded::new(LabelType::Signed)];
        let bound = |l0| Contribution::new(Some(l0), None).unwrap();
        parts[0].add(&bound(9), &rows(0..3), None, &keys, &mut Table::default());
        parts[1].add(&bound(9), &rows(3..4), None, &keys, &mut Table::default());
        assert_eq!(Bounded::count(&parts, &bound(9), 2), Ok(vec![800, 600, 400, 200]));
        let two_each = Bounded::count(&parts, &bound(2), 3).unwrap();
        assert_eq!(two_each.iter().sum::<i64>(), 200 + 2 * 600);
        // The first item is kept by all who have one or two, by 2/3 of those with three, by half with four.
        assert!(two_each[0].abs_diff(400 + 133 + 100) < 60, "{two_each:?}");
    }
}
