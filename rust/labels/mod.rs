//! The distinct labels of a histogram by row, and the order of labels. A label is the integer, text or
//! bytes of an item.

pub mod composite;
pub(crate) mod interner;
pub mod item_table;
pub mod known;
mod offsets;
pub mod order;
mod strings;
pub mod top;

use std::cmp::Ordering;

use crate::error::Result;

use crate::labels::strings::NO_MEMORY;

pub use crate::labels::strings::Strings;

/// The largest number of bytes of a user or an item that is text or bytes. A row with a longer user or
/// item is dropped like a row with a NULL. So the number of rows bounds the memory for labels. RFC
/// 9110 recommends support for URIs of 8,000 bytes.
pub const LONGEST: usize = 1 << 13;

/// Stands for a label without a code.
pub const NO_CODE: u32 = u32::MAX;

/// The type of the labels of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelType {
    /// Signed integers of any width.
    Signed,
    /// Unsigned integers of any width.
    Unsigned,
    /// UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

impl LabelType {
    /// Returns whether labels are integers.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Signed | Self::Unsigned)
    }
}

/// Labels of one type, by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// Signed integers.
    Signed(Vec<i64>),
    /// Unsigned integers.
    Unsigned(Vec<u64>),
    /// UTF-8.
    Text(Strings),
    /// Any bytes.
    Binary(Strings),
}

impl Labels {
    /// Creates an empty list of a type.
    #[must_use]
    pub fn new(label_type: LabelType) -> Self {
        match label_type {
            LabelType::Signed => Self::Signed(Vec::new()),
            LabelType::Unsigned => Self::Unsigned(Vec::new()),
            LabelType::Text => Self::Text(Strings::default()),
            LabelType::Binary => Self::Binary(Strings::default()),
        }
    }

    /// Creates labels of a type from their bytes; see [`Self::push_bytes`].
    #[must_use]
    pub fn of_bytes(label_type: LabelType, strings: Strings) -> Self {
        match label_type {
            LabelType::Text => Self::Text(strings),
            LabelType::Binary => Self::Binary(strings),
            _ => {
                let mut labels = Self::new(label_type);
                (0..strings.len()).for_each(|row| labels.push_bytes(strings.get(row)));
                labels
            }
        }
    }

    /// Returns the type of the labels.
    #[must_use]
    pub fn label_type(&self) -> LabelType {
        match self {
            Self::Signed(_) => LabelType::Signed,
            Self::Unsigned(_) => LabelType::Unsigned,
            Self::Text(_) => LabelType::Text,
            Self::Binary(_) => LabelType::Binary,
        }
    }

