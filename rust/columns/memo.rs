//! Results for the values of a dictionary, so that each value is read once.

use std::ops::Range;

use crate::columns::Column;
use crate::columns::integers::OUT_OF_RANGE;
use crate::error::Result;

/// Results for the dictionary of one batch, computed at first use.
pub(crate) struct Memo<T> {
    found: Vec<T>,
    batch: u64,
    indices: Vec<u64>,
    /// Marks a value that was not read yet.
    unknown: T,
    /// The result for a NULL cell.
    null: T,
}

impl<T: Copy + PartialEq> Memo<T> {
    /// Creates an empty memo. No result may equal `unknown`.
    pub fn new(unknown: T, null: T) -> Self {
        Self { found: Vec::new(), batch: u64::MAX, indices: Vec::new(), unknown, null }
    }

    /// Forgets all results.
    pub fn clear(&mut self) {
        self.batch = u64::MAX;
    }

    /// Appends the result for each of `rows` of a dictionary column. Rows marked in `null` get the
    /// result for NULL. `batch` numbers the batch, and `find` reads the value at an index.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if an index is out of range. Errors of `find`.
    pub fn read(
        &mut self,
        column: &Column,
        batch: u64,
        rows: Range<usize>,
        null: &[bool],
        into: &mut Vec<T>,
        mut find: impl FnMut(usize) -> Result<T>,
    ) -> Result<()> {
        if self.batch != batch {
            self.found.clear();
            self.found.resize(column.dictionary().map_or(0, Column::len), self.unknown);
            self.batch = batch;
        }
        column.integers(rows, &mut self.indices);
        for (&index, &null) in self.indices.iter().zip(null) {
            if null {
                into.push(self.null);
                continue;
            }
            let index = usize::try_from(index).map_err(|_| OUT_OF_RANGE)?;
            let found = self.found.get_mut(index).ok_or(OUT_OF_RANGE)?;
            if *found == self.unknown {
                *found = find(index)?;
            }
            into.push(*found);
        }
        Ok(())
    }
}
