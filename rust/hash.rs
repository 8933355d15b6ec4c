//! Keyed hashes of items, which choose partitions, and of users.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;
use chacha20::ChaCha20Legacy;
use chacha20::cipher::{KeyIvInit, StreamCipher};

use crate::error::Result;
use crate::random::entropy;
use crate::string_prefix::PrefixedString;

/// The base-2 logarithm of the number of partitions.
const PARTITION_BITS: u32 = 10;
/// The number of partitions.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// The number of random 64-bit words that make up the keys.
pub(crate) const SEEDS: usize = 25;

#[cfg(test)]
thread_local! {
    /// Fixed keys for tests on this thread, if two runs need the same keys.
    pub(crate) static FIXED: std::cell::Cell<Option<[u64; SEEDS]>> = const { std::cell::Cell::new(None) };
}

/// The hash keys of one count: random bits from the operating system, or bits that a cipher makes of a secret
/// key. Nobody else knows them, so nobody can choose labels that collide.
pub struct HashKeys {
    strings: StringKeys,
    users: [StringKeys; 2],
    integers: [u64; 4],
}

/// The keys of one hash function of strings.
struct StringKeys {
    /// The keys for strings of at most 24 bytes.
    short: [u64; 3],
    /// The keys for longer strings.
    long: RandomState,
}

impl HashKeys {
    /// Draws fresh keys.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no randomness.
    pub fn from_os() -> Result<Self> {
        #[allow(unused_mut, reason = "tests fix them")]
        let mut seeds: [u64; SEEDS] = entropy::words()?;
        #[cfg(test)]
        if let Some(fixed) = FIXED.get() {
            seeds = fixed;
        }
        Ok(Self::of(&seeds))
    }

    /// Expands a secret key, so that two counts with one key make the same choices.
    #[must_use]
    pub fn of_secret(secret: &[u8; 32]) -> Self {
        let mut words = [[0; 8]; SEEDS];
        let mut cipher = ChaCha20Legacy::new(secret.into(), &[0; 8].into());
        cipher.write_keystream(words.as_flattened_mut());
        Self::of(&words.map(u64::from_le_bytes))
    }

    fn of(seeds: &[u64; SEEDS]) -> Self {
        let of = |s: &[u64]| StringKeys {
            short: [s[0], s[1], s[2]],
            long: RandomState::with_seeds(s[3], s[4], s[5], s[6]),
        };
        Self {
            strings: of(&seeds[..7]),
            users: [of(&seeds[7..14]), of(&seeds[14..21])],
            integers: [seeds[21], seeds[22] | 1, seeds[23], seeds[24] | 1],
        }
    }

    /// Hashes a string.
    #[inline]
    #[must_use]
    pub fn string(&self, string: PrefixedString<'_>) -> u64 {
        self.strings.hash(string)
    }

    /// Hashes an integer.
    #[inline]
    #[must_use]
    pub fn integer(&self, key: u64) -> u64 {
        fold(key ^ self.integers[0], self.integers[1])
    }

    /// Returns the partition of an integer.
    #[inline]
    #[must_use]
    pub fn partition(&self, key: u64) -> usize {
        partition_of(self.integer(key))
    }

    /// Returns a 96-bit key of a user. Among 10^9 users, the probability that two users have the same
    /// key is below 10^-10. Equal keys can only lower a count, and one user still changes each count
    /// by at most one. With a contribution bound, a user could change which items another user with
    /// the same key keeps. Two given users have the same key with probability 2^-96.
    #[inline]
    #[must_use]
    pub fn user(&self, name: PrefixedString<'_>) -> u128 {
        let low = self.users[0].hash(name);
        let high = self.users[1].hash(name) as u32;
        u128::from(high) << 64 | u128::from(low)
    }

    /// Returns the priority of an item among a user's items: 64 bits that are random for every user
    /// and item. `item` is the item's hash.
    #[must_use]
    pub fn priority(&self, user: u128, item: u64) -> u64 {
        self.users[0].long.hash_one((user, item))
    }

    /// Returns a secret odd factor.
    #[must_use]
    pub fn factor(&self) -> u32 {
        self.integers[1] as u32
    }

    /// Hashes a four-byte row without collisions. The function is a bijection, because both factors
    /// are odd. Both factors are secret.
    #[inline]
    #[must_use]
    pub fn short(&self, row: u32) -> u32 {
        let mixed = row.wrapping_mul(self.integers[1] as u32);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(self.integers[3] as u32);
        mixed ^ mixed >> 16
    }

    /// Hashes an integer without collisions, as [`Self::short`] does. No integer but zero has the
    /// hash zero.
    #[inline]
    #[must_use]
    pub fn number(&self, key: u64) -> u64 {
        let mixed = key.wrapping_mul(self.integers[1]);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(self.integers[3]);
        mixed ^ mixed >> 32
    }

    /// Hashes a pair of keys, for tables within one partition.
    #[inline]
    #[must_use]
    pub fn pair(&self, low: u64, high: u64) -> u64 {
        fold(low ^ self.integers[2], high ^ self.integers[3])
    }
}

impl StringKeys {
    /// Hashes a string together with its length.
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

/// Returns the partition of a hash.
#[inline]
#[must_use]
pub fn partition_of(hash: u64) -> usize {
    (hash >> (64 - PARTITION_BITS)) as usize
}

/// Returns the XOR of both halves of a product. This is a fast hash of integers if a factor is secret.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
