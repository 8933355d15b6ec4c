//! Values of one thread by partition, in chains of pieces of a few large blocks: growing never copies a value.

use bytemuck::Pod;

use crate::block::{BLOCK, Block};
use crate::hash::PARTITIONS;

/// The bytes of a piece. Not a power of two: the ends of all chains would then share a few sets of the cache.
const PIECE: usize = 8_128;
/// Pieces of a block.
const PIECES: usize = BLOCK / PIECE;

/// Values by partition.
pub struct Chains<T> {
    blocks: Vec<Block<T>>,
    pieces: usize,
    free: Vec<usize>,
    /// The pieces of each partition.
    of_partition: Vec<Vec<usize>>,
    /// Where each partition's next value goes, a multiple of a piece where the last one is full. Apart from
    /// the chains, so that the nearest cache holds all of it.
    next: Vec<usize>,
}

impl<T: Pod> Default for Chains<T> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            pieces: 0,
            free: Vec::new(),
            of_partition: vec![Vec::new(); PARTITIONS],
            next: vec![0; PARTITIONS],
        }
    }
}

impl<T: Pod> Chains<T> {
    /// Values of a piece.
    pub const PIECE: usize = PIECE / size_of::<T>();
    /// Values of all pieces of a block.
    const BLOCK: usize = PIECES * Self::PIECE;

    /// Adds values to a partition.
    #[inline]
    pub fn append(&mut self, partition: usize, mut values: &[T]) {
        while !values.is_empty() {
            let mut next = self.next[partition];
            if next.is_multiple_of(Self::PIECE) {
                next = self.extend(partition);
            }
            let (now, later) = values.split_at(values.len().min(Self::PIECE - next % Self::PIECE));
            let start = next % Self::BLOCK;
            let room = &mut self.blocks[next / Self::BLOCK].values_mut()[start..start + now.len()];
            room.copy_from_slice(now);
            self.next[partition] = next + now.len();
            values = later;
        }
    }

    /// Adds `len` values to a partition, side by side, to be written: the first of `most`, which are at most a piece's. A
    /// piece that has no room for so many is given up behind an `end`. Returns the place of the first, and all.
    #[inline]
    pub fn push_room(
        &mut self,
        partition: usize,
        len: usize,
        most: usize,
        end: T,
    ) -> (usize, &mut [T]) {
        let mut next = self.next[partition];
        let used = next % Self::PIECE;
        if used == 0 || used + most > Self::PIECE {
            if used > 0 {
                self.append(partition, &[end]);
            }
            next = self.extend(partition);
        }
        self.next[partition] = next + len;
        let start = next % Self::BLOCK;
        (next, &mut self.blocks[next / Self::BLOCK].values_mut()[start..start + most])
    }

    /// The values from a place to the end of its block.
    #[inline]
    #[must_use]
    pub fn from(&self, place: usize) -> &[T] {
        &self.blocks[place / Self::BLOCK].values()[place % Self::BLOCK..]
    }

    /// Gives a partition another piece; returns where it begins.
    #[cold]
    fn extend(&mut self, partition: usize) -> usize {
        let piece = self.free.pop().unwrap_or_else(|| {
            if self.pieces.is_multiple_of(PIECES) {
                self.blocks.push(Block::new());
            }
            self.pieces += 1;
            self.pieces - 1
        });
        self.of_partition[partition].push(piece);
        piece * Self::PIECE
    }

    /// How many values there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        (0..PARTITIONS).map(|partition| self.partition_len(partition)).sum()
    }

    /// How many values a partition has, those counted in that stand for room given up.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        let last = self.next[partition] % Self::PIECE;
        self.of_partition[partition].len() * Self::PIECE
            - if last == 0 { 0 } else { Self::PIECE - last }
    }

    /// How many bytes of memory they hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.pieces * PIECE
    }

    /// The values of a partition, piece by piece.
    pub fn pieces(&self, partition: usize) -> impl Iterator<Item = &[T]> {
        let len = self.partition_len(partition);
        self.of_partition[partition].iter().enumerate().map(move |(number, &piece)| {
            let start = piece % PIECES * Self::PIECE;
            let values = (len - number * Self::PIECE).min(Self::PIECE);
            &self.blocks[piece / PIECES].values()[start..start + values]
        })
    }

    /// Forgets the values of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.free.append(&mut self.of_partition[partition]);
        self.next[partition] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order_and_pieces_are_used_again() {
        let mut chains = Chains::<u64>::default();
        for value in (0..5000).step_by(4) {
            chains.append(value as usize / 4 % 3, &[value, value + 1, value + 2, value + 3]);
        }
        let values: Vec<u64> = chains.pieces(1).flatten().copied().collect();
        chains.clear(1);
        assert!(values.iter().copied().eq((0..5000).filter(|value| value / 4 % 3 == 1)));
        assert_eq!((chains.partition_len(1), chains.partition_len(0)), (0, 1668));
        let held = chains.held();
        chains.append(9, &values);
        assert_eq!((chains.held(), chains.partition_len(9)), (held, values.len()));
    }

    #[test]
    fn values_side_by_side_stay_so() {
        let mut chains = Chains::<u64>::default();
        let mut places = Vec::new();
        for n in 0..3000_u64 {
            let (len, most) = (1 + n as usize % 61, 61);
            let (place, values) = chains.push_room(5, len, most, u64::MAX);
            values.fill(n);
            places.push((place, len));
        }
        for (&(place, len), n) in places.iter().zip(0..) {
            assert!(chains.from(place)[..len].iter().all(|&value| value == n));
        }
        let of_piece = |piece: &[u64]| {
            piece.iter().copied().take_while(|&value| value != u64::MAX).collect::<Vec<_>>()
        };
        let all: Vec<u64> = chains.pieces(5).flat_map(of_piece).collect();
        assert_eq!(all.len(), places.iter().map(|place| place.1).sum::<usize>());
        assert!(all.is_sorted());
    }
}
