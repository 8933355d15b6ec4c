//! Contribution bounding, which keeps at most `l0` items of each user.
//!
//! A keyed hash of the user and the item orders each user's distinct items, and a user keeps the first
//! `l0` items. So the choice is uniform. It depends neither on the order of the rows nor on other
//! users, except if two users' keys collide (see [`HashKeys::user`]). If a list of items is given,
//! users choose among the listed items only.
//!
//! A candidate is an item that a user may keep. A choice is a pair of a user and a candidate.

pub(crate) mod candidates;
pub(crate) mod lister;
pub(crate) mod user_choices;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use ahash::RandomState;

use crate::count::bound::candidates::Candidates;
use crate::count::bound::lister::{Keeper, Lister, Part};
use crate::count::bound::user_choices::{Choice, Choices, Chooser, Offer};
use crate::count::dedup::Items;
use crate::count::merge::Tally;
use crate::count::pairs::Pair;
use crate::count::result::Counts;
use crate::count::spill::Spill;
use crate::count::threads;
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::labels::interner::Interner;
use crate::random::entropy::keyed_hash;

/// Stands for the number of an item that is not listed.
const UNLISTED: u32 = u32::MAX;

/// Reported if there are too many users to list.
pub(crate) const TOO_MANY_USERS: Error = Error::Resource(
    "there are more than 2^32 users, too many to list; count them with l0, or with ConfirmedCounts",
);

const TOO_MANY: Error = Error::Resource(
    "there are more than 2^32 distinct items, too many to bound each user's; count fewer rows at a time",
);

/// A bound on each user's contribution.
#[derive(Debug)]
pub struct Contribution {
    l0: usize,
    /// The listed items as bytes. The bytes of an integer are its 64-bit key in little-endian order.
    /// `None` if all items count.
    only: Option<HashSet<Vec<u8>, RandomState>>,
}

impl Contribution {
    /// Creates a bound of `l0` items for each user; only items in `only` count. Returns `None` if
    /// neither `l0` nor `only` is given. The type of `only` must be `item_type`. If both are integer
    /// types, one may be signed and the other unsigned.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no randomness.
    pub fn new(
        l0: Option<usize>,
        only: Option<&Labels>,
        item_type: LabelType,
    ) -> Result<Option<Self>> {
        let listed = |labels: &Labels| {
            // In the other integer type, keys from 2^63 on stand for different numbers.
            let is_alike = labels.label_type() == item_type || !item_type.is_integer();
            let fits = |bytes: &Vec<u8>| is_alike || bytes.last().is_some_and(|&high| high < 0x80);
            let bytes = |row| labels.with_bytes(row, <[u8]>::to_vec);
            let mut only = HashSet::with_hasher(keyed_hash()?);
            only.extend((0..labels.len()).map(bytes).filter(fits));
            Ok(only)
        };
        let only = only.map(listed).transpose()?;
        Ok((l0.is_some() || only.is_some()).then(|| Self { l0: l0.unwrap_or(usize::MAX), only }))
    }

    /// Returns the most items of a user.
    pub(crate) fn most(&self) -> usize {
        self.l0
    }

    /// Returns whether all items count.
    pub(crate) fn is_of_all(&self) -> bool {
        self.only.is_none()
    }

    /// Creates a bound of `l0` items for each user.
    pub(crate) fn of_each(l0: usize) -> Self {
        Self { l0, only: None }
    }

    /// Returns whether the item with these bytes counts.
    pub(crate) fn counts(&self, bytes: &[u8]) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(bytes))
    }

    /// Adds a new item to `items` if it counts. Returns the item's number, or [`UNLISTED`] if the item
    /// does not count.
    fn number(&self, bytes: &[u8], items: &mut Candidates, keys: &HashKeys) -> Result<u32> {
        if !self.counts(bytes) {
            return Ok(UNLISTED);
        }
        let number = u32::try_from(items.labels.len()).ok().filter(|&number| number < UNLISTED);
        items.push(bytes, keys)?;
        number.ok_or(TOO_MANY)
    }
}

/// One thread's candidates, and its distinct pairs of users and candidates, partitioned by user.
pub(crate) struct Bounded<'a> {
    bound: &'a Contribution,
    counted: Candidates,
    choices: Choices,
    /// For each item of the current partition, its number among the candidates or [`UNLISTED`].
    numbers: Vec<u32>,
}

