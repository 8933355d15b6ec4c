//! What one thread does: takes morsels of rows, finds their keys, and keeps them by partition.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::chapters::Chapters;
use crate::column::{Column, LabelType};
use crate::crew::STOPPED;
use crate::error::{Error, Result};
use crate::group::{Group, Grouper, empty};
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::pairs::Pair;
use crate::share::{Rows, Share, with_store};
use crate::shelf::Post;
use crate::sieve::Sieve;
use crate::store::Store;

/// How many rows a worker gathers before it looks for duplicates.
const COMPACT_ROWS: usize = 1 << 22;

/// Keys that no user has: those have at most 96 bits.
const UNKNOWN: u128 = u128::MAX;
const NULL: u128 = u128::MAX - 1;

/// Two columns of equal length.
pub struct Batch {
    /// Who.
    pub users: Column,
    /// What.
    pub items: Column,
}

/// Some rows of a batch.
pub(crate) struct Morsel {
    pub batch: Arc<Batch>,
    /// The number of the batch.
    pub number: u64,
    pub start: usize,
    pub end: usize,
}

/// One thread's share of the rows.
pub(crate) struct Worker {
    keys: Arc<HashKeys>,
    is_text: bool,
    grouper: Grouper,
    rows: Rows,
    /// What has been put away, and how many bytes may be held before more is.
    chapters: Chapters,
    held: usize,
    compact_at: usize,
    users: Vec<u128>,
    integers: Vec<u64>,
    cells: Vec<u64>,
    /// The keys of the dictionary of batch number `memo_of`, as far as they have been needed.
    memo: Vec<u128>,
    memo_of: u64,
    null: Vec<bool>,
    groups: Vec<Group>,
}

