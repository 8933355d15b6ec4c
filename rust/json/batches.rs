//! JSON lines files as one table of Arrow batches.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field as Column, Schema, SchemaRef};

use super::found::Found;
use super::lines::Lines;
use super::object::Field;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::files::{Blocks, Encoding, Next, Source};

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
    /// The current block, and the number of bytes that were read from it.
    block: (Vec<u8>, usize),
    lines: Lines,
    /// Whether no block was read yet.
    is_first: bool,
    /// Whether all bytes of the file were read.
    is_over: bool,
}

impl Open {
    fn new(number: usize, source: Source, size: usize) -> Result<Self> {
        let blocks = Blocks::open(source, size, Encoding::Utf8)?;
        let lines = Lines::default();
        Ok(Self { number, blocks, block: (Vec::new(), 0), lines, is_first: true, is_over: false })
    }

    /// Adds rows until the batch is full, the file ends, or no data is available.
    fn read(&mut self, rows: &mut Rows) -> Result<()> {
        let mut split = 0;
        while !self.is_over && rows.len() < ROWS && rows.held() < BYTES && split < SPLIT {
            let (block, read) = &mut self.block;
            if *read < block.len() {
                let add = |line, bytes: Option<&[u8]>| rows.add((self.number, line), bytes);
                let len = self.lines.push(&block[*read..], add);
                *read += len;
                split += len;
                continue;
            }
            match self.blocks.next()? {
                Next::Block(next) => self.replace_block(next),
                Next::Wait => return Ok(()),
                Next::End => {
                    self.lines.finish(|line, bytes| rows.add((self.number, line), bytes));
                    self.is_over = true;
                }
            }
        }
        Ok(())
    }

    /// Replaces the current block, which was read, by the next one. Skips a byte order mark at the file's beginning.
    fn replace_block(&mut self, next: Vec<u8>) {
        let is_marked = std::mem::take(&mut self.is_first) && next.starts_with(b"\xef\xbb\xbf");
        self.blocks.recycle(std::mem::replace(&mut self.block.0, next));
        self.block.1 = if is_marked { 3 } else { 0 };
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

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        if !self.fill()? {
            return Ok(None);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), self.rows.take());
        batch.map(Some).map_err(|_| Error::Input("the columns are not equally long"))
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The caller is C code, so a panic would abort the process.
        let batch = catch_unwind(AssertUnwindSafe(|| self.read().transpose()));
        let batch = batch.unwrap_or_else(|_| {
            (self.open, self.others) = (None, VecDeque::new());
            Some(Err(Error::Internal))
        });
        batch.map(|batch| batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
