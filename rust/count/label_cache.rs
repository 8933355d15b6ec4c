//! A two-way set-associative cache from recent labels to their codes.
//!
//! A label is the text, bytes or integer that names an item. The label log (see
//! [`crate::count::label_log`]) stores each label in a record. It numbers the labels of a partition
//! from zero; this number is the label's code. A label's prefix is its length and its first 24
//! bytes, which are all bytes of a short label. Each label has one line, chosen by the label's
//! hash, and a line holds two labels.

use crate::labels::NO_CODE;
use crate::memory::arena::{BLOCK, Block};
use crate::memory::prefetch::prefetch_ahead;
use crate::string_prefix::{PrefixedString, StringPrefix};

/// Labels in a line.
const WAYS: usize = 2;
/// The number of lines of a new cache, and of a cache whose lookups have just stopped.
const FEW: usize = 1 << 9;
/// The largest number of lines. They fill one block of memory.
const MOST: usize = BLOCK / size_of::<Line>();
/// Lookups stop if the cache found fewer labels than one `RARE`th of the labels that it inserted.
const RARE: usize = 16;
/// The cache judges its lookups only after this many insertions.
const PATIENCE: usize = MOST;
/// Lookups resume after this many rows, because a table may begin with labels that never repeat.
/// Without a lookup, the log stores a label again in each row.
const SKIPPED: usize = 1 << 21;

/// The number of bits of a record's position in the log.
const PLACE_BITS: u32 = 40;

/// A cached label in four words of 64 bits:
///
/// 1. bytes 0 to 7 of the label;
/// 2. bytes 8 to 15;
/// 3. bytes 16 to 23 if the label has at most 24 bytes. For a longer label, the upper 24 bits of its
///    hash above the 40 bits of its record's position in the log;
/// 4. the label's length plus one in the upper 32 bits, and its code in the lower 32 bits.
///
/// The hash bits tell most long labels with equal prefixes apart.
#[derive(Clone, Copy)]
pub(crate) struct Entry([u64; 4]);

impl Entry {
    /// Creates the entry of a label. `place` is the position of the label's record in the log.
    #[inline]
    #[must_use]
    pub fn new(hash: u64, prefix: StringPrefix, place: usize, code: u32) -> Self {
        let [first, second, third] = prefix.words;
        let upper = hash >> PLACE_BITS << PLACE_BITS;
        let third = if prefix.is_whole() { third } else { upper | place as u64 };
        Self([first, second, third, len(prefix) << 32 | u64::from(code)])
    }

    /// Returns the position of the label's record. The label must have more than 24 bytes.
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

    /// Returns false if the entry is certainly not the label with this hash and prefix. If the
    /// prefix is the whole label, true means that the entry is this label.
    #[inline]
    fn is(self, hash: u64, prefix: StringPrefix) -> bool {
        self.is_with(
            prefix,
            if prefix.is_whole() {
                self.0[2] ^ prefix.words[2]
            } else {
                (self.0[2] ^ hash) >> PLACE_BITS
            },
        )
    }

    /// Returns whether the entry is the label with this prefix. The prefix must be the whole label.
    #[inline]
    fn is_whole(self, prefix: StringPrefix) -> bool {
        self.is_with(prefix, self.0[2] ^ prefix.words[2])
    }

    /// Returns whether the first two words and the length match and `third`, the difference of the
    /// third words, is zero.
    #[inline]
    fn is_with(self, prefix: StringPrefix, third: u64) -> bool {
        let ([a, b, _, rest], words) = (self.0, prefix.words);
        (a ^ words[0]) | (b ^ words[1]) | third | (rest >> 32 ^ len(prefix)) == 0
    }
}

/// Returns the length plus one, capped to 32 bits. A free entry has zero here.
#[inline]
fn len(prefix: StringPrefix) -> u64 {
    (prefix.len as u64 + 1).min(u32::MAX.into())
}

/// The entries of labels whose hashes choose the same line, the latest entry first.
type Line = [[u64; 4]; WAYS];

/// The cache.
pub(crate) struct LabelCache {
    lines: Block<Line>,
    /// The number of lines in use.
    size: usize,
    /// The number of lines cleared so far. The memory behind these lines holds data of its last
    /// use, for example labels of another count.
    clean: usize,
    /// The number of successful lookups since the last resize.
    found: usize,
    /// The number of insertions since the last resize.
    new: usize,
    /// The number of rows before lookups resume; zero if lookups are on.
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
    /// Returns whether to look up the labels of the next `rows` rows. Call this method before each
    /// batch of rows.
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

