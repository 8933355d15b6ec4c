//! Labels to codes: every row gets a partition, by a keyed hash of its item, and a key that is equal
//! exactly for equal items within the partition. An integer is its own key; a string is looked up by its
//! hash and confirmed by its bytes, so that no collision ever merges two items.

use std::ops::Range;
use std::sync::Arc;

use ahash::RandomState;

use crate::column::{Column, LabelType};
use crate::error::{Error, Result};
use crate::labels::Strings;

/// The number of partitions is two to this power.
pub const PARTITION_BITS: u32 = 10;
/// How many partitions there are.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// Hash keys of one run, from the operating system: nobody can choose labels that collide.
pub struct HashKeys {
    strings: RandomState,
    users: [RandomState; 2],
    integers: [u64; 4],
}

impl HashKeys {
    /// Fresh keys.
    ///
    /// # Errors
    /// [`Error::Entropy`] where the operating system gives no randomness.
    pub fn from_os() -> Result<Self> {
        let mut seeds = [0_u64; 16];
        for seed in &mut seeds {
            *seed = getrandom::u64().map_err(|_| Error::Entropy)?;
        }
        let state = |s: &[u64]| RandomState::with_seeds(s[0], s[1], s[2], s[3]);
        Ok(Self {
            strings: state(&seeds[..4]),
            users: [state(&seeds[4..8]), state(&seeds[8..12])],
            integers: [seeds[12], seeds[13] | 1, seeds[14], seeds[15] | 1],
        })
    }

    fn string(&self, bytes: &[u8]) -> u64 {
        self.strings.hash_one(bytes)
    }

    fn integer(&self, key: u64) -> u64 {
        fold(key ^ self.integers[0], self.integers[1])
    }

    /// 96 bits that stand for a user. Two users in 10^9 collide with probability below 10^-10, and a
    /// collision could only lower a count: no user ever moves one by more than one.
    #[must_use]
    pub fn user(&self, bytes: &[u8]) -> u128 {
        let low = self.users[0].hash_one(bytes);
        let high = self.users[1].hash_one(bytes) as u32;
        u128::from(high) << 64 | u128::from(low)
    }

    /// A hash of a pair of keys, for tables that live in one partition.
    #[must_use]
    pub fn pair(&self, low: u64, high: u64) -> u64 {
        fold(low ^ self.integers[2], high ^ self.integers[3])
    }
}

/// The two halves of a product together: a fast hash of integers, where a factor is secret.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Where a row belongs: its partition and its item's key there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Below [`PARTITIONS`], or [`Group::DROPPED`].
    pub partition: u32,
    /// Equal for equal items of one partition.
    pub key: u64,
}

impl Group {
    /// The partition of a row that does not count: its user or item is NULL, or its text is not UTF-8.
    pub const DROPPED: u32 = u32::MAX;
    const NONE: Self = Self { partition: Self::DROPPED, key: 0 };
}

/// One thread's labels so far.
pub struct Grouper {
    keys: Arc<HashKeys>,
    interners: Option<Vec<Interner>>,
    is_text: bool,
    memo: Vec<Option<Group>>,
    memo_of: u64,
    scratch: Vec<u64>,
}

impl Grouper {
    /// A grouper of items of a type. With `interned` integers become codes too.
    #[must_use]
    pub fn new(keys: Arc<HashKeys>, items: LabelType, interned: bool) -> Self {
        let interned = interned || !items.is_integer();
        Self {
            keys,
            interners: interned.then(|| (0..PARTITIONS).map(|_| Interner::default()).collect()),
            is_text: items == LabelType::Text,
            memo: Vec::new(),
            memo_of: u64::MAX,
            scratch: Vec::new(),
        }
    }

    /// The labels by partition, where items were interned.
    #[must_use]
    pub fn into_interners(self) -> Option<Vec<Interner>> {
        self.interners
    }

