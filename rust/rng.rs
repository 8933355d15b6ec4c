//! The one source of randomness: a `ChaCha20` stream with a fresh key from the operating system.
//!
//! A release opens one `SecureRng`, passes it down as an argument and drops it, key and buffer
//! zeroised. There is no global and no thread-local generator, so that a fork, a snapshot or a
//! second thread can never repeat noise.

use std::convert::Infallible;

use chacha20::ChaCha20Rng;
use rand::rand_core::{SeedableRng, TryCryptoRng, TryRng};

use crate::error::{Error, Result};

/// A cryptographic stream of random bits. It is neither `Clone` nor `Default`.
pub struct SecureRng {
    stream: ChaCha20Rng,
    seeded: bool,
}

impl SecureRng {
    /// A stream with a fresh 256-bit key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] where the operating system refuses.
    pub fn from_os() -> Result<Self> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(|_| Error::Entropy)?;
        let stream = ChaCha20Rng::from_seed(key);
        zeroize::Zeroize::zeroize(&mut key);
        Ok(Self { stream, seeded: false })
    }

    /// A repeatable stream, for tests alone: what it draws protects nobody.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { stream: ChaCha20Rng::seed_from_u64(seed), seeded: true }
    }

    /// Whether the stream is repeatable, so that its draws give no privacy.
    #[must_use]
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }
}

impl TryRng for SecureRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        self.stream.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        self.stream.try_next_u64()
    }

    #[inline]
    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> std::result::Result<(), Infallible> {
        self.stream.try_fill_bytes(destination)
    }
}

impl TryCryptoRng for SecureRng {}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn two_streams_from_the_os_differ() {
        let mut a = SecureRng::from_os().unwrap();
        let mut b = SecureRng::from_os().unwrap();
        assert_ne!([a.next_u64(), a.next_u64()], [b.next_u64(), b.next_u64()]);
        assert!(!a.is_seeded());
    }

    #[test]
    fn a_seeded_stream_repeats_and_says_so() {
        let mut a = SecureRng::seeded(7);
        let mut b = SecureRng::seeded(7);
        assert_eq!(a.next_u64(), b.next_u64());
        assert!(a.is_seeded());
    }
}
