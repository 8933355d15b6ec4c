//! A worker thread, which takes morsels of rows, computes the keys of users and items, and appends
//! the rows to partitions.
//!
//! Rows are packed into four bytes as long as their users and items fit (see
//! [`crate::count::dense`]). Otherwise they hold full keys (see [`crate::count::pairs`]).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::columns::{Batch, Column};
use crate::count::bound::user_choices::{self, Choice};
use crate::count::dense::Packed;
use crate::count::group::{Group, Grouper};
use crate::count::morsels::{MORSEL, Morsel};
use crate::count::pairs::Pair;
use crate::count::rows::ThreadRows;
use crate::count::threads::STOPPED;
use crate::count::user_keys::UserKeys;
use crate::count::users::Users;
use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::{LabelType, Labels};
use crate::memory::arena::release_memory;

/// The number of rows that all workers together gather before they deduplicate.
const COMPACT_ROWS: usize = 1 << 24;
/// The smallest number of rows that one worker gathers before it deduplicates.
const FEWEST_ROWS: usize = 1 << 20;

/// Rows processed at a time. This many rows stay in the L1 cache.
const AT_ONCE: usize = 1 << 9;
/// Rows of integers processed at a time. The worker prefetches the same number of following rows.
const NUMBERS_AT_ONCE: usize = 1 << 8;

/// Returns the number of rows that a worker gathers before it deduplicates.
pub(crate) fn gathered_rows(threads: usize) -> usize {
    FEWEST_ROWS.max(COMPACT_ROWS / threads)
}

/// The rows, labels and users that a worker has when it ends.
pub(crate) struct Done<P: Pair> {
    /// The worker's rows, if all of them are packed.
    pub packed: Option<Packed>,
    /// The worker's labels, and its rows with full keys.
    pub rows: ThreadRows<P>,
    /// The worker's users, if users are counted.
    pub users: Option<Users<P>>,
}

/// One thread's state while it counts.
pub(crate) struct Worker<P: Pair> {
    keys: Arc<HashKeys>,
    grouper: Grouper,
    /// The rows while all of them are packed; `None` after a row did not fit.
    packed: Option<Packed>,
    rows: ThreadRows<P>,
    /// The most bytes of memory for rows, labels and users. Beyond this limit they are spilled.
    limit: usize,
    /// The smallest number of rows that triggers deduplication.
    gathered: usize,
    /// The number of rows that triggers the next deduplication.
    compact_at: usize,
    users: UserKeys,
    /// The users of all rows, if they are counted.
    counted: Option<Users<P>>,
    cells: Vec<u64>,
    null: Vec<bool>,
    groups: Vec<Group>,
}

