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

use std::sync::Arc;

use ahash::RandomState;

use crate::random::parallel::in_parts;

/// The lists of all users. The items of user `u` are `items[starts[u]..starts[u + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists {
    /// The start of each user's items, and the end of the last user's.
    pub starts: Vec<usize>,
    /// The items of all users, by number.
    pub items: Vec<u32>,
    /// The number of distinct items.
    pub size: usize,
    /// The hashes of all users and items.
    pub hashes: Arc<LabelHashes>,
}

/// Hashes of labels. A hash depends only on the label and the keys of one call. An integer is its own hash.
#[derive(Debug, PartialEq, Eq)]
pub struct LabelHashes {
    /// One hash for each user, in the order of the lists.
    pub users: Vec<u64>,
    /// One hash for each item, by number.
    pub items: Vec<u64>,
}

impl Lists {
    /// Return the number of users.
    #[must_use]
    pub fn users(&self) -> usize {
        self.starts.len() - 1
    }

    /// Return the items of a user.
    #[must_use]
    pub fn of_user(&self, user: usize) -> &[u32] {
        &self.items[self.starts[user]..self.starts[user + 1]]
    }

    /// Return the number of users of each item, and the number of users who have any item.
    #[must_use]
    pub fn counts(&self) -> (Vec<i64>, u64) {
        let mut counts = vec![0; self.size];
        self.items.iter().for_each(|&item| counts[item as usize] += 1);
        let users = self.starts.windows(2).filter(|ends| ends[0] < ends[1]).count();
        (counts, users as u64)
    }

    /// Return the lists with the users in the order of their hashes, and with new numbers of items: `order` has all old
    /// numbers in their new order.
    #[must_use]
    pub fn ordered(&self, order: &[usize]) -> Self {
        let mut numbers = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&old, new)| numbers[old] = new);
        let mut turns: Vec<usize> = (0..self.users()).collect();
        turns.sort_by_key(|&user| self.hashes.users[user]);
        let (mut starts, mut items) = (vec![0], Vec::with_capacity(self.items.len()));
        for &user in &turns {
            items.extend(self.of_user(user).iter().map(|&item| numbers[item as usize]));
            starts.push(items.len());
        }
        let hashes = Arc::new(LabelHashes {
            users: turns.iter().map(|&user| self.hashes.users[user]).collect(),
            items: order.iter().map(|&old| self.hashes.items[old]).collect(),
        });
        Self { starts, items, size: self.size, hashes }
    }

    /// Choose uniformly at most `l0` items of each user among the items that are not in `found`. Chosen items keep
    /// their order. With `shared_order`, all users choose the first items in one random order of all items. Otherwise
    /// every user chooses independently.
    #[must_use]
    pub fn bounded(&self, l0: usize, found: &[bool], key: [u64; 4], shared_order: bool) -> Self {
        let keyed = RandomState::with_seeds(key[0], key[1], key[2], key[3]);
        let users: Vec<u32> = (0..self.users() as u32).collect();
        let parts =
            in_parts(&users, |users| self.bounded_part(users, l0, found, &keyed, shared_order));
        let mut starts = Vec::with_capacity(self.starts.len());
        let mut end = 0;
        starts.push(end);
        for size in parts.iter().flat_map(|(sizes, _)| sizes) {
            end += size;
            starts.push(end);
        }
        let items = parts.into_iter().map(|(_, items)| items).collect::<Vec<_>>().concat();
        Self { starts, items, size: self.size, hashes: Arc::clone(&self.hashes) }
    }

    /// Return the number of chosen items of each of these users, and the chosen items.
    fn bounded_part(
        &self,
        users: &[u32],
        l0: usize,
        found: &[bool],
        keyed: &RandomState,
        shared_order: bool,
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
                if shared_order {
                    kept.first(of_user, l0, |item| {
                        keyed.hash_one(self.hashes.items[item as usize])
                    });
                } else {
                    let hash = self.hashes.users[user as usize];
                    kept.choose(of_user.len(), l0, |turn| keyed.hash_one((hash, turn)));
                }
                kept.of(of_user, &mut items);
            }
            sizes.push(items.len() - first);
        }
        (sizes, items)
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

    /// Labels that are their own hashes.
    fn own_hashes(users: u64, items: u64) -> Arc<LabelHashes> {
        Arc::new(LabelHashes { users: (0..users).collect(), items: (0..items).collect() })
    }

    #[test]
    fn at_most_l0_items_are_chosen_and_none_that_were_found() {
        let starts = (0..=6000).map(|user| 4 * user).collect();
        let lists = Lists {
            starts,
            items: [0, 1, 2, 3].repeat(6000),
            size: 4,
            hashes: own_hashes(6000, 4),
        };
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
    fn users_with_a_shared_order_choose_the_same_items() {
        let starts = (0..=300).map(|user| 90 * user).collect();
        let items = (0..300).flat_map(|user| (0..90).map(move |i| (user + i) % 100)).collect();
        let lists = Lists { starts, items, size: 100, hashes: own_hashes(300, 100) };
        let mut seen = vec![0_u32; 100];
        for key in 0..400 {
            let bounded = lists.bounded(9, &[], [key, 1, 2, 3], true);
            let mut kept: Vec<u32> = bounded.items.clone();
            assert_eq!(kept.len(), 300 * 9);
            kept.sort_unstable();
            kept.dedup();
            // Users who have the first nine items choose these items. Other users add few items.
            assert!(kept.len() < 25, "{}", kept.len());
            for &item in bounded.of_user(0) {
                seen[item as usize] += 1;
            }
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
