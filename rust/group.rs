//! Labels to codes: every row gets a partition, by a keyed hash of its item, and a key that is equal
//! exactly for equal items within the partition. An integer is its own key; a string is looked up by its
//! hash and confirmed by its bytes, so that no collision ever merges two items.

use std::ops::Range;
use std::sync::Arc;

use crate::column::{Column, LabelType};
use crate::error::{Error, Result};
use crate::hash::{HashKeys, PARTITION_BITS, PARTITIONS};
use crate::interner::Interner;
use crate::shelf::{Post, Shelves};

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
    const UNKNOWN: Self = Self { partition: Self::DROPPED - 1, key: 0 };
    const NONE: Self = Self { partition: Self::DROPPED, key: 0 };
}

/// What takes rows of partition, key and user.
pub type Sink<'a> = &'a mut dyn FnMut(usize, u64, u128);

/// Empties shelves into `sink`, looking their labels up.
///
/// # Errors
/// [`Error::Resource`] beyond 2^32 items.
pub fn empty(
    shelves: Shelves,
    interners: &mut [Interner],
    is_text: bool,
    sink: Sink<'_>,
) -> Result<()> {
    for (partition, shelf) in shelves {
        shelf.empty(&mut interners[partition], is_text, |k, u| sink(partition, k, u))?;
    }
    Ok(())
}

/// One thread's labels so far.
pub struct Grouper {
    keys: Arc<HashKeys>,
    interners: Option<Vec<Interner>>,
    post: Post,
    is_text: bool,
    memo: Vec<Group>,
    memo_of: u64,
    scratch: Vec<u64>,
}

impl Grouper {
    /// A grouper of items of a type. With `interned` integers become codes too.
    #[must_use]
    pub fn new(keys: Arc<HashKeys>, post: Post, items: LabelType, interned: bool) -> Self {
        let interned = interned || !items.is_integer();
        Self {
            keys,
            interners: interned.then(|| (0..PARTITIONS).map(|_| Interner::default()).collect()),
            post,
            is_text: items == LabelType::Text,
            memo: Vec::new(),
            memo_of: u64::MAX,
            scratch: Vec::new(),
        }
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
        Err(Error::Input("text is shelved, not grouped at once"))
    }

    /// Whether the cells of a column are numbers that stand for themselves.
    #[must_use]
    pub fn keeps_keys(&self, items: &Column) -> bool {
        self.interners.is_none() && items.is_keyed()
    }

    /// Whether items must be shelved: strings that are not in a dictionary.
    #[must_use]
    pub fn shelves(items: &Column) -> bool {
        items.dictionary().is_none() && !items.label_type().is_integer()
    }

    /// The shelves of this thread's partitions that others have filled by now, for [`Self::empty`]. Their users may
    /// be wider than any that this thread has seen.
    pub fn received(&mut self) -> Shelves {
        self.post.received()
    }

    /// Empties shelves into `sink`.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 items.
    pub fn empty(&mut self, shelves: Shelves, sink: Sink<'_>) -> Result<()> {
        match &mut self.interners {
            Some(interners) => empty(shelves, interners, self.is_text, sink),
            None => Ok(()),
        }
    }

    /// Whether more is under way between threads than memory has room for.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.post.is_congested()
    }

    /// How many bytes of memory the labels hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.interners.iter().flatten().map(Interner::held).sum()
    }

    /// The labels so far, which are forgotten.
    pub fn take(&mut self) -> Option<Vec<Interner>> {
        self.memo_of = u64::MAX;
        self.interners.as_mut().map(|all| all.iter_mut().map(std::mem::take).collect())
    }

    /// Puts strings and their users on the shelves of their partitions. Full shelves of this thread's are emptied into `sink`, which takes partition, key and user.
    ///
    /// # Errors
    /// [`Error::Input`] where the array contradicts itself, [`Error::Resource`] beyond 2^32 items.
    pub fn shelve(
        &mut self,
        items: &Column,
        rows: Range<usize>,
        null: &mut [bool],
        users: &[u128],
        sink: Sink<'_>,
    ) -> Result<()> {
        items.mark_nulls(rows.clone(), null);
        let null = &*null;
        let Self { keys, interners, post, is_text, .. } = self;
        let Some(interners) = interners else { return Ok(()) };
        let mut place = 0;
        items.bytes(rows, null, |bytes| {
            if !null[place] {
                let hash = keys.string(bytes);
                let partition = (hash >> (64 - PARTITION_BITS)) as usize;
                if let Some(shelf) = post.push(partition, hash as u32, bytes, users[place]) {
                    shelf
                        .empty(&mut interners[partition], *is_text, |k, u| sink(partition, k, u))?;
                }
            }
            place += 1;
            Ok(())
        })
    }

    /// The labels by partition, where items were interned, and the last shelves, for [`empty`]: this thread's own,
    /// and what the others send until they have closed too.
    #[must_use]
    pub fn close(self) -> (Option<Vec<Interner>>, Shelves) {
        (self.interners, self.post.close())
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
            self.memo.resize(values.len(), Group::UNKNOWN);
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
            into.push(if known == Group::UNKNOWN {
                self.decode(values, index as usize)?
            } else {
                known
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
        self.memo[index] = group;
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
        let key = all[partition as usize].intern_valid(hash as u32, bytes, self.is_text)?;
        Ok(key.map_or(Group::NONE, |key| Group { partition, key: key.into() }))
    }
}
