//! Rows of four bytes, of either form, while they come and when all are there.

use std::sync::Arc;

use crate::counts::AllFound;
use crate::error::Result;
use crate::hash::HashKeys;
use crate::label_log::LabelLog;
use crate::numbered::{AllNumbered, Numbered, Numberer};
use crate::packed::{AllPacked, Layout, Packed, Packer};
use crate::share::{Rows, Share};
use crate::users::Users;

/// The form that rows of four bytes have in a run: one for all threads.
#[derive(Clone)]
pub(crate) enum Form {
    /// Users and items are small numbers.
    Packed(Layout),
    /// Items are labels, and users get numbers.
    Numbered(Arc<Users>),
}

/// One thread's rows while they come.
pub(crate) enum Gathered {
    Packed(Packer),
    Numbered(Numberer),
}

impl Gathered {
    pub fn new(form: Form) -> Self {
        match form {
            Form::Packed(layout) => Self::Packed(Packer::new(layout)),
            Form::Numbered(users) => Self::Numbered(Numberer::new(users)),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Packed(rows) => rows.len(),
            Self::Numbered(rows) => rows.len(),
        }
    }

    /// How many bytes of memory they hold, and would while they are unpacked.
    pub fn held_unpacking(&self) -> usize {
        match self {
            Self::Packed(rows) => rows.held_unpacking(),
            Self::Numbered(rows) => rows.held_unpacking(),
        }
    }

    /// Deduplicates every partition if a sample of them says that it pays.
    pub fn compact(&mut self, keys: &HashKeys) {
        match self {
            Self::Packed(rows) => rows.compact(keys),
            Self::Numbered(rows) => rows.compact(keys),
        }
    }

    /// All rows.
    pub fn finish(self) -> Short {
        match self {
            Self::Packed(rows) => Short::Packed(rows.finish()),
            Self::Numbered(rows) => Short::Numbered(rows.finish()),
        }
    }
}

/// One thread's rows.
pub(crate) enum Short {
    Packed(Packed),
    Numbered(Numbered),
}

impl Short {
    /// The rows with their own keys, of the form of `none` or a wider one.
    pub fn unpack(self, none: Rows, keys: &HashKeys) -> Rows {
        match self {
            Self::Packed(rows) => Rows::Narrow(rows.unpack(keys)),
            Self::Numbered(rows) => rows.unpack(none),
        }
    }
}

/// The rows of all threads, to be counted, where all are short.
pub(crate) enum AllShort<'a> {
    Packed(AllPacked<'a>),
    Numbered(AllNumbered<'a>),
}

impl<'a> AllShort<'a> {
    /// Nothing where the rows of a thread are not short.
    pub fn of(shares: &'a [(Option<Short>, Share<Rows>)]) -> Option<Self> {
        let packed = |(rows, _): &'a (Option<Short>, _)| match rows {
            Some(Short::Packed(rows)) => Some(rows),
            _ => None,
        };
        let numbered = |(rows, share): &'a (Option<Short>, Share<Rows>)| match rows {
            Some(Short::Numbered(rows)) => Some((rows, share.labels.as_ref()?)),
            _ => None,
        };
        if let Some(rows) = shares.iter().map(packed).collect::<Option<Vec<&Packed>>>() {
            return AllPacked::of(rows).map(Self::Packed);
        }
        let rows: Option<Vec<(&Numbered, &LabelLog)>> = shares.iter().map(numbered).collect();
        rows.and_then(AllNumbered::of).map(Self::Numbered)
    }

    /// The most bytes of memory that a thread takes for it.
    pub fn held(&self) -> usize {
        match self {
            Self::Packed(rows) => rows.held(),
            Self::Numbered(rows) => rows.held(),
        }
    }

    /// Finds how many distinct users each item has; says whether the rows have room for all labels.
    pub fn count(
        &self,
        threads: usize,
        keys: &HashKeys,
        tick: impl FnMut() -> Result<()>,
        all: &AllFound,
    ) -> Result<bool> {
        match self {
            Self::Packed(rows) => rows.count(threads, keys, tick, all).map(|()| true),
            Self::Numbered(rows) => rows.count(threads, keys, tick, all),
        }
    }
}
