//! CSV files with a common header as one table of Arrow batches.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::dialect::Dialect;
use super::rows::Rows;
use super::splitter::{Sink, Splitter};
use crate::error::{Error, Result};
use crate::files::{Blocks, Next, Source, batch_of};

/// A batch ends if it has at least this many rows.
const ROWS: usize = 1 << 16;
/// A batch ends if its cells have at least this many bytes.
const BYTES: usize = 1 << 20;
/// Bytes of the file that are split between two checks of the batch's size.
const STEP: usize = 1 << 16;
/// A batch ends after this many bytes of the file, even if it is empty. The caller then checks for an
/// interrupt.
const SPLIT: usize = 1 << 23;

/// The largest number of bytes of a header. Each cell counts one byte more than it has.
const LONGEST_HEADER: usize = 1 << 20;

const HEADLESS: Error =
    Error::Input("the first line is missing; it must hold the names of the columns");
pub(super) const LONG_HEADER: Error =
    Error::Input("the first line is longer than 1 MiB; it must hold the names of the columns");
const UNLIKE: Error = Error::Input("the files do not all have the same header");

/// The number of line ends that were read. The header decides which of both ends a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lines {
    pub feeds: u64,
    pub returns: u64,
}

impl Lines {
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.feeds += u64::from(*byte == b'\n');
            self.returns += u64::from(*byte == b'\r');
        }
    }
}

/// An open file and its header.
pub struct Table {
    header: Header,
    pub(super) blocks: Blocks,
    pub(super) splitter: Splitter,
    /// The line ends of the header, and of the records that `drain` reads.
    pub(super) lines: Lines,
    /// Whether all bytes of the file were read.
    pub(super) is_over: bool,
    dialect: Dialect,
}

impl Table {
    /// Opens a file and reads its header. Reads `block` bytes at a time, and calls `tick` while it
    /// waits for the header.
    ///
    /// # Errors
    /// [`Error::Input`] if the file cannot be read, has no header, or has a header longer than 1 MiB.
    /// [`Error::Resource`] if the system refuses a thread. Any error of `tick`.
    pub fn open(
        source: Source,
        dialect: Dialect,
        block: usize,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let mut table = Self::begin(source, dialect, block)?;
        while !table.read_header()? {
            tick()?;
        }
        Ok(table)
    }

    fn begin(source: Source, dialect: Dialect, block: usize) -> Result<Self> {
        let (header, splitter) = match dialect.headless {
            Some(columns) => (Header::of_numbers(columns), Splitter::headless(dialect.delimiter)),
            None => (Header::default(), Splitter::new(dialect.delimiter)),
        };
        Ok(Self {
            header,
            blocks: Blocks::open(source, block, dialect.encoding)?,
            splitter,
            dialect,
            is_over: false,
            lines: Lines::default(),
        })
    }

    /// Reads one block of the header, or waits for a moment. Returns whether the header is
    /// complete.
    pub(super) fn read_header(&mut self) -> Result<bool> {
        if self.header.is_whole {
            return Ok(true);
        }
        let header = &mut self.header;
        match self.blocks.next()? {
            Next::Ready => {
                let bytes = self.blocks.rest();
                let read = self.splitter.push(bytes, header);
                self.lines.add(&bytes[..read]);
                self.blocks.skip(read);
            }
            Next::Wait => return Ok(false),
            Next::End => {
                self.splitter.finish(header);
                if !header.is_whole {
                    return Err(HEADLESS);
                }
                self.is_over = true;
            }
        }
        if header.held > LONGEST_HEADER { Err(LONG_HEADER) } else { Ok(header.is_whole) }
    }

    /// Returns the cells of the header.
    #[must_use]
    pub fn header(&self) -> &[Vec<u8>] {
        &self.header.cells
    }

