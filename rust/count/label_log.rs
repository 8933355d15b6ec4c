//! A log of one thread's labels by partition, in the order of the thread's rows.
//!
//! A label is the text, bytes or integer that names an item. The log stores each label in a record,
//! and numbers the records of a partition from zero. This number is the label's code. Before a label
//! is added, the log looks in a cache of at most 4 MiB for a recent record of the label. If labels
//! rarely repeat, the log skips lookups. Without a hit, the log adds a new record. So a label may
//! have several codes, but each code has exactly one label.

use crate::count::label_cache::{Entry, LabelCache};
use crate::error::Result;
use crate::hash::{PARTITIONS, partition_of};
use crate::labels::NO_CODE;
use crate::labels::interner::TOO_MANY;
use crate::memory::record_log::RecordLog;
use crate::string_prefix::{PrefixedString, StringPrefix};

/// The most bytes of a label that is stored in its record. A longer label has its own allocation.
const LONG: usize = 240;
/// The estimated overhead of an allocation, in bytes.
const ALLOCATION: usize = 32;
/// The length byte of a label longer than `LONG`.
const IS_LONG: u64 = 255;
/// The bytes of a record before the label: four bytes of the hash, and one length byte.
const HEAD: usize = 5;
const _: () = assert!(LONG < IS_LONG as usize, "a length fits in a byte");
const _: () = assert!(2 * words(LONG) <= RecordLog::MOST, "a line has room for two labels");

/// Returns the number of 64-bit words of a record whose label has `len` bytes.
const fn words(len: usize) -> usize {
    (HEAD + len).div_ceil(size_of::<u64>())
}

/// One thread's labels by partition, with repetitions.
pub struct LabelLog {
    /// The records. Each holds the lower half of the label's hash, the length byte and the label's
    /// bytes. The record of a long label has the label's index in `long` instead of the bytes.
    records: RecordLog,
    long: Vec<Box<[u8]>>,
    long_bytes: usize,
    /// The number of records of each partition, which is also the next code.
    lens: Vec<u32>,
    cache: LabelCache,
}

impl Default for LabelLog {
    fn default() -> Self {
        Self {
            records: RecordLog::default(),
            long: Vec::new(),
            long_bytes: 0,
            lens: vec![0; PARTITIONS],
            cache: LabelCache::default(),
        }
    }
}

impl LabelLog {
    /// Returns whether to look up the labels of the next `rows` rows; otherwise, use [`Self::add`].
    /// Call this method before each batch of rows.
    #[inline]
    pub fn should_look_up(&mut self, rows: usize) -> bool {
        self.cache.should_look_up(rows)
    }

    /// Looks up labels in the cache and writes their codes to `into`. A label that is not found, is
    /// NULL or has more than 24 bytes gets [`NO_CODE`].
    #[inline]
    pub fn find_all(
        &mut self,
        hashes: &[u64],
        labels: &[PrefixedString<'_>],
        null: &[bool],
        into: &mut Vec<u32>,
    ) {
        self.cache.find_all(hashes, labels, null, into);
    }

    /// Returns a label's code in the partition of the label's hash. Adds a record if the cache does
    /// not find the label. Returns `None` if the label should be text but is not UTF-8, or has 4 GiB
    /// or more.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 labels.
    #[inline]
    pub fn code(
        &mut self,
        hash: u64,
        label: PrefixedString<'_>,
        is_text: bool,
    ) -> Result<Option<u32>> {
        if let Some(entry) = self.cache.find(hash, label.mark)
            && (label.mark.is_whole()
                || self.label(partition_of(hash), entry.place()).bytes == label.bytes)
        {
            return Ok(Some(entry.code()));
        }
        Ok(self.write(hash, label, is_text)?.map(|(place, code)| {
            self.cache.remember(hash, Entry::new(hash, label.mark, place, code));
            code
        }))
    }

    /// Adds a label without a lookup, and returns its new code. Returns `None` in the same cases as
    /// [`Self::code`].
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 labels.
    #[inline]
    pub fn add(
        &mut self,
        hash: u64,
        label: PrefixedString<'_>,
        is_text: bool,
    ) -> Result<Option<u32>> {
        Ok(self.write(hash, label, is_text)?.map(|(_, code)| code))
    }

    /// Adds a label, and returns its record's position and its code.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    fn write(
        &mut self,
        hash: u64,
        label: PrefixedString<'_>,
        is_text: bool,
    ) -> Result<Option<(usize, u32)>> {
        let PrefixedString { mark, bytes } = label;
        if u32::try_from(mark.len).is_err() || is_text && !label.is_utf8() {
            return Ok(None);
        }
        let partition = partition_of(hash);
        let code = self.lens[partition];
        if code == NO_CODE {
            return Err(TOO_MANY);
        }
        self.lens[partition] += 1;
        let is_long = mark.len > LONG;
        let len = if is_long { IS_LONG } else { mark.len as u64 };
        let head = len << 32 | hash & u64::from(u32::MAX);
        if mark.is_whole() {
            let [a, b, c] = mark.words;
            let record = [head | a << 40, a >> 24 | b << 40, b >> 24 | c << 40, c >> 24];
            let (place, into) = self.records.push(partition, words(mark.len), record.len());
            into.copy_from_slice(&record.map(u64::to_le));
            return Ok(Some((place, code)));
        }
        let most = if is_long { 2 } else { words(mark.len) };
        let (place, into) = self.records.push(partition, most, most);
        into[0] = head.to_le();
        if is_long {
            into[1] = self.long.len() as u64;
            self.long.push(bytes.into());
            self.long_bytes += mark.len + ALLOCATION;
        } else {
            bytemuck::cast_slice_mut(into)[HEAD..HEAD + mark.len].copy_from_slice(bytes);
        }
        Ok(Some((place, code)))
    }

