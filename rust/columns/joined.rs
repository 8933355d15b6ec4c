//! Rows of several columns as labels of bytes (see [`crate::labels::composite`]).

use arrow_array::{Array, LargeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_data::ArrayData;

use crate::columns::parts::Part;
use crate::columns::times::{Period, moment};
use crate::error::Result;
use crate::labels::LONGEST;
use crate::labels::composite::{Kind, push_cell};

/// Rows as labels of bytes. A row is NULL if one of its cells is NULL, if its time is outside the period, or if the label
/// has more than [`LONGEST`] bytes.
pub(super) struct JoinedLabels {
    bytes: Vec<u8>,
    ends: Vec<i64>,
    valid: Vec<bool>,
    cell: Vec<u8>,
    /// Cells of text that is not UTF-8 are NULL in items. Users may have any bytes, and are compared by them.
    is_item: bool,
}

impl JoinedLabels {
    pub fn of_users() -> Self {
        let (bytes, valid, cell) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, ends: vec![0], valid, cell, is_item: false }
    }

    pub fn of_items() -> Self {
        Self { is_item: true, ..Self::of_users() }
    }

    pub fn push(
        &mut self,
        parts: &[Part],
        time: Option<&(Part, Period)>,
        row: usize,
    ) -> Result<()> {
        let Self { bytes, ends, valid, cell, is_item } = self;
        let start = bytes.len();
        let is_whole = push_period(time, row, bytes, cell, *is_item)?
            && push_parts(parts, row, bytes, cell, *is_item)?
            && bytes.len() - start <= LONGEST;
        if !is_whole {
            bytes.truncate(start);
        }
        valid.push(is_whole);
        ends.push(bytes.len() as i64);
        Ok(())
    }

    /// Returns the number of bytes of all labels.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn into_data(self) -> ArrayData {
        let (offsets, nulls) = (OffsetBuffer::new(self.ends.into()), NullBuffer::from(self.valid));
        LargeBinaryArray::new(offsets, Buffer::from_vec(self.bytes), Some(nulls)).into_data()
    }
}

fn push_parts(
    parts: &[Part],
    row: usize,
    label: &mut Vec<u8>,
    cell: &mut Vec<u8>,
    is_text_checked: bool,
) -> Result<bool> {
    for part in parts {
        cell.clear();
        if !part.push(row, cell)? || cell.len() > LONGEST {
            return Ok(false);
        }
        if part.kind == Kind::Text && is_text_checked && std::str::from_utf8(cell).is_err() {
            return Ok(false);
        }
        push_cell(label, part.kind.tag(), cell);
    }
    Ok(true)
}

/// Adds the period of a row, if periods are part of the label. Returns false if the row has no time or does not count.
fn push_period(
    time: Option<&(Part, Period)>,
    row: usize,
    label: &mut Vec<u8>,
    cell: &mut Vec<u8>,
    is_item: bool,
) -> Result<bool> {
    let Some((part, period)) = time else { return Ok(true) };
    let found = part.moment(row)?.and_then(|(seconds, nanos)| moment(seconds, nanos));
    let Some(moment) = found.filter(|&moment| period.has(moment)) else { return Ok(false) };
    if is_item {
        return Ok(period.push_every(moment, label, cell));
    }
    period.push_unit(moment, label);
    Ok(true)
}
