//! Reads the requested keys of JSON lines files, line by line from the first byte on.
//!
//! One user may choose every byte of a line, except LF. So no line can raise an error or change how another line is
//! read: a line that is not usable becomes no row.
//!
//! # Grammar
//!
//! ```text
//! file    = [BOM] { line LF } [ line ]
//! line    = object | blank                       in UTF-8, at most LONGEST_LINE bytes
//! blank   = { SPACE | TAB | CR }                 neither a row nor a dropped line
//! ```
//!
//! `serde_json` parses the objects. Whitespace around an object is allowed, so lines may end with CR LF. A line that is
//! longer is skipped as it arrives, and takes no more memory.
//!
//! Keys are those of the outer object. The last value of a repeated key counts. The values of other keys may be of any
//! depth; `serde_json` skips them without recursion. A cell of a requested key is
//!
//! * the text of a string;
//! * the digits of an integer as they are written, with any number of digits;
//! * `true` or `false`.
//!
//! A line is dropped if a requested key is missing or has another value: null, a number with a point or exponent, an
//! array or an object. It is also dropped if a cell is longer than [`LONGEST`](crate::labels::LONGEST) bytes, or if a
//! string has half of a surrogate pair, which no UTF-8 text has.
//!
//! A field to sum drops no line, because the line counts its user and item in other tables too. Its cell is also the
//! text of any number as it is written, and 1 or 0 for `true` or `false`. It is NULL if the key is missing or null, and
//! empty, which is no number, for any other value.

mod batches;
mod found;
mod lines;
mod object;
mod rows;

pub use batches::Batches;
pub use found::{Found, Loss, Reason};
pub use lines::{LONGEST_LINE, Lines};
pub use object::{Fault, Field};
pub use rows::Rows;

#[cfg(test)]
mod tests;