impl<'a> Bounded<'a> {
    /// Creates an empty tally that spills when it holds about `held` bytes, not including the
    /// candidates.
    pub fn new(item_type: LabelType, bound: &'a Contribution, held: usize) -> Self {
        let (counted, choices) = (Candidates::new(item_type), Choices::new(held));
        Self { bound, counted, choices, numbers: Vec::new() }
    }

    /// Counts the users that keep each item, up to `cap`. Each user keeps the first `l0` items in the
    /// user's order. Leaves out items that nobody keeps.
    pub fn count(
        parts: Vec<Self>,
        item_type: LabelType,
        cap: Option<i64>,
        (threads, keys): (usize, &HashKeys),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Counts> {
        let items = Self::items(&parts)?;
        let counts: Vec<AtomicI64> = (0..items).map(|_| AtomicI64::new(0)).collect();
        let cap = cap.unwrap_or(i64::MAX);
        let add = |item: u64| {
            let count = &counts[item as usize];
            // Skip the write at the cap: threads would contend for the cache line.
            if count.load(Ordering::Relaxed) < cap {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let l0 = parts.first().map_or(usize::MAX, |part| part.bound.l0);
        let sizes = std::iter::repeat_n(1, Choices::PARTITIONS);
        let begin = || Chooser::new(l0);
        let users = AtomicU64::new(0);
        threads::run_jobs(threads, sizes, tick, begin, |chooser, partition, _, _| {
            let spilled = Self::spilled(&parts, partition, chooser, keys)?;
            let offers = Self::offers(&parts, partition, &spilled);
            chooser.choose(&offers, keys, |_, item| add(item));
            users.fetch_add(chooser.users() as u64, Ordering::Relaxed);
            Ok(())
        })?;
        let counts: Vec<i64> =
            counts.into_iter().map(|count| count.into_inner().min(cap)).collect();
        let labels = Self::labels(parts, item_type)?;
        let mut counts = Counts { labels, counts, users: Some(users.into_inner()) };
        counts.drop_zeros()?;
        Ok(counts)
    }

    /// Lists the first `l0` items of each user, by partition of the users, with their files. Lists may take `room`
    /// bytes of memory.
    pub fn list(
        parts: &[Self],
        l0: usize,
        room: usize,
        (threads, keys): (usize, &HashKeys),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<(Vec<Part>, Vec<Spill>)> {
        Self::items(parts)?;
        let used = AtomicUsize::new(0);
        let sizes = (0..Choices::PARTITIONS)
            .map(|partition| parts.iter().map(|part| part.choices.partition_len(partition)).sum());
        let begin = || (Chooser::new(parts[0].bound.l0), Lister::new(l0), Keeper::new(&used, room));
        let work = |state: &mut (Chooser, Lister, Keeper<'_>), partition, _, stop: &AtomicBool| {
            let (chooser, lister, made) = state;
            let spilled = Self::spilled(parts, partition, chooser, keys)?;
            let offers = Self::offers(parts, partition, &spilled);
            made.keep(lister.list(partition, &offers, keys, stop)?)
        };
        let done = threads::run_jobs(threads, sizes, tick, begin, work)?;
        Keeper::all(done.into_iter().map(|(.., made)| made))
    }

    /// Returns the ranks of all candidates, by number over all threads.
    pub fn ranks(parts: &[Self]) -> Vec<u64> {
        parts.iter().flat_map(|part| part.counted.ranks()).collect()
    }

    /// Returns the labels of all candidates, by number over all threads.
    pub fn labels(parts: Vec<Self>, item_type: LabelType) -> Result<Labels> {
        let mut parts = parts.into_iter().map(|part| part.counted.labels);
        let mut labels = parts.next().unwrap_or_else(|| Labels::new(item_type));
        parts.try_for_each(|part| labels.append(&part))?;
        Ok(labels)
    }

    /// Returns the number of candidates of all threads.
    fn items(parts: &[Self]) -> Result<usize> {
        let items = parts.iter().map(|part| part.counted.labels.len()).sum();
        u32::try_from(items).map(|_| items).map_err(|_| TOO_MANY)
    }

    /// Reads the spilled choices of a partition from all threads.
    fn spilled(
        parts: &[Self],
        partition: usize,
        chooser: &mut Chooser,
        keys: &HashKeys,
    ) -> Result<Vec<Vec<Choice>>> {
        let read =
            |Self { counted, choices, .. }: &Self| choices.read(partition, counted, chooser, keys);
        parts.iter().map(read).collect()
    }

    /// Returns the choices of a partition from all threads.
    fn offers<'b>(
        parts: &'b [Self],
        partition: usize,
        spilled: &'b [Vec<Choice>],
    ) -> Vec<Offer<'b>> {
        let mut first = 0;
        let offer = |(Self { counted, choices, .. }, spilled): (&'b Self, &'b Vec<Choice>)| {
            let choices = choices.with(partition, spilled);
            first += counted.labels.len() as u64;
            Offer { items: counted, first: first - counted.labels.len() as u64, choices }
        };
        parts.iter().zip(spilled).map(offer).collect()
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
        let Self { bound, counted, choices, numbers, .. } = self;
        if let Some(strings) = labels.map(Interner::labels)
            && numbers.is_empty()
        {
            for bytes in (0..strings.len()).map(|code| strings.get(code)) {
                numbers.push(bound.number(bytes, counted, keys)?);
            }
        }
        items.reserve(rows.len(), keys);
        for row in rows {
            let here = items.number(row.item(), keys);
            if here == numbers.len() {
                numbers.push(bound.number(&row.item().to_le_bytes(), counted, keys)?);
            }
            if numbers[here] != UNLISTED {
                choices.push(row.user(), numbers[here], keys);
            }
        }
        choices.spill_if_full(counted, bound.l0, keys)
    }

    fn close(&mut self, _: &Items, _: Option<&Interner>) -> Result<()> {
        self.numbers.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::pairs::Wide;

    #[test]
    fn users_keep_at_most_l0_items_chosen_uniformly() {
        let keys = HashKeys::from_os().unwrap();
        let rows = |items: std::ops::Range<u64>| -> Vec<Wide> {
            let of_user = |user: u64| items.clone().filter(move |item| *item < user % 5);
            (0..1000)
                .flat_map(|user| of_user(user).map(move |i| Wide::new(i, user.into())))
                .collect()
        };
        let count = |l0, threads, held, only: Option<&Labels>| {
            let bound = Contribution::new(Some(l0), only, LabelType::Signed).unwrap().unwrap();
            let mut parts = Vec::new();
            let mut items = Items::default();
            for rows in [rows(0..3), rows(3..4)] {
                let mut part = Bounded::new(LabelType::Signed, &bound, held);
                items.reset(None);
                for rows in rows.chunks(100) {
                    part.add(rows, &mut items, None, &keys).unwrap();
                }
                Tally::<Wide>::close(&mut part, &items, None).unwrap();
                parts.push(part);
            }
            assert_eq!(parts[0].choices.has_file(), held < usize::MAX);
            // Items that are not listed are not stored.
            let labels: usize = parts.iter().map(|part| part.counted.labels.len()).sum();
            assert_eq!(labels, if only.is_some() { 1 } else { 4 });
            Bounded::count(parts, LabelType::Signed, None, (threads, &keys), || Ok(())).unwrap()
        };
        assert_eq!(count(9, 2, usize::MAX, None).counts, [800, 600, 400, 200]);
        let two_each = count(2, 3, usize::MAX, None).counts;
        assert_eq!(two_each.iter().sum::<i64>(), 200 + 2 * 600);
        assert_eq!(count(2, 1, 1000, None).counts, two_each);
        assert_eq!(count(9, 1, 1000, None).counts, [800, 600, 400, 200]);
        // All users with one or two items keep the first item. So do 2/3 of the users with three items,
        // and half of the users with four items.
        assert!(two_each[0].abs_diff(400 + 133 + 100) < 60, "{two_each:?}");
        // Item 77 has no users, so the result leaves it out.
        let listed = Labels::Signed(vec![2, 77]);
        let expected =
            Counts { labels: Labels::Signed(vec![2]), counts: vec![400], users: Some(400) };
        assert_eq!(count(1, 2, usize::MAX, Some(&listed)), expected);
    }
}
