//! The distinct pairs that users choose among, dealt out by their users, in memory or in a file. What a user cannot
//! keep of some of their pairs, they cannot keep of all.

use crate::chains::Chains;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS, partition_of};
use crate::spill::Spill;

/// A pair: 64 bits of its user, its place in the order of that user's items, and the user's other 32 bits above its
/// item's number.
type Choice = [u64; 3];

/// How many choices are read from a file at a time.
const AT_ONCE: usize = 1 << 15;

/// The number of a choice's item.
#[inline]
pub(crate) fn item(choice: &Choice) -> usize {
    choice[2] as u32 as usize
}

#[inline]
fn user(choice: &Choice) -> (u64, u64) {
    (choice[0], choice[2] >> 32)
}

/// One thread's choices.
pub(crate) struct Choices {
    l0: usize,
    chains: Chains<Choice>,
    /// How many there are in memory, and may be.
    len: usize,
    room: usize,
    /// What did not fit, and where that of each partition is: the place and how many.
    file: Option<Spill>,
    extents: Vec<Vec<(u64, usize)>>,
}

impl Choices {
    /// The partitions that users are dealt into.
    pub const PARTITIONS: usize = PARTITIONS;

    /// No choices, of which at most `l0` of each user will be kept; at most about so many bytes are held, those that
    /// choosing takes among them, however many choices one user has.
    pub fn new(l0: usize, held: usize) -> Self {
        let room = held / (3 * size_of::<Choice>());
        let extents = vec![Vec::new(); PARTITIONS];
        Self { l0, chains: Chains::default(), len: 0, room, file: None, extents }
    }

    /// Adds a pair: its user's key, its place among the user's items, its item's number.
    #[inline]
    pub fn push(&mut self, user: u128, place: u64, item: u32, keys: &HashKeys) {
        let (low, high) = (user as u64, (user >> 64) as u64);
        let partition = partition_of(keys.pair(low, high));
        self.chains.push(partition, [low, place, high << 32 | u64::from(item)]);
        self.len += 1;
    }

    /// Where there are too many, drops what nobody can keep and, where that is not enough, puts all away.
    pub fn keep_to_memory(&mut self, keys: &HashKeys) -> Result<()> {
        if self.len <= self.room {
            return Ok(());
        }
        let (mut chooser, mut choices) = (Chooser::default(), Vec::new());
        self.len = 0;
        for partition in 0..PARTITIONS {
            choices.extend(self.chains.pieces(partition).flatten());
            chooser.choose(&mut choices, self.l0, keys);
            self.chains.clear(partition);
            self.len += choices.len();
            choices.drain(..).for_each(|choice| self.chains.push(partition, choice));
        }
        if 2 * self.len <= self.room {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Spill::new()?),
        };
        for (partition, extents) in self.extents.iter_mut().enumerate() {
            let len = self.chains.partition_len(partition);
            extents.extend((len > 0).then_some((file.end(), len)));
            for choices in self.chains.pieces(partition) {
                file.push(bytemuck::cast_slice(choices))?;
            }
            self.chains.clear(partition);
        }
        self.len = 0;
        file.flush()
    }

    /// Adds the choices of a partition, with `first` added to their items' numbers. Where there are many, what nobody
    /// can keep is dropped on the way.
    pub fn read(
        &self,
        partition: usize,
        first: u64,
        chooser: &mut Chooser,
        keys: &HashKeys,
        into: &mut Vec<Choice>,
    ) -> Result<()> {
        let moved = |&[low, place, item]: &Choice| [low, place, item + first];
        into.extend(self.chains.pieces(partition).flatten().map(moved));
        let Some(file) = &self.file else { return Ok(()) };
        let mut some = Vec::new();
        let mut choose_at = 2 * AT_ONCE;
        for &(at, len) in &self.extents[partition] {
            for start in (0..len).step_by(AT_ONCE) {
                some.resize((len - start).min(AT_ONCE), [0; 3]);
                let at = at + (start * size_of::<Choice>()) as u64;
                file.read(at, bytemuck::cast_slice_mut(&mut some))?;
                into.extend(some.iter().map(moved));
                if into.len() > choose_at {
                    chooser.choose(into, self.l0, keys);
                    choose_at = 2 * into.len().max(AT_ONCE);
                }
            }
        }
        Ok(())
    }

    /// Whether some have been put away.
    #[cfg(test)]
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }
}

