//! The lines that are dropped, by reason, for the owner of the data. They are private.

use std::collections::BTreeMap;

use super::object::Fault;

/// The most places that are kept for each reason.
const MOST: usize = 5;

/// Why a line is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The line is too long.
    Long,
    /// The line is not UTF-8.
    NotText,
    /// The line is not one JSON object.
    NotObject,
    /// The value of the requested key at this index is no cell.
    Value(usize, Fault),
}

/// The lines that are dropped for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loss {
    /// The number of lines.
    pub lines: u64,
    /// The file, from zero, and the line in it, from one, of the first lines.
    pub places: Vec<(usize, u64)>,
}

/// The lines that are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The number of dropped lines.
    pub dropped: u64,
    /// The lines by reason. A line with several reasons counts for each.
    pub losses: BTreeMap<Reason, Loss>,
}

impl Found {
    /// Notes a line that is dropped, with its reasons.
    pub(super) fn add(&mut self, place: (usize, u64), reasons: impl IntoIterator<Item = Reason>) {
        self.dropped += 1;
        for reason in reasons {
            let loss = self.losses.entry(reason).or_default();
            loss.lines += 1;
            if loss.places.len() < MOST {
                loss.places.push(place);
            }
        }
    }
}
