//! What one thread does: takes morsels of rows, finds their keys, and keeps them by partition.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use crate::block::give_back;
use crate::column::{Batch, Column};
use crate::crew::STOPPED;
use crate::error::Result;
use crate::group::{Group, Grouper};
use crate::hash::HashKeys;
use crate::labels::LabelType;
use crate::long::LongRows;
use crate::pairs::Lone;
use crate::popular::{self, Popular};
use crate::share::{Rows, Share};
use crate::short::{Form, Gathered, Short};
use crate::store::Store;
use crate::user_keys::UserKeys;

/// How many rows all workers gather before they look for duplicates, and the fewest that one does.
const COMPACT_ROWS: usize = 1 << 24;
const FEWEST_ROWS: usize = 1 << 20;

/// The fewest rows of a morsel but the last: after so many a worker looks for duplicates, and whether all are to stop.
pub(crate) const MORSEL: usize = 1 << 15;

/// How many rows pass through the nearest cache at a time.
const AT_ONCE: usize = 1 << 9;
/// The same of numbers, of which as many more are asked for ahead.
const NUMBERS_AT_ONCE: usize = 1 << 8;
const _: () = assert!(AT_ONCE <= popular::ROWS && NUMBERS_AT_ONCE <= popular::ROWS);

/// Some rows of a batch.
pub(crate) struct Morsel {
    pub batch: Arc<Batch>,
    /// The number of the batch.
    pub number: u64,
    pub start: usize,
    pub end: usize,
}

/// What one thread has in the end.
pub(crate) struct Done {
    /// Its rows, where they are short, and otherwise none.
    pub short: Option<Short>,
    /// Its labels and all other rows but those of popular items.
    pub share: Share<Rows>,
    /// The rows of popular items, users alone.
    pub fans: Option<Share<Store<Lone>>>,
}

/// One thread's share of the rows.
pub(crate) struct Worker {
    keys: Arc<HashKeys>,
    grouper: Grouper,
    /// All rows as long as they are short, and otherwise none.
    short: Option<Gathered>,
    rows: LongRows,
    /// How many bytes may be held before they are put away.
    held: usize,
    /// How many rows are gathered before duplicates are dropped, at first and now.
    gathered: usize,
    compact_at: usize,
    users: UserKeys,
    cells: Vec<u64>,
    null: Vec<bool>,
    groups: Vec<Group>,
}