impl<P: Pair> Worker<P> {
    /// Creates a worker that spills when its rows, labels and users hold more than `limit` bytes.
    /// The worker packs its rows if there is an empty set of packed rows.
    pub fn new(
        keys: Arc<HashKeys>,
        (user_type, item_type): (LabelType, LabelType),
        packed: Option<Packed>,
        counts_users: bool,
        (threads, limit): (usize, usize),
    ) -> Self {
        let gathered = gathered_rows(threads);
        Self {
            grouper: Grouper::new(Arc::clone(&keys), item_type, !user_type.is_integer()),
            packed,
            rows: ThreadRows::default(),
            limit,
            gathered,
            compact_at: gathered,
            users: UserKeys::new(Arc::clone(&keys)),
            counted: counts_users.then(Users::default),
            keys,
            cells: Vec::new(),
            null: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Processes morsels until there are no more morsels or `stop` is set. Checks `stop`, and whether
    /// to deduplicate, after every [`MORSEL`] rows.
    pub fn run(
        mut self,
        morsels: impl Iterator<Item = Morsel>,
        stop: &AtomicBool,
    ) -> Result<Done<P>> {
        for morsel in morsels {
            for start in (morsel.start..morsel.end).step_by(MORSEL) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                self.take(&morsel, start..morsel.end.min(start + MORSEL), stop)?;
            }
        }
        // Once this thread has spilled, it spills its remaining rows too. The merge needs the
        // memory.
        if !self.rows.runs.is_empty() {
            self.spill(stop)?;
        }
        self.rows.labels = self.grouper.take();
        Ok(Done { packed: self.packed, rows: self.rows, users: self.counted })
    }

    /// Returns the keys of all hashes.
    pub fn keys(&self) -> &HashKeys {
        &self.keys
    }

    /// Appends pairs, whose items are rows of `labels`. The worker neither packs rows nor counts users. `groups` are the groups of the labels, or empty if they are not
    /// known.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) beyond 2^32 labels.
    pub fn adopt(
        &mut self,
        rows: &[Choice],
        labels: &Labels,
        groups: &mut Vec<Group>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if groups.is_empty() {
            *groups = self.grouper.of_labels(labels)?;
        }
        let user = |row: &Choice| {
            let (low, high) = user_choices::user(row);
            u128::from(high) << 64 | u128::from(low)
        };
        self.groups.clear();
        self.groups.extend(rows.iter().map(|row| groups[user_choices::item(row) as usize]));
        self.rows.extend(&self.groups, rows.iter().map(user));
        Ok(())
    }

    /// Deduplicates and spills adopted pairs, if there are many. Clears `groups` if their labels were spilled.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn settle(&mut self, groups: &mut Vec<Group>, stop: &AtomicBool) -> Result<()> {
        self.compact();
        self.spill_if_full(stop)?;
        if self.rows.rows.len() == 0 {
            groups.clear();
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.packed.as_ref().map_or_else(|| self.rows.rows.len(), Packed::len)
    }

    /// Converts packed rows to rows with full keys.
    fn unpack(&mut self) {
        if let Some(rows) = self.packed.take() {
            self.rows.rows = rows.unpack(&self.keys);
        }
    }

    /// Unpacks packed rows if packed and unpacked rows together would exceed the memory limit.
    /// Spills if unpacked rows, labels and users exceed the limit.
    fn spill_if_full(&mut self, stop: &AtomicBool) -> Result<()> {
        let unpacking = self.packed.as_ref().map_or(0, Packed::bytes_unpacking);
        let others = self.grouper.bytes_used() + self.counted.as_ref().map_or(0, Users::bytes_used);
        if unpacking + others > self.limit {
            self.unpack();
        }
        if self.rows.rows.bytes_used() + others > self.limit {
            self.spill(stop)?;
        }
        Ok(())
    }

    /// Spills labels, rows and users.
    fn spill(&mut self, stop: &AtomicBool) -> Result<()> {
        self.compact_at = self.gathered;
        self.rows.spill(self.grouper.take().as_ref(), stop)?;
        self.counted.as_mut().map_or(Ok(()), |users| users.spill(stop))?;
        // Keep at most as much pooled memory as the thread will have for the merge.
        release_memory(self.limit / 3);
        Ok(())
    }

    /// Processes some rows of a morsel.
    fn take(&mut self, morsel: &Morsel, rows: Range<usize>, stop: &AtomicBool) -> Result<()> {
        let Batch { users, items, values } = &*morsel.batch;
        // If items are in a dictionary, check the limit only after all `rows`. The dictionary is in
        // memory anyway. After a spill, the log would soon store the same labels again.
        let is_dictionary = items.dictionary().is_some();
        let are_numbers = self.grouper.keeps_keys(items) && users.is_keyed();
        let at_once = if are_numbers { NUMBERS_AT_ONCE } else { AT_ONCE };
        for start in rows.clone().step_by(at_once) {
            let rows = start..rows.end.min(start + at_once);
            self.null.clear();
            self.null.resize(rows.len(), false);
            if let Some(values) = values {
                values.mark_unusable(rows.clone(), &mut self.null)?;
            }
            if are_numbers {
                self.take_keys(users, items, rows)?;
            } else {
                self.unpack();
                self.users.read(users, morsel.number, rows.clone(), &mut self.null)?;
                self.grouper.group(items, morsel.number, rows, &mut self.null, &mut self.groups)?;
                self.append();
            }
            if !is_dictionary {
                self.spill_if_full(stop)?;
            }
        }
        self.compact();
        self.spill_if_full(stop)
    }

    /// Appends rows of integers. This is the fastest path.
    fn take_keys(&mut self, users: &Column, items: &Column, rows: Range<usize>) -> Result<()> {
        let Self { users: UserKeys { integers, .. }, cells, null, .. } = self;
        users.keys(rows.clone(), null, integers)?;
        items.keys(rows, null, cells)?;
        drop_nulls(null, integers, cells);
        if let Some(counted) = &mut self.counted {
            counted.extend(integers.iter().map(|&user| user.into()), &self.keys);
        }
        if let Some(packed) = &mut self.packed
            && packed.extend(integers, cells)
        {
            return Ok(());
        }
        self.unpack();
        self.rows.extend_keys(&self.cells, &self.users.integers, &self.keys);
        Ok(())
    }

    /// Deduplicates if there are at least `compact_at` rows. Sets `compact_at` to twice the
    /// remaining rows, but at least `gathered`.
    fn compact(&mut self) {
        if self.len() >= self.compact_at {
            match &mut self.packed {
                Some(rows) => rows.compact(&self.keys),
                None => self.rows.compact(&self.keys),
            }
            self.compact_at = self.gathered.max(2 * self.len());
        }
    }

    /// Appends the grouped rows.
    fn append(&mut self) {
        let Self { rows, groups, users: UserKeys { hashes, integers, .. }, counted, .. } = self;
        if let Some(counted) = counted {
            let is_counted = |place: usize| groups[place].partition != Group::DROPPED;
            let user = |place: usize| match hashes.get(place) {
                Some(&hash) => hash,
                None => integers[place].into(),
            };
            let places = (0..groups.len()).filter(|&place| is_counted(place));
            counted.extend(places.map(user), &self.keys);
        }
        if hashes.is_empty() {
            rows.extend(groups, integers.iter().map(|&user| user.into()));
        } else {
            rows.extend(groups, hashes.iter().copied());
        }
    }
}

/// Drops the pairs whose user or item is NULL.
fn drop_nulls(null: &[bool], users: &mut Vec<u64>, items: &mut Vec<u64>) {
    if !null.iter().fold(false, |any, null| any | null) {
        return;
    }
    let mut len = 0;
    for (row, null) in null.iter().enumerate() {
        (users[len], items[len]) = (users[row], items[row]);
        len += usize::from(!null);
    }
    users.truncate(len);
    items.truncate(len);
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, DictionaryArray, Int64Array, StringArray};

    use super::*;
    use crate::count::pairs::Wide;

    #[test]
    fn dictionaries_spill_once_per_morsel_not_every_few_rows() {
        let len = 40 * AT_ONCE;
        let labels: StringArray = (0..len).map(|row| Some(format!("label {}", row % 7))).collect();
        let indexed: DictionaryArray<Int32Type> = labels.iter().collect();
        for (items, runs) in [(labels.into_data(), 40), (indexed.into_data(), 1)] {
            let users = Int64Array::from_iter_values(0..len as i64).into_data();
            let (users, items) = (Column::new(users).unwrap(), Column::new(items).unwrap());
            let keys = Arc::new(HashKeys::from_os().unwrap());
            let types = (LabelType::Signed, LabelType::Text);
            let worker = Worker::<Wide>::new(keys, types, None, false, (1, 0));
            let batch = Arc::new(Batch { users, items, values: None });
            let morsels = std::iter::once(Morsel { batch, number: 0, start: 0, end: len });
            let Done { rows, .. } = worker.run(morsels, &AtomicBool::new(false)).unwrap();
            // The last run is the empty one that is spilled at the end.
            assert_eq!(rows.runs.len(), runs + 1);
        }
    }
}
