//! What one thread does: takes morsels of rows, finds their keys, and keeps them by partition.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use crate::block::give_back;
use crate::chapters::Chapters;
use crate::column::{Batch, Column};
use crate::crew::STOPPED;
use crate::error::Result;
use crate::group::{Group, Grouper};
use crate::hash::HashKeys;
use crate::labels::LabelType;
use crate::lines::deduplicate;
use crate::pairs::{Lone, Pair};
use crate::popular::{Fans, Popular};
use crate::share::{Rows, Share, with_store};
use crate::short::{Form, Gathered, Short};
use crate::sieve::Sieve;
use crate::store::Store;
use crate::user_keys::UserKeys;

/// How many rows all workers gather before they look for duplicates, and the fewest that one does.
const COMPACT_ROWS: usize = 1 << 24;
const FEWEST_ROWS: usize = 1 << 20;

/// How many rows pass through the nearest cache at a time.
const AT_ONCE: usize = 1 << 9;

/// Some rows of a batch.
pub(crate) struct Morsel {
    pub batch: Arc<Batch>,
    /// The number of the batch.
    pub number: u64,
    pub start: usize,
    pub end: usize,
}

/// What one thread has in the end: short rows or others, and those of popular items.
pub(crate) type Done = ((Option<Short>, Share<Rows>), Option<Share<Store<Lone>>>);

