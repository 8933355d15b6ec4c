//! Columns of users and items, read from Arrow arrays with bounds checks. A buffer that contradicts
//! the declared layout is an error, and never causes a panic.
//!
//! A label type is the type of users or items: integers, text or bytes. A code is a number that
//! replaces a dictionary value. A key is a 64-bit integer that identifies a user or an item; integers
//! and codes are keys.

pub(crate) mod integers;
mod joined;
pub(crate) mod memo;
pub(crate) mod parts;
pub mod projection;
mod strings;
pub mod tally;
pub mod times;
pub mod values;

use std::ops::Range;

use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::columns::integers::{BROKEN, Integers, OUT_OF_RANGE};
use crate::columns::strings::StringCells;
use crate::columns::values::Values;
use crate::error::{Error, Result};
use crate::labels::{LONGEST, LabelType, NO_CODE};
use crate::string_prefix::PrefixedString;

impl LabelType {
    /// Returns the label type of an Arrow type. A dictionary has the label type of its values.
    ///
    /// # Errors
    /// [`Error::Schema`] if users and items cannot have the type. The text names `column`.
    pub fn of(data_type: &DataType, column: &str) -> Result<Self> {
        Ok(match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Signed,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Self::Unsigned
            }
            // A column of NULL alone is imported as text.
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                Self::Text
            }
            // A negative width is refused, because Arrow's own code would panic.
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(0..) => Self::Binary,
            DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
                Self::of(values, column)?
            }
            other => {
                return Err(Error::Schema(format!(
                    "column {column:?} has the type {other}; cast it to text or to integers"
                )));
            }
        })
    }
}

/// The cells of one Arrow array, which are integers, strings or codes.
pub struct Column {
    data: ArrayData,
    cells: Cells,
    label_type: LabelType,
}

/// Columns of equal length.
pub struct Batch {
    /// The user of each row.
    pub users: Column,
    /// The item of each row.
    pub items: Column,
    /// The value of each row, if a column is summed. Only rows with a finite one count.
    pub values: Option<Values>,
}

enum Cells {
    Integers(Integers),
    Strings(StringCells),
    Dictionary { indices: Integers, values: Box<Column> },
    Coded { indices: Integers, codes: Vec<u32>, is_plain: bool },
}

impl Column {
    /// Wraps an array whose type [`LabelType::of`] accepts.
    ///
    /// # Errors
    /// [`Error::Schema`] for another type. [`Error::Input`] if a buffer is missing or too short.
    pub fn new(mut data: ArrayData) -> Result<Self> {
        let label_type = LabelType::of(data.data_type(), "")?;
        data.align_buffers();
        let cells = match data.data_type().clone() {
            DataType::Dictionary(index, _) => {
                let values = data.child_data().first().ok_or(BROKEN)?.clone();
                Cells::Dictionary {
                    indices: Integers::new(&data, &index)?,
                    values: Box::new(Self::new(values)?),
                }
            }
            _ if label_type.is_integer() => {
                Cells::Integers(Integers::new(&data, data.data_type())?)
            }
            _ => Cells::Strings(StringCells::new(&data)?),
        };
        Ok(Self { data, cells, label_type })
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the label type of the cells. Codes have the type of unsigned integers.
    #[must_use]
    pub fn label_type(&self) -> LabelType {
        self.label_type
    }

    /// Returns the values of a dictionary column, or `None` for another column.
    #[must_use]
    pub fn dictionary(&self) -> Option<&Self> {
        match &self.cells {
            Cells::Dictionary { values, .. } => Some(values),
            _ => None,
        }
    }

    /// Returns whether the column's own bitmap marks a cell as NULL. A dictionary's values may have
    /// another bitmap.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        self.data.nulls().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Marks the NULL cells of `rows` in `null`, which has the same length.
    pub fn mark_nulls(&self, rows: Range<usize>, null: &mut [bool]) {
        if let Some(nulls) = self.data.nulls().filter(|nulls| nulls.null_count() > 0) {
            for (mark, row) in null.iter_mut().zip(rows) {
                *mark |= nulls.is_null(row);
            }
        }
    }

    /// Replaces the values of a dictionary column with `codes`, one for each value. A cell whose code is
    /// [`NO_CODE`] is NULL.
    ///
    /// # Errors
    /// [`Error::Input`] if the column is not a dictionary.
    pub fn coded(self, codes: Vec<u32>) -> Result<Self> {
        let Cells::Dictionary { indices, .. } = self.cells else { return Err(BROKEN) };
        // If all values are distinct, as usual, each code equals the index of its value.
        let is_plain = codes.iter().zip(0..).all(|(&code, index)| code == index);
        let cells = Cells::Coded { indices, codes, is_plain };
        Ok(Self { data: self.data, cells, label_type: LabelType::Unsigned })
    }

    /// Returns the number of dictionary values that codes have replaced, if the column has codes.
    #[must_use]
    pub fn codes(&self) -> Option<usize> {
        match &self.cells {
            Cells::Coded { codes, .. } => Some(codes.len()),
            _ => None,
        }
    }

    /// Returns whether the cells are keys, that is, integers or codes.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        matches!(self.cells, Cells::Integers(_) | Cells::Coded { .. })
    }