    /// The group of every row of `rows`; rows marked in `null` are dropped, and more rows may be.
    /// `batch` numbers the array, so that a dictionary is decoded once.
    ///
    /// # Errors
    /// [`Error::Input`] where the array contradicts itself, [`Error::Resource`] beyond 2^32 items.
    pub fn group(
        &mut self,
        items: &Column,
        batch: u64,
        rows: Range<usize>,
        null: &mut [bool],
        into: &mut Vec<Group>,
    ) -> Result<()> {
        into.clear();
        items.mark_nulls(rows.clone(), null);
        if let Some(values) = items.dictionary() {
            return self.group_dictionary(items, values, batch, rows, null, into);
        }
        if items.label_type().is_integer() {
            let mut cells = std::mem::take(&mut self.scratch);
            items.integers(rows, &mut cells);
            for (&cell, &null) in cells.iter().zip(&*null) {
                into.push(if null { Group::NONE } else { self.integer(cell)? });
            }
            self.scratch = cells;
            return Ok(());
        }
        self.group_strings(items, rows, null, into)
    }

    /// Strings are looked up a block at a time: first their hashes, then the slots that the hashes name,
    /// all waiting for memory together, then one by one.
    fn group_strings(
        &mut self,
        items: &Column,
        rows: Range<usize>,
        null: &[bool],
        into: &mut Vec<Group>,
    ) -> Result<()> {
        const BLOCK: usize = 64;
        let mut cells: Vec<&[u8]> = Vec::with_capacity(BLOCK);
        let mut hashes = [0_u64; BLOCK];
        for start in rows.clone().step_by(BLOCK) {
            let block = start..rows.end.min(start + BLOCK);
            let null = &null[block.start - rows.start..block.end - rows.start];
            cells.clear();
            items.bytes(block, null, |bytes| {
                cells.push(bytes);
                Ok(())
            })?;
            for (hash, bytes) in hashes.iter_mut().zip(&cells) {
                *hash = self.keys.string(bytes);
            }
            if let Some(interners) = &self.interners {
                let interner = |hash: u64| &interners[(hash >> (64 - PARTITION_BITS)) as usize];
                let mut slots = [0_u64; BLOCK];
                for (slot, &hash) in slots.iter_mut().zip(&hashes[..cells.len()]) {
                    *slot = interner(hash).peek(hash as u32);
                }
                let labels = slots.iter().zip(&hashes);
                std::hint::black_box(labels.fold(0, |sum, (&slot, &hash)| {
                    sum ^ interner(hash).peek_label(slot, hash as u32)
                }));
            }
            for ((&bytes, &hash), &null) in cells.iter().zip(&hashes).zip(null) {
                into.push(if null { Group::NONE } else { self.string(hash, bytes)? });
            }
        }
        Ok(())
    }

    fn group_dictionary(
        &mut self,
        items: &Column,
        values: &Column,
        batch: u64,
        rows: Range<usize>,
        null: &[bool],
        into: &mut Vec<Group>,
    ) -> Result<()> {
        if self.memo_of != batch {
            self.memo.clear();
            self.memo.resize(values.len(), None);
            self.memo_of = batch;
        }
        let mut indices = std::mem::take(&mut self.scratch);
        items.integers(rows, &mut indices);
        for (&index, &null) in indices.iter().zip(null) {
            if null {
                into.push(Group::NONE);
                continue;
            }
            let known = usize::try_from(index).ok().and_then(|index| self.memo.get(index).copied());
            let known = known.ok_or(Error::Input("a dictionary index is out of range"))?;
            into.push(match known {
                Some(group) => group,
                None => self.decode(values, index as usize)?,
            });
        }
        self.scratch = indices;
        Ok(())
    }

    fn decode(&mut self, values: &Column, index: usize) -> Result<Group> {
        let mut group = Group::NONE;
        if values.is_null(index) {
        } else if values.label_type().is_integer() {
            let mut cell = Vec::new();
            values.integers(index..index + 1, &mut cell);
            group = self.integer(cell[0])?;
        } else {
            values.bytes(index..index + 1, &[false], |bytes| {
                group = self.string(self.keys.string(bytes), bytes)?;
                Ok(())
            })?;
        }
        self.memo[index] = Some(group);
        Ok(group)
    }

    #[inline]
    fn integer(&mut self, key: u64) -> Result<Group> {
        let hash = self.keys.integer(key);
        let partition = (hash >> (64 - PARTITION_BITS)) as u32;
        let key = match &mut self.interners {
            Some(all) => all[partition as usize].intern(hash as u32, &key.to_le_bytes())?.into(),
            None => key,
        };
        Ok(Group { partition, key })
    }

