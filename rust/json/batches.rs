//! JSON lines files as one table of Arrow batches.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field as Column, Schema, SchemaRef};

use super::found::Found;
use super::lines::Lines;
use super::object::Field;
use super::rows::Rows;
use crate::error::Result;
use crate::files::{Blocks, Encoding, Next, Source, batch_of};

/// A batch ends if it has at least this many rows.
const ROWS: usize = 1 << 16;
/// A batch ends if its cells have at least this many bytes.
const BYTES: usize = 1 << 20;
/// A batch ends after this many bytes of the file, even if it is empty. The caller then checks for an interrupt.
const SPLIT: usize = 1 << 23;

/// An open file.
struct Open {
    /// The number of the file, from zero.
    number: usize,
    blocks: Blocks,
    lines: Lines,
    /// Whether all bytes of the file were read.
    is_over: bool,
}

impl Open {
    fn new(number: usize, source: Source, size: usize) -> Result<Self> {
        let blocks = Blocks::open(source, size, Encoding::Utf8)?;
        Ok(Self { number, blocks, lines: Lines::default(), is_over: false })
    }

    /// Adds rows until the batch is full, the file ends, or no data is available.
    fn read(&mut self, rows: &mut Rows) -> Result<()> {
        let mut split = 0;
        while !self.is_over && rows.len() < ROWS && rows.held() < BYTES && split < SPLIT {
            match self.blocks.next()? {
                Next::Ready => {
                    let add = |line, bytes: Option<&[u8]>| rows.add((self.number, line), bytes);
                    let len = self.lines.push(self.blocks.rest(), add);
                    self.blocks.skip(len);
                    split += len;
                }
                Next::Wait => return Ok(()),
                Next::End => {
                    self.lines.finish(|line, bytes| rows.add((self.number, line), bytes));
                    self.is_over = true;
                }
            }
        }
        Ok(())
    }
}

/// The requested keys of files, as columns of text.
pub struct Batches {
    schema: SchemaRef,
    block: usize,
    pub(super) rows: Rows,
    open: Option<Open>,
    others: VecDeque<Source>,
    /// The number of files that were opened.
    opened: usize,
}

impl Batches {
    /// Creates the batches of files, which are read in their order in blocks of `block` bytes.
    ///
    /// # Errors
    /// [`Error::Parameter`] if a key is repeated.
    pub fn new(
        files: impl IntoIterator<Item = Source>,
        fields: Vec<Field>,
        block: usize,
    ) -> Result<Self> {
        let column = |field: &Field| Column::new(&field.key, DataType::Utf8, true);
        let schema = Arc::new(Schema::new(fields.iter().map(column).collect::<Vec<_>>()));
        let others = files.into_iter().collect();
        Ok(Self { schema, block, rows: Rows::new(fields)?, open: None, others, opened: 0 })
    }

    /// Reads all lines, and returns which were dropped.
    ///
    /// # Errors
    /// [`Error::Input`] if a file cannot be read. Any error of `tick`.
    pub fn drain(mut self, mut tick: impl FnMut() -> Result<()>) -> Result<Found> {
        while self.fill()? {
            self.rows.take();
            tick()?;
        }
        Ok(self.rows.found().clone())
    }

    /// Returns the file that is open, or the next one; `None` after the last file.
    fn next_file(&mut self) -> Result<Option<Open>> {
        if let Some(open) = self.open.take() {
            return Ok(Some(open));
        }
        let Some(source) = self.others.pop_front() else { return Ok(None) };
        self.opened += 1;
        Open::new(self.opened - 1, source, self.block).map(Some)
    }

    /// Reads the rows of the next batch. Returns false after the last file. There are no rows if no data has arrived
    /// yet.
    fn fill(&mut self) -> Result<bool> {
        let Some(mut open) = self.next_file()? else { return Ok(false) };
        open.read(&mut self.rows)?;
        self.open = Some(open).filter(|open| !open.is_over);
        Ok(true)
    }

    fn read(&mut self) -> Result<Option<Vec<ArrayRef>>> {
        Ok(if self.fill()? { Some(self.rows.take()) } else { None })
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = batch_of(self.schema(), || self.read());
        if matches!(batch, Some(Err(_))) {
            (self.open, self.others) = (None, VecDeque::new());
        }
        batch
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
