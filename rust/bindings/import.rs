//! Columns of Arrow's C interface as arrays. A producer is the library that filled the interface's structures.
//!
//! Every number that can be checked is checked before a buffer is made from it. The interface does not give the sizes
//! of buffers, so the engine must trust that a buffer has the length that its layout implies. For cells of a
//! fixed width it is the number of cells, including the offset, times the width. String offsets have one entry more.
//! For string bytes it is the last string offset, and for blocks of views it is the length in the last buffer.
#![allow(unsafe_code, reason = "Arrow's C interface hands over raw pointers")]

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::{Array, FixedSizeBinaryArray, LargeStringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;

use super::foreign::{Owned, RawArray, RawSchema, text};
use crate::columns::integers::BROKEN;
use crate::error::{Error, Result};

/// The largest accepted number of rows, buffers or bytes: about as many bytes as a process can address.
const MOST: usize = 1 << 47;

/// The most rows of an array of the type null, which has no buffers.
const MOST_NULLS: usize = 1 << 30;

/// Return the type of a column, and whether its cells are UUIDs that count as their text.
///
/// # Errors
/// [`Error::Schema`] if labels cannot have the type, [`Error::Input`] if the schema is malformed.
pub fn column_type(schema: &RawSchema, name: &str) -> Result<(DataType, bool)> {
    let unknown = |what| format!("column {name:?} has {what} type; cast it to text or to integers");
    for part in std::iter::once(schema).chain(schema.dictionary()) {
        let format = text(part.format).ok_or(BROKEN)?;
        if format == b"+r" {
            return Err(Error::Schema(format!(
                "column {name:?} is run-end encoded; decode it, as pyarrow.compute.run_end_decode does"
            )));
        }
        if format.starts_with(b"+") {
            return Err(Error::Schema(unknown("a nested")));
        }
        if std::str::from_utf8(format).is_err() {
            return Err(BROKEN);
        }
    }
    if schema.dictionary().and_then(RawSchema::dictionary).is_some() {
        return Err(Error::Schema(unknown("a nested")));
    }
    // SAFETY: both types are `struct ArrowSchema`. Only the formats of the schema and of its dictionary are read.
    // These are UTF-8, and the dictionary has no dictionary.
    let schema = unsafe { &*std::ptr::from_ref(schema).cast::<FFI_ArrowSchema>() };
    // An extension changes the meaning of a column's bytes. Its name is in the metadata, which may be malformed.
    let extension =
        schema.metadata().ok().and_then(|mut found| found.remove("ARROW:extension:name"));
    match DataType::try_from(schema) {
        Ok(DataType::FixedSizeBinary(width)) if width < 0 => Err(BROKEN),
        Ok(_) if extension.as_deref() == Some("arrow.opaque") => {
            Err(Error::Schema(unknown("an opaque")))
        }
        Ok(found) => {
            let is_uuid = found == DataType::FixedSizeBinary(16);
            Ok((found, is_uuid && extension.as_deref() == Some("arrow.uuid")))
        }
        Err(_) => Err(Error::Schema(unknown("an unsupported"))),
    }
}

/// Check a number of rows, buffers or bytes.
pub fn whole(number: i64) -> Result<usize> {
    usize::try_from(number).ok().filter(|&number| number <= MOST).ok_or(BROKEN)
}

/// One array of a producer. The array lives as long as its owner.
pub struct Foreign<'a> {
    owner: &'a Arc<Owned<RawArray>>,
    array: &'a RawArray,
    offset: usize,
    len: usize,
}

impl<'a> Foreign<'a> {
    /// Wrap an array.
    ///
    /// # Errors
    /// [`Error::Input`] if the array's length or offset is impossible.
    pub fn new(owner: &'a Arc<Owned<RawArray>>, array: &'a RawArray) -> Result<Self> {
        Ok(Self { owner, array, offset: whole(array.offset)?, len: whole(array.length)? })
    }

    /// Return offset and length.
    pub fn rows(&self) -> (usize, usize) {
        (self.offset, self.len)
    }

    /// Return the validity bitmap, or `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Input`] if the bitmap contradicts the producer's null count.
    pub fn nulls(&self) -> Result<Option<NullBuffer>> {
        let said = self.array.null_count;
        if !(-1..=self.len as i64).contains(&said) {
            return Err(BROKEN);
        }
        // A table without a bitmap may have no buffers.
        if self.array.n_buffers == 0 || self.len == 0 || self.array.buffer(0)?.is_null() {
            return if said > 0 { Err(BROKEN) } else { Ok(None) };
        }
        let bitmap = self.buffer(0, (self.offset + self.len).div_ceil(8))?;
        let nulls = NullBuffer::new(BooleanBuffer::new(bitmap, self.offset, self.len));
        let is_true = said == -1 || said == nulls.null_count() as i64;
        if is_true { Ok(Some(nulls)) } else { Err(BROKEN) }
    }

