//! The cells of the requested keys of one JSON object.

use std::fmt::{Formatter, Result as FmtResult};

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::labels::LONGEST;

/// A string of more bytes in JSON has more than [`LONGEST`] bytes: an escape of six bytes stands for at least one.
const LONGEST_ESCAPED: usize = 6 * LONGEST + 2;

/// A requested key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The key of the outer object.
    pub key: String,
    /// Whether the values are summed. Numbers with a point or exponent are then cells, booleans are the numbers 1 and 0,
    /// and no value drops the line.
    pub is_value: bool,
}

/// Why the value of a requested key is no cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The object does not have the key.
    Missing,
    /// The value is null.
    Null,
    /// The value is a number with a point or exponent, an array or an object.
    Type,
    /// The string has half of a surrogate pair.
    NotText,
    /// The cell is too long.
    Long,
}

/// The value of a requested key.
#[derive(Debug)]
pub(super) struct Cell {
    pub text: String,
    pub fault: Option<Fault>,
}

impl Cell {
    /// Returns the text; `None` if there is no value. One that is no cell is an empty text.
    pub fn text(&self) -> Option<&str> {
        match self.fault {
            None => Some(&self.text),
            Some(Fault::Missing | Fault::Null) => None,
            Some(_) => Some(""),
        }
    }

    /// Takes a value as it is written in JSON.
    fn set(&mut self, value: &str, is_value: bool) {
        self.text.clear();
        self.fault = match value.as_bytes().first() {
            Some(b'"') if value.len() > LONGEST_ESCAPED => Some(Fault::Long),
            Some(b'"') => {
                let is_text =
                    Unescaped(&mut self.text).deserialize(&mut Deserializer::from_str(value));
                if is_text.is_err() { Some(Fault::NotText) } else { self.length_fault() }
            }
            Some(b'n') => Some(Fault::Null),
            Some(b'[' | b'{') | None => Some(Fault::Type),
            _ if value.len() > LONGEST => Some(Fault::Long),
            Some(b't') if is_value => self.take("1"),
            Some(b'f') if is_value => self.take("0"),
            Some(b't' | b'f') => self.take(value),
            _ if !is_value && value.contains(['.', 'e', 'E']) => Some(Fault::Type),
            _ => self.take(value),
        };
    }

    fn take(&mut self, value: &str) -> Option<Fault> {
        self.text.push_str(value);
        None
    }

    fn length_fault(&self) -> Option<Fault> {
        (self.text.len() > LONGEST).then_some(Fault::Long)
    }
}

/// Reads objects one after the other.
#[derive(Debug)]
pub(super) struct Object {
    fields: Vec<Field>,
    /// The cell of each field in the last object.
    pub cells: Vec<Cell>,
}

impl Object {
    pub fn new(fields: Vec<Field>) -> Self {
        let cells = fields.iter().map(|_| Cell { text: String::new(), fault: None }).collect();
        Self { fields, cells }
    }

    /// Returns the fields of labels that have no cell in the last object, and why.
    pub fn faults(&self) -> impl Iterator<Item = (usize, Fault)> {
        let labels = self.fields.iter().zip(&self.cells).enumerate();
        labels.filter_map(|(column, (field, cell))| {
            Some((column, cell.fault.filter(|_| !field.is_value)?))
        })
    }

    /// Reads the cells of an object. Returns false if the text is not one JSON object.
    pub fn read(&mut self, text: &str) -> bool {
        for cell in &mut self.cells {
            cell.text.clear();
            cell.fault = Some(Fault::Missing);
        }
        let mut parser = Deserializer::from_str(text);
        (&mut parser).deserialize_map(self).is_ok() && parser.end().is_ok()
    }
}

impl<'de> Visitor<'de> for &mut Object {
    type Value = ();

    fn expecting(&self, text: &mut Formatter<'_>) -> FmtResult {
        text.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(place) = object.next_key_seed(Place(&self.fields))? {
            match place {
                Some(place) => {
                    let value: &RawValue = object.next_value()?;
                    self.cells[place].set(value.get(), self.fields[place].is_value);
                }
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Finds the field of a key.
struct Place<'a>(&'a [Field]);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Place<'_> {
    type Value = Option<usize>;

    fn expecting(&self, text: &mut Formatter<'_>) -> FmtResult {
        text.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|field| field.key == key))
    }
}

/// Adds the text of a string.
struct Unescaped<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Unescaped<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, text: D) -> Result<(), D::Error> {
        text.deserialize_str(self)
    }
}

impl Visitor<'_> for Unescaped<'_> {
    type Value = ();

    fn expecting(&self, text: &mut Formatter<'_>) -> FmtResult {
        text.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
}
