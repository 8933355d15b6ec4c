//! The rows of one thread by partition, in chains of small blocks out of a few large allocations: growing
//! never copies a row, and fresh memory is asked for in pieces that cost little.

use crate::hash::PARTITIONS;
use crate::pairs::Pair;

/// Blocks per allocation.
const CHUNK: usize = 256;

/// Rows by partition.
pub struct Store<P: Pair> {
    chunks: Vec<Vec<P::Bits>>,
    blocks: usize,
    free: Vec<usize>,
    /// The blocks of each partition.
    chains: Vec<Vec<usize>>,
    /// Where each partition's next row goes, a multiple of a block where the last one is full. Apart from
    /// the chains, so that the nearest cache holds all of it.
    next: Vec<usize>,
}

impl<P: Pair> Default for Store<P> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            blocks: 0,
            free: Vec::new(),
            chains: vec![Vec::new(); PARTITIONS],
            next: vec![0; PARTITIONS],
        }
    }
}

impl<P: Pair> Store<P> {
    /// Rows per block. Not a power of two in bytes: the ends of all chains would then share a few
    /// sets of the cache.
    const ROWS: usize = 12_032 / size_of::<P>();

    /// Adds a row to a partition.
    #[inline]
    pub fn push(&mut self, partition: usize, row: P) {
        let mut next = self.next[partition];
        if next.is_multiple_of(Self::ROWS) {
            next = self.extend(partition);
        }
        self.chunks[next / (CHUNK * Self::ROWS)][next % (CHUNK * Self::ROWS)] = row.bits();
        self.next[partition] = next + 1;
    }

    /// Gives a partition another block; returns where it begins.
    #[cold]
    fn extend(&mut self, partition: usize) -> usize {
        let block = self.free.pop().unwrap_or_else(|| {
            if self.blocks.is_multiple_of(CHUNK) {
                self.chunks.push(vec![P::Bits::default(); CHUNK * Self::ROWS]);
            }
            self.blocks += 1;
            self.blocks - 1
        });
        self.chains[partition].push(block);
        block * Self::ROWS
    }

    /// How many rows there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        (0..PARTITIONS).map(|partition| self.partition_len(partition)).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows a partition has.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        let last = self.next[partition] % Self::ROWS;
        self.chains[partition].len() * Self::ROWS - if last == 0 { 0 } else { Self::ROWS - last }
    }

    /// How many bytes of memory it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.chunks.len() * CHUNK * Self::ROWS * size_of::<P>()
    }

    /// Calls `visit` with every row of a partition.
    #[inline]
    pub fn visit(&self, partition: usize, mut visit: impl FnMut(P)) {
        let mut left = self.partition_len(partition);
        for &block in &self.chains[partition] {
            let start = block % CHUNK * Self::ROWS;
            let rows = &self.chunks[block / CHUNK][start..start + left.min(Self::ROWS)];
            left -= rows.len();
            for &bits in rows {
                visit(P::of_bits(bits));
            }
        }
    }

    /// Forgets the rows of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.free.append(&mut self.chains[partition]);
        self.next[partition] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Narrow;

    #[test]
    fn rows_come_back_in_order_and_blocks_are_used_again() {
        let mut store = Store::<Narrow>::default();
        for user in 0..5000 {
            store.push(user as usize % 3, Narrow::new(7, user));
        }
        let mut rows = Vec::new();
        store.visit(1, |row| rows.push(row));
        store.clear(1);
        assert_eq!(rows.len(), 1667);
        assert!(rows.iter().zip(0..).all(|(row, n)| *row == Narrow::new(7, 3 * n + 1)));
        assert_eq!((store.len(), store.partition_len(1), store.partition_len(0)), (3333, 0, 1667));
        let blocks = store.blocks;
        for row in rows {
            store.push(9, row);
        }
        assert_eq!((store.blocks, store.partition_len(9), store.len()), (blocks, 1667, 5000));
    }
}
