//! What one thread does: takes morsels of rows, finds their keys, and keeps them by partition.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use crate::column::{Column, LabelType};
use crate::error::{Error, Result};
use crate::group::{Group, Grouper, Sink, empty};
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::pairs::{Hashed, Narrow, Pair, Table, Wide, distinct};
use crate::shelf::Post;
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
    compact_at: usize,
    users: Vec<u128>,
    integers: Vec<u64>,
    /// The keys of the dictionary of batch number `memo_of`, as far as they have been needed.
    memo: Vec<u128>,
    memo_of: u64,
    null: Vec<bool>,
    groups: Vec<Group>,
    table: Table,
}

/// What a thread has in the end.
pub(crate) struct Share {
    pub interners: Option<Vec<Interner>>,
    pub rows: Rows,
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
            Rows::Narrow($store) => $body,
            Rows::Wide($store) => $body,
            Rows::Hashed($store) => $body,
        }
    };
}

impl Worker {
    pub fn new(
        keys: Arc<HashKeys>,
        post: Post,
        user_type: LabelType,
        item_type: LabelType,
    ) -> Self {
        let hashed = !user_type.is_integer();
        Self {
            grouper: Grouper::new(Arc::clone(&keys), post, item_type, hashed),
            keys,
            is_text: item_type == LabelType::Text,
            rows: if hashed {
                Rows::Hashed(Store::default())
            } else {
                Rows::Narrow(Store::default())
            },
            compact_at: COMPACT_ROWS,
            users: Vec::new(),
            integers: Vec::new(),
            memo: Vec::new(),
            memo_of: u64::MAX,
            null: Vec::new(),
            groups: Vec::new(),
            table: Table::default(),
        }
    }

    /// Works until there are no more morsels. After a failure they are only taken, so that the sender
    /// never waits for nobody.
    pub fn run(mut self, morsels: &Mutex<Receiver<Morsel>>, failed: &AtomicBool) -> Result<Share> {
        let mut outcome = Ok(());
        loop {
            let next = morsels.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(morsel) = next else { break };
            if failed.load(Ordering::Relaxed) {
                continue;
            }
            outcome = self.take(&morsel);
            if outcome.is_err() {
                failed.store(true, Ordering::Relaxed);
                break;
            }
        }
        if outcome.is_err() {
            while morsels.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok() {}
        }
        outcome?;
        let Self { grouper, mut rows, is_text, .. } = self;
        let (mut interners, last) = grouper.close();
        rows.make_room(last.iter().fold(0, |all, (_, shelf)| all | shelf.user_bits()));
        if let Some(interners) = &mut interners {
            rows.fill(|sink| empty(last, interners, is_text, sink))?;
        }
        Ok(Share { interners, rows })
    }

    fn take(&mut self, morsel: &Morsel) -> Result<()> {
        let Batch { users, items } = &*morsel.batch;
        let rows = morsel.start..morsel.end;
        self.null.clear();
        self.null.resize(rows.len(), false);
        let shelved = Grouper::shelves(items);
        self.read_users(users, morsel, shelved)?;
        if shelved {
            // What others have sent may have wider users than any that this thread has seen.
            let received = self.grouper.received();
            let bits = received.iter().fold(0, |all, (_, shelf)| all | shelf.user_bits());
            self.make_room(bits);
            let Self { grouper, rows: all, null, users, .. } = self;
            all.fill(|sink| grouper.shelve(items, rows, null, users, received, sink))?;
        } else {
            self.grouper.group(items, morsel.number, rows, &mut self.null, &mut self.groups)?;
            self.append();
        }
        let gathered = with_store!(&self.rows, store => store.len());
        if gathered >= self.compact_at {
            let (keys, table) = (&self.keys, &mut self.table);
            let left = with_store!(&mut self.rows, store => compact(store, keys, table));
            self.compact_at = COMPACT_ROWS.max(2 * left);
        }
        Ok(())
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

impl Rows {
    /// Rows of narrow keys with room for larger ones.
    pub fn widen(narrow: &Store<Narrow>) -> Store<Wide> {
        let (mut wide, mut rows) = (Store::default(), Vec::new());
        for partition in 0..PARTITIONS {
            rows.clear();
            narrow.read(partition, &mut rows, Narrow::widen);
            for &row in &rows {
                wide.push(partition, row);
            }
        }
        wide
    }

    /// Widens narrow rows where a key with bits among `bits` does not fit.
    fn make_room(&mut self, bits: u128) {
        if let Self::Narrow(store) = self
            && bits >> 32 != 0
        {
            *self = Self::Wide(Self::widen(&std::mem::take(store)));
        }
    }

    /// Lets `source` push rows of partition, item and user.
    fn fill(&mut self, source: impl FnOnce(Sink<'_>) -> Result<()>) -> Result<()> {
        fn sink<P: Pair>(store: &mut Store<P>) -> impl FnMut(usize, u64, u128) {
            |partition, item, user| store.push(partition, P::new(item, user))
        }
        with_store!(self, store => source(&mut sink(store)))
    }
}

fn append<P: Pair>(store: &mut Store<P>, groups: &[Group], users: impl Iterator<Item = u128>) {
    for (group, user) in groups.iter().zip(users) {
        if group.partition != Group::DROPPED {
            store.push(group.partition as usize, P::new(group.key, user));
        }
    }
}

/// Deduplicates every partition if a sample of them says that it pays; returns the rows left.
fn compact<P: Pair>(store: &mut Store<P>, keys: &HashKeys, table: &mut Table) -> usize {
    const SAMPLE: usize = PARTITIONS / 16;
    let before: usize = (0..SAMPLE).map(|partition| store.partition_len(partition)).sum();
    let mut rows = Vec::new();
    let mut after = 0;
    for partition in 0..PARTITIONS {
        if partition == SAMPLE && 4 * after > 3 * before {
            break;
        }
        rows.clear();
        store.take(partition, &mut rows);
        distinct(&mut rows, keys, table);
        after += rows.len();
        for &row in &rows {
            store.push(partition, row);
        }
    }
    store.len()
}
