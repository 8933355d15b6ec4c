//! A compact hash table of labels by row number. Labels are found by hash and confirmed by their
//! bytes.

use ahash::RandomState;

use crate::error::{Error, Result};
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::random::entropy::keyed_hash;

/// The most items: row numbers have 32 bits.
const LIMIT: usize = u32::MAX as usize;

/// Labels of one type, numbered in the order of their arrival.
pub struct ItemTable {
    labels: Labels,
    /// Open addressing, at most three quarters full: a row number plus one, or zero if free.
    slots: Vec<u32>,
    hash: RandomState,
}

impl ItemTable {
    /// Creates an empty table. Its hash key comes from the operating system, so that nobody can
    /// choose labels that collide.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no randomness.
    pub fn new(label_type: LabelType) -> Result<Self> {
        Ok(Self { labels: Labels::new(label_type), slots: vec![0; 8], hash: keyed_hash()? })
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
        match self.slots[self.place(label)] {
            0 => None,
            row => Some(row as usize - 1),
        }
    }

    /// Adds a label, unless it is present.
    ///
    /// # Errors
    /// [`Error::Resource`] beyond 2^32 - 1 items.
    pub fn insert(&mut self, label: &[u8]) -> Result<()> {
        let rows = self.labels.len();
        if rows == LIMIT {
            return Err(Error::Resource(
                "a stream holds at most 2^32 - 1 items; start another stream for new items",
            ));
        }
        if 4 * (rows + 1) > 3 * self.slots.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            for row in 0..rows {
                let place = self.labels.with_bytes(row, |label| self.place(label));
                self.slots[place] = row as u32 + 1;
            }
        }
        let place = self.place(label);
        if self.slots[place] == 0 {
            self.labels.make_room(label.len())?;
            self.labels.push_bytes(label);
            self.slots[place] = rows as u32 + 1;
        }
        Ok(())
    }

    /// Returns the slot of a label, or the free slot where it belongs.
    fn place(&self, label: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = self.hash.hash_one(label) as usize & mask;
        loop {
            match self.slots[place] {
                0 => return place,
                row if self.labels.with_bytes(row as usize - 1, |known| known == label) => {
                    return place;
                }
                _ => place = (place + 1) & mask,
            }
        }
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
                assert!(4 * table.labels().len() <= 3 * table.slots.len());
            }
            for n in 0..1000_u64 {
                assert_eq!(table.find(&n.to_le_bytes()), Some(n as usize));
            }
            assert_eq!(table.labels().len(), 1000);
        }
    }
}