impl Worker {
    pub fn new(
        keys: Arc<HashKeys>,
        (user_type, item_type): (LabelType, LabelType),
        (short, popular): (Option<Form>, Option<Arc<Popular>>),
        (threads, held): (usize, usize),
    ) -> Self {
        let hashed = !user_type.is_integer();
        let gathered = FEWEST_ROWS.max(COMPACT_ROWS / threads);
        Self {
            grouper: Grouper::new(Arc::clone(&keys), item_type, hashed),
            short: short.map(Gathered::new),
            rows: LongRows::new(hashed, popular),
            held,
            gathered,
            compact_at: gathered,
            users: UserKeys::new(Arc::clone(&keys)),
            keys,
            cells: Vec::new(),
            null: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Works until there are no more morsels, each of which returns a ticket to the sender, or until all are to
    /// `stop`.
    pub fn run(
        mut self,
        morsels: &Mutex<Receiver<Morsel>>,
        tickets: &Sender<()>,
        stop: &AtomicBool,
    ) -> Result<Done> {
        loop {
            let next = morsels.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(morsel) = next else { break };
            let _ = tickets.send(());
            for start in (morsel.start..morsel.end).step_by(MORSEL) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                self.take(&morsel, start..morsel.end.min(start + MORSEL), stop)?;
            }
        }
        // Whoever has put something away puts all away: merging needs the memory.
        if self.rows.has_chapters() {
            self.put_away(stop)?;
        }
        let (share, fans) = self.rows.finish(self.grouper.take());
        Ok(Done { short: self.short.map(Gathered::finish), share, fans })
    }

    fn len(&self) -> usize {
        match &self.short {
            Some(rows) => rows.len(),
            None => self.rows.len(),
        }
    }

    /// Goes on with rows that hold any numbers.
    fn unpack(&mut self) {
        if let Some(rows) = self.short.take() {
            self.rows.unpack(rows.finish(), &self.keys);
        }
    }

    /// Goes on with rows that can be put away, and does so, where too much memory is held.
    fn keep_to_memory(&mut self, stop: &AtomicBool) -> Result<()> {
        let unpacking = self.short.as_ref().map_or(0, Gathered::held_unpacking);
        if unpacking + self.grouper.held() > self.held {
            self.unpack();
        }
        if self.rows.held() + self.grouper.held() > self.held {
            self.put_away(stop)?;
        }
        Ok(())
    }

    /// Puts labels and rows away.
    fn put_away(&mut self, stop: &AtomicBool) -> Result<()> {
        self.compact_at = self.gathered;
        self.rows.put_away(self.grouper.take(), stop)?;
        // No more may be kept than this thread's part of what the merge will need.
        give_back(self.held / 3);
        Ok(())
    }

    /// Takes some rows of a morsel.
    fn take(&mut self, morsel: &Morsel, rows: Range<usize>, stop: &AtomicBool) -> Result<()> {
        let Batch { users, items } = &*morsel.batch;
        // The labels of a dictionary are in memory anyway, and what is put away of them is soon met again.
        let is_dictionary = items.dictionary().is_some();
        let are_numbers = self.grouper.keeps_keys(items) && users.is_keyed();
        let at_once = if are_numbers { NUMBERS_AT_ONCE } else { AT_ONCE };
        for start in rows.clone().step_by(at_once) {
            let rows = start..rows.end.min(start + at_once);
            self.null.clear();
            self.null.resize(rows.len(), false);
            if are_numbers {
                self.take_keys(users, items, rows)?;
            } else {
                if matches!(self.short, Some(Gathered::Packed(_))) {
                    self.unpack();
                }
                self.users.read(users, morsel.number, rows.clone(), &mut self.null)?;
                self.grouper.group(items, morsel.number, rows, &mut self.null, &mut self.groups)?;
                self.append();
            }
            if !is_dictionary {
                self.keep_to_memory(stop)?;
            }
        }
        self.compact();
        self.keep_to_memory(stop)
    }

    /// Appends rows of numbers, the quickest of all.
    fn take_keys(&mut self, users: &Column, items: &Column, rows: Range<usize>) -> Result<()> {
        let Self { users: UserKeys { integers, .. }, cells, null, .. } = self;
        users.keys(rows.clone(), null, integers)?;
        items.keys(rows, null, cells)?;
        drop_nulls(null, integers, cells);
        if let Some(Gathered::Packed(packed)) = &mut self.short
            && packed.extend(integers, cells)
        {
            return Ok(());
        }
        self.unpack();
        let Self { rows, users: UserKeys { integers, .. }, cells, keys, .. } = self;
        rows.extend_keys(cells, integers, keys);
        Ok(())
    }

    /// Drops duplicates now and then.
    fn compact(&mut self) {
        if self.len() >= self.compact_at {
            match &mut self.short {
                Some(rows) => rows.compact(&self.keys),
                None => self.rows.compact(&self.keys),
            }
            self.compact_at = self.gathered.max(2 * self.len());
        }
    }

    /// Appends the rows that have been grouped.
    fn append(&mut self) {
        if self.rows.has_fans() {
            self.ungroup();
            self.rows.extend_keys(&self.cells, &self.users.integers, &self.keys);
            return;
        }
        if self.users.hashes.is_empty() {
            let users = std::mem::take(&mut self.users.integers);
            self.append_of(users.iter().map(|&user| user.into()));
            self.users.integers = users;
        } else {
            let users = std::mem::take(&mut self.users.hashes);
            self.append_of(users.iter().copied());
            self.users.hashes = users;
        }
    }

    /// The numbers of rows that have been grouped, some of them by way of a dictionary.
    fn ungroup(&mut self) {
        let UserKeys { hashes, integers, .. } = &mut self.users;
        if !hashes.is_empty() {
            integers.clear();
            integers.extend(hashes.iter().map(|&user| user as u64));
        }
        let counts = |group: &Group| group.partition != Group::DROPPED;
        let mut row = self.groups.iter();
        integers.retain(|_| row.next().is_some_and(counts));
        self.cells.clear();
        self.cells.extend(self.groups.iter().filter(|group| counts(group)).map(|group| group.key));
    }

    fn append_of(&mut self, users: impl Iterator<Item = u128> + Clone) {
        if let Some(Gathered::Numbered(numbered)) = &mut self.short
            && numbered.extend(users.clone(), &self.groups, &self.keys)
        {
            return;
        }
        self.unpack();
        self.rows.extend(&self.groups, users);
    }
}

/// Drops the pairs of which either is NULL.
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
    use std::sync::mpsc::channel;

