//! Write-combining buffers, which collect about 512 bytes of each partition in cache before they write
//! the bytes to the partition's chunk list.

use bytemuck::Pod;

use crate::hash::PARTITIONS;
use crate::memory::chunk_list::ChunkList;

/// Values by partition. Up to `LINE` values of each partition are buffered. Lines of about 512 bytes
/// are fastest.
pub(crate) struct WriteBuffer<T, const LINE: usize> {
    buffers: Vec<[T; LINE]>,
    /// The number of values in each buffer.
    filled: Vec<u8>,
    full: ChunkList<T, LINE>,
}

impl<T: Pod, const LINE: usize> Default for WriteBuffer<T, LINE>
where
    [T; LINE]: Pod,
{
    fn default() -> Self {
        let buffers = bytemuck::zeroed_vec(PARTITIONS);
        Self { buffers, filled: vec![0; PARTITIONS], full: ChunkList::default() }
    }
}

impl<T: Pod, const LINE: usize> WriteBuffer<T, LINE> {
    /// Adds values to partitions.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    pub fn extend(&mut self, values: impl Iterator<Item = (usize, T)>) {
        const { assert!(LINE < 1 << u8::BITS, "a byte counts the values of a line") };
        let (buffers, filled) = (&mut self.buffers[..PARTITIONS], &mut self.filled[..PARTITIONS]);
        for (partition, value) in values {
            let (partition, mut len) = (partition % PARTITIONS, filled[partition % PARTITIONS]);
            let line = &mut buffers[partition];
            // Flush when the next value arrives, not when the buffer fills: reading a line right
            // after writing it stalls on store forwarding.
            if usize::from(len) == LINE {
                self.full.append(partition, line);
                len = 0;
            }
            line[usize::from(len) % LINE] = value;
            filled[partition] = len + 1;
        }
    }

    /// Adds a value to a partition.
    #[inline]
    pub fn push(&mut self, partition: usize, value: T) {
        self.extend(std::iter::once((partition, value)));
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        let buffered: usize = self.filled.iter().map(|&filled| usize::from(filled)).sum();
        self.full.len() + buffered
    }

    /// Returns the number of values of a partition.
    pub fn partition_len(&self, partition: usize) -> usize {
        self.full.partition_len(partition) + usize::from(self.filled[partition])
    }

    /// Returns the bytes of memory that the flushed values hold. The buffers do not count.
    pub fn bytes_used(&self) -> usize {
        self.full.bytes_used()
    }

    /// Iterates over the values of a partition, piece by piece.
    pub fn pieces(&self, partition: usize) -> impl Iterator<Item = &[T]> + Clone {
        let line = &self.buffers[partition][..usize::from(self.filled[partition])];
        self.full.pieces(partition).chain([line])
    }

    /// Removes the values of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.full.clear(partition);
        self.filled[partition] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come_back_in_order<T: Pod + PartialEq + std::fmt::Debug, const LINE: usize>(
        mut lines: WriteBuffer<T, LINE>,
        value: impl Fn(usize) -> T,
    ) {
        for n in 0..20_000 {
            lines.push(n % 3 * 500, value(n));
        }
        let all =
            |lines: &WriteBuffer<T, LINE>| lines.pieces(500).flatten().copied().collect::<Vec<T>>();
        let expected: Vec<T> = (0..20_000).filter(|n| n % 3 == 1).map(value).collect();
        assert_eq!(all(&lines), expected);
        assert_eq!((lines.len(), lines.partition_len(500)), (20_000, expected.len()));
        assert!(lines.bytes_used() >= (20_000 - 3 * LINE) * size_of::<T>());
        lines.clear(500);
        assert_eq!((lines.len(), lines.partition_len(500)), (20_000 - expected.len(), 0));
        assert!(all(&lines).is_empty());
        expected[..5].iter().for_each(|&value| lines.push(500, value));
        assert_eq!(all(&lines), expected[..5]);
    }

    #[test]
    fn buffered_and_flushed_values_are_read_in_order() {
        come_back_in_order(WriteBuffer::<_, 128>::default(), |n| n as u32);
        come_back_in_order(WriteBuffer::<_, 128>::default(), |n| n as u64);
        come_back_in_order(WriteBuffer::<_, 32>::default(), |n| [n as u64; 2]);
        come_back_in_order(WriteBuffer::<_, 1>::default(), |n| n as u128);
    }
}
