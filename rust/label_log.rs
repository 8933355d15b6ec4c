//! The labels that one thread has met, in the order of its rows. A label that was met lately is found again by its
//! hash and confirmed by its bytes; any other is written down once more. So a label may have several codes, but a
//! code has one label, and to look one up never leaves the nearer caches.

use crate::chains::Chains;
use crate::error::Result;
use crate::hash::{PARTITIONS, partition_of};
use crate::interner::TOO_MANY;
use crate::recent::{Mark, Recent};

/// Labels of more bytes are kept apart from the others.
const LONG: usize = 480;
/// What stands for their length.
const IS_LONG: u32 = u32::MAX - 1;
/// What fills a piece in which the next label has no room.
const END: u64 = u64::MAX;

/// The labels of one thread, with repetitions, by partition.
pub struct LabelLog {
    /// Of each label a word with its hash and its length, then its bytes in words, or its number in `long`.
    words: Chains<u64>,
    long: Vec<Box<[u8]>>,
    long_bytes: usize,
    /// How many labels each partition has.
    lens: Vec<u32>,
    recent: Recent,
}

/// The first word of a record.
#[inline]
fn head(hash: u64, len: usize) -> u64 {
    hash << 32 | if len > LONG { IS_LONG.into() } else { len as u64 }
}

impl Default for LabelLog {
    fn default() -> Self {
        Self {
            words: Chains::default(),
            long: Vec::new(),
            long_bytes: 0,
            lens: vec![0; PARTITIONS],
            recent: Recent::default(),
        }
    }
}

impl LabelLog {
    /// The code of a label in the partition of its hash, or nothing where it should be text and is not UTF-8, or has
    /// 4 GiB.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 labels.
    #[inline]
    pub fn code(&mut self, hash: u64, bytes: &[u8], is_text: bool) -> Result<Option<u32>> {
        let mark = Mark::new(head(hash, bytes.len()), bytes);
        if let Some(met) = self.recent.find(mark)
            && (bytes.len() <= Mark::WHOLE || self.label(met.place as usize) == bytes)
        {
            return Ok(Some(met.code));
        }
        self.add(partition_of(hash), mark, bytes, is_text)
    }

    fn add(
        &mut self,
        partition: usize,
        mark: Mark,
        bytes: &[u8],
        is_text: bool,
    ) -> Result<Option<u32>> {
        let is_too_long = u32::try_from(bytes.len()).is_err();
        if is_too_long || is_text && std::str::from_utf8(bytes).is_err() {
            return Ok(None);
        }
        let code = self.lens[partition];
        if code == u32::MAX {
            return Err(TOO_MANY);
        }
        self.lens[partition] += 1;
        let place = if bytes.len() > LONG {
            self.long.push(bytes.into());
            self.long_bytes += bytes.len();
            let (place, words) = self.words.push_room(partition, 2, END);
            words.copy_from_slice(&[mark.head, self.long.len() as u64 - 1]);
            place
        } else {
            let (place, words) = self.words.push_room(partition, 1 + bytes.len().div_ceil(8), END);
            words[0] = mark.head;
            bytemuck::cast_slice_mut(&mut words[1..])[..bytes.len()].copy_from_slice(bytes);
            place
        };
        // Beyond 32 GiB of labels no further one is remembered, and each of its rows writes it down.
        if let Ok(place) = u32::try_from(place) {
            self.recent.remember(mark, place, code);
        }
        Ok(Some(code))
    }

    /// The label at a place.
    #[inline]
    fn label(&self, place: usize) -> &[u8] {
        let words = self.words.from(place);
        self.read(words[0] as u32, &words[1..])
    }

    #[inline]
    fn read<'a>(&'a self, len: u32, words: &'a [u64]) -> &'a [u8] {
        if len == IS_LONG {
            &self.long[words[0] as usize]
        } else {
            &bytemuck::cast_slice(words)[..len as usize]
        }
    }

    /// How many labels a partition has.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        self.lens[partition] as usize
    }

    /// Calls `visit` with the lower half of the hash and the bytes of every label of a partition, by code.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn visit(
        &self,
        partition: usize,
        mut visit: impl FnMut(u32, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for piece in self.words.pieces(partition) {
            let mut rest = piece;
            while let Some((&head, words)) = rest.split_first().filter(|(head, _)| **head != END) {
                let len = head as u32;
                let bytes = self.read(len, words);
                visit((head >> 32) as u32, bytes)?;
                rest = &words[if len == IS_LONG { 1 } else { bytes.len().div_ceil(8) }..];
            }
        }
        Ok(())
    }

    /// How many bytes of memory it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.words.held() + self.long_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(log: &LabelLog, partition: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        log.visit(partition, |_, bytes| {
            all.push(bytes.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(all.len(), log.partition_len(partition));
        all
    }

    #[test]
    fn equal_hashes_of_unlike_labels_are_told_apart() {
        let mut log = LabelLog::default();
        for round in 0..2 {
            for n in 0..100_u32 {
                let code = log.code(7, &n.to_le_bytes(), false).unwrap().unwrap();
                assert_eq!(labels(&log, 0)[code as usize], n.to_le_bytes());
            }
            assert_eq!(log.partition_len(0), 100 * (round + 1));
        }
        assert_eq!(log.code(7, &99_u32.to_le_bytes(), false), Ok(Some(199)));
    }

    #[test]
    fn labels_of_any_length_come_back() {
        let mut log = LabelLog::default();
        let label = |n: usize| vec![n as u8; n * n % 1117];
        for n in 0..4000 {
            let hash = (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let code = log.code(hash, &label(n), false).unwrap();
            assert_eq!(log.code(hash, &label(n), false), Ok(code));
        }
        let mut all: Vec<_> = (0..PARTITIONS).flat_map(|p| labels(&log, p)).collect();
        let mut expected: Vec<_> = (0..4000).map(label).collect();
        all.sort();
        expected.sort();
        assert!(all == expected);
    }

    #[test]
    fn what_is_not_text_has_no_code() {
        let mut log = LabelLog::default();
        assert_eq!(log.code(3, b"\xff", true), Ok(None));
        assert_eq!(log.code(3, b"\xff", false), Ok(Some(0)));
        assert_eq!(log.code(3, "é".as_bytes(), true), Ok(Some(1)));
    }
}
