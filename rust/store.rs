//! The rows of one thread by partition, in chains of small blocks out of a few large allocations: growing
//! never copies a row, and fresh memory is asked for in pieces that cost little.

use crate::hash::PARTITIONS;
use crate::pairs::Pair;

/// Blocks per allocation.
const CHUNK: usize = 1024;

/// Rows by partition.
pub struct Store<P: Pair> {
    chunks: Vec<Vec<P::Bits>>,
    blocks: usize,
    free: Vec<usize>,
    chains: Vec<Chain>,
    len: usize,
}

/// The blocks of a partition, and where its next row goes.
#[derive(Default, Clone)]
struct Chain {
    blocks: Vec<usize>,
    chunk: usize,
    next: usize,
    end: usize,
}

impl<P: Pair> Default for Store<P> {
    fn default() -> Self {
        let chains = vec![Chain::default(); PARTITIONS];
        Self { chunks: Vec::new(), blocks: 0, free: Vec::new(), chains, len: 0 }
    }
}

impl<P: Pair> Store<P> {
    /// Rows per block. Not a power of two in bytes: the ends of all chains would then share a few sets of
    /// the cache.
    const ROWS: usize = 3008 / size_of::<P>();

    /// Adds a row to a partition.
    #[inline]
    pub fn push(&mut self, partition: usize, row: P) {
        let chain = &mut self.chains[partition];
        if chain.next == chain.end {
            let block = self.free.pop().unwrap_or_else(|| {
                if self.blocks.is_multiple_of(CHUNK) {
                    self.chunks.push(vec![P::Bits::default(); CHUNK * Self::ROWS]);
                }
                self.blocks += 1;
                self.blocks - 1
            });
            chain.blocks.push(block);
            chain.chunk = block / CHUNK;
            chain.next = block % CHUNK * Self::ROWS;
            chain.end = chain.next + Self::ROWS;
        }
        self.chunks[chain.chunk][chain.next] = row.bits();
        chain.next += 1;
        self.len += 1;
    }

    /// How many rows there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many rows a partition has.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        let chain = &self.chains[partition];
        chain.blocks.len() * Self::ROWS - (chain.end - chain.next)
    }

    /// Appends the rows of a partition, changed by `change`, to `into`.
    pub fn read<Q>(&self, partition: usize, into: &mut Vec<Q>, change: impl Fn(P) -> Q) {
        let chain = &self.chains[partition];
        let mut left = self.partition_len(partition);
        for &block in &chain.blocks {
            let start = block % CHUNK * Self::ROWS;
            let rows = &self.chunks[block / CHUNK][start..start + left.min(Self::ROWS)];
            into.extend(rows.iter().map(|&bits| change(P::of_bits(bits))));
            left -= rows.len();
        }
    }

    /// Moves the rows of a partition to the end of `into`.
    pub fn take(&mut self, partition: usize, into: &mut Vec<P>) {
        self.read(partition, into, |row| row);
        self.len -= self.partition_len(partition);
        self.free.extend(std::mem::take(&mut self.chains[partition]).blocks);
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
        store.take(1, &mut rows);
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
