//! The rows of one thread by partition.

use crate::chains::Chains;
use crate::hash::PARTITIONS;
use crate::pairs::Pair;

/// Rows by partition.
pub struct Store<P: Pair>(Chains<P::Bits>);

impl<P: Pair> Default for Store<P> {
    fn default() -> Self {
        Self(Chains::default())
    }
}

impl<P: Pair> Store<P> {
    /// Adds a row to a partition.
    #[inline]
    pub fn push(&mut self, partition: usize, row: P) {
        self.0.push(partition, row.bits());
    }

    /// How many rows there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many rows a partition has.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        self.0.partition_len(partition)
    }

    /// How many bytes of memory they hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held()
    }

    /// The rows of a partition, piece by piece.
    pub fn pieces(
        &self,
        partition: usize,
    ) -> impl Iterator<Item = impl ExactSizeIterator<Item = P>> {
        self.0.pieces(partition).map(|piece| piece.iter().map(|&bits| P::of_bits(bits)))
    }

    /// Forgets the rows of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.0.clear(partition);
    }
}

/// Deduplicates partition after partition, unless it pays for few of a sample of them: of all rows in a sample, most
/// may be those of one item. `one` does so with one, and returns how many rows there were and how many are left.
pub fn deduplicate(mut one: impl FnMut(usize) -> (usize, usize)) {
    const SAMPLE: usize = PARTITIONS / 64;
    let mut in_vain = 0;
    for (number, partition) in (0..PARTITIONS).rev().enumerate() {
        if number == SAMPLE && 2 * in_vain > SAMPLE {
            break;
        }
        let (before, after) = one(partition);
        in_vain += usize::from(4 * after > 3 * before);
    }
}
