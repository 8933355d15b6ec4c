//! Rows of four bytes by partition, which go to their chains by the line of the processor's cache. None is zero.

use crate::chains::Chains;
use crate::hash::{HashKeys, PARTITIONS};
use crate::seen::Seen;
use crate::store::deduplicate;

/// How many rows of a partition wait side by side.
const LINE: usize = 16;

// A piece holds whole lines, so that none ends early and all that is in it are rows.
const _: () = assert!(Chains::<u32>::PIECE.is_multiple_of(LINE));

/// Rows by partition.
pub(crate) struct Lines {
    waiting: Vec<[u32; LINE]>,
    filled: Vec<u8>,
    full: Chains<u32>,
}

impl Default for Lines {
    fn default() -> Self {
        let (waiting, filled) = (vec![[0; LINE]; PARTITIONS], vec![0; PARTITIONS]);
        Self { waiting, filled, full: Chains::default() }
    }
}

impl Lines {
    /// The most rows that wait.
    #[cfg(test)]
    pub const WAITING: usize = PARTITIONS * LINE;

    /// Adds rows to partitions.
    #[inline]
    pub fn extend(&mut self, rows: impl Iterator<Item = (usize, u32)>) {
        let (waiting, filled) = (&mut self.waiting[..PARTITIONS], &mut self.filled[..PARTITIONS]);
        for (partition, row) in rows {
            let (partition, len) = (partition % PARTITIONS, filled[partition % PARTITIONS]);
            let line = &mut waiting[partition];
            line[usize::from(len) % LINE] = row;
            filled[partition] = (len + 1) % LINE as u8;
            if usize::from(len) + 1 == LINE {
                self.full.push_room(partition, LINE, LINE, 0).1.copy_from_slice(line);
            }
        }
    }

    /// How many rows there are, but for those that wait.
    pub fn len(&self) -> usize {
        self.full.len()
    }

    /// How many bytes of memory they hold, and would while they are copied into rows of so many bytes.
    pub fn held_beside(&self, bytes: usize) -> usize {
        self.full.held() * (size_of::<u32>() + bytes) / size_of::<u32>()
    }

    /// Deduplicates every partition if a sample of them says that it pays; all rows are below `end`.
    pub fn compact(&mut self, end: u64, keys: &HashKeys) {
        let (mut seen, mut distinct) = (Seen::default(), Vec::new());
        deduplicate(|partition| {
            let len = self.full.partition_len(partition);
            seen.reset(len, end);
            for rows in self.full.pieces(partition) {
                let mut at = distinct.len();
                distinct.resize(at + rows.len(), 0);
                seen.extend(rows, keys, |row, is_new| {
                    distinct[at] = row;
                    at += usize::from(is_new);
                });
                distinct.truncate(at);
            }
            self.full.clear(partition);
            let left = distinct.len();
            self.extend(distinct.drain(..).map(|row| (partition, row)));
            (len, left)
        });
    }

    /// All rows.
    pub fn finish(mut self) -> Chains<u32> {
        for (partition, (line, &len)) in self.waiting.iter().zip(&self.filled).enumerate() {
            line[..usize::from(len)].iter().for_each(|&row| self.full.push(partition, row));
        }
        self.full
    }
}
