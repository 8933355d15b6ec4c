//! Users by number, the same for all threads: a table of a fixed size in which a user's place is their number.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::ahead::ask;
use crate::hash::HashKeys;

/// The bytes of memory that most systems hand out at a time.
const PAGE: usize = 1 << 12;

/// The users that have numbers.
pub(crate) struct Users {
    /// 64 bits of each user's key, mixed with a secret; zero where free.
    low: Vec<AtomicU64>,
    /// The other 32 bits, written first; nothing where keys have 64. They say where a search begins, and need not be
    /// compared: of all the users that there may be here, two with one `low` begin within a few places with
    /// probability below 2^-40, and a collision only lowers a count.
    high: Vec<AtomicU32>,
    /// How many places are taken: whoever writes holds the lock.
    taken: Mutex<usize>,
    secret: u64,
}

impl Users {
    /// Numbers have so many bits.
    pub const BITS: u32 = 19;
    const PLACES: usize = 1 << Self::BITS;
    /// The most users that have one.
    const MOST: usize = Self::PLACES / 2;
    /// Where there are so many, there will be more.
    const FEW: usize = 1 << 8;

    /// No users, whose keys have more than 64 bits where they are `hashed`.
    pub fn new(hashed: bool, keys: &HashKeys) -> Self {
        let high = if hashed { Self::PLACES } else { 0 };
        Self {
            low: bytemuck::zeroed_vec(Self::PLACES),
            high: bytemuck::zeroed_vec(high),
            taken: Mutex::new(0),
            secret: keys.integer(0),
        }
    }

    /// The numbers of some users, who may be new; returns how many are, or nothing where there is no room for all.
    pub fn numbers(
        &self,
        users: impl Iterator<Item = u128> + Clone,
        keys: &HashKeys,
        into: &mut Vec<u32>,
    ) -> Option<usize> {
        let home = |user: u128| keys.pair(user as u64, (user >> 64) as u64) as usize % Self::PLACES;
        // A table of a size that is known needs no look at its bounds.
        let places = &self.low[..Self::PLACES];
        into.clear();
        into.extend(users.clone().map(|user| home(user) as u32));
        let (mut new, mut has_room) = (0, true);
        for (n, user) in users.enumerate() {
            ask(places, into, n, |home| home as usize);
            let home = into[n] as usize;
            into[n] = match Self::find(places, self.low(user), home) {
                Ok(place) => place as u32,
                Err(_) => {
                    new += 1;
                    let added = self.add(user, home);
                    has_room &= added.is_some();
                    added.map_or(0, |place| place as u32)
                }
            };
        }
        has_room.then_some(new)
    }

    /// What a place has of a user.
    #[inline]
    fn low(&self, user: u128) -> u64 {
        user as u64 ^ self.secret
    }

    /// The place of the user of whom it has `low`, or the free one where they belong.
    #[inline]
    fn find(places: &[AtomicU64], low: u64, home: usize) -> Result<usize, usize> {
        let mut place = home % Self::PLACES;
        loop {
            match places[place].load(Ordering::Acquire) {
                0 => return Err(place),
                there if there == low => return Ok(place),
                _ => place = (place + 1) % Self::PLACES,
            }
        }
    }

    /// The place of a user who may be new, where there is room.
    #[cold]
    fn add(&self, user: u128, home: usize) -> Option<usize> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let low = self.low(user);
        let place = match Self::find(&self.low[..Self::PLACES], low, home) {
            Ok(place) => return Some(place),
            Err(place) => place,
        };
        if low == 0 || *taken == Self::MOST {
            return None;
        }
        *taken += 1;
        if *taken == Self::FEW {
            // More will come, in any page, and memory is best written to before it is read (see `block::zeros`). Released as
            // below: whoever finds what is there may read `high` next.
            for place in self.low.iter().step_by(PAGE / size_of::<AtomicU64>()) {
                place.store(place.load(Ordering::Relaxed), Ordering::Release);
            }
        }
        if let Some(high) = self.high.get(place) {
            high.store((user >> 64) as u32, Ordering::Relaxed);
        }
        self.low[place].store(low, Ordering::Release);
        Some(place)
    }

    /// The key of the user who has a number.
    pub fn key(&self, number: u32) -> u128 {
        let place = number as usize;
        let low = self.low[place].load(Ordering::Acquire) ^ self.secret;
        let high = self.high.get(place).map_or(0, |high| high.load(Ordering::Relaxed));
        u128::from(high) << 64 | u128::from(low)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn users_have_one_number_on_all_threads() {
        let keys = HashKeys::from_os().unwrap();
        for (hashed, key) in [(true, 1_u128 << 64 | 3), (true, 1 << 76 | 1), (false, 977)] {
            let users = Users::new(hashed, &keys);
            let numbered = || {
                let mut numbers = Vec::new();
                let mut all = BTreeMap::new();
                for start in (0..60_000).step_by(500) {
                    let some = (start..start + 500_u128).map(|n| n % 50_000 * key);
                    assert!(users.numbers(some.clone(), &keys, &mut numbers).is_some());
                    all.extend(some.zip(numbers.iter().copied()));
                }
                all
            };
            let both = std::thread::scope(|scope| {
                let threads = [scope.spawn(numbered), scope.spawn(numbered)];
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(both[0], both[1]);
            assert!(both[0].iter().all(|(&user, &number)| users.key(number) == user));
            let distinct: std::collections::BTreeSet<_> = both[0].values().collect();
            assert_eq!(distinct.len(), 50_000);
        }
    }

    #[test]
    fn there_are_no_more_than_have_room() {
        let keys = HashKeys::from_os().unwrap();
        let users = Users::new(false, &keys);
        let mut numbers = Vec::new();
        let most = Users::MOST as u128;
        assert_eq!(users.numbers(0..most, &keys, &mut numbers), Some(most as usize));
        assert_eq!(users.numbers(0..=most, &keys, &mut numbers), None);
        assert_eq!(users.numbers(0..most, &keys, &mut numbers), Some(0));
    }
}