/// Finds the first few choices of each user.
#[derive(Default)]
pub(crate) struct Chooser {
    /// Open addressing: the number of a user plus one, zero where free.
    slots: Vec<u32>,
    users: Vec<(u64, u64)>,
    /// How many choices each user has, and then where the next one goes.
    ends: Vec<usize>,
    /// The number of each choice's user.
    numbers: Vec<u32>,
    by_user: Vec<Choice>,
}

impl Chooser {
    /// Keeps the first `l0` choices of each user, who has all of theirs here.
    pub fn choose(&mut self, choices: &mut Vec<Choice>, l0: usize, keys: &HashKeys) {
        if choices.len() <= l0 {
            return;
        }
        self.number(choices, keys);
        let Self { ends, numbers, by_user, .. } = self;
        if ends.iter().all(|&len| len <= l0) {
            return;
        }
        let mut end = 0;
        for place in &mut *ends {
            end += std::mem::replace(place, end);
        }
        by_user.resize(choices.len(), [0; 3]);
        for (choice, &number) in choices.iter().zip(&*numbers) {
            let place = &mut ends[number as usize];
            by_user[*place] = *choice;
            *place += 1;
        }
        choices.clear();
        let mut start = 0;
        for &mut end in ends {
            let own = &mut by_user[start..end];
            if own.len() > l0 {
                own.select_nth_unstable_by_key(l0, |&[_, place, item]| (place, item));
            }
            choices.extend_from_slice(&own[..own.len().min(l0)]);
            start = end;
        }
    }

    /// Numbers the users of all choices and counts what each has.
    fn number(&mut self, choices: &[Choice], keys: &HashKeys) {
        let Self { slots, users, ends, numbers, .. } = self;
        slots.clear();
        slots.resize((2 * choices.len()).next_power_of_two(), 0);
        users.clear();
        ends.clear();
        numbers.clear();
        let mask = slots.len() - 1;
        for choice in choices {
            let user = user(choice);
            let mut slot = keys.pair(user.0, user.1) as usize & mask;
            while slots[slot] != 0 && users[slots[slot] as usize - 1] != user {
                slot = (slot + 1) & mask;
            }
            if slots[slot] == 0 {
                users.push(user);
                ends.push(0);
                slots[slot] = users.len() as u32;
            }
            let number = slots[slot] - 1;
            ends[number as usize] += 1;
            numbers.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_user_keeps_the_first_of_theirs_wherever_they_wait() {
        let keys = HashKeys::from_os().unwrap();
        let of = |user: u64| (0..user % 13).map(move |n| (n, chance(user * 13 + n)));
        for l0 in [1, 5, 12, usize::MAX] {
            for room in [usize::MAX, 18_000 * size_of::<Choice>(), 0] {
                let mut choices = Choices::new(l0, room);
                for (user, (item, place)) in
                    (0..3000).flat_map(|user| of(user).map(move |c| (user, c)))
                {
                    choices.push(u128::from(user) << 60, place, item as u32, &keys);
                    choices.keep_to_memory(&keys).unwrap();
                }
                assert_eq!(choices.has_file(), room == 0 || room < usize::MAX && l0 > 1);
                let (mut chooser, mut kept) = (Chooser::default(), BTreeSet::new());
                for partition in 0..Choices::PARTITIONS {
                    let mut here = Vec::new();
                    choices.read(partition, 7, &mut chooser, &keys, &mut here).unwrap();
                    chooser.choose(&mut here, l0, &keys);
                    kept.extend(here.iter().map(|choice| (user(choice), choice[1], item(choice))));
                }
                let expected = (0..3000_u64).flat_map(|user| {
                    let key = u128::from(user) << 60;
                    let mut own: Vec<_> =
                        of(user).map(|(item, place)| (place, item as usize + 7)).collect();
                    own.sort_unstable();
                    own.truncate(l0);
                    own.into_iter()
                        .map(move |(place, item)| ((key as u64, (key >> 64) as u64), place, item))
                });
                assert_eq!(kept, expected.collect());
            }
        }
    }

    /// A number that looks like chance.
    fn chance(n: u64) -> u64 {
        (n + 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
            .wrapping_mul(0xD6E8_FEB8_6659_FD93)
    }
}
