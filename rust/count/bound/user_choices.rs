//! The distinct (user, item) pairs among which users choose, partitioned by user, in memory and
//! spilled. A pair outside the first `l0` of some of a user's pairs is also outside the first `l0`
//! of all: it can be dropped.

use hashbrown::HashTable;

use crate::count::bound::candidates::Candidates;
use crate::count::spill::Spill;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS, partition_of};
use crate::memory::prefetch::prefetched;
use crate::memory::write_buffer::WriteBuffer;

/// A pair: 64 bits of the user's key; then its other 32 bits above the item's number.
pub(crate) type Choice = [u64; 2];

/// Pairs read from a file at a time.
const AT_ONCE: usize = 1 << 15;

/// Returns the pair of a user's key and an item's number.
#[inline]
pub(crate) fn choice((low, high): (u64, u64), item: u32) -> Choice {
    [low, high << 32 | u64::from(item)]
}

/// Returns the user's key of a pair.
#[inline]
pub(crate) fn user(choice: &Choice) -> (u64, u64) {
    (choice[0], choice[1] >> 32)
}

/// Returns the item's number of a pair.
#[inline]
pub(crate) fn item(choice: &Choice) -> u32 {
    choice[1] as u32
}

/// One thread's pairs.
pub(crate) struct Choices {
    pairs: WriteBuffer<Choice, 32>,
    /// The number of pairs in memory, and the most allowed.
    len: usize,
    room: usize,
    /// The spilled pairs, and for each partition their positions in the file and numbers.
    file: Option<Spill>,
    extents: Vec<Vec<(u64, usize)>>,
}

impl Choices {
    /// The number of partitions of users.
    pub const PARTITIONS: usize = PARTITIONS;

    /// Creates an empty set that holds about `held` bytes, including the memory for choosing,
    /// however many pairs one user has.
    pub fn new(held: usize) -> Self {
        let room = held / (4 * size_of::<Choice>());
        let extents = vec![Vec::new(); PARTITIONS];
        Self { pairs: WriteBuffer::default(), len: 0, room, file: None, extents }
    }

    /// Adds a pair: its user's key and its item's number.
    #[inline]
    pub fn push(&mut self, user: u128, item: u32, keys: &HashKeys) {
        let user = (user as u64, (user >> 64) as u64);
        self.pairs.push(partition_of(keys.pair(user.0, user.1)), choice(user, item));
        self.len += 1;
    }

