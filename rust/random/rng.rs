//! A `ChaCha20` stream with a fresh key from the operating system. It is the source of randomness of all releases.
//!
//! A release opens one `SecureRng`, passes it down as an argument and drops it. The drop overwrites the key and the
//! buffer with zeros. There is no global and no thread-local generator, so neither a second release nor a second
//! thread can repeat noise. A thread gets its own stream from [`SecureRng::split`]. A `SecureRng` does not detect
//! forks of the process. Python's `Rng` can hold a stream for longer than a release, and detects forks.

use std::convert::Infallible;

use chacha20::ChaCha20Legacy;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use rand::rand_core::{TryCryptoRng, TryRng};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};

/// Bytes of keystream per refill: enough for the widest vector code, and within the L1 cache.
const BUFFER: usize = 4096;

/// A cryptographically secure stream of random bits, read in 32-bit words. The type is neither `Clone` nor `Default`.
pub struct SecureRng {
    /// The variant with a 64-bit counter, which no release exhausts.
    cipher: ChaCha20Legacy,
    buffer: [u8; BUFFER],
    position: usize,
    seeded: bool,
}

impl SecureRng {
    /// Open a stream with a fresh 256-bit key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no randomness.
    pub fn from_os() -> Result<Self> {
        Self::from_source(|key| getrandom::fill(key).map_err(|_| Error::Entropy))
    }

    fn from_source(fill: impl FnOnce(&mut [u8; 32]) -> Result<()>) -> Result<Self> {
        let mut key = [0_u8; 32];
        let filled = fill(&mut key);
        let new = Self::with_key(&key, false);
        key.zeroize();
        filled.map(|()| new)
    }

    /// Open a repeatable stream, only for tests: its draws give no privacy.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self::with_key(&key, true)
    }

    /// Open a repeatable stream that begins with up to 1,024 chosen words, so that tests reach improbable cases.
    ///
    /// # Panics
    /// If there are more than 1,024 words.
    #[must_use]
    pub fn scripted(words: &[u32]) -> Self {
        assert!(words.len() <= BUFFER / 4, "a script has at most 1,024 words");
        let mut new = Self::seeded(0);
        for word in words.iter().rev() {
            new.position -= 4;
            new.buffer[new.position..][..4].copy_from_slice(&word.to_le_bytes());
        }
        new
    }

    /// Return another stream, whose key is the next 256 bits of this stream. The later bits of this stream are
    /// independent of the new stream.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let mut key = [0_u8; 32];
        for part in key.chunks_exact_mut(4) {
            part.copy_from_slice(&self.word().to_le_bytes());
        }
        let new = Self::with_key(&key, self.seeded);
        key.zeroize();
        new
    }

    fn with_key(key: &[u8; 32], seeded: bool) -> Self {
        let cipher = ChaCha20Legacy::new(key.into(), &[0; 8].into());
        Self { cipher, buffer: [0; BUFFER], position: BUFFER, seeded }
    }

    /// Return whether the stream is repeatable, so that its draws give no privacy.
    #[must_use]
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }

    /// Return the buffered bytes that are not yet read.
    pub(crate) fn upcoming(&self) -> &[u8] {
        &self.buffer[self.position..]
    }

    /// Skip buffered bytes. `bytes` must be a multiple of four.
    pub(crate) fn skip(&mut self, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(4) && bytes <= self.upcoming().len());
        self.position += bytes;
    }

    /// Read the next 32 bits.
    #[inline]
    fn word(&mut self) -> u32 {
        if self.position == BUFFER {
            self.refill();
        }
        let word = self.buffer[self.position..].first_chunk().map_or(0, |w| u32::from_le_bytes(*w));
        self.position += 4;
        word
    }

    #[cold]
    fn refill(&mut self) {
        self.cipher.write_keystream(&mut self.buffer);
        self.position = 0;
    }
}

impl Drop for SecureRng {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}

// The cipher overwrites its own key with zeros.
impl ZeroizeOnDrop for SecureRng {}

