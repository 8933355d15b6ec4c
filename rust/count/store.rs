//! One thread's rows by partition.

use crate::count::pairs::Pair;
use crate::memory::prefetch::prefetched;
use crate::memory::write_buffer::WriteBuffer;

/// Rows by partition.
pub struct Store<P: Pair>(WriteBuffer<P::Bits, 32>);

impl<P: Pair> Default for Store<P> {
    fn default() -> Self {
        Self(WriteBuffer::default())
    }
}

impl<P: Pair> Store<P> {
    /// Adds rows to partitions.
    #[inline]
    pub fn extend(&mut self, rows: impl Iterator<Item = (usize, P)>) {
        self.0.extend(rows.map(|(partition, row)| (partition, row.bits())));
    }

    /// Adds a row to a partition.
    #[inline]
    pub fn push(&mut self, partition: usize, row: P) {
        self.0.push(partition, row.bits());
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of rows of a partition.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        self.0.partition_len(partition)
    }

    /// Returns the bytes of memory that the rows hold.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.0.bytes_used()
    }

    /// Iterates over the rows of a partition in short slices.
    pub fn pieces(
        &self,
        partition: usize,
    ) -> impl Iterator<Item = impl ExactSizeIterator<Item = P>> {
        prefetched(self.0.pieces(partition)).map(|piece| piece.iter().map(|&bits| P::of_bits(bits)))
    }

    /// Removes the rows of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.0.clear(partition);
    }
}
