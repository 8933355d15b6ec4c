//! Variable-length records by partition in write-combining buffers.
//!
//! A record is a sequence of 64-bit words. A line is 512 bytes of records of one partition. Each
//! partition has a buffer for its last line. A record keeps its position when the buffer is flushed.

use crate::hash::PARTITIONS;
use crate::memory::chunk_list::ChunkList;
use crate::memory::prefetch::{STRETCH, prefetched};

/// Words of a line: 512 bytes.
const LINE: usize = 64;
/// The next position in a partition without a line. Like the end of a line, it has no room for a
/// record.
const NO_LINE: usize = usize::MAX;
const _: () = assert!(NO_LINE % LINE == RecordLog::MOST);
const _: () =
    assert!(STRETCH.is_multiple_of(LINE * size_of::<u64>()), "prefetching yields whole lines");

/// Records by partition.
pub(crate) struct RecordLog {
    /// The buffer of each partition. It is written to a reserved line of `full`.
    buffers: Vec<[u64; LINE]>,
    /// The position of each partition's next record, if the buffer has room for the record.
    next: Vec<usize>,
    /// All full lines, and the reserved lines of the buffers.
    full: ChunkList<u64, LINE>,
}

impl Default for RecordLog {
    fn default() -> Self {
        let buffers = bytemuck::zeroed_vec(PARTITIONS);
        Self { buffers, next: vec![NO_LINE; PARTITIONS], full: ChunkList::default() }
    }
}

impl RecordLog {
    /// The word after the last record of a full line.
    pub const END: u64 = u64::MAX;
    /// The most words of a record.
    pub const MOST: usize = LINE - 1;

    /// Adds a record of `len` words to a partition. Returns the record's position and `most` words for
    /// the caller to write. Only the first `len` words are kept. The first word must not be
    /// [`Self::END`].
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    pub fn push(&mut self, partition: usize, len: usize, most: usize) -> (usize, &mut [u64]) {
        debug_assert!(len <= most && (1..=Self::MOST).contains(&most));
        let mut place = self.next[partition];
        if place % LINE + most > Self::MOST {
            place = self.new_line(partition);
        }
        self.next[partition] = place + len;
        (place, &mut self.buffers[partition][place % LINE..][..most])
    }

    /// Writes a partition's buffer to its reserved line, then reserves the next line. Returns the
    /// position of the next line.
    #[inline(never)]
    fn new_line(&mut self, partition: usize) -> usize {
        let next = self.next[partition];
        if next != NO_LINE {
            let line = &mut self.buffers[partition];
            line[next % LINE] = Self::END;
            self.full.write(next - next % LINE, line);
        }
        self.full.reserve(partition)
    }

    /// Returns words of a partition from a position on. They include the record at the position.
    #[inline]
    pub fn at(&self, partition: usize, place: usize) -> &[u64] {
        if place / LINE == self.next[partition] / LINE {
            &self.buffers[partition][place % LINE..]
        } else {
            self.full.from(place)
        }
    }

    /// Iterates over the lines of a partition. In a full line, [`Self::END`] follows the last record.
    pub fn lines(&self, partition: usize) -> impl Iterator<Item = &[u64]> {
        let lines = self.full.partition_len(partition) / LINE;
        let written = prefetched(self.full.pieces(partition)).flat_map(|lines| lines.as_chunks().0);
        let last = (lines > 0).then(|| &self.buffers[partition][..self.next[partition] % LINE]);
        written.take(lines.saturating_sub(1)).map(|line: &[u64; LINE]| &line[..]).chain(last)
    }

    /// Returns the bytes of memory that the records hold, without the buffers.
    pub fn bytes_used(&self) -> usize {
        self.full.bytes_used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_position_and_in_order() {
        let mut records = RecordLog::default();
        let mut places = Vec::new();
        for n in 0..4000 {
            let len = 1 + n / 3 % RecordLog::MOST;
            let most = len.max(4);
            let (place, words) = records.push(n % 3 * 500, len, most);
            words.fill(n as u64);
            places.push((place, len));
            for (n, &(place, len)) in
                places.iter().enumerate().skip(places.len().saturating_sub(300))
            {
                assert!(records.at(n % 3 * 500, place)[..len].iter().all(|&word| word == n as u64));
            }
        }
        assert!(records.at(500, places[1].0).starts_with(&[1]));
        let in_use = |line: &[u64]| {
            line.iter().copied().take_while(|&word| word != RecordLog::END).collect::<Vec<_>>()
        };
        let all: Vec<u64> = records.lines(500).flat_map(in_use).collect();
        let expected: Vec<u64> =
            (0..4000).filter(|n| n % 3 == 1).flat_map(|n| vec![n as u64; places[n].1]).collect();
        assert_eq!(all, expected);
        assert!(records.lines(7).next().is_none() && records.bytes_used() >= 8 * all.len());
    }
}