    /// Adds rows until the batch is full, the file ends, or no data is available.
    fn read(&mut self, rows: &mut Rows) -> Result<()> {
        let mut split = 0;
        while !self.is_over && !is_full(rows) && split < SPLIT {
            match self.blocks.next()? {
                Next::Ready => {
                    let bytes = self.blocks.rest();
                    let end = bytes.len().min(STEP);
                    self.splitter.push(&bytes[..end], rows);
                    rows.trim();
                    self.blocks.skip(end);
                    split += end;
                }
                Next::Wait => return Ok(()),
                Next::End => {
                    self.splitter.finish(rows);
                    self.is_over = true;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether the rows are enough for a batch.
pub(super) fn is_full(rows: &Rows) -> bool {
    rows.len() >= ROWS || rows.held() >= BYTES
}

/// Collects the cells of one record.
#[derive(Default)]
struct Header {
    cells: Vec<Vec<u8>>,
    /// The bytes of the cell that has not ended.
    open: Vec<u8>,
    /// The number of bytes of all cells, plus one for each cell that has ended.
    held: usize,
    /// Whether the record has ended.
    is_whole: bool,
}

impl Header {
    /// Returns the names 1, 2 and so on, of a file without a header.
    fn of_numbers(columns: usize) -> Self {
        let cells = (1..=columns).map(|number| number.to_string().into_bytes()).collect();
        Self { cells, is_whole: true, ..Self::default() }
    }
}

impl Sink for Header {
    fn piece(&mut self, _: usize, block: &[u8], at: Range<usize>) {
        self.held += at.len();
        self.open.extend_from_slice(&block[at]);
    }

    fn end_cell(&mut self, _: usize, _: bool) {
        self.held += 1;
        self.cells.push(std::mem::take(&mut self.open));
    }

    fn end_record(&mut self, _: usize) -> bool {
        self.is_whole = true;
        false
    }
}

/// The requested columns of files with the same header, as columns of text.
pub struct Batches {
    schema: SchemaRef,
    header: Vec<Vec<u8>>,
    dialect: Dialect,
    block: usize,
    pub(super) rows: Rows,
    open: Option<Table>,
    others: VecDeque<Source>,
}

impl Batches {
    /// Creates the batches of the file `first` and then of the files `others`. `wanted` lists distinct
    /// column indices, and `value` is the index among them of the column to sum.
    ///
    /// # Errors
    /// [`Error::Parameter`] if an index is out of range or repeated, or if there are more than 254.
    pub fn new(
        first: Table,
        others: impl IntoIterator<Item = Source>,
        wanted: &[usize],
        value: Option<usize>,
        block: usize,
    ) -> Result<Self> {
        let header = first.header.cells.clone();
        let rows = Rows::new(header.len(), wanted, value)?;
        let field = |&column: &usize| {
            Field::new(String::from_utf8_lossy(&header[column]), DataType::Utf8, true)
        };
        let schema = Arc::new(Schema::new(wanted.iter().map(field).collect::<Vec<_>>()));
        let dialect = first.dialect;
        let others = others.into_iter().collect();
        Ok(Self { schema, header, dialect, block, rows, open: Some(first), others })
    }

    /// Returns the next file, or `None` after the last one.
    pub(super) fn next_table(&mut self) -> Result<Option<Table>> {
        if let Some(table) = self.open.take() {
            return Ok(Some(table));
        }
        let source = self.others.pop_front();
        source.map(|source| Table::begin(source, self.dialect, self.block)).transpose()
    }

    pub(super) fn require_same_header(&self, table: &Table) -> Result<()> {
        if table.header() == self.header { Ok(()) } else { Err(UNLIKE) }
    }

    /// Returns the columns of the next batch, or `None` after the last file. They are empty if no data has
    /// arrived yet.
    fn read(&mut self) -> Result<Option<Vec<ArrayRef>>> {
        let Some(mut table) = self.next_table()? else { return Ok(None) };
        if table.read_header()? {
            self.require_same_header(&table)?;
            table.read(&mut self.rows)?;
        }
        self.open = Some(table).filter(|table| !table.is_over);
        self.rows.take().map(Some)
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

/// Returns all records of a file that arrives in blocks, for tests and fuzzing.
pub fn records<'a>(blocks: impl IntoIterator<Item = &'a [u8]>, delimiter: u8) -> Vec<Vec<Vec<u8>>> {
    let mut splitter = Splitter::new(delimiter);
    let mut found = Vec::new();
    let mut record = Header::default();
    let mut end = |record: &mut Header| {
        if std::mem::take(&mut record.is_whole) {
            found.push(std::mem::take(&mut record.cells));
        }
    };
    for mut block in blocks {
        while !block.is_empty() {
            let read = splitter.push(block, &mut record);
            block = &block[read..];
            end(&mut record);
        }
    }
    splitter.finish(&mut record);
    end(&mut record);
    found
}
