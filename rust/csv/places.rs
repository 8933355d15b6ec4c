//! Finds the lines of records that are dropped, for the owner of the data. The lines are private.

use super::rows::{Dropped, Rows};
use super::table::{Batches, Table, is_full};
use crate::error::Result;
use crate::files::Next;

/// The most places that are kept for each reason.
const MOST: usize = 5;

/// Why a record is dropped, or why a file is suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The record has fewer cells than the header.
    Short,
    /// A requested cell is too long.
    Long,
    /// A requested cell is not UTF-8.
    NotText,
    /// The file ends in a quoted cell of this record.
    Unclosed,
}

/// A record, by its file and the line on which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The reason.
    pub reason: Reason,
    /// The number of the file, from zero.
    pub file: usize,
    /// The number of the line, from one. The header is on the first line.
    pub line: u64,
}

/// The records that are dropped.
#[derive(Debug, Default)]
pub struct Found {
    /// The numbers of dropped records.
    pub dropped: Dropped,
    /// The number of files that end in a quoted cell.
    pub unclosed: u64,
    /// The first records of each reason.
    pub places: Vec<Place>,
}

impl Found {
    fn add(&mut self, place: Place) {
        if self.places.iter().filter(|other| other.reason == place.reason).count() < MOST {
            self.places.push(place);
        }
    }
}

/// The record that is being read.
struct Current {
    file: usize,
    /// The line on which the record begins; `None` before its first byte.
    start: Option<u64>,
}

impl Batches {
    /// Reads all rows, and returns which were dropped. Splits one line at a time, which takes longer than a count.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if a file cannot be read or has another header. Any error of `tick`.
    pub fn drain(mut self, mut tick: impl FnMut() -> Result<()>) -> Result<Found> {
        let mut found = Found::default();
        let mut file = 0;
        while let Some(mut table) = self.next_table()? {
            while !table.read_header()? {
                tick()?;
            }
            self.require_same_header(&table)?;
            table.drain(&mut self.rows, &mut found, file, &mut tick)?;
            file += 1;
        }
        found.dropped = self.rows.dropped();
        Ok(found)
    }
}

impl Table {
    fn drain(
        &mut self,
        rows: &mut Rows,
        found: &mut Found,
        file: usize,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut current = Current { file, start: None };
        while !self.is_over {
            match self.blocks.next()? {
                Next::Ready => {
                    while !self.blocks.rest().is_empty() {
                        self.drain_line(rows, found, &mut current);
                        if is_full(rows) {
                            rows.take()?;
                            tick()?;
                        }
                    }
                }
                Next::Wait => {}
                Next::End => self.is_over = true,
            }
            tick()?;
        }
        let line = self.line();
        if self.splitter.is_quoted() {
            found.unclosed += 1;
            let line = current.start.unwrap_or(line);
            found.add(Place { reason: Reason::Unclosed, file, line });
        }
        let before = (rows.len(), rows.dropped());
        self.splitter.finish(rows);
        current.end(before, rows, found, line);
        rows.take()?;
        Ok(())
    }

    /// Reads up to the next CR or LF, so that at most one record ends.
    fn drain_line(&mut self, rows: &mut Rows, found: &mut Found, current: &mut Current) {
        let line = self.line();
        let rest = self.blocks.rest();
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let end = rest.iter().position(is_end).map_or(rest.len(), |at| at + 1);
        let bytes = &rest[..end];
        // A line end alone begins no record.
        if !bytes.iter().all(is_end) {
            current.start.get_or_insert(line);
        }
        let before = (rows.len(), rows.dropped());
        self.splitter.push(bytes, rows);
        rows.trim();
        self.lines.add(bytes);
        self.blocks.skip(end);
        current.end(before, rows, found, line);
    }

    /// Returns the number of the line that is being read, from one.
    fn line(&self) -> u64 {
        1 + if self.splitter.ends_with_cr() { self.lines.returns } else { self.lines.feeds }
    }
}

impl Current {
    /// Notes a record that has ended, if it is dropped. `before` is from before its last bytes.
    fn end(&mut self, before: (usize, Dropped), rows: &Rows, found: &mut Found, line: u64) {
        let (whole, dropped) = before;
        let reason = if rows.len() > whole {
            (!rows.is_last_text()).then_some(Reason::NotText)
        } else if rows.dropped().short > dropped.short {
            Some(Reason::Short)
        } else if rows.dropped().long > dropped.long {
            Some(Reason::Long)
        } else {
            return;
        };
        let line = self.start.take().unwrap_or(line);
        if let Some(reason) = reason {
            found.add(Place { reason, file: self.file, line });
        }
    }
}
