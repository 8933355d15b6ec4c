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

/// The words of a block for some items, by node and item. A node's words are contiguous, so that a
/// draw reads 8 bytes for each item. It would read 64 bytes if each item's words were contiguous.
type Columns<C> = [C; SHARING as usize];

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
    /// The words of the latest block.
    words: Columns<Vec<Words>>,
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
        let mut drawn = vec![0; self.keys.len()];
        let parts = drawn.chunks_mut(FEW_ROWS);
        self.draw_into(node, noise, parts, |cell: &mut i64, z| *cell = z);
        drawn
    }

    /// Draw the noise of every item at a node as [`Self::draw`] does, and pass it to `put` with the
    /// item's cell. Each part holds the cells of `FEW_ROWS` items.
    pub(crate) fn draw_into<P: IntoIterator<Item = C> + Send, C>(
        &mut self,
        node: u64,
        noise: &Sampler,
        parts: impl Iterator<Item = P>,
        put: impl Fn(C, i64) + Sync,
    ) {
        let (block, place) = (node / SHARING, (node % SHARING) as usize);
        let known = self.words[place].len();
        if self.block != block || known < self.keys.len() {
            let made = if self.block == block { known } else { 0 };
            self.block = block;
            self.words.iter_mut().for_each(|words| words.resize(self.keys.len(), [0; 2]));
            let mut columns = self.words.each_mut().map(|words| words[made..].chunks_mut(FEW_ROWS));
            let parts = self.keys[made..].chunks(FEW_ROWS).map(|keys| {
                (columns.each_mut().map(|chunks| chunks.next().unwrap_or_default()), keys)
            });
            over_parts(parts, |(words, keys)| Arch::new().dispatch(Fill { words, keys, block }));
        }
        let rows = self.keys.chunks(FEW_ROWS).zip(self.words[place].chunks(FEW_ROWS));
        over_parts(parts.zip(rows), |(cells, (keys, words))| {
            for ((cell, key), &words) in cells.into_iter().zip(keys).zip(words) {
                put(cell, noise.sample(&mut NodeStream::new(key, node, words)));
            }
        });
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
                for ((z, key), &words) in drawn.iter_mut().zip(keys).zip(&words[place]) {
                    *z = noise.sample(&mut NodeStream::new(key, node, words));
                }
            }
        });
        drawn
    }
}

impl Drop for NodeNoise {
    fn drop(&mut self) {
        self.keys.as_flattened_mut().zeroize();
        self.words.iter_mut().for_each(|words| words.as_flattened_mut().zeroize());
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
    for ((node, row), words) in (block * SHARING..).zip(&mut drawn).zip(&words) {
        for ((z, key), &words) in row.iter_mut().zip(keys).zip(words) {
            *z = noise.sample(&mut NodeStream::new(key, node, words));
        }
    }
    drawn
}

/// Return the words of a block for up to eight items.
fn words_of(keys: &[ItemKey], block: u64) -> Columns<[Words; LANES]> {
    let mut words = Columns::default();
    let columns = words.each_mut().map(|words: &mut [Words; LANES]| &mut words[..keys.len()]);
    Arch::new().dispatch(Fill { words: columns, keys, block });
    words
}

/// Computes the words of a block for each item.
struct Fill<'a> {
    words: Columns<&'a mut [Words]>,
    keys: &'a [ItemKey],
    block: u64,
}

impl WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled for the vector unit that the caller dispatches to
    fn with_simd<S: Simd>(self, _: S) {
        let mut columns = self.words.map(|words| words.chunks_mut(LANES));
        for group in self.keys.chunks(LANES) {
            let mut lanes = [[0; 32]; LANES];
            lanes[..group.len()].copy_from_slice(group);
            let rows = first_blocks(&lanes, self.block | SHARED);
            for (column, [low, high]) in columns.iter_mut().zip(rows.as_chunks().0) {
                let words = column.next().unwrap_or_default();
                for ((words, &low), &high) in words.iter_mut().zip(low).zip(high) {
                    *words = [low, high];
                }
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