impl Worker {
    pub fn new(
        keys: Arc<HashKeys>,
        post: Post,
        (user_type, item_type): (LabelType, LabelType),
        held: usize,
    ) -> Self {
        let hashed = !user_type.is_integer();
        Self {
            grouper: Grouper::new(Arc::clone(&keys), post, item_type, hashed),
            keys,
            is_text: item_type == LabelType::Text,
            rows: Rows::new(hashed),
            chapters: Chapters::default(),
            held,
            compact_at: COMPACT_ROWS,
            users: Vec::new(),
            integers: Vec::new(),
            cells: Vec::new(),
            memo: Vec::new(),
            memo_of: u64::MAX,
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
    ) -> Result<Share<Rows>> {
        loop {
            let next = morsels.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(morsel) = next else { break };
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED);
            }
            let _ = tickets.send(());
            self.take(&morsel)?;
            self.relieve(stop)?;
        }
        let Self { grouper, mut rows, is_text, mut chapters, .. } = self;
        let (mut interners, last) = grouper.close();
        rows.make_room(last.iter().fold(0, |all, (_, shelf)| all | shelf.user_bits()));
        if let Some(interners) = &mut interners {
            rows.fill(|sink| empty(last, interners, is_text, sink))?;
        }
        // Whoever has put something away puts all away: merging needs the memory.
        if !chapters.is_empty() {
            with_store!(&rows, store => chapters.add(interners.as_deref(), store, stop))?;
            rows.take();
            interners.iter_mut().flatten().for_each(|labels| *labels = Interner::default());
        }
        Ok(Share { interners, rows, chapters })
    }

    /// Puts labels and rows away where they hold more memory than they may, and waits while the post does.
    fn relieve(&mut self, stop: &AtomicBool) -> Result<()> {
        if self.held == usize::MAX {
            return Ok(());
        }
        while self.grouper.is_congested() && !stop.load(Ordering::Relaxed) {
            self.empty_post()?;
            std::thread::sleep(Duration::from_micros(100));
        }
        let held = with_store!(&self.rows, store => store.held()) + self.grouper.held();
        if held > self.held {
            let rows = self.rows.take();
            let interners = self.grouper.take();
            with_store!(&rows, store => self.chapters.add(interners.as_deref(), store, stop))?;
            self.compact_at = COMPACT_ROWS;
        }
        Ok(())
    }

    /// Takes in what other threads have sent.
    fn empty_post(&mut self) -> Result<()> {
        let received = self.grouper.received();
        self.make_room(received.iter().fold(0, |all, (_, shelf)| all | shelf.user_bits()));
        let Self { grouper, rows, .. } = self;
        rows.fill(|sink| grouper.empty(received, sink))
    }

    fn take(&mut self, morsel: &Morsel) -> Result<()> {
        let Batch { users, items } = &*morsel.batch;
        let rows = morsel.start..morsel.end;
        self.null.clear();
        self.null.resize(rows.len(), false);
        if self.grouper.keeps_keys(items) && users.is_keyed() {
            self.take_keys(users, items, rows)?;
            self.compact();
            return Ok(());
        }
        let shelved = Grouper::shelves(items);
        self.read_users(users, morsel, shelved)?;
        if shelved {
            self.empty_post()?;
            let Self { grouper, rows: all, null, users, .. } = self;
            all.fill(|sink| grouper.shelve(items, rows, null, users, sink))?;
        } else {
            self.grouper.group(items, morsel.number, rows, &mut self.null, &mut self.groups)?;
            self.append();
        }
        self.compact();
        Ok(())
    }

    /// Appends rows of numbers, the quickest of all.
    fn take_keys(&mut self, users: &Column, items: &Column, rows: Range<usize>) -> Result<()> {
        let Self { keys, integers, cells, null, .. } = self;
        users.keys(rows.clone(), null, integers)?;
        items.keys(rows, null, cells)?;
        let bits = integers.iter().chain(&*cells).fold(0, |all, key| all | key);
        self.rows.make_room(bits.into());
        with_store!(&mut self.rows, store => {
            for ((&item, &user), &null) in cells.iter().zip(&*integers).zip(&*null) {
                if !null {
                    store.push(keys.partition(item), Pair::new(item, user.into()));
                }
            }
        });
        Ok(())
    }

    /// Drops duplicates now and then.
    fn compact(&mut self) {
        let gathered = with_store!(&self.rows, store => store.len());
        if gathered >= self.compact_at {
            let left = with_store!(&mut self.rows, store => compact(store, &self.keys));
            self.compact_at = COMPACT_ROWS.max(2 * left);
        }
    }

    /// The keys of the users: hashes of strings in `users`, integers in `integers` and, where they are to
    /// be `keys`, in `users` too. NULL is marked.
    fn read_users(&mut self, column: &Column, morsel: &Morsel, keys: bool) -> Result<()> {
        let rows = morsel.start..morsel.end;
        column.mark_nulls(rows.clone(), &mut self.null);
        self.users.clear();
        if let Some(values) = column.dictionary() {
            if self.memo_of != morsel.number {
                self.memo.clear();
                self.memo.resize(values.len(), UNKNOWN);
                self.memo_of = morsel.number;
            }
            column.integers(rows, &mut self.integers);
            for (index, null) in self.integers.iter().zip(&mut self.null) {
                let mut key = 0;
                if !*null {
                    let index = usize::try_from(*index).unwrap_or(usize::MAX);
                    if index >= values.len() {
                        return Err(Error::Input("a dictionary index is out of range"));
                    }
                    if self.memo[index] == UNKNOWN {
                        self.memo[index] = user_key(values, index, &self.keys)?.unwrap_or(NULL);
                    }
                    *null = self.memo[index] == NULL;
                    key = if *null { 0 } else { self.memo[index] };
                }
                self.users.push(key);
            }
        } else if column.label_type().is_integer() {
            column.integers(rows, &mut self.integers);
            if keys {
                self.users.extend(self.integers.iter().map(|&key| u128::from(key)));
            }
        } else {
            let (users, keys) = (&mut self.users, &self.keys);
            column.bytes(rows, &self.null, |bytes| {
                users.push(keys.user(bytes));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Appends the rows that have been grouped.
    fn append(&mut self) {
        let keys = self.groups.iter().fold(0, |all, group| all | group.key);
        self.make_room(keys.into());
        let (groups, users) = (&self.groups, &self.users);
        if users.is_empty() {
            let users = self.integers.iter().map(|&user| u128::from(user));
            with_store!(&mut self.rows, store => append(store, groups, users));
        } else {
            let users = users.iter().copied();
            with_store!(&mut self.rows, store => append(store, groups, users));
        }
    }

    /// Widens the rows where a user that was read, or a key with bits among `bits`, does not fit.
    fn make_room(&mut self, bits: u128) {
        if matches!(self.rows, Rows::Narrow(_)) {
            let integers = self.integers.iter().fold(0, |all, user| all | user);
            let users = self.users.iter().fold(u128::from(integers), |all, user| all | user);
            self.rows.make_room(bits | users);
        }
    }
}

/// The key of a dictionary's value, or nothing where it is NULL.
fn user_key(values: &Column, index: usize, keys: &HashKeys) -> Result<Option<u128>> {
    if values.is_null(index) {
        return Ok(None);
    }
    if values.label_type().is_integer() {
        let mut cell = Vec::new();
        values.integers(index..index + 1, &mut cell);
        return Ok(Some(cell[0].into()));
    }
    let mut key = 0;
    values.bytes(index..index + 1, &[false], |bytes| {
        key = keys.user(bytes);
        Ok(())
    })?;
    Ok(Some(key))
}

fn append<P: Pair>(store: &mut Store<P>, groups: &[Group], users: impl Iterator<Item = u128>) {
    for (group, user) in groups.iter().zip(users) {
        if group.partition != Group::DROPPED {
            store.push(group.partition as usize, P::new(group.key, user));
        }
    }
}

/// Deduplicates every partition if a sample of them says that it pays; returns the rows left.
fn compact<P: Pair>(store: &mut Store<P>, keys: &HashKeys) -> usize {
    const SAMPLE: usize = PARTITIONS / 16;
    let before: usize = (0..SAMPLE).map(|partition| store.partition_len(partition)).sum();
    let mut sieve = Sieve::default();
    let mut after = 0;
    for partition in 0..PARTITIONS {
        if partition == SAMPLE && 4 * after > 3 * before {
            break;
        }
        sieve.reset(store.partition_len(partition));
        store.visit(partition, |row| sieve.push(row, keys));
        store.clear(partition);
        let rows = sieve.distinct(keys);
        after += rows.len();
        for &row in rows {
            store.push(partition, row);
        }
    }
    store.len()
}
