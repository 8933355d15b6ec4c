//! Lists of every user's distinct items, and uniform samples of at most `l0` items of each user.
//!
//! A label is the integer, text or bytes of a user or an item. The key of an integer is the integer, the key of a user's
//! string is a keyed hash of 96 bits. Users with the same key are one user. Users are ordered by a keyed hash of the key.
//! A user's items are ordered by their number of rows if the caller wants this, and then by the integer or by a keyed
//! hash. Neither order depends on other users' rows or on the order of rows.
//!
//! A user's sample depends on a random key, the user's items, and the hashes of the user and of these items. It does
//! not depend on the numbers of items, because other users' rows change these numbers. So a user's sample does not
//! change if another user is added.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ahash::RandomState;

use crate::count::bound::lister::Items;
use crate::count::spill::Spill;
use crate::error::{Error, Result};
use crate::random::parallel::on_all_cores;

/// No user has more items, because items have numbers of 32 bits.
const MOST: usize = u32::MAX as usize;

/// Items read at a time, about.
const AT_ONCE: usize = 1 << 20;

/// The lists of all users, or a choice from them.
#[derive(Clone)]
pub struct Lists {
    all: Arc<All>,
    bound: Option<Arc<Bound>>,
}

/// All lists. The items of user `u` are those from `starts[u]` to `starts[u + 1]`.
struct All {
    starts: Vec<usize>,
    pieces: Vec<Piece>,
    files: Vec<Spill>,
    /// For each number in a file, the number of the item; empty if they are the same.
    numbers: Vec<u32>,
    hashes: LabelHashes,
}

/// The items of some users.
pub(crate) struct Piece {
    pub users: Range<usize>,
    pub items: Items,
}

/// Hashes of labels. A hash depends only on the label and the keys of one call. An integer is its own hash.
pub struct LabelHashes {
    /// One hash for each user, in the order of the lists.
    pub users: Vec<u64>,
    /// One hash for each item, by number.
    pub items: Vec<u64>,
}

/// A choice of at most `l0` items of each user among the items that are not in `found`.
struct Bound {
    l0: usize,
    found: Vec<bool>,
    keyed: RandomState,
    shared_order: bool,
}

impl Lists {
    /// Create lists from the items of all users in a row. User `u` has `items[starts[u]..starts[u + 1]]`.
    #[must_use]
    pub fn new(starts: Vec<usize>, items: Vec<u32>, hashes: LabelHashes) -> Self {
        let pieces = vec![Piece { users: 0..starts.len() - 1, items: Items::Memory(items) }];
        Self::of_pieces(starts, pieces, (Vec::new(), Vec::new()), hashes)
    }

    /// Create lists of the pieces of all users, in order, with their files and the numbers of items in the files.
    pub(crate) fn of_pieces(
        starts: Vec<usize>,
        pieces: Vec<Piece>,
        (files, numbers): (Vec<Spill>, Vec<u32>),
        hashes: LabelHashes,
    ) -> Self {
        Self { all: Arc::new(All { starts, pieces, files, numbers, hashes }), bound: None }
    }

    /// Return the number of users. A user without a chosen item counts too.
    #[must_use]
    pub fn users(&self) -> usize {
        self.all.starts.len() - 1
    }

    /// Return the number of distinct items.
    #[must_use]
    pub fn size(&self) -> usize {
        self.all.hashes.items.len()
    }

    /// Return the hashes of all users and items.
    #[must_use]
    pub fn hashes(&self) -> &LabelHashes {
        &self.all.hashes
    }

    /// Return whether some lists are in a file.
    #[must_use]
    pub fn has_files(&self) -> bool {
        !self.all.files.is_empty()
    }

    /// Call `work` with each user and the user's items, in order.
    ///
    /// # Errors
    /// [`Error::Resource`] if a temporary file cannot be read.
    pub fn each_user(&self, mut work: impl FnMut(usize, &[u32])) -> Result<()> {
        let mut pieces = &*self.all.pieces;
        while let Some(first) = pieces.first() {
            let (mut end, mut len) = (1, first.items.len());
            while end < pieces.len() && len + pieces[end].items.len() <= AT_ONCE {
                len += pieces[end].items.len();
                end += 1;
            }
            let (group, rest) = pieces.split_at(end);
            pieces = rest;
            for (piece, kept) in
                group.iter().zip(on_all_cores(group.iter().collect(), |one| self.kept(one)))
            {
                let (ends, items) = kept?;
                let mut start = 0;
                for (user, end) in piece.users.clone().zip(ends) {
                    work(user, &items[start..end]);
                    start = end;
                }
            }
        }
        Ok(())
    }

