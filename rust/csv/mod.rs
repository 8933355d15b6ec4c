//! Reads the requested columns of CSV files, record by record from the first byte on.
//!
//! One user may choose every byte of a cell. So no byte is taken for the beginning of a record because
//! it looks like one: the state below is tracked through the whole file. `DuckDB`'s parallel scan
//! guesses where records begin at multiples of 8,000,000 bytes. A correctly quoted cell of 1.2 MB
//! became 73,750 rows that way.
//!
//! # Grammar
//!
//! ```text
//! file    = [BOM] header { record }
//! record  = cell { DELIMITER cell } end          a line of no bytes is not a record, nor the header
//! cell    = plain | QUOTE { byte except QUOTE | QUOTE QUOTE } QUOTE [ tail ]
//! plain   = [ byte except QUOTE, DELIMITER, end ] tail
//! tail    = { byte except DELIMITER, end }       quotes in here are bytes like any other
//! end     = LF | CR LF | end of file             if the header ends with LF or CR LF
//!         | CR | end of file                     if it ends with CR only
//! ```
//!
//! The header decides how records end, because no user writes it. A writer may quote only the line ends
//! of its own file: Python before version 3.13 writes a CR unquoted into a file of LF, so that CR must
//! be an ordinary byte there.
//!
//! In a file of LF, a CR outside quotes right before the end of the file is dropped, as before LF.
//! Empty lines before the header are skipped, whether they end with LF or CR.
//!
//! `QUOTE` is `"`. A cell that is open at the end of the file ends there, and so does its record.
//! Python's `csv` module reads the same cells, if all line ends in cells are quoted. Each record after
//! the header becomes a row, unless
//!
//! * it has fewer cells than the header (cells beyond the header's are skipped),
//! * a requested cell is longer than [`LONGEST`](crate::labels::LONGEST) bytes or is not UTF-8.
//!
//! A plain cell of no bytes is NULL; `""` is the empty string. Cells of other columns may hold any
//! bytes, any number of them: they are not kept.

mod blocks;
mod marks;
mod rows;
mod splitter;
mod table;

pub use blocks::{BLOCK, Source};
pub use rows::Rows;
pub use splitter::{Sink, Splitter};
pub use table::{Batches, Table, records};

#[cfg(test)]
mod tests;
