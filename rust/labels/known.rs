//! Labels that are known in advance, found among other labels by hash and confirmed by their bytes.

use prefetch_index::prefetch_index;

use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::interner::TOO_MANY;
use crate::labels::strings::NO_MEMORY;
use crate::labels::{Labels, NO_CODE};

/// Labels looked up at a time.
const AT_ONCE: usize = 1 << 8;
/// Stands for a known label that other labels lack.
const ABSENT: i64 = -1;
/// Stands for a label that is not released. No noisy count is as small.
const UNRELEASED: i64 = i64::MIN;

/// Distinct labels of one type with a hash table of their rows.
pub struct KnownLabels {
    labels: Labels,
    /// A hash table with linear probing, at most half full: the hash and the row of each label.
    slots: Vec<(u32, u32)>,
    keys: HashKeys,
}

/// The counts of labels, split by [`KnownLabels::split`].
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    /// The count of each label, and zero for known labels.
    pub others: Vec<i64>,
    /// The count of each known label, and zero for an absent one.
    pub known: Vec<i64>,
    /// The row of each known label among the labels, and -1 for an absent one.
    pub places: Vec<i64>,
}

impl KnownLabels {
    /// Numbers labels by row. Returns `None` if a label repeats. The keys of the hash come from the
    /// operating system, so that nobody can choose labels that collide.
    ///
    /// # Errors
    /// [`Error::Entropy`](crate::error::Error::Entropy) if the operating system gives no randomness.
    /// [`Error::Resource`](crate::error::Error::Resource) beyond 2^32 labels, or if there is not
    /// enough memory.
    pub fn new(labels: Labels) -> Result<Option<Self>> {
        let len = labels.len();
        if len >= NO_CODE as usize {
            return Err(TOO_MANY);
        }
        let mut slots = Vec::new();
        slots.try_reserve_exact(2 * len + 1).map_err(|_| NO_MEMORY)?;
        slots.resize(2 * len + 1, (0, NO_CODE));
        let empty = Labels::new(labels.label_type());
        let mut known = Self { labels: empty, slots, keys: HashKeys::from_os()? };
        let mut hashes = [0; AT_ONCE];
        for start in (0..len).step_by(AT_ONCE) {
            let hashes = &mut hashes[..AT_ONCE.min(len - start)];
            known.hash(&labels, start, hashes);
            known.candidates(&labels, hashes, &mut [0; AT_ONCE]);
            for (row, &hash) in (start..).zip(hashes.iter()) {
                match known.find(hash, |code| labels.equals(code, &labels, row)) {
                    Ok(_) => return Ok(None),
                    Err(slot) => known.slots[slot] = (hash, row as u32),
                }
            }
        }
        known.labels = labels;
        Ok(Some(known))
    }

    /// Returns the labels by row.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the labels by row and frees the table.
    #[must_use]
    pub fn into_labels(self) -> Labels {
        self.labels
    }

    /// Splits the counts of `labels` into the counts of other labels and the counts of known labels.
    ///
    /// Labels of another type differ; integers are equal if their values are equal. `counts` must be as
    /// long as `labels`.
    #[must_use]
    pub fn split(&self, labels: &Labels, counts: &[i64]) -> Split {
        let len = self.labels.len();
        let mut split =
            Split { others: counts.to_vec(), known: vec![0; len], places: vec![ABSENT; len] };
        if !self.labels.comparable(labels) {
            return split;
        }
        let Split { others, known, places } = &mut split;
        let (mut hashes, mut codes) = ([0; AT_ONCE], [NO_CODE; AT_ONCE]);
        for (number, counts) in others.chunks_mut(AT_ONCE).enumerate() {
            let start = number * AT_ONCE;
            let hashes = &mut hashes[..counts.len()];
            self.hash(labels, start, hashes);
            self.candidates(&self.labels, hashes, &mut codes);
            for (row, ((&hash, &code), count)) in
                (start..).zip(hashes.iter().zip(&codes).zip(counts))
            {
                if code == NO_CODE {
                    continue;
                }
                let is = |code| self.labels.equals(code, labels, row);
                let found = if is(code as usize) { Ok(code as usize) } else { self.find(hash, is) };
                if let Ok(code) = found {
                    known[code] = std::mem::take(count);
                    places[code] = row as i64;
                }
            }
        }
        split
    }

