//! Reads Arrow's C stream interface. A producer is the library that provides the stream.
#![allow(unsafe_code, reason = "Arrow's C interface hands over raw pointers")]

use std::sync::Arc;

use arrow_data::ArrayData;
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::foreign::{Owned, RawArray, RawSchema, RawStream, Released, text};
use super::import::{Foreign, column_type, uuid_text};
use super::wanted::Wanted;
use crate::columns::Batch;
use crate::columns::integers::BROKEN;
use crate::columns::parts::Columns;
use crate::columns::projection::{Named, Projection, Rows};
use crate::columns::tally::Tally;
use crate::columns::values::no_numbers;
use crate::error::{Error, Result};

const FAILED: Error = Error::Input("the data source failed while it was being read");
const STARVED: Error = Error::Resource("the scan of the data needs more memory; raise `memory`");

/// Columns of a producer's stream. The stream is opened and dropped with the GIL, and read without the GIL.
pub struct PairStream {
    raw: Owned<RawStream>,
    /// The number of columns of the table.
    width: usize,
    user: Vec<Place>,
    item: Vec<Place>,
    time: Option<Place>,
    value: Option<Place>,
    projection: Projection,
    /// The rows of the last array that were not yet taken.
    rows: Option<Rows>,
}

/// A column: its index in the table, its name and its type.
struct Place {
    index: usize,
    named: Named,
    /// Whether the cells are stored as the bytes of UUIDs. Their type is then text.
    is_uuid: bool,
}

impl PairStream {
    /// Take the stream out of a capsule, or out of an object that offers a capsule. Check the stream's schema.
    pub fn open(source: &Bound<'_, PyAny>, wanted: &Wanted) -> PyResult<Self> {
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
        let places = |names: &[String]| -> Result<Vec<Place>> {
            names.iter().map(|name| place(&schema.0, name)).collect()
        };
        let (user, item) = (places(&wanted.user)?, places(&wanted.item)?);
        let time = wanted.time.as_ref().map(|name| place(&schema.0, name)).transpose()?;
        let named =
            |places: &[Place]| places.iter().map(|place| place.named.clone()).collect::<Vec<_>>();
        let timed = time.as_ref().map(|time| (&time.named, wanted.period.clone()));
        let value = wanted.value.as_ref().map(|name| value_place(&schema.0, name)).transpose()?;
        let summed = value.as_ref().map(|place| &place.named);
        let projection = Projection::new(&named(&user), &named(&item), timed, summed)?;
        let width = schema.0.columns()?;
        Ok(Self { raw, width, user, item, time, value, projection, rows: None })
    }

    /// Return the selected columns with their types.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    fn read(&mut self) -> Result<Option<Rows>> {
        self.columns()?.map(|columns| self.projection.rows(columns)).transpose()
    }

    /// Count the next rows, and those that are left out, by reason. Return false after the last rows.
    pub fn tally(&mut self, tally: &mut Tally) -> Result<bool> {
        let Some(columns) = self.columns()? else { return Ok(false) };
        self.projection.tally(columns, tally)?;
        Ok(true)
    }

    fn columns(&mut self) -> Result<Option<Columns>> {
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
        if owner.0.columns()? != self.width || has_null {
            return Err(BROKEN);
        }
        let (offset, len) = table.rows();
        let column = |place: &Place| -> Result<ArrayData> {
            let column = Foreign::new(&owner, owner.0.column(place.index)?)?;
            if offset + len > column.rows().1 {
                return Err(BROKEN);
            }
            if place.is_uuid {
                let stored = column.import(&DataType::FixedSizeBinary(16))?;
                return Ok(uuid_text(stored.slice(offset, len)));
            }
            Ok(column.import(&place.named.1)?.slice(offset, len))
        };
        Ok(Some(Columns {
            user: self.user.iter().map(column).collect::<Result<_>>()?,
            item: self.item.iter().map(column).collect::<Result<_>>()?,
            time: self.time.as_ref().map(column).transpose()?,
            value: self.value.as_ref().map(column).transpose()?,
        }))
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
        loop {
            if let Some(batch) = self.rows.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            match self.read() {
                Ok(None) => return None,
                Ok(rows) => self.rows = rows,
                Err(error) => return Some(Err(error)),
            }
        }
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

/// Find the column with this name.
fn place(schema: &RawSchema, name: &str) -> Result<Place> {
    let (index, column) = found(schema, name)?;
    let (stored, is_uuid) = column_type(column, name)?;
    let data_type = if is_uuid { DataType::LargeUtf8 } else { stored };
    Ok(Place { index, named: (name.to_owned(), data_type), is_uuid })
}

/// Find the column of values with this name.
fn value_place(schema: &RawSchema, name: &str) -> Result<Place> {
    let (index, column) = found(schema, name)?;
    let is_run_end = text(column.format) == Some(b"+r");
    match column_type(column, name) {
        Ok((data_type, false)) => {
            Ok(Place { index, named: (name.to_owned(), data_type), is_uuid: false })
        }
        Ok((_, true)) => Err(no_numbers(name)),
        Err(Error::Schema(_)) if !is_run_end => Err(no_numbers(name)),
        Err(error) => Err(error),
    }
}

/// Return the column with this name and its index, or an error if there is no such column, or more than one.
fn found<'a>(schema: &'a RawSchema, name: &str) -> Result<(usize, &'a RawSchema)> {
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
    found.ok_or_else(|| Error::Schema(format!("there is no column {name:?}")))
}
