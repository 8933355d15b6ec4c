//! Collects the cells of the requested columns as Arrow columns of text.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};

use super::splitter::Sink;
use crate::error::{Error, Result};
use crate::labels::LONGEST;

const NO_TEXT: Error = Error::Input("a cell is not UTF-8");
const NO_COLUMN: Error = Error::Parameter("the table has no column at this index");
const REPEATED: Error = Error::Parameter("a column is requested more than once");
const TOO_MANY: Error = Error::Parameter("at most 254 columns can be read at once");
/// Marks a column that is not requested.
const NONE: u8 = u8::MAX;
/// A piece of at most this many bytes is copied as exactly this many bytes, without a loop. The
/// bytes beyond the piece are then cut off.
const SHORT: usize = 32;

/// A collector of the requested columns of records.
pub struct Rows {
    /// The number of columns of the file.
    width: usize,
    /// For each column of the file, its index among the requested columns, or `NONE`.
    slots: Vec<u8>,
    columns: Vec<Cells>,
    /// The index in `columns` of the column to sum. A cell of it drops no row: one that is too long or not UTF-8 is
    /// empty, which is no number.
    value: Option<usize>,
    /// The number of whole rows. A row is whole once its record has ended and is not dropped.
    whole: usize,
    /// Whether a cell of the current record is too long.
    is_bad: bool,
    dropped: Dropped,
}

/// The numbers of records that were dropped, by reason. They are private.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Records with fewer cells than the header.
    pub short: u64,
    /// Records with a requested cell that is too long.
    pub long: u64,
    /// Records with a requested cell that is not UTF-8.
    pub not_text: u64,
}

/// The cells of one requested column.
#[derive(Default)]
struct Cells {
    /// The bytes of all cells, including a cell that has not ended.
    bytes: Vec<u8>,
    /// The end of each cell in `bytes`, except of a cell that has not ended.
    ends: Vec<i32>,
    /// The rows whose cell is NULL, ascending.
    missing: Vec<usize>,
}

impl Cells {
    fn end(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    fn truncate(&mut self, rows: usize) {
        let end = self.end(rows);
        self.ends.truncate(rows);
        self.bytes.truncate(end);
        while self.missing.last().is_some_and(|&row| row >= rows) {
            self.missing.pop();
        }
    }

    /// Returns whether every cell is UTF-8.
    fn is_text(&self) -> bool {
        // Each cell must be UTF-8 by itself, so no character may be split between two cells.
        let is_bounded =
            |text: &str| self.ends.iter().all(|&end| text.is_char_boundary(end as usize));
        self.bytes.is_ascii() || std::str::from_utf8(&self.bytes).is_ok_and(is_bounded)
    }

    /// Empties the cells that are not UTF-8.
    fn empty_others(&mut self) {
        let mut whole = Self { missing: std::mem::take(&mut self.missing), ..Self::default() };
        for row in 0..self.ends.len() {
            if self.is_text_at(row) {
                whole.bytes.extend_from_slice(&self.bytes[self.end(row)..self.end(row + 1)]);
            }
            whole.ends.push(whole.bytes.len() as i32);
        }
        *self = whole;
    }

    fn is_text_at(&self, row: usize) -> bool {
        std::str::from_utf8(&self.bytes[self.end(row)..self.end(row + 1)]).is_ok()
    }

    /// Returns the cells of the rows for which `keep` is true.
    fn kept(&self, keep: &[bool]) -> Self {
        let mut kept = Self::default();
        let mut missing = self.missing.iter().peekable();
        for row in (0..self.ends.len()).filter(|&row| keep[row]) {
            while missing.next_if(|&&at| at < row).is_some() {}
            if missing.next_if(|&&at| at == row).is_some() {
                kept.missing.push(kept.ends.len());
            }
            kept.bytes.extend_from_slice(&self.bytes[self.end(row)..self.end(row + 1)]);
            kept.ends.push(kept.bytes.len() as i32);
        }
        kept
    }

    fn into_array(self) -> Result<ArrayRef> {
        let rows = self.ends.len();
        let nulls = (!self.missing.is_empty()).then(|| {
            let mut present = vec![true; rows];
            self.missing.iter().for_each(|&row| present[row] = false);
            NullBuffer::from(present)
        });
        let offsets: Vec<i32> = std::iter::once(0).chain(self.ends).collect();
        let array =
            StringArray::try_new(OffsetBuffer::new(offsets.into()), self.bytes.into(), nulls);
        array.map(|array| Arc::new(array) as ArrayRef).map_err(|_| NO_TEXT)
    }
}

impl Rows {
    /// Creates an empty collector for a file with `width` columns. `wanted` lists at most 254
    /// distinct column indices, and `value` is the index among them of the column to sum.
    ///
    /// # Errors
    /// [`Error::Parameter`] if an index is out of range or repeated, or if there are too many.
    pub fn new(width: usize, wanted: &[usize], value: Option<usize>) -> Result<Self> {
        if wanted.len() >= usize::from(NONE) {
            return Err(TOO_MANY);
        }
        let mut slots = vec![NONE; width];
        for (slot, &column) in (0..NONE).zip(wanted) {
            let taken = slots.get_mut(column).ok_or(NO_COLUMN)?;
            if *taken != NONE {
                return Err(REPEATED);
            }
            *taken = slot;
        }
        let columns = wanted.iter().map(|_| Cells::default()).collect();
        let dropped = Dropped::default();
        Ok(Self { width, slots, columns, value, whole: 0, is_bad: false, dropped })
    }

