//! Reproducible noise for the items of a stream at numbered nodes. A node stands for a round or for
//! a range of rounds.
//!
//! A word is 32 random bits. The item's key and the node's number determine the words of a draw. So
//! noise need not be stored. Draws for different items or different nodes use different words. A
//! block is the first 64 bytes of a `ChaCha20` stream. Eight consecutive nodes share a block, which
//! gives each of these nodes two words. If a draw needs more words, it reads a second stream, which
//! belongs to the node alone.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use std::convert::Infallible;

use chacha20::ChaCha20Legacy;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use pulp::{Arch, Simd, WithSimd};
use rand::rand_core::TryRng;
use rand_distr::Distribution;
use zeroize::Zeroize;

use crate::noise::Sampler;
use crate::random::keystream::{LANES, first_blocks};
use crate::random::parallel::{FEW_ROWS, over_parts};

/// The secret key of one item in one stream: a keyed hash of its label.
pub type ItemKey = [u8; 32];
/// The words of one node in a block.
type Words = [u32; 2];

/// The words of a block, by node.
type Shared = [Words; SHARING as usize];

/// The number of nodes that share a block.
pub(crate) const SHARING: u64 = 8;
/// Distinguishes the nonces of blocks from the nonces of nodes.
const SHARED: u64 = 1 << 63;

/// The keys of a stream's items, and each item's words of the latest block.
#[derive(Default)]
pub struct NodeNoise {
    keys: Vec<ItemKey>,
    /// The number of the latest block.
    block: u64,
    /// The words of the latest block, by item.
    words: Vec<Shared>,
}

impl NodeNoise {
    /// Append items.
    pub fn extend(&mut self, keys: &[ItemKey]) {
        self.keys.extend_from_slice(keys);
    }

    /// Return the number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.keys.len()
    }

    /// Return the keys of all items.
    pub(crate) fn keys(&self) -> &[ItemKey] {
        &self.keys
    }

    /// Draw the noise of every item at a node. `node` must be below `2^62`. If the node belongs to
    /// the latest block, its words are not computed again.
    pub fn draw(&mut self, node: u64, noise: &Sampler) -> Vec<i64> {
        let (block, place) = (node / SHARING, (node % SHARING) as usize);
        if self.block != block || self.words.len() < self.keys.len() {
            let made = if self.block == block { self.words.len() } else { 0 };
            self.block = block;
            self.words.resize(self.keys.len(), Shared::default());
            let (keys, words) = (&self.keys[made..], &mut self.words[made..]);
            let parts = words.chunks_mut(FEW_ROWS).zip(keys.chunks(FEW_ROWS));
            over_parts(parts, |(words, keys)| Arch::new().dispatch(Fill { words, keys, block }));
        }
        let mut drawn = vec![0; self.keys.len()];
        let rows = self.keys.chunks(FEW_ROWS).zip(self.words.chunks(FEW_ROWS));
        over_parts(drawn.chunks_mut(FEW_ROWS).zip(rows), |(drawn, (keys, words))| {
            for ((z, key), words) in drawn.iter_mut().zip(keys).zip(words) {
                *z = noise.sample(&mut NodeStream::new(key, node, words[place]));
            }
        });
        drawn
    }

    /// Draw the noise at a node for the items from index `first` on.
    #[must_use]
    pub fn draw_from(&self, first: usize, node: u64, noise: &Sampler) -> Vec<i64> {
        let keys = self.keys.get(first..).unwrap_or_default();
        let (block, place) = (node / SHARING, (node % SHARING) as usize);
        let mut drawn = vec![0; keys.len()];
        let parts = drawn.chunks_mut(FEW_ROWS).zip(keys.chunks(FEW_ROWS));
        over_parts(parts, |(drawn, keys)| {
            for (drawn, keys) in drawn.chunks_mut(LANES).zip(keys.chunks(LANES)) {
                let words = words_of(keys, block);
                for ((z, key), words) in drawn.iter_mut().zip(keys).zip(&words) {
                    *z = noise.sample(&mut NodeStream::new(key, node, words[place]));
                }
            }
        });
        drawn
    }
}

impl Drop for NodeNoise {
    fn drop(&mut self) {
        self.keys.as_flattened_mut().zeroize();
        self.words.as_flattened_mut().as_flattened_mut().zeroize();
    }
}

/// Draw the noise of up to eight items at all nodes of a block.
pub(crate) fn block_of_draws(
    keys: &[ItemKey],
    block: u64,
    noise: &Sampler,
) -> [[i64; LANES]; SHARING as usize] {
    let words = words_of(keys, block);
    let mut drawn = [[0; LANES]; SHARING as usize];
    for (place, row) in drawn.iter_mut().enumerate() {
        let node = block * SHARING + place as u64;
        for ((z, key), words) in row.iter_mut().zip(keys).zip(&words) {
            *z = noise.sample(&mut NodeStream::new(key, node, words[place]));
        }
    }
    drawn
}

