//! Keyed hashes: which partition an item belongs to, and what stands for a user.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use crate::error::{Error, Result};

/// The number of partitions is two to this power.
const PARTITION_BITS: u32 = 10;
/// How many partitions there are.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

#[cfg(test)]
thread_local! {
    /// What the keys of a thread's tests are made of, where two runs need the same.
    pub(crate) static FIXED: std::cell::Cell<Option<[u64; 16]>> = const { std::cell::Cell::new(None) };
}

/// Hash keys of one run, from the operating system: nobody can choose labels that collide.
pub struct HashKeys {
    strings: RandomState,
    users: [RandomState; 2],
    integers: [u64; 4],
}

impl HashKeys {
    /// Fresh keys.
    ///
    /// # Errors
    /// [`Error::Entropy`] where the operating system gives no randomness.
    pub fn from_os() -> Result<Self> {
        let mut seeds = [0_u64; 16];
        for seed in &mut seeds {
            *seed = getrandom::u64().map_err(|_| Error::Entropy)?;
        }
        #[cfg(test)]
        if let Some(fixed) = FIXED.get() {
            seeds = fixed;
        }
        let state = |s: &[u64]| RandomState::with_seeds(s[0], s[1], s[2], s[3]);
        Ok(Self {
            strings: state(&seeds[..4]),
            users: [state(&seeds[4..8]), state(&seeds[8..12])],
            integers: [seeds[12], seeds[13] | 1, seeds[14], seeds[15] | 1],
        })
    }

    /// A hash of a string.
    #[must_use]
    pub fn string(&self, bytes: &[u8]) -> u64 {
        hash_bytes(&self.strings, bytes)
    }

    /// A hash of an integer.
    #[inline]
    #[must_use]
    pub fn integer(&self, key: u64) -> u64 {
        fold(key ^ self.integers[0], self.integers[1])
    }

    /// The partition of an integer.
    #[inline]
    #[must_use]
    pub fn partition(&self, key: u64) -> usize {
        partition_of(self.integer(key))
    }

    /// 96 bits that stand for a user. Two users in 10^9 collide with probability below 10^-10, and a
    /// collision could only lower a count: no user ever moves one by more than one. Where each keeps only some
    /// of their items, a user who collides (one in 2^96 for every other) could change which ones the other keeps.
    #[must_use]
    pub fn user(&self, bytes: &[u8]) -> u128 {
        let low = hash_bytes(&self.users[0], bytes);
        let high = hash_bytes(&self.users[1], bytes) as u32;
        u128::from(high) << 64 | u128::from(low)
    }

    /// The place of an item, given by its hash, in the order of a user's items: uniform for every user.
    #[must_use]
    pub fn priority(&self, user: u128, item: u64) -> u64 {
        self.users[0].hash_one((user, item))
    }

    /// A hash of a pair of keys, for tables that live in one partition.
    #[inline]
    #[must_use]
    pub fn pair(&self, low: u64, high: u64) -> u64 {
        fold(low ^ self.integers[2], high ^ self.integers[3])
    }
}

/// The hash of one string, whose length is part of it.
#[inline]
fn hash_bytes(state: &RandomState, bytes: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// The partition of a hash.
#[inline]
#[must_use]
pub fn partition_of(hash: u64) -> usize {
    (hash >> (64 - PARTITION_BITS)) as usize
}

/// The two halves of a product together: a fast hash of integers, where a factor is secret.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
