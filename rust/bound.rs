//! At most `l0` items of each user: a uniform choice among the distinct ones, by keyed hashes of the user and
//! the item, so that it depends on neither the order of the rows nor on anyone else. Where only some items
//! count, the choice is among these.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use crate::choices::{Choices, Chooser, item};
use crate::counts::Counts;
use crate::crew;
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::interner::Interner;
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::mark::Marked;
use crate::merge::Tally;
use crate::pairs::Pair;
use crate::sieve::Items;

/// An item's number among all takes so many bits.
const TOO_MANY: Error = Error::Resource("more than 2^32 distinct items cannot be bounded per user");

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
pub(crate) struct Bounded<'a> {
    bound: &'a Contribution,
    labels: Labels,
    choices: Choices,
    /// The items of the current partition: the hash of each that counts.
    hashes: Vec<Option<u64>>,
}

impl<'a> Bounded<'a> {
    /// Holds at most about so many bytes beside the items.
    pub fn new(item_type: LabelType, bound: &'a Contribution, held: usize) -> Self {
        let (labels, choices) = (Labels::new(item_type), Choices::new(bound.l0, held));
        Self { bound, labels, choices, hashes: Vec::new() }
    }

    /// How many users keep each item, up to `enough`, where each keeps the first few of theirs, of the items that any
    /// user keeps.
    pub fn count(
        parts: Vec<Self>,
        item_type: LabelType,
        enough: Option<i64>,
        (threads, keys): (usize, &HashKeys),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Counts> {
        let items: usize = parts.iter().map(|part| part.labels.len()).sum();
        if u32::try_from(items).is_err() {
            return Err(TOO_MANY);
        }
        let counts: Vec<AtomicI64> = bytemuck::zeroed_vec(items);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let enough = enough.unwrap_or(i64::MAX);
        let work = || {
            let (mut chooser, mut choices) = (Chooser::default(), Vec::new());
            loop {
                let partition = next.fetch_add(1, Ordering::Relaxed);
                if partition >= Choices::PARTITIONS {
                    return Ok(());
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(crew::STOPPED);
                }
                choices.clear();
                let (mut first, mut l0) = (0, usize::MAX);
                for Self { bound, labels, choices: own, .. } in &parts {
                    own.read(partition, first, &mut chooser, keys, &mut choices)?;
                    first += labels.len() as u64;
                    l0 = bound.l0;
                }
                chooser.choose(&mut choices, l0, keys);
                for count in choices.iter().map(|choice| &counts[item(choice)]) {
                    // Threads need not take turns at a count that is large enough.
                    if count.load(Ordering::Relaxed) < enough {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        crew::run((0..threads).map(|_| &work), &stop, tick, |_| Ok(()))?;
        let counts: Vec<i64> =
            counts.into_iter().map(|count| count.into_inner().min(enough)).collect();
        let together = |mut all: Labels, part: Labels| {
            all.append(&part);
            all
        };
        let labels = parts.into_iter().map(|part| part.labels).reduce(together);
        let labels = labels.unwrap_or_else(|| Labels::new(item_type));
        let mut counts = Counts { labels, counts };
        counts.drop_zeros();
        Ok(counts)
    }
}

impl<P: Pair> Tally<P> for Bounded<'_> {
    fn add(
        &mut self,
        rows: &[P],
        items: &mut Items,
        labels: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()> {
        let Self { bound, hashes, choices, .. } = self;
        let first = u32::try_from(self.labels.len()).map_err(|_| TOO_MANY)?;
        if let Some(strings) = labels.map(Interner::labels)
            && hashes.is_empty()
        {
            let bytes = (0..strings.len()).map(|code| strings.get(code));
            let hash = |bytes| keys.string(Marked::new(bytes));
            hashes.extend(bytes.map(|bytes| bound.counts(bytes).then(|| hash(bytes))));
        }
        items.reserve(rows.len(), keys);
        for row in rows {
            let (user, item) = (row.user(), row.item());
            let number = items.number(item, keys);
            if number == hashes.len() {
                hashes.push(bound.counts(&item.to_le_bytes()).then(|| keys.integer(item)));
            }
            if let Some(hash) = hashes[number] {
                let number = first.checked_add(number as u32).ok_or(TOO_MANY)?;
                choices.push(user, keys.priority(user, hash), number, keys);
            }
        }
        choices.keep_to_memory(keys)
    }

    fn close(&mut self, items: &Items, labels: Option<&Interner>) {
        match labels {
            Some(interner) => self.labels.append_strings(interner.labels()),
            None => items.keys().iter().for_each(|&item| self.labels.push_integer(item)),
        }
        self.hashes.clear();
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
        let count = |l0, threads, held, only: Option<&Labels>| {
            let bound = Contribution::new(Some(l0), only).unwrap();
            let mut parts = Vec::new();
            let mut items = Items::default();
            for rows in [rows(0..3), rows(3..4)] {
                let mut part = Bounded::new(LabelType::Signed, &bound, held);
                items.reset(None);
                for rows in rows.chunks(100) {
                    part.add(rows, &mut items, None, &keys).unwrap();
                }
                Tally::<Narrow>::close(&mut part, &items, None);
                parts.push(part);
            }
            assert_eq!(parts[0].choices.has_file(), held < usize::MAX);
            Bounded::count(parts, LabelType::Signed, None, (threads, &keys), || Ok(())).unwrap()
        };
        assert_eq!(count(9, 2, usize::MAX, None).counts, [800, 600, 400, 200]);
        let two_each = count(2, 3, usize::MAX, None).counts;
        assert_eq!(two_each.iter().sum::<i64>(), 200 + 2 * 600);
        assert_eq!(count(2, 1, 1000, None).counts, two_each);
        assert_eq!(count(9, 1, 1000, None).counts, [800, 600, 400, 200]);
        // The first item is kept by all who have one or two, by 2/3 of those with three, by half with four.
        assert!(two_each[0].abs_diff(400 + 133 + 100) < 60, "{two_each:?}");
        // What nobody keeps is not there.
        let listed = Labels::Signed(vec![2, 77]);
        let expected = Counts { labels: Labels::Signed(vec![2]), counts: vec![400] };
        assert_eq!(count(1, 2, usize::MAX, Some(&listed)), expected);
    }
}