    /// Returns the label at a position of a partition.
    #[inline]
    fn label(&self, partition: usize, place: usize) -> PrefixedString<'_> {
        self.read(self.records.at(partition, place)).1
    }

    /// Returns the number of words of the record at the beginning of `record`, and its label.
    #[inline]
    fn read<'a>(&'a self, record: &'a [u64]) -> (usize, PrefixedString<'a>) {
        let len = u64::from_le(record[0]) >> 32 & 0xFF;
        if len == IS_LONG {
            return (2, PrefixedString::new(&self.long[record[1] as usize]));
        }
        let (buffer, cell) = (bytemuck::cast_slice(record), HEAD..HEAD + len as usize);
        let label = PrefixedString {
            mark: StringPrefix::of_cell(buffer, cell.clone()),
            bytes: &buffer[cell],
        };
        (words(len as usize), label)
    }

    /// Returns the number of records of a partition.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        self.lens[partition] as usize
    }

    /// Calls `visit` for each record of a partition, in the order of the codes. Passes the lower
    /// half of the label's hash, and the label.
    ///
    /// # Errors
    /// Any error of `visit`.
    pub fn visit(
        &self,
        partition: usize,
        mut visit: impl FnMut(u32, PrefixedString<'_>) -> Result<()>,
    ) -> Result<()> {
        for line in self.records.lines(partition) {
            let mut rest = line;
            while let Some(&head) = rest.first().filter(|head| **head != RecordLog::END) {
                let (len, label) = self.read(rest);
                visit(u64::from_le(head) as u32, label)?;
                rest = &rest[len..];
            }
        }
        Ok(())
    }

    /// Returns the bytes of memory that the labels hold.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.records.bytes_used() + self.long_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(log: &mut LabelLog, hash: u64, bytes: &[u8], is_text: bool) -> Result<Option<u32>> {
        log.code(hash, PrefixedString::new(bytes), is_text)
    }

    fn labels(log: &LabelLog, partition: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        log.visit(partition, |_, label| {
            all.push(label.bytes.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(all.len(), log.partition_len(partition));
        all
    }

    #[test]
    fn labels_with_equal_hashes_get_different_codes() {
        let mut log = LabelLog::default();
        for round in 0..2 {
            for n in 0..100_u32 {
                let code = code(&mut log, 7, &n.to_le_bytes(), false).unwrap().unwrap();
                assert_eq!(labels(&log, 0)[code as usize], n.to_le_bytes());
            }
            assert_eq!(log.partition_len(0), 100 * (round + 1));
        }
        assert_eq!(code(&mut log, 7, &99_u32.to_le_bytes(), false), Ok(Some(199)));
    }

    #[test]
    fn labels_with_equal_hashes_and_prefixes_get_different_codes() {
        let mut log = LabelLog::default();
        for n in 0..100_u8 {
            let label = [&[b'a'; 24], &[n % 3][..]].concat();
            let code = code(&mut log, 7, &label, false).unwrap().unwrap();
            assert_eq!(labels(&log, 0)[code as usize], label);
        }
    }

    #[test]
    fn a_label_of_50_000_rows_has_under_100_records() {
        let mut log = LabelLog::default();
        let hash = |n: u64| (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for chunk in 0..1000 {
            let of_row = |n: u64| if n.is_multiple_of(10) { 0 } else { n };
            let labels: Vec<u64> = (chunk * 500..(chunk + 1) * 500).map(of_row).collect();
            let hashes: Vec<u64> = labels.iter().map(|&n| hash(n)).collect();
            let should_look_up = log.should_look_up(500);
            for (n, &hash) in labels.iter().zip(&hashes) {
                let bytes = n.to_le_bytes();
                let label = PrefixedString::new(&bytes);
                let code = if should_look_up { LabelLog::code } else { LabelLog::add };
                code(&mut log, hash, label, false).unwrap();
            }
        }
        let partition = partition_of(hash(0));
        let times = labels(&log, partition).iter().filter(|label| **label == [0; 8]).count();
        assert!((1..100).contains(&times), "{times} of 50,000");
    }

    #[test]
    fn two_long_labels_with_equal_prefixes_are_written_once() {
        let mut log = LabelLog::default();
        for n in 0..1000 {
            let label = [&[b'a'; 24], &[n as u8 % 2][..]].concat();
            assert_eq!(code(&mut log, (n % 2) << 50 | 7, &label, false), Ok(Some(n as u32 % 2)));
        }
        assert_eq!(log.partition_len(0), 2);
    }

    #[test]
    fn labels_are_found_after_their_lines_were_flushed() {
        let lens = [0, 1, 3, 4, 8, 19, 23, 24, 25, 32, 239, 240, 241, 1000];
        let label = |n: u8| {
            let byte = |place: usize| (place as u8).wrapping_mul(31) ^ n;
            (0..lens[usize::from(n) % lens.len()]).map(byte).collect::<Vec<u8>>()
        };
        let mut log = LabelLog::default();
        for round in 0..3 {
            for n in 0..112 {
                let hash = u64::from(n);
                let code = code(&mut log, hash, &label(n), false).unwrap().unwrap();
                assert_eq!(code, u32::from(n), "in round {round}");
            }
        }
        let expected: Vec<_> = (0..112).map(label).collect();
        assert_eq!(labels(&log, 0), expected);
        // An added label has its own code.
        for n in 0..112 {
            let (hash, label) = (u64::from(n), label(n));
            let added = log.add(hash, PrefixedString::new(&label), false);
            assert_eq!(added, Ok(Some(112 + u32::from(n))));
            assert_eq!(code(&mut log, hash, &label, false), Ok(Some(u32::from(n))));
        }
        assert_eq!(labels(&log, 0), [&expected[..], &expected].concat());
    }

    #[test]
    fn labels_of_any_length_are_read_back() {
        let mut log = LabelLog::default();
        let label =
            |n: usize| (0..n * n % 1117).map(|k| (n * 31 + k * k) as u8).collect::<Vec<u8>>();
        for n in 0..4000 {
            let label = label(n);
            let hash = label.iter().fold(label.len() as u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            });
            let first = code(&mut log, hash, &label, false).unwrap();
            assert_eq!(code(&mut log, hash, &label, false), Ok(first));
        }
        let mut all: Vec<_> = (0..PARTITIONS).flat_map(|p| labels(&log, p)).collect();
        let mut expected: Vec<_> = (0..4000).map(label).collect();
        for labels in [&mut all, &mut expected] {
            labels.sort();
            labels.dedup();
        }
        assert!(all == expected);
    }

    #[test]
    fn invalid_text_has_no_code() {
        let mut log = LabelLog::default();
        assert_eq!(code(&mut log, 3, b"\xff", true), Ok(None));
        assert_eq!(code(&mut log, 3, b"\xff", false), Ok(Some(0)));
        assert_eq!(code(&mut log, 3, "é".as_bytes(), true), Ok(Some(1)));
    }
}
