//! A compact hash table of labels by row number. Labels are found by hash and confirmed by their
//! bytes.

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::error::{Error, Result};
use crate::labels::strings::NO_MEMORY;
use crate::labels::{LabelType, Labels};
use crate::random::entropy::keyed_hash;

const FULL: Error =
    Error::Resource("a stream holds at most 2^32 items; start another stream for new items");

/// Labels of one type, numbered in the order of their arrival.
pub struct ItemTable {
    labels: Labels,
    rows: HashTable<u32>,
    hash: RandomState,
}

impl ItemTable {
    /// Creates an empty table. Its hash key comes from the operating system, so that nobody can
    /// choose labels that collide.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no randomness.
    pub fn new(label_type: LabelType) -> Result<Self> {
        Ok(Self { labels: Labels::new(label_type), rows: HashTable::new(), hash: keyed_hash()? })
    }

    /// Returns the type of the labels.
    #[must_use]
    pub fn label_type(&self) -> LabelType {
        self.labels.label_type()
    }

    /// Returns the labels by row.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Returns the row of a label, given by its bytes as in [`Labels::push_bytes`].
    #[must_use]
    pub fn find(&self, label: &[u8]) -> Option<usize> {
        let is = |&row: &u32| self.labels.with_bytes(row as usize, |known| known == label);
        self.rows.find(self.hash.hash_one(label), is).map(|&row| row as usize)
    }

    /// Adds a label, unless it is present.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 items, or if there is not enough memory.
    pub fn insert(&mut self, label: &[u8]) -> Result<()> {
        let Self { labels, rows, hash } = self;
        let is = |&row: &u32| labels.with_bytes(row as usize, |known| known == label);
        let hash_of = |&row: &u32| labels.with_bytes(row as usize, |known| hash.hash_one(known));
        rows.try_reserve(1, hash_of).map_err(|_| NO_MEMORY)?;
        if let Entry::Vacant(entry) = rows.entry(hash.hash_one(label), is, hash_of) {
            let row = u32::try_from(labels.len()).map_err(|_| FULL)?;
            labels.make_room(label.len())?;
            labels.push_bytes(label);
            entry.insert(row);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_rows_while_the_table_grows() {
        for label_type in [LabelType::Signed, LabelType::Text] {
            let mut table = ItemTable::new(label_type).unwrap();
            for n in 0..1000_u64 {
                assert_eq!(table.find(&n.to_le_bytes()), None);
                table.insert(&n.to_le_bytes()).unwrap();
                table.insert(&n.to_le_bytes()).unwrap();
            }
            for n in 0..1000_u64 {
                assert_eq!(table.find(&n.to_le_bytes()), Some(n as usize));
            }
            assert_eq!(table.labels().len(), 1000);
        }
    }
}