    /// Returns the number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Signed(values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Text(strings) | Self::Binary(strings) => strings.len(),
        }
    }

    /// Returns whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all labels.
    pub fn clear(&mut self) {
        match self {
            Self::Signed(values) => values.clear(),
            Self::Unsigned(values) => values.clear(),
            Self::Text(strings) | Self::Binary(strings) => strings.clear(),
        }
    }

    /// Reserves room for further labels and bytes, if there is enough memory. `more` computes the number
    /// of further labels from the present number of labels, and likewise for bytes.
    pub fn try_reserve(&mut self, more: impl Fn(usize) -> usize) {
        let _ = match self {
            Self::Signed(values) => values.try_reserve(more(values.len())),
            Self::Unsigned(values) => values.try_reserve(more(values.len())),
            Self::Text(strings) | Self::Binary(strings) => strings.try_reserve(more),
        };
    }

    /// Adds an integer label by its key. Does nothing if the labels are text or bytes.
    pub fn push_integer(&mut self, key: u64) {
        match self {
            Self::Signed(values) => values.push(key as i64),
            Self::Unsigned(values) => values.push(key),
            Self::Text(_) | Self::Binary(_) => {}
        }
    }

    /// Adds a label by its bytes. The bytes of an integer are the 64-bit integer in little-endian order.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        match self {
            Self::Text(strings) | Self::Binary(strings) => strings.push(bytes),
            _ => self.push_integer(bytes.try_into().map_or(0, u64::from_le_bytes)),
        }
    }

    /// Makes room for one more label of `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::Resource`] if there is not enough memory.
    #[inline]
    pub fn make_room(&mut self, bytes: usize) -> Result<()> {
        match self {
            Self::Signed(values) => values.try_reserve(1).map_err(|_| NO_MEMORY),
            Self::Unsigned(values) => values.try_reserve(1).map_err(|_| NO_MEMORY),
            Self::Text(strings) | Self::Binary(strings) => strings.make_room(1, bytes),
        }
    }

    /// Adds labels by their bytes; see [`Self::push_bytes`].
    ///
    /// # Errors
    /// [`Error::Resource`] if there is not enough memory.
    pub fn append_strings(&mut self, others: &Strings) -> Result<()> {
        match self {
            Self::Text(strings) | Self::Binary(strings) => strings.append(others)?,
            _ => (0..others.len()).for_each(|row| self.push_bytes(others.get(row))),
        }
        Ok(())
    }

    /// Adds the labels of another list of the same type.
    ///
    /// # Errors
    /// [`Error::Resource`] if there is not enough memory.
    pub fn append(&mut self, others: &Self) -> Result<()> {
        match (self, others) {
            (Self::Signed(values), Self::Signed(others)) => values.extend(others),
            (Self::Unsigned(values), Self::Unsigned(others)) => values.extend(others),
            (this, Self::Text(others) | Self::Binary(others)) => this.append_strings(others)?,
            _ => {}
        }
        Ok(())
    }

    /// Calls `work` with a label's bytes and returns its result; see [`Self::push_bytes`].
    pub fn with_bytes<T>(&self, row: usize, work: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Signed(values) => work(&values[row].to_le_bytes()),
            Self::Unsigned(values) => work(&values[row].to_le_bytes()),
            Self::Text(strings) | Self::Binary(strings) => work(strings.get(row)),
        }
    }

    /// Compares two rows: integers by value, strings by their bytes.
    #[must_use]
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            Self::Signed(values) => values[a].cmp(&values[b]),
            Self::Unsigned(values) => values[a].cmp(&values[b]),
            Self::Text(strings) | Self::Binary(strings) => strings.get(a).cmp(strings.get(b)),
        }
    }

    /// Returns the bytes of the labels, to which each label adds its own size.
    #[must_use]
    pub fn bytes_filled(&self) -> usize {
        match self {
            Self::Text(strings) | Self::Binary(strings) => strings.bytes_filled(),
            _ => self.len() * size_of::<u64>(),
        }
    }

    /// Returns the bytes of memory that the labels hold.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        match self {
            Self::Signed(values) => size_of_val(values.as_slice()),
            Self::Unsigned(values) => size_of_val(values.as_slice()),
            Self::Text(strings) | Self::Binary(strings) => strings.bytes_used(),
        }
    }

    /// Returns the labels of some rows, in that order.
    ///
    /// # Errors
    /// [`Error::Resource`] if there is not enough memory.
    pub fn select(&self, rows: &[usize]) -> Result<Self> {
        Ok(match self {
            Self::Signed(values) => Self::Signed(rows.iter().map(|&row| values[row]).collect()),
            Self::Unsigned(values) => Self::Unsigned(rows.iter().map(|&row| values[row]).collect()),
            Self::Text(strings) => Self::Text(strings.select(rows)?),
            Self::Binary(strings) => Self::Binary(strings.select(rows)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserving_too_much_memory_changes_nothing() {
        let mut text = Labels::new(LabelType::Text);
        text.push_bytes(b"a");
        for mut labels in [Labels::new(LabelType::Signed), Labels::new(LabelType::Unsigned), text] {
            let before = labels.clone();
            for most in [usize::MAX, 1 << 59, 3] {
                labels.try_reserve(|_| most);
            }
            assert_eq!(labels, before);
        }
    }

    #[test]
    fn labels_that_do_not_fit_into_memory_are_an_error() {
        let mut text = Labels::new(LabelType::Text);
        assert_eq!(text.make_room(usize::MAX), Err(NO_MEMORY));
        assert_eq!(text.make_room(1 << 62), Err(NO_MEMORY));
        assert_eq!(text.make_room(7), Ok(()));
    }

    #[test]
    fn integers_order_by_value_and_strings_by_bytes() {
        let mut labels = Labels::new(LabelType::Signed);
        for value in [-5_i64, 3, 20] {
            labels.push_bytes(&value.cast_unsigned().to_le_bytes());
        }
        assert_eq!(labels.compare(0, 1), Ordering::Less);
        let mut labels = Labels::new(LabelType::Text);
        for value in ["b", "a", "ab", ""] {
            labels.push_bytes(value.as_bytes());
        }
        assert_eq!(labels.compare(1, 2), Ordering::Less);
        assert_eq!(labels.compare(0, 2), Ordering::Greater);
        let Ok(Labels::Text(strings)) = labels.select(&[3, 0]) else { panic!() };
        assert_eq!((strings.get(0), strings.get(1), strings.len()), (&b""[..], &b"b"[..], 2));
    }
}
