//! Items of several columns as one label of bytes, and items of types that labels do not have.
//!
//! Each cell is a tag for its type, its length in bytes as decimal digits, a colon and its bytes: `s2:DEi2:42`. So
//! different rows have different labels, whatever bytes the cells hold. Numbers are digits, and dates and times are
//! text in ISO 8601.

use std::io::Write;

use crate::error::{Error, Result};
use crate::labels::{LabelType, Labels, Strings};

/// Returned for a label that this module did not write.
const DAMAGED: Error = Error::Internal;

/// The type of one column of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
    /// `true` and `false`.
    Bool,
    /// Days.
    Date,
    /// Times in microseconds or nanoseconds, with or without a zone.
    Time {
        /// Whether there may be nanoseconds.
        has_nanos: bool,
        /// Whether the time is an instant in UTC.
        is_zoned: bool,
    },
}

/// One column of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name of the column.
    pub name: String,
    /// The type of the column.
    pub kind: Kind,
}

impl Kind {
    /// Returns the kind of plain labels.
    #[must_use]
    pub fn of_labels(label_type: LabelType) -> Self {
        match label_type {
            LabelType::Signed => Self::Signed,
            LabelType::Unsigned => Self::Unsigned,
            LabelType::Text => Self::Text,
            LabelType::Binary => Self::Binary,
        }
    }

    /// Returns the kind of a name; see [`Self::name`].
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let times = [(false, false), (false, true), (true, false), (true, true)];
        let times = times.map(|(has_nanos, is_zoned)| Self::Time { has_nanos, is_zoned });
        let plain =
            [Self::Signed, Self::Unsigned, Self::Text, Self::Binary, Self::Bool, Self::Date];
        plain.into_iter().chain(times).find(|kind| kind.name() == name)
    }

    /// Returns the name of the kind, which is that of an Arrow type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Signed => "int64",
            Self::Unsigned => "uint64",
            Self::Text => "string",
            Self::Binary => "binary",
            Self::Bool => "bool",
            Self::Date => "date",
            Self::Time { has_nanos: false, is_zoned: false } => "timestamp[us]",
            Self::Time { has_nanos: false, is_zoned: true } => "timestamp[us, UTC]",
            Self::Time { has_nanos: true, is_zoned: false } => "timestamp[ns]",
            Self::Time { has_nanos: true, is_zoned: true } => "timestamp[ns, UTC]",
        }
    }

    /// Returns the tag of a cell. Integers of all types have one tag: equal numbers are equal items.
    #[must_use]
    pub fn tag(self) -> u8 {
        match self {
            Self::Signed | Self::Unsigned => b'i',
            Self::Text => b's',
            Self::Binary => b'b',
            Self::Bool => b'o',
            Self::Date => b'd',
            Self::Time { is_zoned: false, .. } => b't',
            Self::Time { is_zoned: true, .. } => b'z',
        }
    }

    fn label_type(self) -> LabelType {
        match self {
            Self::Signed => LabelType::Signed,
            Self::Unsigned => LabelType::Unsigned,
            Self::Binary => LabelType::Binary,
            _ => LabelType::Text,
        }
    }
}

/// Adds a cell to a label.
pub fn push_cell(label: &mut Vec<u8>, tag: u8, cell: &[u8]) {
    label.push(tag);
    // Writing to a vector does not fail.
    let _ = write!(label, "{}:", cell.len());
    label.extend_from_slice(cell);
}

/// Returns the tags and the bytes of a label's cells.
///
/// # Errors
/// [`Error::Internal`] if the label does not consist of `columns` cells.
pub fn cells(label: &[u8], columns: usize) -> Result<Vec<(u8, &[u8])>> {
    let mut found = Vec::with_capacity(columns);
    let mut rest = label;
    while let Some((&tag, after)) = rest.split_first() {
        let colon = after.iter().take(20).position(|&byte| byte == b':').ok_or(DAMAGED)?;
        let (digits, after) = after.split_at(colon);
        let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let (cell, after) = after[1..].split_at_checked(length.ok_or(DAMAGED)?).ok_or(DAMAGED)?;
        found.push((tag, cell));
        rest = after;
    }
    if found.len() == columns { Ok(found) } else { Err(DAMAGED) }
}

/// Returns each column of some labels, in the order of the rows. Dates, times and booleans are text.
///
/// # Errors
/// [`Error::Internal`] if a label does not have these columns. [`Error::Resource`] if there is not enough memory.
pub fn columns(labels: &Strings, fields: &[Field]) -> Result<Vec<Labels>> {
    let mut columns: Vec<_> =
        fields.iter().map(|field| Labels::new(field.kind.label_type())).collect();
    for row in 0..labels.len() {
        for (column, (_, cell)) in columns.iter_mut().zip(cells(labels.get(row), fields.len())?) {
            push_value(column, cell)?;
        }
    }
    Ok(columns)
}

fn push_value(column: &mut Labels, cell: &[u8]) -> Result<()> {
    let digits = || std::str::from_utf8(cell).map_err(|_| DAMAGED);
    match column {
        Labels::Signed(values) => values.push(digits()?.parse().map_err(|_| DAMAGED)?),
        Labels::Unsigned(values) => values.push(digits()?.parse().map_err(|_| DAMAGED)?),
        Labels::Text(strings) | Labels::Binary(strings) => {
            strings.make_room(1, cell.len())?;
            strings.push(cell);
        }
    }
    Ok(())
}

