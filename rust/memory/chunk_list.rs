//! Append-only lists of values by partition.
//!
//! A list is a chain of pieces. A piece is 15 lines of values in a large block of memory. A list grows
//! by a piece, so it never copies a value.

use bytemuck::Pod;

use crate::hash::PARTITIONS;
use crate::memory::arena::{BLOCK, Block};
use crate::memory::prefetch::prefetch_next;

/// Lines in a piece. The number is not a power of two, because the ends of all lists would then share
/// a few cache sets. The least memory of a thread (32 MiB) holds three pieces of 512-byte lines for
/// each partition.
const LINES: usize = 15;

/// Values by partition, added in lines of `LINE` values.
pub struct ChunkList<T, const LINE: usize> {
    blocks: Vec<Block<T>>,
    /// The number of pieces in all blocks.
    pieces: usize,
    /// The numbers of unused pieces.
    free: Vec<usize>,
    /// The numbers of the pieces of each partition.
    of_partition: Vec<Vec<usize>>,
    /// The position of each partition's next line; a multiple of a piece if the last piece is full.
    /// These positions are not stored with the pieces, so that all positions fit into the L1 cache.
    next: Vec<usize>,
}

impl<T: Pod, const LINE: usize> Default for ChunkList<T, LINE> {
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

impl<T: Pod, const LINE: usize> ChunkList<T, LINE> {
    /// Values in a piece.
    const PIECE: usize = LINES * LINE;
    /// Pieces in a block.
    const PIECES: usize = BLOCK / (Self::PIECE * size_of::<T>());
    /// Values in a block.
    const BLOCK: usize = Self::PIECES * Self::PIECE;

    /// Adds a line to a partition.
    #[inline]
    pub fn append(&mut self, partition: usize, line: &[T; LINE]) {
        let place = self.reserve(partition);
        self.write(place, line);
    }

    /// Reserves a line of a partition, and returns the line's position.
    #[inline]
    pub fn reserve(&mut self, partition: usize) -> usize {
        let mut next = self.next[partition];
        if next.is_multiple_of(Self::PIECE) {
            next = self.extend(partition);
        }
        self.next[partition] = next + LINE;
        next
    }

    /// Writes a reserved line. Prefetches the memory behind the line, which usually becomes the
    /// partition's next line.
    #[inline]
    pub fn write(&mut self, place: usize, line: &[T; LINE]) {
        let (start, end) = (place % Self::BLOCK, place % Self::BLOCK + LINE);
        let values = self.blocks[place / Self::BLOCK].values_mut();
        values[start..end].copy_from_slice(line);
        prefetch_next(values, &(start..end));
    }

    /// Returns the values from a position to the end of the position's block.
    #[inline]
    #[must_use]
    pub fn from(&self, place: usize) -> &[T] {
        &self.blocks[place / Self::BLOCK].values()[place % Self::BLOCK..]
    }

    /// Adds a piece to a partition, and returns the piece's position.
    #[cold]
    fn extend(&mut self, partition: usize) -> usize {
        let piece = self.free.pop().unwrap_or_else(|| {
            if self.pieces.is_multiple_of(Self::PIECES) {
                self.blocks.push(Block::any());
            }
            self.pieces += 1;
            self.pieces - 1
        });
        self.of_partition[partition].push(piece);
        piece * Self::PIECE
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        (0..PARTITIONS).map(|partition| self.partition_len(partition)).sum()
    }

    /// Returns the number of values of a partition, including reserved ones.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        let last = self.next[partition] % Self::PIECE;
        self.of_partition[partition].len() * Self::PIECE
            - if last == 0 { 0 } else { Self::PIECE - last }
    }

    /// Returns the bytes of memory that the values hold.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.pieces * Self::PIECE * size_of::<T>()
    }

    /// Iterates over the values of a partition, piece by piece.
    pub fn pieces(&self, partition: usize) -> impl Iterator<Item = &[T]> + Clone {
        let len = self.partition_len(partition);
        self.of_partition[partition].iter().enumerate().map(move |(number, &piece)| {
            let start = piece % Self::PIECES * Self::PIECE;
            let values = (len - number * Self::PIECE).min(Self::PIECE);
            &self.blocks[piece / Self::PIECES].values()[start..start + values]
        })
    }

    /// Removes the values of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.free.append(&mut self.of_partition[partition]);
        self.next[partition] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order_and_cleared_pieces_are_reused() {
        let mut chains = ChunkList::<u64, 4>::default();
        for value in (0..5000).step_by(4) {
            chains.append(value as usize / 4 % 3, &[value, value + 1, value + 2, value + 3]);
        }
        let values: Vec<u64> = chains.pieces(1).flatten().copied().collect();
        chains.clear(1);
        assert!(values.iter().copied().eq((0..5000).filter(|value| value / 4 % 3 == 1)));
        assert_eq!((chains.partition_len(1), chains.partition_len(0)), (0, 1668));
        let held = chains.bytes_used();
        values.as_chunks().0.iter().for_each(|values: &[u64; 4]| chains.append(9, values));
        assert_eq!((chains.bytes_used(), chains.partition_len(9)), (held, values.len()));
    }

    #[test]
    fn reserved_lines_can_be_written_later() {
        let mut chains = ChunkList::<u64, 4>::default();
        let places: Vec<usize> = (0..3000).map(|_| chains.reserve(5)).collect();
        chains.clear(5);
        let places: Vec<usize> = places.iter().map(|_| chains.reserve(5)).collect();
        for n in (0..3000).rev() {
            chains.write(places[n], &[n as u64; 4]);
            assert_eq!(chains.from(places[n])[..4], [n as u64; 4]);
        }
        let all: Vec<u64> = chains.pieces(5).flatten().copied().collect();
        assert!(all.is_sorted());
        assert_eq!((all.len(), chains.partition_len(5)), (12_000, 12_000));
    }
}