/// Return the words of a block for up to eight items.
fn words_of(keys: &[ItemKey], block: u64) -> [Shared; LANES] {
    let mut words = [Shared::default(); LANES];
    Arch::new().dispatch(Fill { words: &mut words[..keys.len()], keys, block });
    words
}

/// Computes the words of a block for each item.
struct Fill<'a> {
    words: &'a mut [Shared],
    keys: &'a [ItemKey],
    block: u64,
}

impl WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled for the vector unit that the caller dispatches to
    fn with_simd<S: Simd>(self, _: S) {
        for (words, group) in self.words.chunks_mut(LANES).zip(self.keys.chunks(LANES)) {
            let mut lanes = [[0; 32]; LANES];
            lanes[..group.len()].copy_from_slice(group);
            let rows = first_blocks(&lanes, self.block | SHARED);
            for (lane, words) in words.iter_mut().enumerate() {
                *words = std::array::from_fn(|n| [rows[2 * n][lane], rows[2 * n + 1][lane]]);
            }
        }
    }
}

fn cipher(key: &ItemKey, nonce: u64) -> ChaCha20Legacy {
    ChaCha20Legacy::new(key.into(), &nonce.to_le_bytes().into())
}

/// The random words of one item at one node: first the node's words of a block, then a stream for
/// the node alone.
struct NodeStream<'a> {
    key: &'a ItemKey,
    node: u64,
    shared: Words,
    /// The number of words of `shared` that have been read.
    read: usize,
    /// The stream for the node alone, once it is needed.
    own: Option<Box<ChaCha20Legacy>>,
}

impl<'a> NodeStream<'a> {
    fn new(key: &'a ItemKey, node: u64, shared: Words) -> Self {
        Self { key, node, shared, read: 0, own: None }
    }

    #[cold]
    fn own_word(&mut self) -> u32 {
        let own = self.own.get_or_insert_with(|| Box::new(cipher(self.key, self.node)));
        let mut word = [0; 4];
        own.write_keystream(&mut word);
        u32::from_le_bytes(word)
    }
}

impl TryRng for NodeStream<'_> {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let Some(&word) = self.shared.get(self.read) else { return Ok(self.own_word()) };
        self.read += 1;
        Ok(word)
    }

    /// Read two words, the low half first.
    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = u64::from(self.try_next_u32()?);
        Ok(low | u64::from(self.try_next_u32()?) << 32)
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        for part in destination.chunks_mut(4) {
            part.copy_from_slice(&self.try_next_u32()?.to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::DiscreteGaussian;

    fn keyed(keys: &[u8]) -> NodeNoise {
        let mut noise = NodeNoise::default();
        noise.extend(&keys.iter().map(|&n| [n; 32]).collect::<Vec<_>>());
        noise
    }

    #[test]
    fn the_noise_of_a_node_does_not_depend_on_the_order_of_draws() {
        for sigma in [3.0, 50.0, 1e5] {
            let law = DiscreteGaussian::new(sigma).unwrap().into();
            let (mut all, mut some) = (keyed(&(0..200).collect::<Vec<_>>()), keyed(&[40, 41]));
            let nodes = [7, 8, 9, 4, 1_000_000, 7];
            let drawn: Vec<_> = nodes.iter().map(|&node| all.draw(node, &law)).collect();
            assert_eq!(drawn[0], drawn[5]);
            for (node, drawn) in nodes.into_iter().zip(&drawn) {
                assert_eq!(some.draw(node, &law), drawn[40..42]);
                assert_eq!(all.draw_from(198, node, &law), drawn[198..]);
            }
            assert_ne!(drawn[0], drawn[1]);
            assert!(drawn[0].iter().any(|&z| z != drawn[0][0]));
        }
    }

    #[test]
    fn added_items_do_not_change_the_noise_of_others() {
        let law = DiscreteGaussian::new(9.0).unwrap().into();
        let mut noise = keyed(&[1, 2, 3]);
        let before = noise.draw(16, &law);
        noise.extend(&[[9; 32]]);
        let after = noise.draw(16, &law);
        assert_eq!(before, after[..3]);
        assert_eq!(noise.draw_from(3, 16, &law), after[3..]);
    }

    #[test]
    fn a_node_reads_its_own_stream_after_the_shared_words() {
        let mut stream = NodeStream::new(&[5; 32], 3, [1, 2]);
        let read: Vec<u32> = (0..6).map(|_| stream.try_next_u32().unwrap_or(0)).collect();
        let mut own = [0; 16];
        cipher(&[5; 32], 3).write_keystream(&mut own);
        let words = own.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        assert_eq!(read, [1, 2].into_iter().chain(words).collect::<Vec<_>>());
    }
}
