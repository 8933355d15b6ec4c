//! What one thread has of a table: rows by partition in the narrowest form that holds them, the labels of their
//! items, and what it has put away.

use crate::chapters::Chapters;
use crate::hash::PARTITIONS;
use crate::label_log::LabelLog;
use crate::pairs::{Hashed, Narrow, Pair, Wide};
use crate::store::Store;

/// One thread's part of a table.
#[derive(Default)]
pub(crate) struct Share<R> {
    pub labels: Option<LabelLog>,
    pub rows: R,
    pub chapters: Chapters,
}

impl<P: Pair> Share<Store<P>> {
    /// How many rows of a partition there are.
    pub fn partition_len(&self, partition: usize) -> usize {
        self.rows.partition_len(partition) + self.chapters.partition_len(partition)
    }

    /// How many labels of a partition there are, of those in memory, with repetitions.
    pub fn partition_labels(&self, partition: usize) -> usize {
        self.labels.as_ref().map_or(0, |labels| labels.partition_len(partition))
    }
}

/// Rows by partition, in the narrowest form that holds them.
pub(crate) enum Rows {
    Narrow(Store<Narrow>),
    Wide(Store<Wide>),
    Hashed(Store<Hashed>),
}

/// Runs a body with `$store` bound to the rows, of whatever form.
macro_rules! with_store {
    ($rows:expr, $store:ident => $body:expr) => {
        match $rows {
            $crate::share::Rows::Narrow($store) => $body,
            $crate::share::Rows::Wide($store) => $body,
            $crate::share::Rows::Hashed($store) => $body,
        }
    };
}
pub(crate) use with_store;

impl Rows {
    /// No rows; `hashed` where hashes stand for users.
    pub fn new(hashed: bool) -> Self {
        if hashed { Self::Hashed(Store::default()) } else { Self::Narrow(Store::default()) }
    }

    /// The rows, leaving none, of the same form.
    pub fn take(&mut self) -> Self {
        let none = match self {
            Self::Narrow(_) => Self::Narrow(Store::default()),
            Self::Wide(_) => Self::Wide(Store::default()),
            Self::Hashed(_) => Self::Hashed(Store::default()),
        };
        std::mem::replace(self, none)
    }

    /// Rows of narrow keys with room for larger ones.
    pub fn widen(narrow: &Store<Narrow>) -> Store<Wide> {
        let mut wide = Store::default();
        for partition in 0..PARTITIONS {
            for row in narrow.pieces(partition).flatten() {
                wide.push(partition, row.widen());
            }
        }
        wide
    }

    /// Widens narrow rows where a key with bits among `bits` does not fit.
    pub fn make_room(&mut self, bits: u128) {
        if let Self::Narrow(store) = self
            && bits >> 32 != 0
        {
            *self = Self::Wide(Self::widen(&std::mem::take(store)));
        }
    }
}
