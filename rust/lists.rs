//! Users and their distinct items, as one list after the other; and at most `l0` of each, chosen uniformly.
//!
//! Users come in one order of all labels, integers by value and strings by a keyed hash, and a user's items in the order of
//! how many of their rows say so, then in that of labels: nobody else's rows have a say in either, nor has the order in
//! which rows arrive.

use std::collections::HashMap;
use std::ops::Range;

use ahash::RandomState;

use crate::column::{Column, LabelType};
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::interner::Interner;
use crate::labels::Labels;
use crate::parts::in_parts;
use crate::worker::Batch;

const BROKEN: Error = Error::Input("a dictionary index is out of range");

/// The lists of all users: those of user `u` are `items[starts[u]..starts[u + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists {
    /// Where each user's items start, and where the last one's end.
    pub starts: Vec<usize>,
    /// Numbers of items.
    pub items: Vec<u32>,
    /// How many items there are.
    pub size: usize,
}

impl Lists {
    /// Reads all rows; `tick` is called between batches and may stop the work with an error.
    ///
    /// # Errors
    /// The first error of the batches or of `tick`; [`Error::Resource`] beyond 2^32 users or items.
    pub fn read(
        batches: impl Iterator<Item = Result<Batch>>,
        item_type: LabelType,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<(Labels, Self)> {
        let (mut users, mut items) = (Numbers::new()?, Numbers::new()?);
        let is_text = item_type == LabelType::Text;
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for batch in batches {
            let batch = batch?;
            if batch.users.len() != batch.items.len() {
                return Err(Error::Input("the columns are not equally long"));
            }
            let known = users.of_column(&batch.users, false)?;
            let named = items.of_column(&batch.items, is_text)?;
            pairs.extend(known.into_iter().zip(named).filter_map(|(u, i)| u.zip(i)));
            tick()?;
        }
        let mut order: Vec<(u128, u32)> = users.ranks().into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        for (place, (_, user)) in (0..).zip(&order) {
            places[*user as usize] = place;
        }
        for (user, _) in &mut pairs {
            *user = places[*user as usize];
        }
        let lists = Self::of_pairs(&pairs, places.len(), &items.ranks());
        Ok((items.into_labels(item_type), lists))
    }

    /// The lists of pairs of user and item, repeated or not; `ranks` are those of the items in the order of labels.
    fn of_pairs(pairs: &[(u32, u32)], users: usize, ranks: &[u128]) -> Self {
        let mut starts = vec![0_usize; users + 1];
        for &(user, _) in pairs {
            starts[user as usize + 1] += 1;
        }
        for user in 0..users {
            starts[user + 1] += starts[user];
        }
        let mut rows = vec![0_u32; pairs.len()];
        let mut next = starts.clone();
        for &(user, item) in pairs {
            rows[next[user as usize]] = item;
            next[user as usize] += 1;
        }
        let (mut ends, mut items) = (vec![0], Vec::with_capacity(rows.len()));
        let mut counted: Vec<(u32, u32)> = Vec::new();
        for user in 0..users {
            let of_user = &mut rows[starts[user]..starts[user + 1]];
            of_user.sort_unstable();
            counted.clear();
            counted.extend(of_user.chunk_by(u32::eq).map(|same| (same.len() as u32, same[0])));
            counted.sort_unstable_by_key(|&(repeats, item)| {
                (std::cmp::Reverse(repeats), ranks[item as usize])
            });
            items.extend(counted.iter().map(|&(_, item)| item));
            ends.push(items.len());
        }
        Self { starts: ends, items, size: ranks.len() }
    }

    /// How many users there are.
    #[must_use]
    pub fn users(&self) -> usize {
        self.starts.len() - 1
    }

    /// The items of a user.
    #[must_use]
    pub fn of_user(&self, user: usize) -> &[u32] {
        &self.items[self.starts[user]..self.starts[user + 1]]
    }

    /// At most `l0` of each user's items that are not in `found`, chosen uniformly, in their order: by every user anew, or
    /// `together`, by one random order of all items.
    #[must_use]
    pub fn bounded(&self, l0: usize, found: &[bool], key: [u64; 4], together: bool) -> Self {
        let keyed = RandomState::with_seeds(key[0], key[1], key[2], key[3]);
        let users: Vec<u32> = (0..self.users() as u32).collect();
        let parts = in_parts(&users, |users| self.bounded_part(users, l0, found, &keyed, together));
        let mut starts = Vec::with_capacity(self.starts.len());
        let mut end = 0;
        starts.push(end);
        for size in parts.iter().flat_map(|(sizes, _)| sizes) {
            end += size;
            starts.push(end);
        }
        let items = parts.into_iter().map(|(_, items)| items).collect::<Vec<_>>().concat();
        Self { starts, items, size: self.size }
    }

    /// How many items are kept of each of these users, and which.
    fn bounded_part(
        &self,
        users: &[u32],
        l0: usize,
        found: &[bool],
        keyed: &RandomState,
        together: bool,
    ) -> (Vec<usize>, Vec<u32>) {
        let (mut sizes, mut items) = (Vec::with_capacity(users.len()), Vec::new());
        let (mut left, mut kept) = (Vec::new(), Places::default());
        let any = found.contains(&true);
        for &user in users {
            let mut of_user = self.of_user(user as usize);
            if any {
                left.clear();
                let unseen = |item: &&u32| !found.get(**item as usize).is_some_and(|found| *found);
                left.extend(of_user.iter().filter(unseen).copied());
                of_user = &left;
            }
            let first = items.len();
            if of_user.len() <= l0 {
                items.extend_from_slice(of_user);
            } else {
                if together {
                    kept.first(of_user, l0, |item| keyed.hash_one(item));
                } else {
                    kept.choose(of_user.len(), l0, |turn| keyed.hash_one((user, turn)));
                }
                kept.of(of_user, &mut items);
            }
            sizes.push(items.len() - first);
        }
        (sizes, items)
    }
}

/// Some places of a list, one bit for each.
#[derive(Default)]
struct Places {
    bits: Vec<u64>,
    order: Vec<(u64, u32)>,
}

impl Places {
    /// Chooses `keep` places `of` so many, all sets alike (Floyd's algorithm); `draw` gives 64 random bits for each turn.
    fn choose(&mut self, of: usize, keep: usize, draw: impl Fn(u64) -> u64) {
        self.bits.clear();
        self.bits.resize(of.div_ceil(64), 0);
        // The fewer are marked: those that stay or those that go.
        let marked = keep.min(of - keep);
        for last in of - marked..of {
            let place = ((u128::from(draw(last as u64)) * (last as u128 + 1)) >> 64) as usize;
            let place = if self.bits[place / 64] >> (place % 64) & 1 == 0 { place } else { last };
            self.bits[place / 64] |= 1 << (place % 64);
        }
        if marked < keep {
            for word in &mut self.bits {
                *word = !*word;
            }
            if !of.is_multiple_of(64) {
                self.bits[of / 64] &= (1 << (of % 64)) - 1;
            }
        }
    }

