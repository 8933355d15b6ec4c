//! Users and their distinct items, as one list after the other; and at most `l0` of each, chosen uniformly.
//!
//! Users come in one order of all labels, integers by value and strings by a keyed hash, and a user's items in the order of
//! how many of their rows say so, then in that of labels: nobody else's rows have a say in either, nor has the order in
//! which rows arrive.

use ahash::RandomState;

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

    /// At most `l0` of each user's items that are not in `found`, chosen uniformly, in their order.
    #[must_use]
    pub fn bounded(&self, l0: usize, found: &[bool], key: [u64; 4]) -> Self {
        let keyed = RandomState::with_seeds(key[0], key[1], key[2], key[3]);
        let (mut starts, mut items) = (vec![0], Vec::new());
        let mut places: Vec<(u64, u32)> = Vec::new();
        for user in 0..self.users() {
            let first = items.len();
            let left = |item: &&u32| !found.get(**item as usize).is_some_and(|found| *found);
            items.extend(self.of_user(user).iter().filter(left).copied());
            if items.len() - first > l0 {
                let place = |&item: &u32| (keyed.hash_one((user, item)), item);
                places.clear();
                places.extend(items[first..].iter().map(place));
                let (_, &mut last, _) = places.select_nth_unstable(l0 - 1);
                let kept: Vec<u32> =
                    items[first..].iter().copied().filter(|item| place(item) <= last).collect();
                items.truncate(first);
                items.extend(kept);
            }
            starts.push(items.len());
        }
        Self { starts, items, size: self.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_so_many_are_kept_uniformly_and_none_that_were_found() {
        let starts = (0..=6000).map(|user| 4 * user).collect();
        let lists = Lists { starts, items: [0, 1, 2, 3].repeat(6000), size: 4 };
        let bounded = lists.bounded(2, &[false, false, true, false], [1, 2, 3, 4]);
        assert_eq!(bounded.items.len(), 12_000);
        for item in [0, 1, 3] {
            let count = bounded.items.iter().filter(|&&kept| kept == item).count();
            assert!(count.abs_diff(4000) < 250, "{count}");
        }
        assert!(bounded.items.iter().all(|&item| item != 2));
        assert_eq!(lists.bounded(4, &[], [0; 4]), lists);
    }
}
