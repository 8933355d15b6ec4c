//! Errors of the engine. A message is constant, or names a column and its type. It never contains
//! data.

use std::fmt;

/// The reason why the engine failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A parameter is outside the range that the engine accepts.
    Parameter(&'static str),
    /// A column is missing or has a type that cannot be a user or an item.
    Schema(String),
    /// Listed items have another type than the column of items, or another number of columns.
    ItemType(&'static str),
    /// The data cannot be read or contradicts its own layout.
    Input(&'static str),
    /// The operating system gave no randomness.
    Entropy,
    /// The system refused memory, disk space or threads, or a limit of the engine was reached.
    Resource(&'static str),
    /// The engine violated one of its own invariants.
    Internal,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(text) | Self::ItemType(text) | Self::Input(text) | Self::Resource(text) => f.write_str(text),
            Self::Schema(text) => f.write_str(text),
            Self::Internal => f.write_str(
                "an internal error of discreet; nothing was released. Please report the call that caused it",
            ),
            Self::Entropy => {
                f.write_str("the operating system refused to give randomness; nothing was released")
            }
        }
    }
}

impl std::error::Error for Error {}

/// The result of a fallible function.
pub type Result<T> = std::result::Result<T, Error>;