    /// Reads the keys of `rows`. The cells must be integers or codes. Marks NULL cells in `null`, which
    /// has the same length.
    ///
    /// # Errors
    /// [`Error::Input`] if a dictionary index is out of range.
    pub fn keys(&self, rows: Range<usize>, null: &mut [bool], into: &mut Vec<u64>) -> Result<()> {
        self.mark_nulls(rows.clone(), null);
        let Cells::Coded { indices, codes, is_plain } = &self.cells else {
            self.integers(rows, into);
            return Ok(());
        };
        let mut in_range = true;
        if *is_plain && self.data.null_count() == 0 {
            in_range = indices.read_below(codes.len() as u64, rows, into);
        } else {
            indices.read(rows, into);
            for (key, null) in into.iter_mut().zip(null) {
                let code = codes.get(*key as usize).copied();
                in_range &= *null || code.is_some();
                let code = code.unwrap_or(NO_CODE);
                *null |= code == NO_CODE;
                *key = code.into();
            }
        }
        if in_range { Ok(()) } else { Err(OUT_OF_RANGE) }
    }

    /// Reads the integers of `rows`, or the dictionary indices of `rows`. Yields nothing for other
    /// columns. The integers of NULL cells are arbitrary.
    pub fn integers(&self, rows: Range<usize>, into: &mut Vec<u64>) {
        into.clear();
        if let Cells::Integers(cells) | Cells::Dictionary { indices: cells, .. } = &self.cells {
            cells.read(rows, into);
        }
    }

    /// Returns the strings of `rows`. Cells that are marked in `null` are empty. Marks cells of more than
    /// [`LONGEST`] bytes in `null`.
    ///
    /// # Errors
    /// [`Error::Input`] if the cells are not strings, or the bytes of a cell are out of range.
    pub fn strings(
        &self,
        rows: Range<usize>,
        null: &mut [bool],
    ) -> Result<Vec<PrefixedString<'_>>> {
        let Cells::Strings(cells) = &self.cells else { return Err(BROKEN) };
        let strings = cells.read(rows, null)?;
        for (null, string) in null.iter_mut().zip(&strings) {
            *null |= string.mark.len > LONGEST;
        }
        Ok(strings)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, StringArray};

    use super::*;

    #[test]
    fn strings_longer_than_the_limit_are_marked_as_null() {
        let cells = ["", "a", "b"].map(|letter| letter.repeat(LONGEST));
        let cells = cells.into_iter().chain(["b".repeat(LONGEST + 1)]);
        let column = Column::new(StringArray::from_iter_values(cells).into_data()).unwrap();
        let mut null = [true, false, false, false];
        let strings = column.strings(0..4, &mut null).unwrap();
        assert_eq!(strings.len(), 4);
        assert_eq!(null, [true, false, false, true]);
    }

    #[test]
    fn cells_of_a_negative_width_are_refused() {
        let wrong = DataType::FixedSizeBinary(-1);
        let values = Box::new(wrong.clone());
        for data_type in [wrong, DataType::Dictionary(Box::new(DataType::Int8), values)] {
            assert!(matches!(LabelType::of(&data_type, "user"), Err(Error::Schema(_))));
        }
    }
}