    /// Chooses the places of the `keep` items that `rank` puts first.
    fn first(&mut self, list: &[u32], keep: usize, rank: impl Fn(u32) -> u64) {
        self.order.clear();
        self.order.extend(list.iter().zip(0..).map(|(&item, place)| (rank(item), place)));
        self.order.select_nth_unstable(keep - 1);
        self.bits.clear();
        self.bits.resize(list.len().div_ceil(64), 0);
        for &(_, place) in &self.order[..keep] {
            self.bits[place as usize / 64] |= 1 << (place % 64);
        }
    }

    /// What a list has at these places, in its order.
    fn of(&self, list: &[u32], into: &mut Vec<u32>) {
        for (part, &word) in list.chunks(64).zip(&self.bits) {
            let mut word = word;
            while word != 0 {
                into.push(part[word.trailing_zeros() as usize]);
                word &= word - 1;
            }
        }
    }
}

/// Labels by number, in the order of their arrival: integers by value, strings by their bytes.
struct Numbers {
    keys: HashKeys,
    integers: HashMap<u64, u32, RandomState>,
    order: Vec<u64>,
    strings: Interner,
}

impl Numbers {
    fn new() -> Result<Self> {
        let mut seeds = [0; 4];
        for seed in &mut seeds {
            *seed = getrandom::u64().map_err(|_| Error::Entropy)?;
        }
        let state = RandomState::with_seeds(seeds[0], seeds[1], seeds[2], seeds[3]);
        Ok(Self {
            keys: HashKeys::from_os()?,
            integers: HashMap::with_hasher(state),
            order: Vec::new(),
            strings: Interner::default(),
        })
    }

    /// The number of each cell, nothing where it is NULL or should be text and is not.
    fn of_column(&mut self, column: &Column, is_text: bool) -> Result<Vec<Option<u32>>> {
        let rows = 0..column.len();
        let mut null = vec![false; rows.len()];
        column.mark_nulls(rows.clone(), &mut null);
        let Some(values) = column.dictionary() else {
            return self.of_cells(column, rows, &null, is_text);
        };
        let mut indices = Vec::new();
        column.integers(rows, &mut indices);
        let mut missing = vec![false; values.len()];
        // A value that no row has gets no number: it is not in the data.
        let mut used = vec![false; values.len()];
        for (&index, &null) in indices.iter().zip(&null) {
            if !null {
                let index = usize::try_from(index).map_err(|_| BROKEN)?;
                *used.get_mut(index).ok_or(BROKEN)? = true;
            }
        }
        values.mark_nulls(0..values.len(), &mut missing);
        for (missing, used) in missing.iter_mut().zip(used) {
            *missing |= !used;
        }
        let numbers = self.of_cells(values, 0..values.len(), &missing, is_text)?;
        let number = |(index, null): (u64, bool)| if null { None } else { numbers[index as usize] };
        Ok(indices.into_iter().zip(null).map(number).collect())
    }

