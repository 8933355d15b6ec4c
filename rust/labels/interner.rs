//! Numbers distinct labels, found by hash and confirmed by their bytes.

use hashbrown::HashTable;

use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::labels::strings::NO_MEMORY;
use crate::labels::{NO_CODE, Strings};
use crate::string_prefix::PrefixedString;

/// Returned when the numbers run out.
pub(crate) const TOO_MANY: Error =
    Error::Resource("there are more than 2^32 labels; use integers, or count fewer rows at a time");

/// Labels looked up at a time.
const AT_ONCE: usize = 1 << 8;

/// Numbers the distinct labels of one partition or of a whole column in the order of their arrival.
#[derive(Default)]
pub struct Interner {
    /// The hash and the code of each label.
    codes: HashTable<(u32, u32)>,
    labels: Strings,
}

impl Interner {
    /// Forgets all labels and prepares for about `labels` new ones.
    pub fn reset(&mut self, labels: usize) {
        self.labels.clear();
        self.codes.clear();
        // Without this memory the labels may still fit: there may be fewer distinct ones.
        let _ = self.codes.try_reserve(labels, |&(hash, _)| spread(hash));
    }

    /// Returns the code of a label; a new label gets a new code.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 labels.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    pub fn intern(&mut self, hash: u32, label: PrefixedString<'_>) -> Result<u32> {
        match self.find(hash, label) {
            Some(code) => Ok(code),
            None => self.insert(hash, label),
        }
    }

    /// Appends the code of each label. A label that is NULL, or should be text but is not UTF-8,
    /// gets [`NO_CODE`].
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 labels.
    pub fn intern_all(
        &mut self,
        labels: &[PrefixedString<'_>],
        null: &[bool],
        is_text: bool,
        keys: &HashKeys,
        into: &mut Vec<u32>,
    ) -> Result<()> {
        debug_assert_eq!(labels.len(), null.len(), "each label is NULL or not");
        let mut hashes = [0; AT_ONCE];
        for (labels, null) in labels.chunks(AT_ONCE).zip(null.chunks(AT_ONCE)) {
            for (hash, &label) in hashes.iter_mut().zip(labels) {
                *hash = keys.string(label) as u32;
            }
            self.prefetch(&hashes[..labels.len()]);
            for ((&label, &hash), &is_null) in labels.iter().zip(&hashes).zip(null) {
                let code = if is_null { None } else { self.intern_valid(hash, label, is_text)? };
                into.push(code.unwrap_or(NO_CODE));
            }
        }
        Ok(())
    }

    /// Loads the memory that the lookup of each hash will read. The loads overlap, so the lookups
    /// wait for memory once in all.
    fn prefetch(&self, hashes: &[u32]) {
        let load = |all: u8, &hash: &u32| {
            let code = self.codes.find(spread(hash), |&(other, _)| other == hash);
            all ^ code.map_or(0, |&(_, code)| {
                self.labels.get(code as usize).first().copied().unwrap_or(0)
            })
        };
        std::hint::black_box(hashes.iter().fold(0, load));
    }

    /// Returns the code of a label, or `None` if it should be text but is not UTF-8.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 labels.
    #[inline]
    fn intern_valid(
        &mut self,
        hash: u32,
        label: PrefixedString<'_>,
        is_text: bool,
    ) -> Result<Option<u32>> {
        if let Some(code) = self.find(hash, label) {
            return Ok(Some(code));
        }
        if is_text && !label.is_utf8() {
            return Ok(None);
        }
        self.insert(hash, label).map(Some)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    fn find(&self, hash: u32, label: PrefixedString<'_>) -> Option<u32> {
        let is =
            |&(other, code): &(u32, u32)| other == hash && self.labels.is(code as usize, label);
        self.codes.find(spread(hash), is).map(|&(_, code)| code)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    fn insert(&mut self, hash: u32, label: PrefixedString<'_>) -> Result<u32> {
        let code = u32::try_from(self.labels.len()).ok().filter(|&code| code < NO_CODE);
        let code = code.ok_or(TOO_MANY)?;
        // A prefix is written whole, so reserve at least its length.
        self.labels.make_room(1, label.bytes.len().max(24))?;
        self.codes.try_reserve(1, |&(hash, _)| spread(hash)).map_err(|_| NO_MEMORY)?;
        self.labels.push_marked(label);
        self.codes.insert_unique(spread(hash), (hash, code), |&(hash, _)| spread(hash));
        Ok(code)
    }

    /// Returns the labels by code.
    #[must_use]
    pub fn labels(&self) -> &Strings {
        &self.labels
    }

    /// Returns the labels by code and frees the table.
    #[must_use]
    pub fn into_labels(self) -> Strings {
        self.labels
    }
}

/// Returns the hash in both halves of a word: the table reads its lowest and its highest bits.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_equal_hashes_get_different_codes() {
        let mut interner = Interner::default();
        let codes: Vec<u32> = (0..100_u32)
            .map(|n| interner.intern(7, PrefixedString::new(&n.to_le_bytes())).unwrap())
            .collect();
        assert_eq!(codes, (0..100).collect::<Vec<_>>());
        assert_eq!(interner.intern(7, PrefixedString::new(&42_u32.to_le_bytes())), Ok(42));
        assert_eq!(interner.labels().len(), 100);
    }

    #[test]
    fn labels_keep_their_codes_while_the_table_grows() {
        let mut interner = Interner::default();
        interner.reset(3);
        let hash =
            |n: u32| if n.is_multiple_of(5) { u32::MAX } else { n.wrapping_mul(0x9E37_79B9) };
        for round in 0..2 {
            for n in 0..3000_u32 {
                let label = n.to_le_bytes();
                let code = interner.intern_valid(hash(n), PrefixedString::new(&label), false);
                assert_eq!(code, Ok(Some(n)), "in round {round}");
            }
        }
        assert_eq!(interner.labels().len(), 3000);
    }
}