    /// If there are too many pairs, drops pairs that no user can keep and, if that is not enough,
    /// spills all.
    pub fn spill_if_full(&mut self, items: &Candidates, l0: usize, keys: &HashKeys) -> Result<()> {
        if self.len <= self.room {
            return Ok(());
        }
        let (mut chooser, mut kept) = (Chooser::new(l0), Vec::new());
        self.len = 0;
        for partition in 0..PARTITIONS {
            let all = self.pairs.pieces(partition).collect();
            let keep = |user, item| kept.push(choice(user, item as u32));
            chooser.choose(&[Offer { items, first: 0, choices: all }], keys, keep);
            self.pairs.clear(partition);
            self.len += kept.len();
            kept.drain(..).for_each(|choice| self.pairs.push(partition, choice));
        }
        if 2 * self.len <= self.room {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Spill::new()?),
        };
        for (partition, extents) in self.extents.iter_mut().enumerate() {
            let len = self.pairs.partition_len(partition);
            extents.extend((len > 0).then_some((file.end(), len)));
            for choices in self.pairs.pieces(partition) {
                file.push(bytemuck::cast_slice(choices))?;
            }
            self.pairs.clear(partition);
        }
        self.len = 0;
        file.flush()
    }

    /// Reads the spilled pairs of a partition. If there are many, drops pairs that no user can keep
    /// on the way.
    pub fn read(
        &self,
        partition: usize,
        items: &Candidates,
        chooser: &mut Chooser,
        keys: &HashKeys,
    ) -> Result<Vec<Choice>> {
        let (mut all, mut some) = (Vec::new(), Vec::new());
        let Some(file) = &self.file else { return Ok(all) };
        let mut choose_at = 2 * AT_ONCE;
        for &(at, len) in &self.extents[partition] {
            for start in (0..len).step_by(AT_ONCE) {
                some.resize((len - start).min(AT_ONCE), [0; 2]);
                let at = at + (start * size_of::<Choice>()) as u64;
                file.read(at, bytemuck::cast_slice_mut(&mut some))?;
                all.extend_from_slice(&some);
                if all.len() > choose_at {
                    let mut kept = Vec::new();
                    let keep = |user, item| kept.push(choice(user, item as u32));
                    chooser.choose(&[Offer { items, first: 0, choices: vec![&all] }], keys, keep);
                    all = kept;
                    choose_at = 2 * all.len().max(AT_ONCE);
                }
            }
        }
        Ok(all)
    }

    /// Returns the number of pairs of a partition, in memory and spilled.
    pub fn partition_len(&self, partition: usize) -> usize {
        let spilled: usize = self.extents[partition].iter().map(|&(_, len)| len).sum();
        self.pairs.partition_len(partition) + spilled
    }

    /// Returns the pairs of a partition in memory, followed by the spilled ones.
    pub fn with<'a>(&'a self, partition: usize, spilled: &'a [Choice]) -> Vec<&'a [Choice]> {
        self.pairs.pieces(partition).chain([spilled]).collect()
    }

    /// Returns whether pairs were spilled.
    #[cfg(test)]
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }
}

/// One thread's pairs in one partition.
pub(crate) struct Offer<'a> {
    /// The thread's items by number. Adding `first` to a number makes it unique over all threads.
    pub items: &'a Candidates,
    pub first: u64,
    pub choices: Vec<&'a [Choice]>,
}

impl Offer<'_> {
    /// Returns the item of each pair.
    pub fn items(&self) -> impl Iterator<Item = u32> {
        self.choices.iter().copied().flatten().map(item)
    }
}

/// Finds the first `l0` pairs of each user.
#[derive(Default)]
pub(crate) struct Chooser {
    l0: usize,
    users: Vec<(u64, u64)>,
    /// The number of each user.
    table: HashTable<u32>,
    /// For each user, the number of pairs, and the next index in `by_user` if there are more than
    /// `l0`.
    lens: Vec<usize>,
    ends: Vec<usize>,
    /// The number of each pair's user.
    numbers: Vec<u32>,
    /// The priority and the item of each pair, grouped by user. Users with at most `l0` pairs are left
    /// out.
    by_user: Vec<(u64, u64)>,
}

impl Chooser {
    /// Creates a chooser that keeps `l0` pairs of each user.
    pub fn new(l0: usize) -> Self {
        Self { l0, ..Self::default() }
    }

    /// Calls `keep` with the user and the item's number over all threads, for the first `l0` pairs
    /// of each user. `offers` must hold all pairs of their users.
    pub fn choose(
        &mut self,
        offers: &[Offer<'_>],
        keys: &HashKeys,
        mut keep: impl FnMut((u64, u64), u64),
    ) {
        self.number(offers, keys);
        let Self { l0, users, lens, ends, numbers, by_user, .. } = self;
        let mut end = 0;
        ends.clear();
        ends.extend(lens.iter().map(|&len| {
            let start = end;
            end += if len > *l0 { len } else { 0 };
            start
        }));
        by_user.resize(end, (0, 0));
        let mut numbers = numbers.iter().map(|&number| number as usize);
        for Offer { items, first, choices } in offers {
            for (choice, number) in choices.iter().copied().flatten().zip(&mut numbers) {
                let (user, item) = (user(choice), item(choice));
                if lens[number] <= *l0 {
                    keep(user, first + u64::from(item));
                    continue;
                }
                let key = u128::from(user.1) << 64 | u128::from(user.0);
                let place = items.place(key, item as usize, keys);
                by_user[ends[number]] = (place, first + u64::from(item));
                ends[number] += 1;
            }
        }
        for ((&user, &len), &end) in users.iter().zip(&*lens).zip(&*ends) {
            if len > *l0 {
                let own = &mut by_user[end - len..end];
                own.select_nth_unstable(*l0);
                own[..*l0].iter().for_each(|&(_, item)| keep(user, item));
            }
        }
    }

    /// Returns the number of users that were numbered last.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Returns the key of a user.
    pub fn key(&self, user: usize) -> u128 {
        let (low, high) = self.users[user];
        u128::from(high) << 64 | u128::from(low)
    }

    /// Returns the number of pairs of a user.
    pub fn len(&self, user: usize) -> usize {
        self.lens[user]
    }

    /// Returns the number of each pair's user.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.numbers.iter().map(|&number| number as usize)
    }

