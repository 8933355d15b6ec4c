//! One column of an Arrow array, read through bounds-checked slices: a lying layout is an error, never a
//! crash.

pub(crate) mod integers;
mod strings;

use std::ops::Range;

use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::columns::integers::{BROKEN, Integers};
use crate::columns::strings::StringCells;
use crate::error::{Error, Result};
use crate::labels::interner::Interner;
use crate::labels::{LONGEST, LabelType};
use crate::string_prefix::PrefixedString;

/// Where an index of a dictionary has no value.
pub(crate) const OUT_OF_RANGE: Error = Error::Input("a dictionary index is out of range");

impl LabelType {
    /// What the cells of an Arrow type are; the values decide for a dictionary.
    ///
    /// # Errors
    /// [`Error::Schema`], naming the column, where they can be neither users nor items.
    pub fn of(data_type: &DataType, column: &str) -> Result<Self> {
        Ok(match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Self::Signed,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Self::Unsigned
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            // A negative width is refused: Arrow's own layout of it panics.
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

/// The cells of one Arrow array.
pub struct Column {
    data: ArrayData,
    cells: Cells,
    label_type: LabelType,
}

/// Two columns of equal length.
pub struct Batch {
    /// Who.
    pub users: Column,
    /// What.
    pub items: Column,
}

enum Cells {
    Integers(Integers),
    Strings(StringCells),
    Dictionary { indices: Integers, values: Box<Column> },
    Coded { indices: Integers, codes: Vec<u32>, is_plain: bool },
}

impl Column {
    /// A view of an array whose type [`LabelType::of`] accepts.
    ///
    /// # Errors
    /// [`Error::Schema`] for another type, [`Error::Input`] where a buffer is too short.
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

    /// How many cells there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// What the cells are.
    #[must_use]
    pub fn label_type(&self) -> LabelType {
        self.label_type
    }

    /// The values that the cells of a dictionary column point at.
    #[must_use]
    pub fn dictionary(&self) -> Option<&Self> {
        match &self.cells {
            Cells::Dictionary { values, .. } => Some(values),
            _ => None,
        }
    }

    /// Whether a cell is NULL by the column's own bitmap.
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        self.data.nulls().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Marks the NULL cells of `rows` in `null`, which is as long.
    pub fn mark_nulls(&self, rows: Range<usize>, null: &mut [bool]) {
        if let Some(nulls) = self.data.nulls().filter(|nulls| nulls.null_count() > 0) {
            for (mark, row) in null.iter_mut().zip(rows) {
                *mark |= nulls.is_null(row);
            }
        }
    }

    /// A dictionary column with a number for each of its values, or [`Self::NONE`], instead of the values.
    ///
    /// # Errors
    /// [`Error::Input`] where it is not one.
    pub fn coded(self, codes: Vec<u32>) -> Result<Self> {
        let Cells::Dictionary { indices, .. } = self.cells else { return Err(BROKEN) };
        // Values that are distinct, as they mostly are, have their places as codes.
        let is_plain = codes.iter().zip(0..).all(|(&code, index)| code == index);
        let cells = Cells::Coded { indices, codes, is_plain };
        Ok(Self { data: self.data, cells, label_type: LabelType::Unsigned })
    }

    /// The code of a cell that is NULL.
    pub const NONE: u32 = Interner::NONE;

    /// How many codes a column has that is coded.
    #[must_use]
    pub fn codes(&self) -> Option<usize> {
        match &self.cells {
            Cells::Coded { codes, .. } => Some(codes.len()),
            _ => None,
        }
    }

    /// Whether the cells are numbers that stand for themselves.
    #[must_use]
    pub fn is_keyed(&self) -> bool {
        matches!(self.cells, Cells::Integers(_) | Cells::Coded { .. })
    }

    /// The numbers of `rows`, where they stand for themselves; NULL is marked in `null`, which is as long.
    ///
    /// # Errors
    /// [`Error::Input`] where a dictionary has no value for a cell.
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
                let code = code.unwrap_or(Self::NONE);
                *null |= code == Self::NONE;
                *key = code.into();
            }
        }
        if in_range { Ok(()) } else { Err(OUT_OF_RANGE) }
    }

    /// The integers of `rows`: the cells themselves, or the indices of a dictionary. Cells that are NULL
    /// hold anything.
    pub fn integers(&self, rows: Range<usize>, into: &mut Vec<u64>) {
        into.clear();
        if let Cells::Integers(cells) | Cells::Dictionary { indices: cells, .. } = &self.cells {
            cells.read(rows, into);
        }
    }

    /// The strings of `rows`, those of NULL cells being empty. Marks cells of more than [`LONGEST`] bytes in `null`.
    ///
    /// # Errors
    /// [`Error::Input`] where the bytes of a cell are not there.
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
    fn strings_longer_than_the_longest_are_null() {
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