    /// Looks up labels and writes their codes to `into`. A label that is not found, is NULL or has
    /// more than 24 bytes gets [`NO_CODE`]. No branch depends on a result, so the memory accesses of
    /// many lookups overlap.
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
        into.extend(labels.map(|(n, ((&hash, &PrefixedString { mark: prefix, .. }), &null))| {
            prefetch_ahead(lines, hashes, n, |hash| hash as usize & mask);
            let line = &lines[hash as usize & mask];
            let is_second = Entry(line[1]).is_whole(prefix);
            let found = (is_second | Entry(line[0]).is_whole(prefix)) & prefix.is_whole() & !null;
            self.found += usize::from(found);
            let code = Entry(line[usize::from(is_second)]).code();
            if found { code } else { NO_CODE }
        }));
    }

    /// Returns an entry that may be the label with this hash and prefix. If the prefix is the whole
    /// label, the entry is this label.
    #[inline]
    pub fn find(&mut self, hash: u64, prefix: StringPrefix) -> Option<Entry> {
        let line = &self.lines.values()[hash as usize & (self.size - 1)];
        let is_second = Entry(line[1]).is(hash, prefix);
        let found = is_second | Entry(line[0]).is(hash, prefix);
        self.found += usize::from(found);
        found.then_some(Entry(line[usize::from(is_second)]))
    }

    /// Inserts a label, and evicts the older label of its line. Doubles the number of lines first
    /// if more labels than the lines can hold have been inserted.
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
    fn a_growing_cache_finds_the_latest_labels() {
        let prefix = |n: u64| StringPrefix::new(&n.to_le_bytes());
        let mut cache = LabelCache::default();
        for n in 0..20_000 {
            cache.remember(n, Entry::new(n, prefix(n), 0, n as u32));
        }
        assert_eq!(cache.size, 1 << 13);
        let find = |cache: &mut LabelCache, n: u64| cache.find(n, prefix(n));
        assert!(
            (19_000..20_000)
                .all(|n| find(&mut cache, n).is_some_and(|entry| entry.code() == n as u32))
        );
        assert!(find(&mut cache, 20_000).is_none());
    }

    /// Inserts 600,000 labels that never repeat, then reads `chunks` chunks of 500 labels. Returns
    /// how many of the last ten chunks are looked up.
    fn lookups(chunks: u64, label: impl Fn(u64) -> u64) -> usize {
        let hash = |n: u64| (n + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let prefix = |n: u64| StringPrefix::new(&n.to_le_bytes());
        let mut cache = LabelCache::default();
        for n in u64::MAX - 600_000..u64::MAX {
            cache.remember(hash(n), Entry::new(hash(n), prefix(n), 0, 0));
        }
        assert!(!cache.should_look_up(1));
        assert_eq!(cache.size, FEW);
        let mut lookups = 0;
        for chunk in 0..chunks {
            if cache.should_look_up(500) {
                lookups += usize::from(chunk + 10 >= chunks);
                for label in (chunk * 500..(chunk + 1) * 500).map(&label) {
                    if cache.find(hash(label), prefix(label)).is_none() {
                        cache.remember(hash(label), Entry::new(hash(label), prefix(label), 0, 0));
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
        // Each label has two rows; one label has all rows; one label has 7 of 8 chunks; one label
        // has 1 of 10 rows.
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
    fn hash_bits_distinguish_long_labels_with_equal_prefixes() {
        let mut cache = LabelCache::default();
        let prefix = StringPrefix::new(&[b'a'; 30]);
        let hashes = [7, 1 << PLACE_BITS | 7];
        for (hash, place) in hashes.into_iter().zip([0, (1 << PLACE_BITS) - 1]) {
            cache.remember(hash, Entry::new(hash, prefix, place, place as u32));
        }
        let places = hashes.map(|hash| cache.find(hash, prefix).map(Entry::place));
        assert_eq!(places, [Some(0), Some((1 << PLACE_BITS) - 1)]);
        assert!(cache.find(2 << PLACE_BITS | 7, prefix).is_none());
    }

    #[test]
    fn a_bulk_lookup_equals_single_lookups_of_short_labels() {
        let bytes: Vec<Vec<u8>> = (0..2000).map(|n: usize| vec![n as u8; n % 30]).collect();
        let labels: Vec<PrefixedString<'_>> =
            bytes.iter().map(|bytes| PrefixedString::new(bytes)).collect();
        // Some labels have the same line, and some labels have the same hash.
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
    fn a_new_cache_in_reused_memory_is_empty() {
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