    #[inline]
    fn string(&mut self, hash: u64, bytes: &[u8]) -> Result<Group> {
        let partition = (hash >> (64 - PARTITION_BITS)) as u32;
        let Some(all) = &mut self.interners else { return Ok(Group::NONE) };
        let interner = &mut all[partition as usize];
        if let Some(code) = interner.find(hash as u32, bytes) {
            return Ok(Group { partition, key: code.into() });
        }
        if self.is_text && std::str::from_utf8(bytes).is_err() {
            return Ok(Group::NONE);
        }
        Ok(Group { partition, key: interner.insert(hash as u32, bytes)?.into() })
    }
}

/// The distinct labels of one partition, numbered in the order of their arrival.
#[derive(Default)]
pub struct Interner {
    /// Open addressing: the hash in the upper half, the code plus one in the lower, zero where free.
    slots: Vec<u64>,
    labels: Strings,
}

impl Interner {
    /// The code of a label, a new one where it is new.
    fn intern(&mut self, hash: u32, bytes: &[u8]) -> Result<u32> {
        match self.find(hash, bytes) {
            Some(code) => Ok(code),
            None => self.insert(hash, bytes),
        }
    }

    /// The slot where a search for this hash begins.
    #[inline]
    fn peek(&self, hash: u32) -> u64 {
        let place = hash as usize & self.slots.len().wrapping_sub(1);
        self.slots.get(place).copied().unwrap_or(0)
    }

    /// The first byte of the label of a slot, where the slot is one of this hash.
    #[inline]
    fn peek_label(&self, slot: u64, hash: u32) -> u8 {
        if slot != 0 && (slot >> 32) as u32 == hash {
            self.labels.get(slot as u32 as usize - 1).first().copied().unwrap_or(0)
        } else {
            0
        }
    }

    #[inline]
    fn find(&self, hash: u32, bytes: &[u8]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return None;
            }
            let code = (slot as u32) - 1;
            if (slot >> 32) as u32 == hash && self.labels.get(code as usize) == bytes {
                return Some(code);
            }
            place = (place + 1) & mask;
        }
    }

    fn insert(&mut self, hash: u32, bytes: &[u8]) -> Result<u32> {
        let code = u32::try_from(self.labels.len()).ok().filter(|&code| code < u32::MAX);
        let code =
            code.ok_or(Error::Resource("there are more than 2^32 items in one partition"))?;
        if 2 * self.labels.len() >= self.slots.len() {
            self.grow();
        }
        self.labels.push(bytes);
        self.place(u64::from(hash) << 32 | u64::from(code + 1));
        Ok(code)
    }

    fn grow(&mut self) {
        let larger = vec![0; (2 * self.slots.len()).max(8)];
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot != 0 {
                self.place(slot);
            }
        }
    }

    fn place(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut place = (slot >> 32) as usize & mask;
        while self.slots[place] != 0 {
            place = (place + 1) & mask;
        }
        self.slots[place] = slot;
    }

    /// Takes over the labels of another thread; returns this interner's code for each of the other's.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 items.
    pub fn absorb(&mut self, other: &Self) -> Result<Vec<u32>> {
        let mut hashes = vec![0; other.labels.len()];
        for &slot in other.slots.iter().filter(|&&slot| slot != 0) {
            hashes[slot as u32 as usize - 1] = (slot >> 32) as u32;
        }
        hashes
            .iter()
            .enumerate()
            .map(|(code, &hash)| self.intern(hash, other.labels.get(code)))
            .collect()
    }

    /// The labels by code.
    #[must_use]
    pub fn labels(&self) -> &Strings {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_hashes_of_unlike_labels_are_told_apart() {
        let mut interner = Interner::default();
        let codes: Vec<u32> =
            (0..100_u32).map(|n| interner.intern(7, &n.to_le_bytes()).unwrap()).collect();
        assert_eq!(codes, (0..100).collect::<Vec<_>>());
        assert_eq!(interner.intern(7, &42_u32.to_le_bytes()), Ok(42));
        assert_eq!(interner.labels().len(), 100);
    }

    #[test]
    fn absorbed_labels_keep_one_code_each() {
        let (mut a, mut b) = (Interner::default(), Interner::default());
        for label in ["x", "y"] {
            a.intern(label.len() as u32, label.as_bytes()).unwrap();
        }
        for label in ["y", "zz", "x"] {
            b.intern(label.len() as u32, label.as_bytes()).unwrap();
        }
        assert_eq!(a.absorb(&b), Ok(vec![1, 2, 0]));
    }
}
