//! An unsorted histogram, to which threads add one partition of the rows after another.
//!
//! A histogram is a list of items with the number of distinct users of each item. All rows of an
//! item are in one partition.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::hash::PARTITIONS;
use crate::labels::top::top;
use crate::labels::{LabelType, Labels};

/// An unsorted histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The distinct items.
    pub labels: Labels,
    /// The number of distinct users of each item.
    pub counts: Vec<i64>,
    /// The number of distinct users of all items together, if requested.
    pub users: Option<u64>,
}

impl Counts {
    /// Creates empty counts.
    pub(crate) fn new(item_type: LabelType) -> Self {
        Self { labels: Labels::new(item_type), counts: Vec::new(), users: None }
    }

    /// Reserves room for further items, `times + 0.5` times as many as there are now, if there is
    /// enough memory. Pages that are reserved but never written use no physical memory.
    fn reserve(&mut self, times: usize) {
        let more = |len: usize| len * times + len / 2;
        let _ = self.counts.try_reserve(more(self.counts.len()));
        self.labels.try_reserve(more);
    }

    /// Drops the items without users.
    pub(crate) fn drop_zeros(&mut self) -> Result<()> {
        if self.counts.contains(&0) {
            let rows: Vec<usize> =
                (0..self.counts.len()).filter(|&row| self.counts[row] > 0).collect();
            self.labels = self.labels.select(&rows)?;
            self.counts.retain(|&count| count > 0);
        }
        Ok(())
    }

    /// Keeps only the `limit` largest counts.
    pub(crate) fn keep(&mut self, limit: usize) -> Result<()> {
        if limit < self.counts.len() {
            let rows = top(&self.labels, &self.counts, limit);
            self.labels = self.labels.select(&rows)?;
            self.counts = rows.iter().map(|&row| self.counts[row]).collect();
        }
        Ok(())
    }
}

/// Collects the counts of all partitions from all threads.
pub(crate) struct SharedCounts {
    item_type: LabelType,
    /// How many of the largest counts to keep; `None` for all.
    limit: Option<usize>,
    /// The value at which counts are capped; `None` for no cap.
    cap: Option<i64>,
    merged: Mutex<Merged>,
}

struct Merged {
    counts: Counts,
    /// The number of partitions in `counts`.
    partitions: usize,
}

impl SharedCounts {
    /// After this many partitions, the total number of items is extrapolated, and room for all
    /// items is reserved.
    const SEEN: usize = 8;

    pub fn new(item_type: LabelType, limit: Option<usize>, cap: Option<i64>) -> Self {
        let merged = Merged { counts: Counts::new(item_type), partitions: 0 };
        Self { item_type, limit, cap, merged: Mutex::new(merged) }
    }

    /// Creates an empty builder for one thread.
    pub fn begin(&self) -> CountsBuilder<'_> {
        CountsBuilder { all: self, counts: Counts::new(self.item_type), partitions: 0, kept: 0 }
    }

    /// Returns the counts. Call it after every thread has finished.
    pub fn into_counts(self) -> Result<Counts> {
        let Merged { mut counts, .. } =
            self.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.limit.map_or(Ok(()), |limit| counts.keep(limit))?;
        Ok(counts)
    }
}

/// One thread's counts that are not merged into the shared counts yet.
pub(crate) struct CountsBuilder<'a> {
    all: &'a SharedCounts,
    counts: Counts,
    /// The number of partitions in `counts`.
    partitions: usize,
    /// The size of the labels in bytes when small counts were last dropped.
    kept: usize,
}

impl CountsBuilder<'_> {
    /// Small counts are not dropped because of the size of their labels while the labels have at
    /// most about twice this many bytes.
    const FEW_BYTES: usize = 1 << 26;

    /// Adds all counts of a partition. `labels` appends the labels of these counts.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is no memory for the labels.
    pub fn add(
        &mut self,
        counts: impl Iterator<Item = i64>,
        labels: impl FnOnce(&mut Labels) -> Result<()>,
    ) -> Result<()> {
        let most = self.all.cap.unwrap_or(i64::MAX);
        let counts = counts.map(|count| count.min(most));
        // Without a limit, add directly to the shared counts if no other thread is adding. This
        // avoids a copy. With a limit, each thread first drops its own small counts.
        let free = self.all.limit.is_none().then(|| self.all.merged.try_lock().ok()).flatten();
        if let Some(mut merged) = free {
            let before = merged.partitions;
            self.move_to(&mut merged)?;
            labels(&mut merged.counts.labels)?;
            merged.counts.counts.extend(counts);
            merged.partitions += 1;
            if (before..merged.partitions).contains(&SharedCounts::SEEN) {
                let times = PARTITIONS / merged.partitions;
                merged.counts.reserve(times);
            }
            return Ok(());
        }
        labels(&mut self.counts.labels)?;
        self.counts.counts.extend(counts);
        self.partitions += 1;
        // Drop the counts that are not among the largest `limit`. A count never changes later,
        // because all rows of an item are in one partition.
        if let Some(limit) = self.all.limit
            && (self.counts.counts.len() / 2 > limit.saturating_add(1 << 15)
                || self.counts.labels.bytes_used() / 2 > self.kept.max(Self::FEW_BYTES))
        {
            self.counts.keep(limit)?;
            self.kept = self.counts.labels.bytes_used();
        }
        Ok(())
    }

    /// Merges the remaining counts.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if there is no memory for the labels.
    pub fn finish(mut self) -> Result<()> {
        let mut merged = self.all.merged.lock().unwrap_or_else(PoisonError::into_inner);
        self.move_to(&mut merged)
    }

    fn move_to(&mut self, merged: &mut Merged) -> Result<()> {
        merged.counts.labels.append(&self.counts.labels)?;
        merged.counts.counts.append(&mut self.counts.counts);
        merged.partitions += std::mem::take(&mut self.partitions);
        self.counts.labels.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_counts_are_kept_while_another_thread_merges() {
        for limit in [None, Some(20_000)] {
            let all = SharedCounts::new(LabelType::Signed, limit, Some(5));
            let mut threads = [all.begin(), all.begin()];
            let add = |found: &mut CountsBuilder<'_>, partition: u64| {
                let own = 10 * partition..10 * (partition + 1);
                let count = |item: u64| item as i64 % 7 + 1;
                found
                    .add(own.clone().map(count), |labels| {
                        own.for_each(|item| labels.push_integer(item));
                        Ok(())
                    })
                    .unwrap();
            };
            let busy = all.merged.lock().unwrap();
            (0..500).for_each(|partition| add(&mut threads[partition as usize % 2], partition));
            drop(busy);
            (500..900).for_each(|partition| add(&mut threads[partition as usize % 2], partition));
            let busy = all.merged.lock().unwrap();
            (900..1000).for_each(|partition| add(&mut threads[partition as usize % 2], partition));
            drop(busy);
            for found in threads {
                found.finish().unwrap();
            }
            let Counts { labels: Labels::Signed(labels), counts, .. } = all.into_counts().unwrap()
            else {
                panic!("labels keep their type")
            };
            let mut rows: Vec<_> = labels.into_iter().zip(counts).collect();
            rows.sort_unstable();
            assert!(rows.into_iter().eq((0..10_000).map(|item| (item, (item % 7 + 1).min(5)))));
        }
    }
}
