//! Strings by row, concatenated in one allocation.

use std::collections::TryReserveError;

use crate::error::{Error, Result};
use crate::labels::offsets::Offsets;
use crate::string_prefix::{PrefixedString, StringPrefix};

pub(super) const NO_MEMORY: Error = Error::Resource(
    "the distinct items do not fit into memory; count fewer rows at a time, or use a machine with more memory",
);

/// Strings concatenated in one allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    ends: Offsets,
    bytes: Vec<u8>,
}

impl Strings {
    /// Returns the number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.len() == 0
    }

    /// Removes all strings.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }

    /// Adds a string.
    #[inline]
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Adds a string whose prefix is known.
    #[inline]
    pub fn push_marked(&mut self, string: PrefixedString<'_>) {
        if !string.mark.is_whole() {
            return self.push(string.bytes);
        }
        // Append all 24 bytes of the prefix and truncate, so that no branch depends on the length.
        let end = self.bytes.len() + string.mark.len;
        self.bytes.extend_from_slice(&string.mark.bytes());
        self.bytes.truncate(end);
        self.ends.push(end);
    }

    /// Returns whether the string of a row equals `string`.
    #[inline]
    #[must_use]
    pub fn is(&self, row: usize, string: PrefixedString<'_>) -> bool {
        let cell = self.ends.cell(row);
        if string.mark.is_whole() {
            StringPrefix::of_cell(&self.bytes, cell) == string.mark
        } else {
            &self.bytes[cell] == string.bytes
        }
    }

    /// Returns the bytes of memory that the strings hold.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.bytes.capacity() + self.ends.bytes_used()
    }

    /// Returns the bytes of the strings and of their ends. In contrast to the memory that they hold, one string changes
    /// this number by its own size.
    #[must_use]
    pub fn bytes_filled(&self) -> usize {
        self.bytes.len() + self.len() * size_of::<u32>()
    }

    /// Makes room for more strings and bytes.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is not enough memory.
    #[inline]
    pub fn make_room(&mut self, strings: usize, bytes: usize) -> Result<()> {
        self.ends.try_reserve(strings).map_err(|_| NO_MEMORY)?;
        self.bytes.try_reserve(bytes).map_err(|_| NO_MEMORY)
    }

    /// Reserves room for further strings and bytes. `more` computes the number of further strings from
    /// the present number of strings, and likewise for bytes.
    pub(super) fn try_reserve(
        &mut self,
        more: impl Fn(usize) -> usize,
    ) -> std::result::Result<(), TryReserveError> {
        self.ends.try_reserve(more(self.ends.len()))?;
        self.bytes.try_reserve(more(self.bytes.len()))
    }

    /// Adds the strings of another list.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is not enough memory.
    pub(super) fn append(&mut self, others: &Self) -> Result<()> {
        self.make_room(others.len(), others.bytes.len())?;
        self.bytes.extend_from_slice(&others.bytes);
        self.ends.append(&others.ends);
        Ok(())
    }

    /// Returns the string of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.ends.cell(row)]
    }

    /// Returns the bytes of all strings, concatenated.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the end of each string among the bytes of all strings.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|row| self.ends.end(row))
    }

    /// Returns the string of a row with its prefix.
    #[inline]
    #[must_use]
    pub(super) fn prefixed(&self, row: usize) -> PrefixedString<'_> {
        let cell = self.ends.cell(row);
        let mark = StringPrefix::of_cell(&self.bytes, cell.clone());
        PrefixedString { mark, bytes: &self.bytes[cell] }
    }

    /// Returns the strings of some rows, in that order.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is not enough memory.
    pub(super) fn select(&self, rows: &[usize]) -> Result<Self> {
        let mut selected = Self::default();
        let bytes: usize = rows.iter().map(|&row| self.ends.cell(row).len()).sum();
        selected.make_room(rows.len(), bytes + StringPrefix::WHOLE)?;
        for &row in rows {
            let cell = self.ends.cell(row);
            let mark = StringPrefix::of_cell(&self.bytes, cell.clone());
            selected.push_marked(PrefixedString { mark, bytes: &self.bytes[cell] });
        }
        Ok(selected)
    }
}