    /// Creates a collector that panics when it receives a cell.
    #[cfg(test)]
    pub(super) fn broken() -> Self {
        let dropped = Dropped::default();
        let (slots, columns) = (vec![0, 7], vec![]);
        Self { width: 2, slots, columns, value: None, whole: 0, is_bad: false, dropped }
    }

    /// Returns how many records were dropped.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Returns the number of whole rows, including rows that [`Self::take`] will drop.
    #[must_use]
    pub fn len(&self) -> usize {
        self.whole
    }

    /// Returns whether there are no whole rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole == 0
    }

    /// Returns whether the cells of the last whole row are UTF-8.
    pub(super) fn is_last_text(&self) -> bool {
        let last = self.whole.checked_sub(1);
        let mut labels = (0..).zip(&self.columns).filter(|(slot, _)| Some(*slot) != self.value);
        last.is_none_or(|row| labels.all(|(_, cells)| cells.is_text_at(row)))
    }

    /// Returns the number of bytes of the cells of whole rows. Cells of a row that is not whole do
    /// not count, because they are not in the next batch.
    #[must_use]
    pub fn held(&self) -> usize {
        self.columns.iter().map(|cells| cells.end(self.whole)).sum()
    }

    /// Returns the number of bytes of cells that do not belong to a whole row yet.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.columns.iter().map(|cells| cells.bytes.len()).sum::<usize>() - self.held()
    }

    /// Truncates a cell that has not ended to [`LONGEST`] + 1 bytes. Such a cell is still too long,
    /// so its row is dropped later. The caller calls this method after each part of a block, so
    /// that long cells take little memory.
    pub fn trim(&mut self) {
        for cells in &mut self.columns {
            let start = cells.end(cells.ends.len());
            cells.bytes.truncate(start + LONGEST + 1);
        }
    }

    /// Removes all whole rows, and returns one text column for each requested column. Drops rows
    /// with a cell that is not UTF-8.
    ///
    /// # Errors
    /// [`Error::Input`] if the cells are not valid Arrow text. The checks here rule this out.
    pub fn take(&mut self) -> Result<Vec<ArrayRef>> {
        let rows = std::mem::take(&mut self.whole);
        let mut whole = Vec::with_capacity(self.columns.len());
        for cells in &mut self.columns {
            // Keep the cells of the record that has not ended.
            let mut rest = Cells::default();
            let end = cells.end(rows);
            rest.bytes.extend_from_slice(&cells.bytes[end..]);
            rest.ends.extend(cells.ends[rows..].iter().map(|at| at - end as i32));
            rest.missing
                .extend(cells.missing.iter().filter(|&&row| row >= rows).map(|row| row - rows));
            rest.bytes.reserve(cells.bytes.len());
            rest.ends.reserve(rows);
            cells.truncate(rows);
            whole.push(std::mem::replace(cells, rest));
        }
        if let Some(cells) = self.value.and_then(|value| whole.get_mut(value))
            && !cells.is_text()
        {
            cells.empty_others();
        }
        if !whole.iter().all(Cells::is_text) {
            let keep: Vec<bool> =
                (0..rows).map(|row| whole.iter().all(|cells| cells.is_text_at(row))).collect();
            self.dropped.not_text += keep.iter().filter(|&&kept| !kept).count() as u64;
            for cells in &mut whole {
                *cells = cells.kept(&keep);
            }
        }
        whole.into_iter().map(Cells::into_array).collect()
    }

    #[inline]
    fn slot(&self, column: usize) -> Option<usize> {
        self.slots.get(column).filter(|&&slot| slot != NONE).map(|&slot| slot.into())
    }
}

impl Sink for Rows {
    #[inline]
    fn piece(&mut self, column: usize, block: &[u8], at: Range<usize>) {
        let Some(slot) = self.slot(column) else { return };
        let cells = &mut self.columns[slot];
        let len = at.len();
        if len <= SHORT
            && let Some(short) = block.get(at.start..at.start + SHORT)
        {
            let end = cells.bytes.len() + len;
            let short: &[u8; SHORT] = short.try_into().unwrap_or(&[0; SHORT]);
            cells.bytes.extend_from_slice(short);
            cells.bytes.truncate(end);
        } else {
            cells.bytes.extend_from_slice(&block[at]);
        }
    }

    #[inline]
    fn end_cell(&mut self, column: usize, quoted: bool) {
        let Some(slot) = self.slot(column) else { return };
        let cells = &mut self.columns[slot];
        let (start, end) = (cells.end(self.whole), cells.bytes.len());
        if start == end && !quoted {
            cells.missing.push(self.whole);
        }
        if end - start > LONGEST {
            cells.bytes.truncate(start);
            self.is_bad |= self.value != Some(slot);
        }
        cells.ends.push(cells.bytes.len() as i32);
    }

    #[inline]
    fn end_record(&mut self, cells: usize) -> bool {
        if cells >= self.width && !self.is_bad {
            self.whole += 1;
        } else {
            let reason =
                if cells < self.width { &mut self.dropped.short } else { &mut self.dropped.long };
            *reason += 1;
            self.is_bad = false;
            let rows = self.whole;
            self.columns.iter_mut().for_each(|cells| cells.truncate(rows));
        }
        true
    }
}
