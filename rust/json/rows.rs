//! Collects the cells of the requested keys as Arrow columns of text.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;

use super::found::{Found, Reason};
use super::object::{Field, Object};
use crate::error::{Error, Result};

const REPEATED: Error = Error::Parameter("a key is requested more than once");

/// A collector of the requested keys of lines.
#[derive(Debug)]
pub struct Rows {
    object: Object,
    columns: Vec<StringBuilder>,
    /// The number of rows and of bytes in `columns`.
    whole: usize,
    held: usize,
    found: Found,
}

impl Rows {
    /// Creates an empty collector for distinct keys.
    ///
    /// # Errors
    /// [`Error::Parameter`] if a key is repeated.
    pub fn new(fields: Vec<Field>) -> Result<Self> {
        let is_repeated = |(place, field): (usize, &Field)| {
            fields[..place].iter().any(|other| other.key == field.key)
        };
        if fields.iter().enumerate().any(is_repeated) {
            return Err(REPEATED);
        }
        let columns = fields.iter().map(|_| StringBuilder::new()).collect();
        let object = Object::new(fields);
        Ok(Self { object, columns, whole: 0, held: 0, found: Found::default() })
    }

    /// Adds the row of a line, or notes why the line is dropped. `place` is the number of the file, from zero, and of
    /// the line, from one. The line is `None` if it is too long.
    pub fn add(&mut self, place: (usize, u64), line: Option<&[u8]>) {
        let Some(line) = line else { return self.found.add(place, [Reason::Long]) };
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            return;
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return self.found.add(place, [Reason::NotText]);
        };
        if !self.object.read(text) {
            return self.found.add(place, [Reason::NotObject]);
        }
        if self.object.faults().next().is_some() {
            let reason = |(column, fault)| Reason::Value(column, fault);
            return self.found.add(place, self.object.faults().map(reason));
        }
        for (column, cell) in self.columns.iter_mut().zip(&self.object.cells) {
            column.append_option(cell.text());
            self.held += cell.text().map_or(0, str::len);
        }
        self.whole += 1;
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.whole
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole == 0
    }

    /// Returns the number of bytes of all cells.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the lines that were dropped. They are private.
    #[must_use]
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Removes all rows, and returns one text column for each requested key.
    pub fn take(&mut self) -> Vec<ArrayRef> {
        (self.whole, self.held) = (0, 0);
        self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect()
    }

    /// Loses the columns, so that the next row panics.
    #[cfg(test)]
    pub(super) fn break_cells(&mut self) {
        self.object.cells.clear();
    }
}
