//! Arrow's C stream interface: the one place where the engine follows pointers that others made.
#![allow(unsafe_code, reason = "Arrow's C interface hands over raw pointers")]

use std::ffi::{CStr, c_char, c_int, c_void};

use arrow_array::ffi::from_ffi_and_data_type;
use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Fields, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::column::{Batch, Column};
use crate::error::{Error, Result};
use crate::labels::LabelType;

const FAILED: Error = Error::Input("the source failed while it was read");
const STARVED: Error =
    Error::Resource("the scan of the data needs more memory; allow more with `memory`");
const BROKEN: Error = Error::Input("an Arrow array contradicts its own layout");

/// `struct ArrowArrayStream` of the Arrow C stream interface.
#[repr(C)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// Two columns of a producer's stream. It is opened and dropped with the GIL held and read without.
pub struct PairStream {
    raw: RawStream,
    fields: Fields,
    columns: [usize; 2],
    types: (LabelType, LabelType),
}

// SAFETY: the interface lets any one thread at a time call a stream, and `&mut` keeps it to one.
unsafe impl Send for PairStream {}

impl PairStream {
    /// Takes the stream out of a capsule or of an object that offers one, and looks at its schema.
    pub fn open(source: &Bound<'_, PyAny>, user: &str, item: &str) -> PyResult<Self> {
        let capsule = if source.is_instance_of::<PyCapsule>() {
            source.clone()
        } else {
            source.call_method0("__arrow_c_stream__")?
        };
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array_stream"))?;
        let empty = RawStream {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: std::ptr::null_mut(),
        };
        // SAFETY: a capsule of this name holds a valid stream; moving it out and leaving one that counts
        // as released is how the interface hands over ownership.
        let raw = unsafe { pointer.cast::<RawStream>().replace(empty) };
        let mut stream = Self {
            raw,
            fields: Fields::empty(),
            columns: [0; 2],
            types: (LabelType::Binary, LabelType::Binary),
        };
        stream.read_schema(user, item)?;
        Ok(stream)
    }

    /// What users and items are.
    pub fn types(&self) -> (LabelType, LabelType) {
        self.types
    }

    fn read_schema(&mut self, user: &str, item: &str) -> Result<()> {
        let get_schema = self.raw.get_schema.filter(|_| self.raw.release.is_some());
        let get_schema = get_schema.ok_or(Error::Input("the Arrow stream was read before"))?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released and `schema` is an empty structure to be filled.
        if unsafe { get_schema(&raw mut self.raw, &raw mut schema) } != 0 {
            return Err(FAILED);
        }
        let schema = Schema::try_from(&schema).map_err(|_| {
            Error::Schema("a column has a type that is not known; select the two columns".into())
        })?;
        let find = |name: &str| {
            let mut found =
                schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
            match (found.next(), found.next()) {
                (Some((index, field)), None) => {
                    Ok((index, LabelType::of(field.data_type(), name)?))
                }
                (None, _) => Err(Error::Schema(format!("there is no column {name:?}"))),
                _ => Err(Error::Schema(format!("there is more than one column {name:?}"))),
            }
        };
        let (users, items) = (find(user)?, find(item)?);
        self.columns = [users.0, items.0];
        self.types = (users.1, items.1);
        self.fields = schema.fields;
        Ok(())
    }

    fn read(&mut self) -> Result<Option<Batch>> {
        let get_next = self.raw.get_next.ok_or(FAILED)?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is not released and `array` is an empty structure to be filled.
        if unsafe { get_next(&raw mut self.raw, &raw mut array) } != 0 {
            return Err(self.failure());
        }
        if array.is_released() {
            return Ok(None);
        }
        if array.num_children() != self.fields.len() {
            return Err(BROKEN);
        }
        for index in self.columns {
            check_offsets(array.child(index), self.fields[index].data_type())?;
        }
        let data_type = DataType::Struct(self.fields.clone());
        // SAFETY: the producer promises an array of the stream's schema; lengths that lie are caught by
        // `Column`, which reads through checked slices.
        let data = unsafe { from_ffi_and_data_type(array, data_type) }.map_err(|_| BROKEN)?;
        if data.nulls().is_some_and(|nulls| nulls.null_count() > 0) {
            return Err(BROKEN);
        }
        let column = |index: usize| -> Result<Column> {
            let child: &ArrayData = &data.child_data()[index];
            let end = data.offset().checked_add(data.len());
            if end.is_none_or(|end| end > child.len()) {
                return Err(BROKEN);
            }
            Column::new(child.slice(data.offset(), data.len()))
        };
        Ok(Some(Batch { users: column(self.columns[0])?, items: column(self.columns[1])? }))
    }
}

impl PairStream {
    /// Why the source failed: for want of memory, or for a reason that its text, which may quote cells, keeps.
    fn failure(&mut self) -> Error {
        let Some(get_last_error) = self.raw.get_last_error else { return FAILED };
        // SAFETY: the last call of the stream, which is not released, has failed; the text is valid until the next.
        let text = unsafe { get_last_error(&raw mut self.raw) };
        if text.is_null() {
            return FAILED;
        }
        // SAFETY: the interface promises text that ends with a zero.
        let text = unsafe { CStr::from_ptr(text) };
        if text.to_bytes().starts_with(b"Out of Memory Error") { STARVED } else { FAILED }
    }
}

impl Iterator for PairStream {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl Drop for PairStream {
    fn drop(&mut self) {
        if let Some(release) = self.raw.release.take() {
            // SAFETY: the stream has not been released: `take` makes sure that this happens once. The
            // callback expects to find itself in the structure.
            self.raw.release = Some(release);
            unsafe { release(&raw mut self.raw) };
            self.raw.release = None;
        }
    }
}

#[allow(clippy::cast_ptr_alignment, reason = "read unaligned")]
/// Refuses a string array whose last offset is negative: its length is read off it on import.
fn check_offsets(array: &FFI_ArrowArray, data_type: &DataType) -> Result<()> {
    if let (DataType::Dictionary(_, values), Some(dictionary)) = (data_type, array.dictionary()) {
        return check_offsets(dictionary, values);
    }
    let wide = match data_type {
        DataType::Utf8 | DataType::Binary => false,
        DataType::LargeUtf8 | DataType::LargeBinary => true,
        _ => return Ok(()),
    };
    if array.num_buffers() != 3 {
        return Err(BROKEN);
    }
    let (offsets, last) = (array.buffer(1), array.offset() + array.len());
    if offsets.is_null() {
        return Ok(());
    }
    // SAFETY: the interface promises offset + length + 1 offsets in this buffer.
    let end = unsafe {
        if wide {
            offsets.cast::<i64>().add(last).read_unaligned()
        } else {
            offsets.cast::<i32>().add(last).read_unaligned().into()
        }
    };
    if end < 0 { Err(BROKEN) } else { Ok(()) }
}
