//! One thread's partitioned rows, the labels of the rows' items, and the thread's spilled runs.
//!
//! A row is a pair of an item and a user. A run is what the thread wrote to its temporary file at
//! one spill (see [`crate::count::spill::runs`]).

use std::sync::atomic::AtomicBool;

use crate::count::dedup::Dedup;
use crate::count::dedup::deduplicate;
use crate::count::group::Group;
use crate::count::label_log::LabelLog;
use crate::count::pairs::Pair;
use crate::count::spill::runs::SpilledRuns;
use crate::count::store::Store;
use crate::error::Result;
use crate::hash::HashKeys;

/// One thread's rows in memory and spilled.
pub(crate) struct ThreadRows<P: Pair> {
    /// The labels of the rows in memory, once the thread has finished.
    pub labels: Option<LabelLog>,
    /// The rows in memory.
    pub rows: Store<P>,
    /// The spilled rows and labels.
    pub runs: SpilledRuns,
}

impl<P: Pair> Default for ThreadRows<P> {
    fn default() -> Self {
        Self { labels: None, rows: Store::default(), runs: SpilledRuns::default() }
    }
}

impl<P: Pair> ThreadRows<P> {
    /// Returns the number of rows of a partition, in memory and spilled.
    pub fn partition_len(&self, partition: usize) -> usize {
        self.rows.partition_len(partition) + self.runs.partition_len(partition)
    }

    /// Returns the number of labels of a partition in memory. A repeated label counts each time.
    pub fn partition_labels(&self, partition: usize) -> usize {
        self.labels.as_ref().map_or(0, |labels| labels.partition_len(partition))
    }

    /// Adds rows whose items and users are integers.
    pub fn extend_keys(&mut self, items: &[u64], users: &[u64], keys: &HashKeys) {
        let rows = items.iter().zip(users);
        self.rows
            .extend(rows.map(|(&item, &user)| (keys.partition(item), P::new(item, user.into()))));
    }

    /// Adds rows by group and user. Skips rows in the group [`Group::DROPPED`].
    pub fn extend(&mut self, groups: &[Group], users: impl Iterator<Item = u128>) {
        let rows = groups.iter().zip(users).filter(|(group, _)| group.partition != Group::DROPPED);
        self.rows
            .extend(rows.map(|(group, user)| (group.partition as usize, P::new(group.key, user))));
    }

    /// Deduplicates every partition. Stops after a sample of partitions that has few duplicates.
    pub fn compact(&mut self, keys: &HashKeys) {
        let store = &mut self.rows;
        let mut dedup = Dedup::default();
        deduplicate(|partition| {
            let before = store.partition_len(partition);
            dedup.reset(before);
            for rows in store.pieces(partition) {
                let most = rows.len();
                dedup.extend(rows, most, keys);
            }
            store.clear(partition);
            let rows = dedup.distinct(keys);
            for &row in rows {
                store.push(partition, row);
            }
            (before, rows.len())
        });
    }

    /// Spills all rows in memory and the labels of their items.
    ///
    /// # Errors
    /// [`STOPPED`](crate::count::threads::STOPPED) if `stop` is set.
    /// [`Error::Resource`](crate::error::Error::Resource) if the temporary file cannot be created or
    /// written. [`Error::Entropy`](crate::error::Error::Entropy) if there is no randomness for the
    /// file's key.
    pub fn spill(&mut self, labels: Option<&LabelLog>, stop: &AtomicBool) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.runs.add(labels, &rows, stop)
    }
}