    /// Returns the known labels `kept` with their noisy counts, together with the `rows` of `labels` and
    /// their noisy counts. If the labels have no type in common, returns the known
    /// labels alone, or the others if none is kept.
    ///
    /// `noisy` has a count for each known label, and `passed` for each of `rows`. `places` are from
    /// [`Self::split`]. The type of integers is signed if all fit, and otherwise unsigned. The order is
    /// that of `labels` and thus near the order of the counts, so that sorting the labels reads memory
    /// nearly in order.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is not enough memory.
    pub fn join(
        &self,
        (kept, noisy, places): (&[usize], &[i64], &[i64]),
        labels: &Labels,
        (rows, passed): (&[usize], &[i64]),
    ) -> Result<(Labels, Vec<i64>)> {
        let of_kept = |kept: &[usize]| kept.iter().map(|&row| noisy[row]).collect::<Vec<i64>>();
        let own = self.labels.label_type();
        if own != labels.label_type() || matches!(labels, Labels::Unsigned(_)) {
            let mut joined = match (kept, rows) {
                ([], []) => return Ok((Labels::new(own), Vec::new())),
                ([], _) => Labels::new(labels.label_type()),
                _ => self.labels.select(kept)?,
            };
            let mut counts = of_kept(kept);
            if joined.append_any(&labels.select(rows)?)? {
                counts.extend(passed);
            }
            return Ok((joined, counts));
        }
        let mut by_row = vec![UNRELEASED; labels.len()];
        rows.iter().zip(passed).for_each(|(&row, &count)| by_row[row] = count);
        let mut absent = Vec::new();
        for &row in kept {
            match by_row.get_mut(places[row] as usize) {
                Some(count) => *count = noisy[row],
                None => absent.push(row),
            }
        }
        let most = rows.len() + kept.len();
        let (mut counts, mut rows) =
            (Vec::with_capacity(most), Vec::with_capacity(most - absent.len()));
        for (&count, row) in by_row.iter().zip(0..) {
            if count != UNRELEASED {
                counts.push(count);
                rows.push(row);
            }
        }
        counts.extend(of_kept(&absent));
        let mut joined = labels.select(&rows)?;
        joined.append(&self.labels.select(&absent)?)?;
        Ok((joined, counts))
    }

    /// Returns the row of a label, or else the free slot for it.
    #[inline]
    fn find(&self, hash: u32, is: impl Fn(usize) -> bool) -> std::result::Result<usize, usize> {
        let mut slot = self.first_slot(hash);
        loop {
            let (other, code) = self.slots[slot];
            if code == NO_CODE {
                return Err(slot);
            }
            if other == hash && is(code as usize) {
                return Ok(code as usize);
            }
            slot = if slot + 1 == self.slots.len() { 0 } else { slot + 1 };
        }
    }

    #[inline]
    fn first_slot(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.slots.len() as u64) >> 32) as usize
    }

    /// Computes the hashes of the labels from row `start` on.
    #[inline]
    fn hash(&self, labels: &Labels, start: usize, hashes: &mut [u32]) {
        let keys = &self.keys;
        match labels {
            Labels::Signed(values) => fill(&values[start..], hashes, |v| keys.integer(v as u64)),
            Labels::Unsigned(values) => fill(&values[start..], hashes, |v| keys.integer(v)),
            Labels::Text(strings) | Labels::Binary(strings) => {
                for (hash, row) in hashes.iter_mut().zip(start..) {
                    *hash = keys.string(strings.prefixed(row)) as u32;
                }
            }
        }
    }

    /// Writes the row of the first label with each hash to `codes`, or [`NO_CODE`] if there is none. Loads this label. The
    /// loads of a batch overlap, so its lookups wait for memory twice in all.
    #[inline]
    fn candidates(&self, labels: &Labels, hashes: &[u32], codes: &mut [u32]) {
        for &hash in hashes {
            prefetch_index(&self.slots, self.first_slot(hash));
        }
        let mut all = 0;
        for (code, &hash) in codes.iter_mut().zip(hashes) {
            *code = NO_CODE;
            if let Ok(row) = self.find(hash, |_| true) {
                all ^= labels.first_byte(row);
                *code = row as u32;
            }
        }
        std::hint::black_box(all);
    }
}

#[inline]
fn fill<T: Copy>(values: &[T], hashes: &mut [u32], hash_of: impl Fn(T) -> u64) {
    for (hash, &value) in hashes.iter_mut().zip(values) {
        *hash = hash_of(value) as u32;
    }
}

impl Labels {
    /// Returns whether labels of both lists may be equal.
    fn comparable(&self, others: &Self) -> bool {
        let (a, b) = (self.label_type(), others.label_type());
        a == b || a.is_integer() && b.is_integer()
    }