    fn of_cells(
        &mut self,
        column: &Column,
        rows: Range<usize>,
        null: &[bool],
        is_text: bool,
    ) -> Result<Vec<Option<u32>>> {
        let mut numbers = Vec::with_capacity(rows.len());
        if column.label_type().is_integer() {
            let mut cells = Vec::new();
            column.integers(rows, &mut cells);
            for (cell, &null) in cells.into_iter().zip(null) {
                numbers.push(if null { None } else { Some(self.integer(cell)?) });
            }
            return Ok(numbers);
        }
        let Self { keys, strings, .. } = self;
        let mut place = 0;
        column.bytes(rows, null, |bytes| {
            let is_null = null[place];
            place += 1;
            let hash = keys.string(bytes) as u32;
            numbers.push(if is_null {
                None
            } else {
                strings.intern_valid(hash, bytes, is_text)?
            });
            Ok(())
        })?;
        Ok(numbers)
    }

    fn integer(&mut self, cell: u64) -> Result<u32> {
        let next = u32::try_from(self.order.len())
            .map_err(|_| Error::Resource("there are more than 2^32 users or items"))?;
        let number = *self.integers.entry(cell).or_insert(next);
        if number == next {
            self.order.push(cell);
        }
        Ok(number)
    }

    /// What orders the labels, by nothing but themselves and this run's keys.
    fn ranks(&self) -> Vec<u128> {
        let strings = self.strings.labels();
        let of_strings = (0..strings.len()).map(|row| self.keys.user(strings.get(row)));
        self.order.iter().map(|&key| key.into()).chain(of_strings).collect()
    }

    fn into_labels(self, label_type: LabelType) -> Labels {
        let mut labels = Labels::new(label_type);
        self.order.iter().for_each(|&key| labels.push_integer(key));
        if self.order.is_empty() {
            labels.append_strings(self.strings.labels());
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_lists_of_distinct_items_by_how_often_they_come() {
        let lists = Lists::of_pairs(
            &[(0, 2), (1, 0), (0, 1), (0, 1), (0, 2), (0, 2), (0, 0)],
            3,
            &[9, 8, 7],
        );
        assert_eq!(lists, Lists { starts: vec![0, 3, 4, 4], items: vec![2, 1, 0, 0], size: 3 });
        let ties = Lists::of_pairs(&[(0, 0), (0, 1), (0, 2)], 1, &[5, 1 << 90, 4]);
        assert_eq!(ties.items, vec![2, 0, 1]);
    }

    #[test]
    fn at_most_so_many_are_kept_uniformly_and_none_that_were_found() {
        let pairs: Vec<(u32, u32)> =
            (0..6000).flat_map(|user| (0..4).map(move |item| (user, item))).collect();
        let lists = Lists::of_pairs(&pairs, 6000, &[0, 1, 2, 3]);
        let bounded = lists.bounded(2, &[false, false, true, false], [1, 2, 3, 4], false);
        assert_eq!(bounded.items.len(), 12_000);
        for item in [0, 1, 3] {
            let count = bounded.items.iter().filter(|&&kept| kept == item).count();
            assert!(count.abs_diff(4000) < 250, "{count}");
        }
        assert!(bounded.items.iter().all(|&item| item != 2));
        assert_eq!(lists.bounded(4, &[], [0; 4], false), lists);
    }

    #[test]
    fn users_who_choose_together_choose_by_one_order_of_items() {
        let pairs: Vec<(u32, u32)> =
            (0..300).flat_map(|user| (0..90).map(move |i| (user, (user + i) % 100))).collect();
        let lists = Lists::of_pairs(&pairs, 300, &(0..100).collect::<Vec<_>>());
        let mut seen = vec![0_u32; 100];
        for key in 0..400 {
            let bounded = lists.bounded(9, &[], [key, 1, 2, 3], true);
            let mut kept: Vec<u32> = bounded.items.clone();
            assert_eq!(kept.len(), 300 * 9);
            kept.sort_unstable();
            kept.dedup();
            // Nine for those who have the first nine; the others' next ones are few.
            assert!(kept.len() < 25, "{}", kept.len());
            for &item in bounded.of_user(0) {
                seen[item as usize] += 1;
            }
        }
        assert!(seen[..90].iter().all(|&count| count.abs_diff(40) < 40));
        assert!(seen[90..].iter().all(|&count| count == 0));
    }

    #[test]
    fn every_set_of_places_is_chosen_alike() {
        let keyed = RandomState::with_seeds(1, 2, 3, 4);
        for (of, keep, sets) in [(5, 2, 10), (5, 3, 10), (4, 1, 4), (70, 69, 70), (66, 1, 66)] {
            let (mut seen, mut places) = (HashMap::<Vec<u32>, u32>::new(), Places::default());
            let list: Vec<u32> = (0..of).collect();
            let turns = 2000 * sets;
            for turn in 0..turns {
                let mut kept = Vec::new();
                places.choose(of as usize, keep, |last| keyed.hash_one((turn, last)));
                places.of(&list, &mut kept);
                assert_eq!(kept.len(), keep);
                *seen.entry(kept).or_default() += 1;
            }
            assert_eq!(seen.len() as u32, sets);
            assert!(seen.values().all(|&count| count.abs_diff(2000) < 270), "{seen:?}");
        }
    }
}
