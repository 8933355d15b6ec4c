//! Cells of all types that a column of an item may have, read one by one as text or digits.

use std::io::Write;

use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, TimeUnit};

use crate::columns::integers::{BROKEN, Integers, OUT_OF_RANGE, bits, typed};
use crate::columns::strings::StringCells;
use crate::columns::times::{self, nanoseconds, push_date, push_time};
use crate::error::{Error, Result};
use crate::labels::composite::Kind;

/// The most digits of a decimal that always fits a 64-bit integer.
const DIGITS: u8 = 18;

/// The arrays of a projection's columns.
pub struct Columns {
    /// The columns of users.
    pub user: Vec<ArrayData>,
    /// The columns of items.
    pub item: Vec<ArrayData>,
    /// The column of times.
    pub time: Option<ArrayData>,
    /// The column of values.
    pub value: Option<ArrayData>,
}

/// Returns the kind of items in a column of this type. A dictionary has the kind of its values.
///
/// # Errors
/// [`Error::Schema`] if items cannot have the type. The text names the column and the remedy.
pub(crate) fn kind_of(data_type: &DataType, column: &str, is_user: bool) -> Result<Kind> {
    use DataType as D;
    let refused = |remedy: &str| {
        Err(Error::Schema(format!("column {column:?} has the type {data_type}; {remedy}")))
    };
    Ok(match data_type {
        D::Int8 | D::Int16 | D::Int32 | D::Int64 => Kind::Signed,
        D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => Kind::Unsigned,
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Null => Kind::Text,
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(0..) => Kind::Binary,
        D::Boolean => Kind::Bool,
        D::Date32 | D::Date64 => Kind::Date,
        D::Timestamp(unit, zone) => {
            Kind::Time { has_nanos: *unit == TimeUnit::Nanosecond, is_zoned: zone.is_some() }
        }
        D::Decimal32(digits, 0) | D::Decimal64(digits, 0) | D::Decimal128(digits, 0)
            if is_user || *digits <= DIGITS =>
        {
            Kind::Signed
        }
        D::Dictionary(_, values) if !matches!(**values, D::Dictionary(..)) => {
            kind_of(values, column, is_user)?
        }
        D::Float16 | D::Float32 | D::Float64 => {
            return refused(
                "floats are no labels, because equal numbers can differ in their last bits; round it, and cast it to \
                 text or to integers",
            );
        }
        D::Decimal32(_, 0) | D::Decimal64(_, 0) | D::Decimal128(_, 0) | D::Decimal256(_, 0) => {
            return refused(
                "its integers may not fit 64 bits; cast it to integers of 64 bits or to text",
            );
        }
        _ => return refused("cast it to text or to integers"),
    })
}

/// The cells of one column.
pub(crate) struct Part {
    cells: Cells,
    nulls: Option<NullBuffer>,
    /// The kind of the cells.
    pub kind: Kind,
}

enum Cells {
    Integers(Integers),
    Strings(StringCells),
    Bools(BooleanBuffer),
    Days(ScalarBuffer<i32>),
    /// Numbers of units since 1970, and the units in a second.
    Times(ScalarBuffer<i64>, i64),
    Small(ScalarBuffer<i32>),
    Middle(ScalarBuffer<i64>),
    /// Decimals, and whether cells beyond 64 bits are NULL.
    Large(ScalarBuffer<i128>, bool),
    Dictionary(Integers, Box<Part>),
}