    /// Returns whether a label equals a label of another list. The lists must be comparable.
    #[inline]
    fn equals(&self, row: usize, others: &Self, other: usize) -> bool {
        match (self, others) {
            (Self::Signed(a), Self::Signed(b)) => a[row] == b[other],
            (Self::Unsigned(a), Self::Unsigned(b)) => a[row] == b[other],
            (Self::Signed(a), Self::Unsigned(b)) => u64::try_from(a[row]) == Ok(b[other]),
            (Self::Unsigned(a), Self::Signed(b)) => Ok(a[row]) == u64::try_from(b[other]),
            (Self::Text(a), Self::Text(b)) | (Self::Binary(a), Self::Binary(b)) => {
                a.is(row, b.prefixed(other))
            }
            _ => false,
        }
    }

    /// Returns the first byte of a label, or zero, for prefetching.
    #[inline]
    fn first_byte(&self, row: usize) -> u8 {
        match self {
            Self::Signed(values) => values[row] as u8,
            Self::Unsigned(values) => values[row] as u8,
            Self::Text(strings) | Self::Binary(strings) => {
                strings.get(row).first().copied().unwrap_or(0)
            }
        }
    }

    /// Adds labels of another list. Returns false and adds none if no type holds all labels. Integers
    /// become signed if all fit, and otherwise unsigned.
    fn append_any(&mut self, others: &Self) -> Result<bool> {
        let same = self.label_type() == others.label_type();
        if same && !matches!(self, Self::Unsigned(_)) {
            return self.append(others).map(|()| true);
        }
        let Some(mut all) = self.whole() else { return Ok(others.is_empty()) };
        let (own, more) = (all.len(), others.whole());
        let alike = more.is_some() || others.is_empty();
        all.extend(more.unwrap_or_default());
        let joined = if alike { Self::of_whole(&all) } else { None };
        let added = joined.is_some();
        if let Some(labels) = joined.or_else(|| Self::of_whole(&all[..own])) {
            *self = labels;
        }
        Ok(added)
    }

    /// Returns integers of either type; `None` for text and bytes.
    fn whole(&self) -> Option<Vec<i128>> {
        match self {
            Self::Signed(values) => Some(values.iter().map(|&v| v.into()).collect()),
            Self::Unsigned(values) => Some(values.iter().map(|&v| v.into()).collect()),
            _ => None,
        }
    }

