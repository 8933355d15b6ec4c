//! Candidates: the items that users may keep, by number. A hash of the user and the item orders the
//! candidates of each user.

use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::{LabelType, Labels};
use crate::string_prefix::PrefixedString;

/// Items by number.
pub(crate) struct Candidates {
    pub labels: Labels,
    /// The hashes of strings by number. The hash of an integer is computed when needed, which is
    /// faster.
    hashes: Vec<u64>,
}

impl Candidates {
    /// Creates an empty list of a type.
    pub fn new(item_type: LabelType) -> Self {
        Self { labels: Labels::new(item_type), hashes: Vec::new() }
    }

    /// Creates the list of integers.
    pub fn of_integers(labels: Labels) -> Self {
        Self { labels, hashes: Vec::new() }
    }

    /// Adds an item by its bytes; see [`Labels::push_bytes`].
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is no memory for the item.
    pub fn push(&mut self, bytes: &[u8], keys: &HashKeys) -> Result<()> {
        self.labels.make_room(bytes.len())?;
        if !self.labels.label_type().is_integer() {
            self.hashes.push(keys.string(PrefixedString::new(bytes)));
        }
        self.labels.push_bytes(bytes);
        Ok(())
    }

    /// Returns the priority of an item among a user's items: 64 bits that are random for every user and
    /// item. Smaller is better.
    #[inline]
    pub fn place(&self, user: u128, item: usize, keys: &HashKeys) -> u64 {
        self.priority(user, self.rank(item), keys)
    }

    /// Returns an item's rank: an integer, or the hash of a string.
    #[inline]
    pub fn rank(&self, item: usize) -> u64 {
        match &self.labels {
            Labels::Signed(values) => values[item].cast_unsigned(),
            Labels::Unsigned(values) => values[item],
            Labels::Text(_) | Labels::Binary(_) => self.hashes[item],
        }
    }

    /// Returns the priority of the item with this rank.
    #[inline]
    pub fn priority(&self, user: u128, rank: u64, keys: &HashKeys) -> u64 {
        let is_integer = self.labels.label_type().is_integer();
        keys.priority(user, if is_integer { keys.integer(rank) } else { rank })
    }

    /// Returns the ranks of all items by number.
    pub fn ranks(&self) -> impl Iterator<Item = u64> {
        (0..self.labels.len()).map(|item| self.rank(item))
    }

    /// Returns a bound on the bytes of memory in use. It grows with each item by the item's size: the memory itself
    /// doubles at times, so one item could decide whether all of them fit.
    pub fn bytes_used(&self) -> usize {
        2 * (self.labels.bytes_filled() + self.hashes.len() * size_of::<u64>())
    }
}
