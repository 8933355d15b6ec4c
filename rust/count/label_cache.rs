//! A two-way set-associative cache of recent labels.

use crate::labels::NO_CODE;
use crate::memory::arena::{BLOCK, Block};
use crate::memory::prefetch::prefetch_ahead;
use crate::string_prefix::{PrefixedString, StringPrefix};

/// Labels in a line.
const WAYS: usize = 2;
/// The number of lines at first and while few labels repeat, and the most lines.
const FEW: usize = 1 << 9;
const MOST: usize = BLOCK / size_of::<Line>();
/// Stop looking labels up when fewer than 1 in `RARE` was found while `PATIENCE` new labels came.
const RARE: usize = 16;
const PATIENCE: usize = MOST;
/// Resume lookups after this many rows: a table may begin with labels that never repeat, and a
/// label that is not looked up is appended to the log once more.
const SKIPPED: usize = 1 << 21;

/// The bits of a record's position. The hash bits stored above them tell most labels with equal
/// prefixes apart.
const PLACE_BITS: u32 = 40;

/// A cached label in four words. The first three are the label's prefix. If the prefix is not the
/// whole label, the third word is the upper bits of its hash above the position of its record. The
/// fourth word is the length plus one above the code.
#[derive(Clone, Copy)]
pub(crate) struct Entry([u64; 4]);

impl Entry {
    /// Creates the entry of a label with a hash and a record at a position.
    #[inline]
    #[must_use]
    pub fn new(hash: u64, mark: StringPrefix, place: usize, code: u32) -> Self {
        let [first, second, third] = mark.words;
        let upper = hash >> PLACE_BITS << PLACE_BITS;
        let third = if mark.is_whole() { third } else { upper | place as u64 };
        Self([first, second, third, len(mark) << 32 | u64::from(code)])
    }

    /// Returns the position of the record. The label must be longer than its prefix.
    #[inline]
    #[must_use]
    pub fn place(self) -> usize {
        (self.0[2] & ((1 << PLACE_BITS) - 1)) as usize
    }

    /// Returns the label's code.
    #[inline]
    #[must_use]
    pub fn code(self) -> u32 {
        self.0[3] as u32
    }

    /// Returns whether the entry may be the label of this hash and prefix. The answer is exact if
    /// the prefix is the whole label.
    #[inline]
    fn is(self, hash: u64, mark: StringPrefix) -> bool {
        self.is_with(
            mark,
            if mark.is_whole() {
                self.0[2] ^ mark.words[2]
            } else {
                (self.0[2] ^ hash) >> PLACE_BITS
            },
        )
    }

    /// Returns whether the entry is this label, if the prefix is the whole label.
    #[inline]
    fn is_whole(self, mark: StringPrefix) -> bool {
        self.is_with(mark, self.0[2] ^ mark.words[2])
    }

    /// Returns whether the first two words and the length match and `third`, the difference of the
    /// third words, is zero.
    #[inline]
    fn is_with(self, mark: StringPrefix, third: u64) -> bool {
        let ([a, b, _, rest], words) = (self.0, mark.words);
        (a ^ words[0]) | (b ^ words[1]) | third | (rest >> 32 ^ len(mark)) == 0
    }
}

/// Returns the length plus one, which a free entry does not have, capped to 32 bits.
#[inline]
fn len(mark: StringPrefix) -> u64 {
    (mark.len as u64 + 1).min(u32::MAX.into())
}

/// Labels whose hashes choose the same line.
type Line = [[u64; 4]; WAYS];

/// The cache.
pub(crate) struct LabelCache {
    lines: Block<Line>,
    /// The number of lines in use.
    size: usize,
    /// The number of cleared lines. Lines beyond hold old data, such as labels of another count.
    clean: usize,
    /// The number of labels found and of labels inserted since the last resize.
    found: usize,
    new: usize,
    /// The number of rows to skip before lookups resume.
    skip: usize,
}

impl Default for LabelCache {
    fn default() -> Self {
        let mut cache = Self { lines: Block::any(), size: 0, clean: 0, found: 0, new: 0, skip: 0 };
        cache.resize(FEW);
        cache
    }
}