    /// Import the array as this type. It must be a type that users or items can have.
    ///
    /// # Errors
    /// [`Error::Input`] if the array contradicts the layout of the type.
    pub fn import(&self, data_type: &DataType) -> Result<ArrayData> {
        if *data_type == DataType::Null {
            if self.offset + self.len > MOST_NULLS {
                return Err(Error::Resource("an array of the type null has too many rows"));
            }
            return Ok(ArrayData::new_null(&DataType::Utf8, self.offset + self.len)
                .slice(self.offset, self.len));
        }
        let nulls = self.nulls()?;
        let index = match data_type {
            DataType::Dictionary(index, _) => index,
            other => other,
        };
        let (buffers, values) = (self.buffers(index)?, self.values(data_type)?);
        if self.len == 0 {
            return Ok(ArrayData::new_empty(data_type));
        }
        let builder = ArrayData::builder(data_type.clone())
            .len(self.len)
            .offset(self.offset)
            .nulls(nulls)
            .buffers(buffers)
            .child_data(values.into_iter().collect());
        // SAFETY: `Column` reads an array through bounds-checked slices, and does not assume valid UTF-8.
        unsafe { builder.skip_validation(true) }.build().map_err(|_| BROKEN)
    }

    /// Import the values of a dictionary.
    fn values(&self, data_type: &DataType) -> Result<Option<ArrayData>> {
        match (self.array.dictionary()?, data_type) {
            (Some(values), DataType::Dictionary(_, kind)) => {
                Self::new(self.owner, values)?.import(kind).map(Some)
            }
            (None, DataType::Dictionary(..)) | (Some(_), _) => Err(BROKEN),
            (None, _) => Ok(None),
        }
    }

    /// Return the buffers after the bitmap.
    fn buffers(&self, data_type: &DataType) -> Result<Vec<Buffer>> {
        let end = self.offset + self.len;
        let width = match data_type {
            DataType::Utf8 | DataType::Binary => return self.strings(size_of::<i32>()),
            DataType::LargeUtf8 | DataType::LargeBinary => return self.strings(size_of::<i64>()),
            DataType::Utf8View | DataType::BinaryView => return self.views(),
            DataType::FixedSizeBinary(width) => usize::try_from(*width).map_err(|_| BROKEN)?,
            DataType::Boolean => {
                self.require_buffers(2)?;
                return Ok(vec![self.buffer(1, end.div_ceil(8))?]);
            }
            other => other.primitive_width().ok_or(BROKEN)?,
        };
        self.require_buffers(2)?;
        Ok(vec![self.buffer(1, bytes(end, width)?)?])
    }

    /// Return the string offsets and the string bytes.
    fn strings(&self, width: usize) -> Result<Vec<Buffer>> {
        self.require_buffers(3)?;
        if self.len == 0 {
            return Ok(Vec::new());
        }
        let last = self.offset + self.len;
        let offsets = self.buffer(1, bytes(last + 1, width)?)?;
        let end = &offsets[last * width..];
        let end = match end.try_into() {
            Ok(wide) => i64::from_ne_bytes(wide),
            Err(_) => i32::from_ne_bytes(end.try_into().map_err(|_| BROKEN)?).into(),
        };
        Ok(vec![offsets, self.buffer(2, whole(end)?)?])
    }

    /// Return the views, and the blocks of bytes to which views refer. The last buffer of the array holds the blocks'
    /// lengths.
    fn views(&self) -> Result<Vec<Buffer>> {
        let views = self.buffer(1, bytes(self.offset + self.len, size_of::<u128>())?)?;
        let blocks = whole(self.array.n_buffers)?.checked_sub(3).ok_or(BROKEN)?;
        let lengths = self.buffer(blocks + 2, bytes(blocks, size_of::<i64>())?)?;
        let block = |(number, length): (usize, &[u8; 8])| {
            self.buffer(number + 2, whole(i64::from_ne_bytes(*length))?)
        };
        let blocks = lengths.as_chunks().0.iter().enumerate().map(block);
        std::iter::once(Ok(views)).chain(blocks).collect()
    }

    fn require_buffers(&self, number: i64) -> Result<()> {
        if self.array.n_buffers == number { Ok(()) } else { Err(BROKEN) }
    }

    /// Return the first `bytes` bytes of a buffer. The buffer may be NULL if `bytes` is zero.
    fn buffer(&self, index: usize, bytes: usize) -> Result<Buffer> {
        match (NonNull::new(self.array.buffer(index)?), bytes) {
            (_, 0) => Ok(Buffer::from(&[] as &[u8])),
            (None, _) => Err(BROKEN),
            (Some(start), _) => {
                let owner = Arc::clone(self.owner);
                // SAFETY: the interface guarantees a buffer that lives as long as its owner and has the length that
                // the layout implies (see the module's documentation).
                Ok(unsafe { Buffer::from_custom_allocation(start, bytes, owner) })
            }
        }
    }
}

/// Return UUIDs as their text, such as 00000000-0000-0000-0000-000000000007.
pub fn uuid_text(data: ArrayData) -> ArrayData {
    use std::fmt::Write;

    let cells = FixedSizeBinaryArray::from(data);
    let text = cells.iter().map(|cell| {
        cell.map(|bytes| {
            bytes.iter().enumerate().fold(String::with_capacity(36), |mut text, (place, byte)| {
                // Writing to a string does not fail.
                let _ = write!(
                    text,
                    "{}{byte:02x}",
                    if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" }
                );
                text
            })
        })
    });
    text.collect::<LargeStringArray>().into_data()
}

/// Return the size of some cells in bytes.
fn bytes(cells: usize, width: usize) -> Result<usize> {
    cells.checked_mul(width).filter(|&bytes| bytes <= MOST).ok_or(BROKEN)
}