    /// Returns integers as signed labels if all fit, or else as unsigned labels if all fit.
    fn of_whole(values: &[i128]) -> Option<Self> {
        fn all<T: TryFrom<i128>>(values: &[i128]) -> Option<Vec<T>> {
            values.iter().map(|&value| T::try_from(value).ok()).collect()
        }
        all(values).map(Self::Signed).or_else(|| all(values).map(Self::Unsigned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Strings;

    fn text(labels: &[&str]) -> Labels {
        let mut strings = Strings::default();
        for label in labels {
            strings.push(label.as_bytes());
        }
        Labels::Text(strings)
    }

    fn known(labels: Labels) -> KnownLabels {
        KnownLabels::new(labels).unwrap().unwrap()
    }

    #[test]
    fn a_label_that_repeats_is_found() {
        assert!(KnownLabels::new(text(&["a", "b", "a"])).unwrap().is_none());
        assert!(KnownLabels::new(text(&["", "a", "a\0"])).unwrap().is_some());
        assert!(KnownLabels::new(Labels::Signed(vec![1, -1, 1])).unwrap().is_none());
        let long = "x".repeat(40);
        assert!(KnownLabels::new(text(&[&long, &long])).unwrap().is_none());
        assert!(KnownLabels::new(text(&[&long, &long[1..]])).unwrap().is_some());
    }

    #[test]
    fn counts_are_split_by_label() {
        for few in [1, 7, 255, 256, 257, 3000] {
            let listed: Vec<i64> = (0..few).map(|n| 3 * n - 600).collect();
            let present: Vec<i64> = (0..2000).map(|n| 2 * n - 600).collect();
            let counts: Vec<i64> = (1..=2000).collect();
            let names = |values: &[i64]| {
                let names: Vec<String> = values.iter().map(|v| format!("item {v:>30}")).collect();
                text(&names.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let is_known = |value: &i64| listed.contains(value);
            let others: Vec<i64> = present
                .iter()
                .zip(&counts)
                .map(|(value, &count)| if is_known(value) { 0 } else { count })
                .collect();
            let of_known: Vec<i64> = listed
                .iter()
                .map(|value| present.iter().position(|v| v == value).map_or(0, |row| counts[row]))
                .collect();
            let places = listed
                .iter()
                .map(|value| present.iter().position(|v| v == value).map_or(-1, |row| row as i64))
                .collect();
            let expected = Split { others, known: of_known, places };
            let whole = known(Labels::Signed(listed.clone()));
            assert_eq!(whole.split(&Labels::Signed(present.clone()), &counts), expected);
            assert_eq!(known(names(&listed)).split(&names(&present), &counts), expected);
        }
    }

    #[test]
    fn labels_with_equal_hashes_are_distinguished() {
        // About a hundred of these labels have the 32-bit hash of another known label.
        let listed: Vec<i64> = (0..1_000_000).map(|n| 2 * n).collect();
        let present: Vec<i64> = (0..1_000_000).rev().collect();
        let counts: Vec<i64> = (1..=1_000_000).collect();
        let found = known(Labels::Signed(listed)).split(&Labels::Signed(present), &counts);
        let of = |label: i64| if label < 1_000_000 { 1_000_000 - label } else { 0 };
        assert!((0_i64..).zip(&found.known).all(|(n, &count)| count == of(2 * n)));
        assert!((0_i64..).zip(&found.places).all(|(n, &place)| place == of(2 * n) - 1));
        let unknown = |row: i64| if row % 2 == 0 { row + 1 } else { 0 };
        assert!((0_i64..).zip(&found.others).all(|(row, &count)| count == unknown(row)));
    }

    fn split(known: &KnownLabels, labels: &Labels, counts: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let split = known.split(labels, counts);
        (split.others, split.known)
    }

    #[test]
    fn integers_are_equal_by_value_and_other_types_differ() {
        let unsigned = Labels::Unsigned(vec![u64::MAX, 7]);
        let signed = Labels::Signed(vec![-1, 7, 8]);
        let found = split(&known(signed.clone()), &unsigned, &[5, 6]);
        assert_eq!(found, (vec![5, 0], vec![0, 6, 0]));
        let found = split(&known(unsigned), &signed, &[1, 2, 3]);
        assert_eq!(found, (vec![1, 0, 3], vec![0, 2]));
        let found = split(&known(text(&["7"])), &signed, &[1, 2, 3]);
        assert_eq!(found, (vec![1, 2, 3], vec![0]));
        let mut strings = Strings::default();
        strings.push(b"7");
        let found = split(&known(Labels::Binary(strings)), &text(&["7"]), &[4]);
        assert_eq!(found, (vec![4], vec![0]));
    }

    #[test]
    fn joined_labels_have_a_common_type_or_are_the_known_labels() {
        let join = |known: &KnownLabels, kept: &[usize], labels: &Labels, rows: &[usize]| {
            let counts: Vec<i64> = (0..labels.len() as i64).collect();
            let places = known.split(labels, &counts).places;
            let passed: Vec<i64> = rows.iter().map(|&row| counts[row]).collect();
            known.join((kept, &[50, 60], &places), labels, (rows, &passed)).unwrap()
        };
        let signed = known(Labels::Signed(vec![-1, 7]));
        let large = Labels::Unsigned(vec![1 << 63, 3]);
        let of = |kept: &[usize], rows: &[usize]| join(&signed, kept, &large, rows);
        assert_eq!(of(&[1], &[1]), (Labels::Signed(vec![7, 3]), vec![60, 1]));
        assert_eq!(of(&[1], &[0]), (Labels::Unsigned(vec![7, 1 << 63]), vec![60, 0]));
        assert_eq!(of(&[0], &[0]), (Labels::Signed(vec![-1]), vec![50]));
        assert_eq!(of(&[], &[0]), (Labels::Unsigned(vec![1 << 63]), vec![0]));
        assert_eq!(of(&[], &[]), (Labels::Signed(vec![]), vec![]));
        let named = text(&["a", "b"]);
        let of = |kept: &[usize], rows: &[usize]| join(&signed, kept, &named, rows);
        assert_eq!(of(&[0], &[1]), (Labels::Signed(vec![-1]), vec![50]));
        assert_eq!(of(&[0], &[]), (Labels::Signed(vec![-1]), vec![50]));
        assert_eq!(of(&[], &[1]), (text(&["b"]), vec![1]));
        let texts = known(text(&["c", "b"]));
        let of = |kept: &[usize], rows: &[usize]| join(&texts, kept, &named, rows);
        assert_eq!(of(&[0, 1], &[0]), (text(&["a", "b", "c"]), vec![0, 60, 50]));
        assert_eq!(of(&[1], &[]), (text(&["b"]), vec![60]));
        assert_eq!(of(&[], &[]), (text(&[]), vec![]));
    }
}
