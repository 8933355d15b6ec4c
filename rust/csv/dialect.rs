//! How a CSV file is written: the delimiter, the encoding, and whether there is a header.

use crate::files::Encoding;

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The byte between cells.
    pub delimiter: u8,
    /// The encoding.
    pub encoding: Encoding,
    /// The number of columns of a file without a header; `None` for a file with a header. The number comes from the
    /// caller: a user could otherwise choose it with the first record, and so drop the records of others.
    pub headless: Option<usize>,
}

impl Dialect {
    /// Returns the dialect of a UTF-8 file with a header.
    #[must_use]
    pub fn new(delimiter: u8) -> Self {
        Self { delimiter, encoding: Encoding::Utf8, headless: None }
    }
}
