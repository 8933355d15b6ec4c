//! Keyed hashes: which partition an item belongs to, and what stands for a user.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use crate::error::Result;
use crate::random::entropy;
use crate::string_prefix::PrefixedString;

/// The number of partitions is two to this power.
const PARTITION_BITS: u32 = 10;
/// How many partitions there are.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// How many words the keys are made of.
pub(crate) const SEEDS: usize = 25;

#[cfg(test)]
thread_local! {
    /// What the keys of a thread's tests are made of, where two runs need the same.
    pub(crate) static FIXED: std::cell::Cell<Option<[u64; SEEDS]>> = const { std::cell::Cell::new(None) };
}

/// Hash keys of one run, from the operating system: nobody can choose labels that collide.
pub struct HashKeys {
    strings: StringKeys,
    users: [StringKeys; 2],
    integers: [u64; 4],
}

/// The keys of one hash of strings.
struct StringKeys {
    /// Of those that their marks tell from all others.
    short: [u64; 3],
    long: RandomState,
}

impl HashKeys {
    /// Fresh keys.
    ///
    /// # Errors
    /// [`Error::Entropy`] where the operating system gives no randomness.
    pub fn from_os() -> Result<Self> {
        #[allow(unused_mut, reason = "tests fix them")]
        let mut seeds: [u64; SEEDS] = entropy::words()?;
        #[cfg(test)]
        if let Some(fixed) = FIXED.get() {
            seeds = fixed;
        }
        let of = |s: &[u64]| StringKeys {
            short: [s[0], s[1], s[2]],
            long: RandomState::with_seeds(s[3], s[4], s[5], s[6]),
        };
        Ok(Self {
            strings: of(&seeds[..7]),
            users: [of(&seeds[7..14]), of(&seeds[14..21])],
            integers: [seeds[21], seeds[22] | 1, seeds[23], seeds[24] | 1],
        })
    }

    /// A hash of a string.
    #[inline]
    #[must_use]
    pub fn string(&self, string: PrefixedString<'_>) -> u64 {
        self.strings.hash(string)
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
    #[inline]
    #[must_use]
    pub fn user(&self, name: PrefixedString<'_>) -> u128 {
        let low = self.users[0].hash(name);
        let high = self.users[1].hash(name) as u32;
        u128::from(high) << 64 | u128::from(low)
    }

    /// The place of an item, given by its hash, in the order of a user's items: uniform for every user.
    #[must_use]
    pub fn priority(&self, user: u128, item: u64) -> u64 {
        self.users[0].long.hash_one((user, item))
    }

    /// An odd factor.
    #[must_use]
    pub fn factor(&self) -> u32 {
        self.integers[1] as u32
    }

    /// A hash of a row of four bytes, no two of which have one: both factors are odd, and secret.
    #[inline]
    #[must_use]
    pub fn short(&self, row: u32) -> u32 {
        let mixed = row.wrapping_mul(self.integers[1] as u32);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(self.integers[3] as u32);
        mixed ^ mixed >> 16
    }

    /// A hash of a pair of keys, for tables that live in one partition.
    #[inline]
    #[must_use]
    pub fn pair(&self, low: u64, high: u64) -> u64 {
        fold(low ^ self.integers[2], high ^ self.integers[3])
    }
}

impl StringKeys {
    /// The hash of one string, whose length is part of it.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    fn hash(&self, PrefixedString { mark, bytes }: PrefixedString<'_>) -> u64 {
        if !mark.is_whole() {
            let mut hasher = self.long.build_hasher();
            hasher.write(bytes);
            return hasher.finish();
        }
        let ([a, b, c], [key_a, key_b, key_c]) = (mark.words, self.short);
        fold(fold(a ^ key_a, b ^ key_b) ^ c, mark.len as u64 ^ key_c)
    }
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