    /// Numbers the users of all pairs and counts the pairs of each.
    pub fn number(&mut self, offers: &[Offer<'_>], keys: &HashKeys) {
        let Self { users, table, lens, numbers, .. } = self;
        table.clear();
        users.clear();
        lens.clear();
        numbers.clear();
        // With the halves of a key swapped, users of one partition share no bits of their hashes.
        let hash_of = |user: (u64, u64)| keys.pair(user.1, user.0);
        let all = offers.iter().flat_map(|offer| &offer.choices).copied();
        for choice in prefetched(all).flatten() {
            let user = user(choice);
            let is = |&number: &u32| users[number as usize] == user;
            let entry = table.entry(hash_of(user), is, |&other| hash_of(users[other as usize]));
            let number = *entry.or_insert(users.len() as u32).get();
            if number as usize == users.len() {
                users.push(user);
                lens.push(0);
            }
            lens[number as usize] += 1;
            numbers.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::labels::LabelType;

    #[test]
    fn each_user_keeps_the_first_pairs_in_memory_or_spilled() {
        let keys = HashKeys::from_os().unwrap();
        let mut items = Candidates::new(LabelType::Text);
        (0..13_u8).for_each(|n| items.push(&[n], &keys).unwrap());
        let of = |user: u64| 0..user % 13;
        for l0 in [1, 5, 12, usize::MAX] {
            for room in [usize::MAX, 24_000 * size_of::<Choice>(), 0] {
                let mut choices = Choices::new(room);
                let pairs = (0..3000).flat_map(|user| of(user).map(move |item| (user, item)));
                for (number, (user, item)) in pairs.enumerate() {
                    choices.push(u128::from(user) << 60, item as u32, &keys);
                    // Spilling after each pair would write 18,000 times to all partitions.
                    if number % 61 == 60 {
                        choices.spill_if_full(&items, l0, &keys).unwrap();
                    }
                }
                assert_eq!(choices.has_file(), room == 0 || room < usize::MAX && l0 > 1);
                let (mut chooser, mut kept) = (Chooser::new(l0), BTreeSet::new());
                for partition in 0..Choices::PARTITIONS {
                    let spilled = choices.read(partition, &items, &mut chooser, &keys).unwrap();
                    let here = choices.with(partition, &spilled);
                    let offer = Offer { items: &items, first: 7, choices: here };
                    chooser.choose(&[offer], &keys, |user, item| {
                        assert!(kept.insert((user, item)));
                    });
                }
                let expected = (0..3000_u64).flat_map(|user| {
                    let key = u128::from(user) << 60;
                    let place = |item: u64| items.place(key, item as usize, &keys);
                    let mut own: Vec<_> = of(user).map(|item| (place(item), item + 7)).collect();
                    own.sort_unstable();
                    own.truncate(l0);
                    own.into_iter().map(move |(_, item)| ((key as u64, (key >> 64) as u64), item))
                });
                assert_eq!(kept, expected.collect());
            }
        }
    }
}
