//! Reads the requested columns of CSV files, record by record from the first byte on.
//!
//! One user may choose every byte of a cell. So the reader never guesses from nearby bytes where a
//! record begins: it follows the grammar below through the whole file. In contrast, `DuckDB`'s
//! parallel scan guesses where records begin at multiples of 8,000,000 bytes. This scan has read one
//! correctly quoted cell of 1.2 MB as 73,750 rows.
//!
//! # Grammar
//!
//! ```text
//! file    = [BOM] header { record }
//! record  = cell { DELIMITER cell } end          an empty line is neither a record nor the header
//! cell    = plain | QUOTE { byte except QUOTE | QUOTE QUOTE } QUOTE [ tail ]
//! plain   = [ byte except QUOTE, DELIMITER, end ] tail
//! tail    = { byte except DELIMITER, end }       quotes in here are bytes like any other
//! end     = LF | CR LF | end of file             if the header ends with LF or CR LF
//!         | CR | end of file                     if it ends with CR only
//! ```
//!
//! The header decides how records end, because no user writes the header. A program may quote only the
//! line ends that it uses itself. For example, Python before version 3.13 writes a CR unquoted into a
//! file whose lines end with LF. In such a file, a CR in a cell must be an ordinary byte.
//!
//! If lines end with LF, a CR outside quotes is dropped before LF and at the end of the file. Empty
//! lines before the header are skipped, whether they end with LF or CR.
//!
//! `QUOTE` is `"`. The end of the file ends an open cell and its record. Python's `csv` module reads
//! the same cells, if all line ends in cells are quoted. Each record after the header becomes a row,
//! unless
//!
//! * it has fewer cells than the header (cells beyond the header's are skipped),
//! * a requested cell is longer than [`LONGEST`](crate::labels::LONGEST) bytes or is not UTF-8.
//!
//! A file without a header has columns `1`, `2` and so on, and its records end with LF or CR LF. A record is
//! dropped if it has fewer cells than the largest requested column: the number of columns must not come from
//! a record, which is a user's.
//!
//! A cell without bytes is NULL, but a cell `""` is the empty string. Cells of columns that are not
//! requested are not kept, so they may hold any number of any bytes.

mod dialect;
mod marks;
mod places;
mod rows;
mod splitter;
mod table;

pub use dialect::Dialect;
pub use places::{Found, Place, Reason};
pub use rows::{Dropped, Rows};
pub use splitter::{Sink, Splitter};
pub use table::{Batches, Table, records};

#[cfg(test)]
mod tests;