impl Part {
    /// Wraps an array whose type [`kind_of`] accepts.
    ///
    /// # Errors
    /// [`Error::Schema`] for another type. [`Error::Input`] if a buffer is missing or too short.
    pub fn new(mut data: ArrayData) -> Result<Self> {
        use DataType as D;
        let kind = kind_of(data.data_type(), "", true)?;
        data.align_buffers();
        let (offset, len) = (data.offset(), data.len());
        let cells = match data.data_type().clone() {
            D::Dictionary(index, _) => {
                let values = data.child_data().first().ok_or(BROKEN)?.clone();
                Cells::Dictionary(Integers::new(&data, &index)?, Box::new(Self::new(values)?))
            }
            _ if len == 0 => Cells::Days(Vec::new().into()),
            D::Boolean => Cells::Bools(bits(&data, offset, len)?),
            D::Date32 => Cells::Days(typed(&data, 0, offset, len)?),
            D::Date64 => Cells::Times(typed(&data, 0, offset, len)?, 1000),
            D::Timestamp(unit, _) => Cells::Times(
                typed(&data, 0, offset, len)?,
                match unit {
                    TimeUnit::Second => 1,
                    TimeUnit::Millisecond => 1000,
                    TimeUnit::Microsecond => 1_000_000,
                    TimeUnit::Nanosecond => 1_000_000_000,
                },
            ),
            D::Decimal32(..) => Cells::Small(typed(&data, 0, offset, len)?),
            D::Decimal64(..) => Cells::Middle(typed(&data, 0, offset, len)?),
            // An unsafe cast can write more digits than the type has. An item's column needs 64 bits.
            D::Decimal128(digits, _) => {
                Cells::Large(typed(&data, 0, offset, len)?, digits <= DIGITS)
            }
            _ if matches!(kind, Kind::Signed | Kind::Unsigned) => {
                Cells::Integers(Integers::new(&data, data.data_type())?)
            }
            _ => Cells::Strings(StringCells::new(&data)?),
        };
        Ok(Self { cells, nulls: data.nulls().cloned(), kind })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Returns whether a cell is NULL, also as the value of a dictionary.
    ///
    /// # Errors
    /// [`Error::Input`] if a dictionary index is out of range.
    pub fn is_missing(&self, row: usize) -> Result<bool> {
        Ok(self.is_null(row)
            || match &self.cells {
                Cells::Dictionary(indices, values) => {
                    values.is_missing(values.index(indices, row)?)?
                }
                _ => false,
            })
    }

    /// Adds a cell as text or digits. Returns false if the cell is NULL, a time out of range, or a decimal of more digits
    /// than its type has, if these do not fit 64 bits.
    ///
    /// # Errors
    /// [`Error::Input`] if the place of the cell's bytes is out of range.
    pub fn push(&self, row: usize, out: &mut Vec<u8>) -> Result<bool> {
        if self.is_null(row) {
            return Ok(false);
        }
        match &self.cells {
            Cells::Integers(cells) if self.kind == Kind::Unsigned => number(out, cells.get(row)),
            Cells::Integers(cells) => number(out, cells.get(row).cast_signed()),
            Cells::Strings(cells) => out.extend_from_slice(cells.get(row)?),
            Cells::Bools(cells) => {
                out.extend_from_slice(if cells.value(row) { b"true" } else { b"false" });
            }
            Cells::Days(cells) => return Ok(push_date(cells[row].into(), out)),
            Cells::Times(..) if self.kind == Kind::Date => {
                let day = self.moment(row)?.map(|(seconds, _)| seconds.div_euclid(86_400));
                return Ok(day.is_some_and(|day| push_date(day, out)));
            }
            Cells::Times(..) => {
                let Kind::Time { has_nanos, is_zoned } = self.kind else { return Ok(false) };
                return Ok(self.moment(row)?.is_some_and(|(seconds, nanos)| {
                    (!has_nanos || nanoseconds(seconds, nanos).is_some())
                        && push_time(seconds, nanos, is_zoned, out)
                }));
            }
            Cells::Small(cells) => number(out, cells[row]),
            Cells::Middle(cells) => number(out, cells[row]),
            Cells::Large(cells, true) if i64::try_from(cells[row]).is_err() => return Ok(false),
            Cells::Large(cells, _) => number(out, cells[row]),
            Cells::Dictionary(indices, values) => {
                return values.push(values.index(indices, row)?, out);
            }
        }
        Ok(true)
    }

    /// Returns seconds since 1970 in UTC and nanoseconds of a cell that is a date, a time or text. Returns `None` if the
    /// cell is NULL, or text that is not a time.
    ///
    /// # Errors
    /// [`Error::Input`] if the place of the cell's bytes is out of range.
    pub fn moment(&self, row: usize) -> Result<Option<(i64, u32)>> {
        if self.is_null(row) {
            return Ok(None);
        }
        Ok(match &self.cells {
            Cells::Days(cells) => Some((i64::from(cells[row]) * 86_400, 0)),
            Cells::Times(cells, units) => {
                let rest = cells[row].rem_euclid(*units) * (1_000_000_000 / units);
                Some((cells[row].div_euclid(*units), rest as u32))
            }
            Cells::Strings(cells) => times::parse(cells.get(row)?),
            Cells::Dictionary(indices, values) => values.moment(values.index(indices, row)?)?,
            _ => None,
        })
    }

    /// Returns the index of the value that a dictionary's row has.
    fn index(&self, indices: &Integers, row: usize) -> Result<usize> {
        let index = usize::try_from(indices.get(row)).map_err(|_| OUT_OF_RANGE)?;
        if index < self.len() { Ok(index) } else { Err(OUT_OF_RANGE) }
    }

    fn len(&self) -> usize {
        match &self.cells {
            Cells::Integers(cells) => cells.len(),
            Cells::Strings(cells) => cells.len(),
            Cells::Bools(cells) => cells.len(),
            Cells::Days(cells) | Cells::Small(cells) => cells.len(),
            Cells::Times(cells, _) | Cells::Middle(cells) => cells.len(),
            Cells::Large(cells, _) => cells.len(),
            Cells::Dictionary(indices, _) => indices.len(),
        }
    }
}

fn number(out: &mut Vec<u8>, number: impl std::fmt::Display) {
    // Writing to a vector does not fail.
    let _ = write!(out, "{number}");
}