impl TryRng for SecureRng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        Ok(self.word())
    }

    /// Read two words. The first word is the low half.
    #[inline]
    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        let low = u64::from(self.word());
        Ok(low | u64::from(self.word()) << 32)
    }

    /// Fill `destination` from whole words. The unused bytes of the last word are dropped.
    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> std::result::Result<(), Infallible> {
        let mut left = destination;
        while !left.is_empty() {
            if self.position == BUFFER {
                self.refill();
            }
            let len = left.len().min(self.upcoming().len());
            let (now, later) = left.split_at_mut(len);
            now.copy_from_slice(&self.upcoming()[..len]);
            self.skip(len.next_multiple_of(4));
            left = later;
        }
        Ok(())
    }
}

impl TryCryptoRng for SecureRng {}

/// Return how often a test repeats a draw: `many` times, or a thousandth of it under Miri, which is slow.
#[cfg(test)]
pub(crate) fn repetitions(many: u32) -> u32 {
    if cfg!(miri) { many.div_ceil(1000) } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn two_streams_from_the_os_differ() {
        let mut a = SecureRng::from_os().unwrap();
        let mut b = SecureRng::from_os().unwrap();
        assert_ne!([a.next_u64(), a.next_u64()], [b.next_u64(), b.next_u64()]);
        assert!(!a.is_seeded() && !a.split().is_seeded());
    }

    #[test]
    fn a_stream_without_entropy_is_an_error() {
        let refused = SecureRng::from_source(|_| Err(Error::Entropy));
        assert_eq!(refused.err(), Some(Error::Entropy));
    }

    #[test]
    fn a_seeded_stream_repeats_and_is_marked_as_seeded() {
        let mut a = SecureRng::seeded(7);
        let mut b = SecureRng::seeded(7);
        assert_eq!(a.next_u64(), b.next_u64());
        assert!(a.is_seeded() && a.split().is_seeded());
    }

    #[test]
    fn the_stream_is_chacha20() {
        // The keystream of the all-zero key and nonce (Strombergson, test vectors for the ChaCha family,
        // TC1 with 256 bits and 20 rounds).
        let mut rng = SecureRng::seeded(0);
        let mut start = [0_u8; 16];
        rng.fill_bytes(&mut start);
        let truth = [
            0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86,
            0xbd, 0x28,
        ];
        assert_eq!(start, truth);
    }

    #[test]
    fn a_64_bit_word_is_two_32_bit_words_across_refills() {
        let (mut a, mut b) = (SecureRng::seeded(1), SecureRng::seeded(1));
        assert_eq!(a.next_u32(), b.next_u32());
        for _ in 0..BUFFER {
            let (low, high) = (u64::from(b.next_u32()), u64::from(b.next_u32()));
            assert_eq!(a.next_u64(), low | high << 32);
        }
    }

    #[test]
    fn scripted_words_are_read_first() {
        let mut rng = SecureRng::scripted(&[1, 2, 3]);
        assert_eq!((rng.next_u64(), rng.next_u32()), (1 | 2 << 32, 3));
        assert_eq!(rng.next_u32(), SecureRng::seeded(0).next_u32());
    }

    #[test]
    fn split_streams_differ_from_each_other_and_the_source() {
        let mut source = SecureRng::seeded(3);
        let (mut a, mut b) = (source.split(), source.split());
        let words: Vec<u64> = [&mut source, &mut a, &mut b].map(Rng::next_u64).to_vec();
        assert!(words[0] != words[1] && words[1] != words[2] && words[0] != words[2]);
    }

    #[test]
    fn a_split_stream_is_keyed_by_the_next_32_bytes() {
        let (mut source, mut twin) = (SecureRng::seeded(3), SecureRng::seeded(3));
        let mut key = [0_u8; 32];
        twin.fill_bytes(&mut key);
        assert_eq!(source.split().next_u64(), SecureRng::with_key(&key, true).next_u64());
        assert_eq!(
            source.next_u64(),
            twin.next_u64(),
            "the source draws none of these bytes again"
        );
    }
}