    use arrow_array::types::Int32Type;
    use arrow_array::{Array, DictionaryArray, Int64Array, StringArray};

    use super::*;
    use crate::hash::PARTITIONS;
    use crate::share::with_store;

    #[test]
    fn what_is_put_away_of_a_dictionary_is_not_put_away_again_after_every_few_rows() {
        let rows = 40 * AT_ONCE;
        let labels: StringArray = (0..rows).map(|row| Some(format!("label {}", row % 7))).collect();
        let indexed: DictionaryArray<Int32Type> = labels.iter().collect();
        for (items, chapters) in [(labels.into_data(), 40), (indexed.into_data(), 1)] {
            let users = Int64Array::from_iter_values(0..rows as i64).into_data();
            let (users, items) = (Column::new(users).unwrap(), Column::new(items).unwrap());
            let keys = Arc::new(HashKeys::from_os().unwrap());
            let types = (LabelType::Signed, LabelType::Text);
            let worker = Worker::new(keys, types, (None, None), (1, 0));
            let (sender, morsels) = channel();
            let batch = Arc::new(Batch { users, items });
            sender.send(Morsel { batch, number: 0, start: 0, end: rows }).unwrap();
            drop(sender);
            let (tickets, _all) = channel();
            let stop = AtomicBool::new(false);
            let Done { share, .. } = worker.run(&Mutex::new(morsels), &tickets, &stop).unwrap();
            // One more holds what there was at the end: nothing.
            assert_eq!(share.chapters.len(), chapters + 1);
        }
    }

    /// What a worker of a 64th of the rows makes of two columns of numbers, and how many of its rows were put away.
    fn done(users: Vec<i64>, items: Vec<i64>, held: usize) -> (Done, usize) {
        let rows = users.len();
        let users = Column::new(Int64Array::from(users).into_data()).unwrap();
        let items = Column::new(Int64Array::from(items).into_data()).unwrap();
        let keys = Arc::new(HashKeys::from_os().unwrap());
        let popular = Popular::of(&items, &keys);
        assert!(popular.is_some());
        let types = (LabelType::Signed, LabelType::Signed);
        let worker = Worker::new(keys, types, (None, popular), (64, held));
        let (sender, morsels) = channel();
        let batch = Arc::new(Batch { users, items });
        for start in (0..rows).step_by(MORSEL) {
            let end = rows.min(start + MORSEL);
            sender.send(Morsel { batch: Arc::clone(&batch), number: 0, start, end }).unwrap();
        }
        drop(sender);
        let (tickets, _all) = channel();
        let done = worker.run(&Mutex::new(morsels), &tickets, &AtomicBool::new(false)).unwrap();
        let chapters = &done.fans.as_ref().unwrap().chapters;
        let put_away = (0..PARTITIONS).map(|partition| chapters.partition_len(partition)).sum();
        (done, put_away)
    }

    #[test]
    fn duplicates_are_dropped_on_the_way_also_those_of_popular_items() {
        let rows = 3 * FEWEST_ROWS as i64 / 2;
        let item = |n: i64| if n % 3 == 0 { -1 } else { n % 50_000 };
        let (users, items) = (0..rows).map(|n| (n % 1000, item(n))).unzip();
        let (done, put_away) = done(users, items, usize::MAX);
        let fans = done.fans.unwrap().rows.len();
        let others = with_store!(&done.share.rows, store => store.len());
        // Those are left that came after the last look for duplicates.
        assert!(fans < FEWEST_ROWS / 4, "{fans}");
        assert!(others < FEWEST_ROWS / 2, "{others}");
        assert_eq!(put_away, 0);
    }

    #[test]
    fn rows_of_popular_items_are_put_away_where_they_fill_the_memory() {
        let rows = 3 * FEWEST_ROWS as i64 / 2;
        let (users, items) = (0..rows).map(|n| (n, -1)).unzip();
        let (done, put_away) = done(users, items, 10 << 20);
        let fans = done.fans.unwrap();
        assert_eq!((put_away, fans.rows.len()), (rows as usize, 0));
        assert!(fans.chapters.len() > 1);
    }
}
