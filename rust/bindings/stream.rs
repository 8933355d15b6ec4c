//! Reads Arrow's C stream interface. A producer is the library that provides the stream.
#![allow(unsafe_code, reason = "Arrow's C interface hands over raw pointers")]

use std::sync::Arc;

use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::foreign::{Owned, RawArray, RawSchema, RawStream, Released, text};
use super::import::{Foreign, column_type};
use crate::columns::integers::BROKEN;
use crate::columns::{Batch, Column};
use crate::error::{Error, Result};
use crate::labels::LabelType;

const FAILED: Error = Error::Input("the data source failed while it was being read");
const STARVED: Error = Error::Resource("the scan of the data needs more memory; raise `memory`");

/// Two columns of a producer's stream. The stream is opened and dropped with the GIL, and read without the GIL.
pub struct PairStream {
    raw: Owned<RawStream>,
    /// The number of columns of the table.
    columns: usize,
    user: Named,
    item: Named,
}

/// A column of labels.
struct Named {
    /// The index of the column in the table.
    index: usize,
    data_type: DataType,
    kind: LabelType,
}

impl PairStream {
    /// Take the stream out of a capsule, or out of an object that offers a capsule. Check the stream's schema.
    pub fn open(source: &Bound<'_, PyAny>, user: &str, item: &str) -> PyResult<Self> {
        let capsule = if source.is_instance_of::<PyCapsule>() {
            source.clone()
        } else {
            source.call_method0("__arrow_c_stream__")?
        };
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds a valid stream. The interface transfers ownership if the stream is
        // moved out and a released stream is left.
        let mut raw = Owned(unsafe { pointer.cast::<RawStream>().replace(RawStream::EMPTY) });
        let schema = schema(&mut raw)?;
        if text(schema.0.format) != Some(b"+s") {
            return Err(Error::Schema("the Arrow stream does not contain a table; pass a table with a user and an item column".into()).into());
        }
        let (user, item) = (label(&schema.0, user)?, label(&schema.0, item)?);
        Ok(Self { raw, columns: schema.0.columns()?, user, item })
    }

    /// Return the types of users and items.
    pub fn types(&self) -> (LabelType, LabelType) {
        (self.user.kind, self.item.kind)
    }

    fn read(&mut self) -> Result<Option<Batch>> {
        let get_next = self.raw.0.get_next.ok_or(FAILED)?;
        let mut array = Owned(RawArray::EMPTY);
        // SAFETY: the stream is not released, and the producer fills the empty `array`.
        if unsafe { get_next(&raw mut self.raw.0, &raw mut array.0) } != 0 {
            return Err(self.failure());
        }
        if array.is_released() {
            return Ok(None);
        }
        let owner = Arc::new(array);
        let table = Foreign::new(&owner, &owner.0)?;
        let has_null = table.nulls()?.is_some_and(|nulls| nulls.null_count() > 0);
        if owner.0.columns()? != self.columns || has_null {
            return Err(BROKEN);
        }
        let (offset, len) = table.rows();
        let column = |label: &Named| -> Result<Column> {
            let column = Foreign::new(&owner, owner.0.column(label.index)?)?;
            if offset + len > column.rows().1 {
                return Err(BROKEN);
            }
            Column::new(column.import(&label.data_type)?.slice(offset, len))
        };
        Ok(Some(Batch { users: column(&self.user)?, items: column(&self.item)? }))
    }

    /// Return why the source failed. Only a lack of memory is reported, because other texts may quote cells.
    fn failure(&mut self) -> Error {
        let Some(get_last_error) = self.raw.0.get_last_error else { return FAILED };
        // SAFETY: the stream is not released and its last call failed. The text is valid until the next call.
        let text_of_error = text(unsafe { get_last_error(&raw mut self.raw.0) });
        let is_starved = text_of_error
            .is_some_and(|text_of_error| text_of_error.starts_with(b"Out of Memory Error"));
        if is_starved { STARVED } else { FAILED }
    }
}

impl Iterator for PairStream {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Read the schema of a stream.
fn schema(stream: &mut Owned<RawStream>) -> Result<Owned<RawSchema>> {
    const READ: Error = Error::Input("the Arrow stream was already read; it can be read only once");
    let is_released = stream.is_released();
    let get_schema = stream.0.get_schema.filter(|_| !is_released).ok_or(READ)?;
    let mut schema = Owned(RawSchema::EMPTY);
    // SAFETY: the stream is not released, and the producer fills the empty `schema`.
    if unsafe { get_schema(&raw mut stream.0, &raw mut schema.0) } != 0 {
        return Err(FAILED);
    }
    if schema.is_released() { Err(BROKEN) } else { Ok(schema) }
}

/// Find the column with this name. Return an error if there is no such column, or more than one.
fn label(schema: &RawSchema, name: &str) -> Result<Named> {
    let mut found = None;
    for index in 0..schema.columns()? {
        let column = schema.column(index)?;
        if text(column.name).unwrap_or_default() == name.as_bytes()
            && found.replace((index, column)).is_some()
        {
            return Err(Error::Schema(format!(
                "there is more than one column {name:?}; rename all but one"
            )));
        }
    }
    let missing = || Error::Schema(format!("there is no column {name:?}"));
    let (index, column) = found.ok_or_else(missing)?;
    let data_type = column_type(column, name)?;
    let kind = LabelType::of(&data_type, name)?;
    Ok(Named { index, data_type, kind })
}