/// One thread's share of the rows.
pub(crate) struct Worker {
    keys: Arc<HashKeys>,
    grouper: Grouper,
    /// All rows as long as they are short, and otherwise none.
    short: Option<Gathered>,
    rows: Rows,
    /// Those of popular items, where there are any.
    fans: Option<Fans>,
    /// What has been put away, and how many bytes may be held before more is.
    chapters: Chapters,
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
            rows: Rows::new(hashed),
            fans: popular.map(Fans::new),
            chapters: Chapters::default(),
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
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED);
            }
            let _ = tickets.send(());
            self.take(&morsel, stop)?;
        }
        // Whoever has put something away puts all away: merging needs the memory.
        if !self.chapters.is_empty() {
            self.put_away(stop)?;
        }
        let Self { mut grouper, short, rows, chapters, fans, .. } = self;
        let share = Share { labels: grouper.take(), rows, chapters };
        Ok(((short.map(Gathered::finish), share), fans.map(|fans| fans.share)))
    }

    fn len(&self) -> usize {
        match &self.short {
            Some(rows) => rows.len(),
            None => {
                let fans = self.fans.as_ref().map_or(0, Fans::len);
                fans + with_store!(&self.rows, store => store.len())
            }
        }
    }

    /// Goes on with rows that hold any numbers.
    fn unpack(&mut self) {
        if let Some(rows) = self.short.take() {
            self.rows = rows.finish().unpack(self.rows.take(), &self.keys);
        }
    }

    fn rows_held(&self) -> usize {
        let fans = self.fans.as_ref().map_or(0, Fans::held);
        fans + with_store!(&self.rows, store => store.held())
    }

    /// Goes on with rows that can be put away, and does so, where too much memory is held.
    fn keep_to_memory(&mut self, stop: &AtomicBool) -> Result<()> {
        let unpacking = self.short.as_ref().map_or(0, Gathered::held_unpacking);
        if unpacking + self.grouper.held() > self.held {
            self.unpack();
        }
        if self.rows_held() + self.grouper.held() > self.held {
            self.put_away(stop)?;
        }
        Ok(())
    }

    /// Puts labels and rows away.
    fn put_away(&mut self, stop: &AtomicBool) -> Result<()> {
        let (rows, labels) = (self.rows.take(), self.grouper.take());
        self.compact_at = self.gathered;
        with_store!(&rows, store => self.chapters.add(labels.as_ref(), store, stop))?;
        drop((rows, labels));
        if let Some(fans) = &mut self.fans {
            fans.put_away(stop)?;
        }
        // No more may be kept than this thread's part of what the merge will need.
        give_back(self.held / 3);
        Ok(())
    }

    fn take(&mut self, morsel: &Morsel, stop: &AtomicBool) -> Result<()> {
        let Batch { users, items } = &*morsel.batch;
        // The labels of a dictionary are in memory anyway, and what is put away of them is soon met again.
        let is_dictionary = items.dictionary().is_some();
        for start in (morsel.start..morsel.end).step_by(AT_ONCE) {
            let rows = start..morsel.end.min(start + AT_ONCE);
            self.null.clear();
            self.null.resize(rows.len(), false);
            if self.grouper.keeps_keys(items) && users.is_keyed() {
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
        self.append_keys();
        Ok(())
    }

    /// Appends rows of numbers that are not short.
    fn append_keys(&mut self) {
        let Self { keys, users: UserKeys { integers, .. }, cells, .. } = self;
        let (mut users, mut items) = (&integers[..], &cells[..]);
        if let Some(fans) = &mut self.fans {
            (items, users) = fans.take(items, users, keys);
        }
        let bits = users.iter().chain(items).fold(0, |all, key| all | key);
        self.rows.make_room(bits.into());
        with_store!(&mut self.rows, store => {
            let rows = items.iter().zip(users);
            store.extend(rows.map(|(&item, &user)| (keys.partition(item), Pair::new(item, user.into()))));
        });
    }

    /// Drops duplicates now and then.
    fn compact(&mut self) {
        if self.len() >= self.compact_at {
            match &mut self.short {
                Some(rows) => rows.compact(&self.keys),
                None => {
                    with_store!(&mut self.rows, store => compact(store, &self.keys));
                    if let Some(fans) = &mut self.fans {
                        compact(&mut fans.share.rows, &self.keys);
                    }
                }
            }
            self.compact_at = self.gathered.max(2 * self.len());
        }
    }

    /// Appends the rows that have been grouped.
    fn append(&mut self) {
        if self.fans.is_some() {
            self.ungroup();
            self.append_keys();
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
        if matches!(self.rows, Rows::Narrow(_)) {
            let keys = self.groups.iter().fold(0, |all, group| all | group.key);
            self.rows.make_room(users.clone().fold(keys.into(), |all, user| all | user));
        }
        let groups = &self.groups;
        with_store!(&mut self.rows, store => append(store, groups, users));
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

fn append<P: Pair>(store: &mut Store<P>, groups: &[Group], users: impl Iterator<Item = u128>) {
    let rows = groups.iter().zip(users).filter(|(group, _)| group.partition != Group::DROPPED);
    store.extend(rows.map(|(group, user)| (group.partition as usize, P::new(group.key, user))));
}

/// Deduplicates every partition if a sample of them says that it pays.
fn compact<P: Pair>(store: &mut Store<P>, keys: &HashKeys) {
    let mut sieve = Sieve::default();
    deduplicate(|partition| {
        let before = store.partition_len(partition);
        sieve.reset(before);
        for rows in store.pieces(partition) {
            let most = rows.len();
            sieve.extend(rows, most, keys);
        }
        store.clear(partition);
        let rows = sieve.distinct(keys);
        for &row in rows {
            store.push(partition, row);
        }
        (before, rows.len())
    });
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use arrow_array::types::Int32Type;
    use arrow_array::{Array, DictionaryArray, Int64Array, StringArray};

    use super::*;
    use crate::hash::PARTITIONS;

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
            let ((_, share), _) = worker.run(&Mutex::new(morsels), &tickets, &stop).unwrap();
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
        for start in (0..rows).step_by(1 << 15) {
            let end = rows.min(start + (1 << 15));
            sender.send(Morsel { batch: Arc::clone(&batch), number: 0, start, end }).unwrap();
        }
        drop(sender);
        let (tickets, _all) = channel();
        let done = worker.run(&Mutex::new(morsels), &tickets, &AtomicBool::new(false)).unwrap();
        let chapters = &done.1.as_ref().unwrap().chapters;
        let put_away = (0..PARTITIONS).map(|partition| chapters.partition_len(partition)).sum();
        (done, put_away)
    }

    #[test]
    fn duplicates_are_dropped_on_the_way_also_those_of_popular_items() {
        let rows = 3 * FEWEST_ROWS as i64 / 2;
        let item = |n: i64| if n % 3 == 0 { -1 } else { n % 50_000 };
        let (users, items) = (0..rows).map(|n| (n % 1000, item(n))).unzip();
        let (((_, share), fans), put_away) = done(users, items, usize::MAX);
        let fans = fans.unwrap().rows.len();
        let others = with_store!(&share.rows, store => store.len());
        // Those are left that came after the last look for duplicates.
        assert!(fans < FEWEST_ROWS / 4, "{fans}");
        assert!(others < FEWEST_ROWS / 2, "{others}");
        assert_eq!(put_away, 0);
    }

    #[test]
    fn rows_of_popular_items_are_put_away_where_they_fill_the_memory() {
        let rows = 3 * FEWEST_ROWS as i64 / 2;
        let (users, items) = (0..rows).map(|n| (n, -1)).unzip();
        let ((_, fans), put_away) = done(users, items, 10 << 20);
        let fans = fans.unwrap();
        assert_eq!((put_away, fans.rows.len()), (rows as usize, 0));
        assert!(fans.chapters.len() > 1);
    }
}
