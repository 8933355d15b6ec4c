//! A histogram before it is sorted, and how it grows partition by partition.

use crate::hash::PARTITIONS;
use crate::labels::{LabelType, Labels};
use crate::top::top;

/// A histogram before it is sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The distinct items.
    pub labels: Labels,
    /// How many distinct users each has.
    pub counts: Vec<i64>,
}

impl Counts {
    /// Makes room for so many times what there is and a little more, where there is so much: what is not used is never
    /// touched.
    fn reserve(&mut self, times: usize) {
        let more = |len: usize| len * times + len / 2;
        let _ = self.counts.try_reserve(more(self.counts.len()));
        self.labels.try_reserve(more);
    }

    /// Keeps the items that have users.
    pub(crate) fn drop_zeros(&mut self) {
        if self.counts.contains(&0) {
            let rows: Vec<usize> =
                (0..self.counts.len()).filter(|&row| self.counts[row] > 0).collect();
            self.labels = self.labels.select(&rows);
            self.counts.retain(|&count| count > 0);
        }
    }

    /// Keeps the `limit` largest alone.
    pub(crate) fn keep(&mut self, limit: usize) {
        if limit < self.counts.len() {
            let rows = top(&self.labels, &self.counts, limit);
            self.labels = self.labels.select(&rows);
            self.counts = rows.iter().map(|&row| self.counts[row]).collect();
        }
    }
}

/// The counts of the partitions that one thread has counted.
pub(crate) struct Found {
    counts: Counts,
    /// How many of the largest are wanted, and where counts stop.
    limit: Option<usize>,
    enough: Option<i64>,
    partitions: usize,
}

impl Found {
    /// After so many partitions it is foreseen how many items all threads will find.
    const SEEN: usize = 8;

    pub fn new(item_type: LabelType, limit: Option<usize>, enough: Option<i64>) -> Self {
        let counts = Counts { labels: Labels::new(item_type), counts: Vec::new() };
        Self { counts, limit, enough, partitions: 0 }
    }

    /// Adds all counts of a partition, and the `labels` that they belong to.
    pub fn add(&mut self, counts: impl Iterator<Item = i64>, labels: impl FnOnce(&mut Labels)) {
        let (found, most) = (&mut self.counts, self.enough.unwrap_or(i64::MAX));
        labels(&mut found.labels);
        found.counts.extend(counts.map(|count| count.min(most)));
        self.partitions += 1;
        if self.partitions == Self::SEEN && self.limit.is_none() {
            found.reserve(PARTITIONS / Self::SEEN);
        }
        // Now and then what cannot be among the largest is dropped; a count of one partition is final.
        let too_many = |limit: &usize| found.counts.len() / 2 > limit.saturating_add(1 << 15);
        if let Some(limit) = self.limit.filter(too_many) {
            found.keep(limit);
        }
    }

    /// What all threads have found; that of a `new` one where there is none.
    pub fn all(threads: impl IntoIterator<Item = Self>, new: impl FnOnce() -> Self) -> Counts {
        let together = |mut all: Self, one: Self| {
            all.counts.labels.append(&one.counts.labels);
            all.counts.counts.extend(one.counts.counts);
            all
        };
        let Self { mut counts, limit, .. } =
            threads.into_iter().reduce(together).unwrap_or_else(new);
        if let Some(limit) = limit {
            counts.keep(limit);
        }
        counts
    }
}