/// Returns labels for columns of equal length, one label for each row.
///
/// # Errors
/// [`Error::Resource`] if there is not enough memory.
pub fn joined(columns: &[Labels]) -> Result<Strings> {
    let mut strings = Strings::default();
    let (mut label, mut cell) = (Vec::new(), Vec::new());
    for row in 0..columns.first().map_or(0, Labels::len) {
        label.clear();
        for column in columns {
            cell.clear();
            match column {
                Labels::Signed(values) => write!(cell, "{}", values[row]).map_err(|_| DAMAGED)?,
                Labels::Unsigned(values) => write!(cell, "{}", values[row]).map_err(|_| DAMAGED)?,
                Labels::Text(strings) | Labels::Binary(strings) => {
                    cell.extend_from_slice(strings.get(row));
                }
            }
            push_cell(&mut label, Kind::of_labels(column.label_type()).tag(), &cell);
        }
        strings.make_room(1, label.len())?;
        strings.push(&label);
    }
    Ok(strings)
}

/// Returns listed labels as items of these columns. `written` returns a listed cell as the cells of a column of this kind
/// are written, or `None` if the column cannot hold it.
///
/// # Errors
/// [`Error::ItemType`] if the listed labels have other types. [`Error::Schema`] if a column cannot hold a listed cell. [`Error::Resource`] if
/// there is not enough memory.
pub fn adopted(
    listed: &Labels,
    given: Option<&[Field]>,
    fields: &[Field],
    written: impl Fn(Kind, &[u8]) -> Option<Vec<u8>>,
) -> Result<Labels> {
    let other = || {
        let text = "the listed items and the columns of items have different types or numbers of columns; with a period \
                    or several columns list tuples, such as ('2026-01-31', 'home'), otherwise cast one of them";
        Error::ItemType(text)
    };
    let columns = match (listed, given) {
        (Labels::Binary(strings), Some(given)) => columns(strings, given)?,
        _ => vec![listed.clone()],
    };
    if !listed.is_empty() && columns.len() != fields.len() {
        return Err(other());
    }
    let mut strings = Strings::default();
    let mut label = Vec::new();
    for row in 0..listed.len() {
        label.clear();
        let plain = joined(
            &columns.iter().map(|column| column.select(&[row])).collect::<Result<Vec<_>>>()?,
        )?;
        for ((tag, cell), field) in cells(plain.get(0), fields.len())?.into_iter().zip(fields) {
            let wanted = field.kind.tag();
            if tag != wanted && !(tag == b's' && b"odtz".contains(&wanted)) {
                return Err(other());
            }
            let cell = written(field.kind, cell).ok_or_else(|| {
                let text = format!(
                    "a listed item does not fit a column of the type {}; write true or false, and dates and times such as \
                     2026-01-31 and 2026-01-31T12:00:00",
                    field.kind.name()
                );
                Error::Schema(text)
            })?;
            push_cell(&mut label, wanted, &cell);
        }
        strings.push(&label);
    }
    Ok(Labels::Binary(strings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_are_written_whatever_they_hold() {
        let cells_of = [["", "s1:a"], ["s1:a", ""], ["a", "b"], ["ab", ""], ["1:", ":"]];
        let mut seen = Vec::new();
        for pair in cells_of {
            let mut label = Vec::new();
            for cell in pair {
                push_cell(&mut label, b's', cell.as_bytes());
            }
            let found = cells(&label, 2).unwrap();
            assert_eq!(found, pair.map(|cell| (b's', cell.as_bytes())));
            assert!(!seen.contains(&label));
            seen.push(label);
        }
        for label in [
            "s",
            "s1",
            "s2:a",
            "s1:ab",
            "s-1:a",
            "s1:a",
            "s1:as1:as1:a",
            "s99999999999999999999999:a",
        ] {
            assert!(cells(label.as_bytes(), 2).is_err(), "{label}");
        }
    }

    #[test]
    fn columns_are_the_inverse_of_joined() {
        let mut text = Strings::default();
        for cell in ["a", ""] {
            text.push(cell.as_bytes());
        }
        let columns_of = [
            Labels::Signed(vec![-1, i64::MIN]),
            Labels::Text(text),
            Labels::Unsigned(vec![0, u64::MAX]),
        ];
        let fields = [Kind::Signed, Kind::Text, Kind::Unsigned];
        let fields = fields.map(|kind| Field { name: String::new(), kind });
        assert_eq!(columns(&joined(&columns_of).unwrap(), &fields).unwrap(), columns_of);
    }

    #[test]
    fn names_of_kinds_are_distinct() {
        for name in [
            "int64",
            "uint64",
            "string",
            "binary",
            "bool",
            "date",
            "timestamp[ns]",
            "timestamp[us, UTC]",
        ] {
            assert_eq!(Kind::of_name(name).unwrap().name(), name);
        }
        assert_eq!(Kind::of_name("float64"), None);
    }
}