    /// Return the chosen items of the users of a piece, and for each user the end of the user's items.
    fn kept<'a>(&self, piece: &'a Piece) -> Result<(Vec<usize>, Cow<'a, [u32]>)> {
        let All { starts, files, numbers, hashes, .. } = &*self.all;
        let mut items = piece.items.read(files)?;
        if let (false, Cow::Owned(items)) = (numbers.is_empty(), &mut items) {
            for item in items {
                *item = numbers[*item as usize];
            }
        }
        let Range { start, end } = piece.users;
        let first = starts[start];
        let Some(bound) = &self.bound else {
            return Ok((starts[start + 1..=end].iter().map(|end| end - first).collect(), items));
        };
        let mut ends = Vec::with_capacity(end - start);
        let mut chosen = Vec::with_capacity(items.len());
        let (mut left, mut places) = (Vec::new(), Places::default());
        for user in start..end {
            let own = &items[starts[user] - first..starts[user + 1] - first];
            bound.choose((user, own), hashes, (&mut left, &mut places), &mut chosen);
            ends.push(chosen.len());
        }
        Ok((ends, Cow::Owned(chosen)))
    }

    /// Return the number of users of each item, and the number of users who have any item.
    ///
    /// # Errors
    /// The same as those of [`Self::each_user`].
    pub fn counts(&self) -> Result<(Vec<i64>, u64)> {
        let (mut counts, mut users) = (vec![0; self.size()], 0);
        self.each_user(|_, items| {
            for &item in items {
                counts[item as usize] += 1;
            }
            users += u64::from(!items.is_empty());
        })?;
        Ok((counts, users))
    }

    /// Return the number of items of each user.
    ///
    /// # Errors
    /// The same as those of [`Self::each_user`].
    pub fn sizes(&self) -> Result<Vec<i64>> {
        if self.bound.is_none() {
            return Ok(self.all.starts.windows(2).map(|ends| (ends[1] - ends[0]) as i64).collect());
        }
        let mut sizes = Vec::with_capacity(self.users());
        self.each_user(|_, items| sizes.push(items.len() as i64))?;
        Ok(sizes)
    }

    /// Return the lists in memory, with the users in the order of their hashes and with new numbers of items: `order`
    /// has all old numbers in their new order. With `sort_items`, each user's items are sorted by their new numbers.
    ///
    /// # Errors
    /// The same as those of [`Self::each_user`].
    pub fn ordered(&self, order: &[usize], sort_items: bool) -> Result<Self> {
        let hashes = self.hashes();
        let mut numbers = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&old, new)| numbers[old] = new);
        let mut lists = Vec::with_capacity(self.users());
        self.each_user(|user, items| {
            let mut items: Vec<u32> = items.iter().map(|&item| numbers[item as usize]).collect();
            if sort_items {
                items.sort_unstable();
            }
            lists.push((hashes.users[user], items));
        })?;
        lists.sort_by_key(|&(hash, _)| hash);
        let (mut starts, mut items) = (vec![0], Vec::new());
        for (_, own) in &lists {
            items.extend_from_slice(own);
            starts.push(items.len());
        }
        let hashes = LabelHashes {
            users: lists.iter().map(|&(hash, _)| hash).collect(),
            items: order.iter().map(|&old| hashes.items[old]).collect(),
        };
        Ok(Self::new(starts, items, hashes))
    }

    /// Choose uniformly at most `l0` items of each user among the items that are not in `found`. Chosen items keep
    /// their order. With `shared_order`, all users choose the first items in one random order of all items. Otherwise
    /// every user chooses independently. The choice is made again each time the lists are read.
    ///
    /// # Errors
    /// [`Error::Parameter`] if these lists are a choice of some of a user's items.
    pub fn bounded(
        &self,
        l0: usize,
        found: &[bool],
        key: [u64; 4],
        shared_order: bool,
    ) -> Result<Self> {
        let keyed = RandomState::with_seeds(key[0], key[1], key[2], key[3]);
        let mut found = found.to_vec();
        let all = match &self.bound {
            // A choice that only leaves out items can be made together with the next one.
            Some(first) if first.l0 > MOST => {
                found.resize(self.size(), false);
                found.iter_mut().zip(&first.found).for_each(|(one, first)| *one |= *first);
                Arc::clone(&self.all)
            }
            None => Arc::clone(&self.all),
            Some(_) => return Err(Error::Parameter("the items of each user are chosen already")),
        };
        Ok(Self { all, bound: Some(Arc::new(Bound { l0, found, keyed, shared_order })) })
    }
}

