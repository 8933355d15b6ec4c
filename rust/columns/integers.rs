//! Integer columns of any width. Buffer lengths are validated before use.

use std::ops::Range;

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::memory::prefetch::prefetch_next;

/// Returned for an array whose buffers contradict its declared layout, for example because a buffer is too short.
pub(crate) const BROKEN: Error = Error::Input(
    "an Arrow array's buffers contradict its declared layout; fix the program that made it",
);

/// Returned for a dictionary index without a value.
pub(crate) const OUT_OF_RANGE: Error = Error::Input(
    "a dictionary index of an Arrow array is out of range; fix the program that made it",
);

/// Integers of any width, read as 64 bits.
pub(crate) enum Integers {
    I8(ScalarBuffer<i8>),
    I16(ScalarBuffer<i16>),
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    U8(ScalarBuffer<u8>),
    U16(ScalarBuffer<u16>),
    U32(ScalarBuffer<u32>),
    U64(ScalarBuffer<u64>),
}

/// Runs a body with `$slice` bound to the typed slice of some integers.
macro_rules! with_slice {
    ($integers:expr, $slice:ident => $body:expr) => {
        match $integers {
            Integers::I8($slice) => $body,
            Integers::I16($slice) => $body,
            Integers::I32($slice) => $body,
            Integers::I64($slice) => $body,
            Integers::U8($slice) => $body,
            Integers::U16($slice) => $body,
            Integers::U32($slice) => $body,
            Integers::U64($slice) => $body,
        }
    };
}

impl Integers {
    /// Reads the first buffer of an array as integers of `data_type`.
    ///
    /// # Errors
    /// [`Error::Input`] if the type is not an integer type, or the buffer is missing or too short.
    pub fn new(data: &ArrayData, data_type: &DataType) -> Result<Self> {
        let (offset, len) = (data.offset(), data.len());
        Ok(match data_type {
            DataType::Int8 => Self::I8(typed(data, 0, offset, len)?),
            DataType::Int16 => Self::I16(typed(data, 0, offset, len)?),
            DataType::Int32 => Self::I32(typed(data, 0, offset, len)?),
            DataType::Int64 => Self::I64(typed(data, 0, offset, len)?),
            DataType::UInt8 => Self::U8(typed(data, 0, offset, len)?),
            DataType::UInt16 => Self::U16(typed(data, 0, offset, len)?),
            DataType::UInt32 => Self::U32(typed(data, 0, offset, len)?),
            DataType::UInt64 => Self::U64(typed(data, 0, offset, len)?),
            _ => return Err(BROKEN),
        })
    }

    /// Returns the number of integers.
    pub fn len(&self) -> usize {
        with_slice!(self, cells => cells.len())
    }

    /// Returns one integer. Negative integers are sign-extended.
    #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one body for all widths")]
    pub fn get(&self, row: usize) -> u64 {
        with_slice!(self, cells => cells[row] as u64)
    }

    /// Replaces the content of `into` with the integers of `rows`. Negative integers are sign-extended.
    #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one body for all widths")]
    pub fn read(&self, rows: Range<usize>, into: &mut Vec<u64>) {
        into.clear();
        with_slice!(self, cells => {
            prefetch_next(cells, &rows);
            into.extend(cells[rows].iter().map(|&cell| cell as u64));
        });
    }

    /// Does the same as [`Self::read`], and returns whether all integers are in `0..end`.
    #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "one body for all widths")]
    pub fn read_below(&self, end: u64, rows: Range<usize>, into: &mut Vec<u64>) -> bool {
        self.read(rows.clone(), into);
        with_slice!(self, cells => {
            let cells = &cells[rows];
            let largest = cells.iter().fold(0, |most, &cell| cell.max(most));
            let least = cells.iter().fold(0, |least, &cell| cell.min(least));
            cells.is_empty() || least == 0 && (largest as u64) < end
        })
    }
}

/// Returns a buffer of an array.
///
/// # Errors
/// [`Error::Input`] if there is no such buffer.
pub(crate) fn buffer(data: &ArrayData, number: usize) -> Result<Buffer> {
    data.buffers().get(number).cloned().ok_or(BROKEN)
}

/// Returns `len` bits of the first buffer from `offset` on.
///
/// # Errors
/// [`Error::Input`] if the buffer is missing or too short.
pub(crate) fn bits(data: &ArrayData, offset: usize, len: usize) -> Result<BooleanBuffer> {
    let bits = buffer(data, 0)?;
    if offset.checked_add(len).is_none_or(|end| end.div_ceil(8) > bits.len()) {
        return Err(BROKEN);
    }
    Ok(BooleanBuffer::new(bits, offset, len))
}

/// Returns `len` values of a buffer from `offset` on.
///
/// # Errors
/// [`Error::Input`] if the buffer is missing or too short.
pub(crate) fn typed<T: ArrowNativeType>(
    data: &ArrayData,
    number: usize,
    offset: usize,
    len: usize,
) -> Result<ScalarBuffer<T>> {
    let buffer = buffer(data, number)?;
    let bytes = offset.checked_add(len).and_then(|n| n.checked_mul(size_of::<T>()));
    if bytes.is_none_or(|bytes| bytes > buffer.len()) {
        return Err(BROKEN);
    }
    Ok(ScalarBuffer::new(buffer, offset, len))
}