impl LabelCache {
    /// Returns whether to look up the labels of the next `rows` rows. Call it once for each row.
    #[inline]
    pub fn should_look_up(&mut self, rows: usize) -> bool {
        if self.skip == 0 && self.new >= PATIENCE && self.found < self.new / RARE {
            self.skip = SKIPPED;
            self.resize(FEW);
        }
        let should_look_up = self.skip == 0;
        self.skip = self.skip.saturating_sub(rows);
        should_look_up
    }

    fn resize(&mut self, size: usize) {
        if size > self.clean {
            self.lines.values_mut()[self.clean..size].fill([[0; 4]; WAYS]);
            self.clean = size;
        }
        (self.size, self.found, self.new) = (size, 0, 0);
    }

    /// Looks up labels; returns [`NO_CODE`] for misses, NULL and labels longer than a prefix. No
    /// branch depends on the result, so the memory accesses overlap.
    #[allow(clippy::needless_bitwise_bool, reason = "avoids a branch")]
    pub fn find_all(
        &mut self,
        hashes: &[u64],
        labels: &[PrefixedString<'_>],
        null: &[bool],
        into: &mut Vec<u32>,
    ) {
        let (lines, mask) = (self.lines.values(), self.size - 1);
        into.clear();
        let labels = hashes.iter().zip(labels).zip(null).enumerate();
        into.extend(labels.map(|(n, ((&hash, &PrefixedString { mark, .. }), &null))| {
            prefetch_ahead(lines, hashes, n, |hash| hash as usize & mask);
            let line = &lines[hash as usize & mask];
            let is_second = Entry(line[1]).is_whole(mark);
            let found = (is_second | Entry(line[0]).is_whole(mark)) & mark.is_whole() & !null;
            self.found += usize::from(found);
            let code = Entry(line[usize::from(is_second)]).code();
            if found { code } else { NO_CODE }
        }));
    }

    /// Returns an entry that may be the label of this prefix. The answer is exact if the prefix is
    /// the whole label.
    #[inline]
    pub fn find(&mut self, hash: u64, mark: StringPrefix) -> Option<Entry> {
        let line = &self.lines.values()[hash as usize & (self.size - 1)];
        let is_second = Entry(line[1]).is(hash, mark);
        let found = is_second | Entry(line[0]).is(hash, mark);
        self.found += usize::from(found);
        found.then_some(Entry(line[usize::from(is_second)]))
    }

    /// Inserts a label and evicts the older one of its line.
    #[inline]
    pub fn remember(&mut self, hash: u64, entry: Entry) {
        self.new += 1;
        if self.new > WAYS * self.size && self.size < MOST {
            self.resize((2 * self.size).min(MOST));
        }
        let line = &mut self.lines.values_mut()[hash as usize & (self.size - 1)];
        *line = [entry.0, line[0]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_grows_and_finds_recent_labels() {
        let mark = |n: u64| StringPrefix::new(&n.to_le_bytes());
        let mut cache = LabelCache::default();
        for n in 0..20_000 {
            cache.remember(n, Entry::new(n, mark(n), 0, n as u32));
        }
        assert_eq!(cache.size, 1 << 13);
        let find = |cache: &mut LabelCache, n: u64| cache.find(n, mark(n));
        assert!(
            (19_000..20_000)
                .all(|n| find(&mut cache, n).is_some_and(|entry| entry.code() == n as u32))
        );
        assert!(find(&mut cache, 20_000).is_none());
    }

    /// Returns how many of the last ten chunks of 500 labels are looked up, after 600,000 labels
    /// that never repeat.
    fn lookups(chunks: u64, label: impl Fn(u64) -> u64) -> usize {
        let hash = |n: u64| (n + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let mark = |n: u64| StringPrefix::new(&n.to_le_bytes());
        let mut cache = LabelCache::default();
        for n in u64::MAX - 600_000..u64::MAX {
            cache.remember(hash(n), Entry::new(hash(n), mark(n), 0, 0));
        }
        assert!(!cache.should_look_up(1));
        assert_eq!(cache.size, FEW);
        let mut lookups = 0;
        for chunk in 0..chunks {
            if cache.should_look_up(500) {
                lookups += usize::from(chunk + 10 >= chunks);
                for label in (chunk * 500..(chunk + 1) * 500).map(&label) {
                    if cache.find(hash(label), mark(label)).is_none() {
                        cache.remember(hash(label), Entry::new(hash(label), mark(label), 0, 0));
                    }
                }
            }
        }
        lookups
    }

    #[test]
    fn lookups_stop_while_labels_never_repeat() {
        let mut cache = LabelCache::default();
        let mut lookups = 0;
        for n in 0..10 * SKIPPED as u64 {
            if cache.should_look_up(1) {
                lookups += 1;
                cache.remember(n, Entry::new(n, StringPrefix::new(&n.to_le_bytes()), 0, 0));
            }
        }
        assert!(lookups < SKIPPED, "{lookups}");
    }

    #[test]
    fn lookups_resume_once_labels_repeat() {
        let chunks = SKIPPED as u64 / 500 + 2000;
        // Each label twice; a single label; a single label in 7 of 8 chunks; a single label in 1 of
        // 10 rows.
        assert_eq!(lookups(chunks, |n| n / 2), 10);
        assert_eq!(lookups(chunks, |_| 7), 10);
        assert_eq!(lookups(chunks, |n| if n / 500 % 8 == 7 { n } else { 7 }), 10);
        assert_eq!(lookups(chunks, |n| if n.is_multiple_of(10) { 7 } else { n }), 10);
        for labels in [500, 2000, 20_000, 100_000] {
            let anywhere = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % labels;
            assert_eq!(lookups(chunks, anywhere), 10, "of {labels}");
        }
    }

    #[test]
    fn labels_with_equal_prefixes_in_one_line_are_distinct() {
        let mut cache = LabelCache::default();
        let mark = StringPrefix::new(&[b'a'; 30]);
        let hashes = [7, 1 << PLACE_BITS | 7];
        for (hash, place) in hashes.into_iter().zip([0, (1 << PLACE_BITS) - 1]) {
            cache.remember(hash, Entry::new(hash, mark, place, place as u32));
        }
        let places = hashes.map(|hash| cache.find(hash, mark).map(Entry::place));
        assert_eq!(places, [Some(0), Some((1 << PLACE_BITS) - 1)]);
        assert!(cache.find(2 << PLACE_BITS | 7, mark).is_none());
    }

    #[test]
    fn a_bulk_lookup_equals_single_lookups_of_short_labels() {
        let bytes: Vec<Vec<u8>> = (0..2000).map(|n: usize| vec![n as u8; n % 30]).collect();
        let labels: Vec<PrefixedString<'_>> =
            bytes.iter().map(|bytes| PrefixedString::new(bytes)).collect();
        // Some share a line, and some a hash.
        let hash =
            |label: &PrefixedString<'_>| label.mark.words[0] % 601 + (label.mark.len as u64) / 2;
        let hashes: Vec<u64> = labels.iter().map(hash).collect();
        let null: Vec<bool> = (0..labels.len()).map(|n| n % 7 == 0).collect();
        let (mut cache, mut codes) = (LabelCache::default(), Vec::new());
        cache.find_all(&hashes, &labels, &null, &mut codes);
        assert!(codes.iter().all(|&code| code == NO_CODE) && cache.found == 0);
        for (code, (&hash, label)) in hashes.iter().zip(&labels).enumerate().step_by(3) {
            cache.remember(hash, Entry::new(hash, label.mark, code, code as u32));
        }
        cache.find_all(&hashes, &labels, &null, &mut codes);
        let found = cache.found;
        assert!(found > 200);
        for ((&code, (&hash, label)), null) in
            codes.iter().zip(hashes.iter().zip(&labels)).zip(null)
        {
            let entry = cache.find(hash, label.mark).filter(|_| label.mark.is_whole() && !null);
            assert_eq!(code, entry.map_or(NO_CODE, Entry::code));
        }
        assert_eq!(codes.iter().filter(|&&code| code != NO_CODE).count(), found);
    }

    #[test]
    fn a_new_cache_is_empty_whatever_its_memory_held() {
        for _ in 0..4 {
            Block::<Line>::any().values_mut().fill([[1; 4]; WAYS]);
        }
        let mut cache = LabelCache::default();
        for size in [FEW, 2 * FEW, FEW, MOST] {
            cache.resize(size);
            assert!(cache.lines.values()[..size].iter().all(|line| *line == [[0; 4]; WAYS]));
        }
        for bytes in [&b""[..], b"\0", b"\x01", b"\0\0"] {
            assert!(cache.find(0, StringPrefix::new(bytes)).is_none());
        }
    }
}