impl Bound {
    /// Append the chosen items of a user.
    fn choose(
        &self,
        (user, mut items): (usize, &[u32]),
        hashes: &LabelHashes,
        (left, places): (&mut Vec<u32>, &mut Places),
        into: &mut Vec<u32>,
    ) {
        let Self { l0, found, keyed, shared_order } = self;
        if !found.is_empty() {
            left.clear();
            let unseen = |item: &&u32| !found.get(**item as usize).is_some_and(|found| *found);
            left.extend(items.iter().filter(unseen));
            items = left;
        }
        if items.len() <= *l0 {
            into.extend_from_slice(items);
            return;
        }
        if *shared_order {
            places.first(items, *l0, |item| keyed.hash_one(hashes.items[item as usize]));
        } else {
            let hash = hashes.users[user];
            places.choose(items.len(), *l0, |turn| keyed.hash_one((hash, turn)));
        }
        places.of(items, into);
    }
}

/// A set of places in a list.
#[derive(Default)]
struct Places {
    /// One bit for each place.
    bits: Vec<u64>,
    /// Memory for sorting: the rank of each item, and its place.
    order: Vec<(u64, u32)>,
}

impl Places {
    /// Choose `keep` of `of` places, so that every set is equally probable (Floyd's algorithm). `draw` returns 64
    /// random bits for each number.
    fn choose(&mut self, of: usize, keep: usize, draw: impl Fn(u64) -> u64) {
        self.bits.clear();
        self.bits.resize(of.div_ceil(64), 0);
        // Mark the places to keep or the places to drop, whichever are fewer.
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

    /// Choose the places of the `keep` items with the smallest `rank`.
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

    /// Append the items of the list at the chosen places, in order.
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Lists of labels that are their own hashes.
    fn own_hashes(starts: Vec<usize>, items: Vec<u32>, size: u64) -> Lists {
        let users = (0..starts.len() as u64 - 1).collect();
        Lists::new(starts, items, LabelHashes { users, items: (0..size).collect() })
    }

    fn items_of(lists: &Lists) -> Vec<u32> {
        let mut all = Vec::new();
        lists.each_user(|_, items| all.extend_from_slice(items)).unwrap();
        all
    }

    #[test]
    fn at_most_l0_items_are_chosen_and_none_that_were_found() {
        let starts = (0..=6000).map(|user| 4 * user).collect();
        let lists = own_hashes(starts, [0, 1, 2, 3].repeat(6000), 4);
        let bounded = lists.bounded(2, &[false, false, true, false], [1, 2, 3, 4], false).unwrap();
        let kept = items_of(&bounded);
        assert_eq!(kept.len(), 12_000);
        for item in [0, 1, 3] {
            let count = kept.iter().filter(|&&kept| kept == item).count();
            assert!(count.abs_diff(4000) < 250, "{count}");
        }
        assert!(kept.iter().all(|&item| item != 2));
        assert!(bounded.bounded(2, &[], [5; 4], false).is_err());
        let all = lists.bounded(4, &[], [0; 4], false).unwrap();
        assert_eq!(items_of(&all), items_of(&lists));
        // A choice from lists leaves out what the lists leave out.
        let without = lists.bounded(usize::MAX, &[true, true], [0; 4], false).unwrap();
        assert_eq!(items_of(&without.bounded(2, &[], [1; 4], false).unwrap()), [2, 3].repeat(6000));
    }

    #[test]
    fn users_with_a_shared_order_choose_the_same_items() {
        let starts = (0..=300).map(|user| 90 * user).collect();
        let items = (0..300).flat_map(|user| (0..90).map(move |i| (user + i) % 100)).collect();
        let lists = own_hashes(starts, items, 100);
        let mut seen = vec![0_u32; 100];
        for key in 0..400 {
            let mut kept = items_of(&lists.bounded(9, &[], [key, 1, 2, 3], true).unwrap());
            kept[..9].iter().for_each(|&item| seen[item as usize] += 1);
            assert_eq!(kept.len(), 300 * 9);
            kept.sort_unstable();
            kept.dedup();
            // Users who have the first nine items choose these items. Other users add few items.
            assert!(kept.len() < 25, "{}", kept.len());
        }
        assert!(seen[..90].iter().all(|&count| count.abs_diff(40) < 40));
        assert!(seen[90..].iter().all(|&count| count == 0));
    }

    #[test]
    fn every_set_of_places_has_the_same_probability() {
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
