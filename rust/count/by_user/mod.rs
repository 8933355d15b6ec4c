//! Rows partitioned by user at once, for items that are few or listed.
//!
//! A worker numbers the items with a table of its own, and appends each row to the partition of its user. Then all rows
//! of a user are together: equal pairs are found, and a user's items are chosen and counted, user by user. A table of
//! many items does not fit into cache. So a worker that finds too many items gives its rows back, to be partitioned by
//! item (see [`crate::count::worker`]).

pub(crate) mod dealt;
pub(crate) mod few;
pub mod measured;
mod numbered;
pub mod weighted;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::columns::Batch;
use crate::columns::values::Step;
use crate::count::by_user::dealt::{Dealt, Row, Users};
use crate::count::by_user::numbered::{Numbered, Numbering, UNLISTED};
use crate::count::morsels::{MORSEL, Morsel, Morsels};
use crate::count::threads::{Limits, STOPPED, run_jobs};
use crate::count::user_keys::UserKeys;
use crate::count::worker::gathered_rows;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::labels::LabelType;

/// Rows processed at a time. This many rows stay in the L1 cache.
const AT_ONCE: usize = 1 << 9;

/// One thread's state while it partitions rows by user.
struct Dealer<'a, R: Row> {
    keys: Arc<HashKeys>,
    items: Numbering<'a>,
    rows: Dealt<R>,
    users: UserKeys,
    numbers: Vec<u32>,
    step: Step,
    values: Vec<Option<i128>>,
    null: Vec<bool>,
}

impl<'a, R: Row> Dealer<'a, R>
where
    [R; 21]: bytemuck::Pod,
{
    /// Creates the dealer of one of the threads.
    fn new(items: Numbering<'a>, keys: &Arc<HashKeys>, limits: &Limits, step: Step) -> Self {
        Self {
            keys: Arc::clone(keys),
            items,
            rows: Dealt::new(limits.rows, gathered_rows(limits.threads)),
            users: UserKeys::new(Arc::clone(keys)),
            numbers: Vec::new(),
            step,
            values: Vec::new(),
            null: Vec::new(),
        }
    }

    /// Processes morsels until there are no more, or until `is_full` after some rows. Then returns the rest of the
    /// morsel.
    fn run(
        &mut self,
        morsels: &mut Morsels,
        stop: &AtomicBool,
        is_full: impl Fn(&Numbering<'a>) -> bool,
        value: impl Fn(Option<i128>) -> Option<R::Value>,
    ) -> Result<Option<Morsel>> {
        for morsel in morsels {
            for start in (morsel.start..morsel.end).step_by(AT_ONCE) {
                if stop.load(Ordering::Relaxed) {
                    return Err(STOPPED);
                }
                let end = morsel.end.min(start + AT_ONCE);
                self.take(&morsel, start..end, &value)?;
                if is_full(&self.items) {
                    return Ok(Some(Morsel { start: end, ..morsel }));
                }
                if end == morsel.end || (end - morsel.start).is_multiple_of(MORSEL) {
                    self.rows.spill_if_full(&self.keys, stop)?;
                }
            }
        }
        self.rows.spill_rest(stop)?;
        Ok(None)
    }

    fn take(
        &mut self,
        morsel: &Morsel,
        rows: Range<usize>,
        value: impl Fn(Option<i128>) -> Option<R::Value>,
    ) -> Result<()> {
        let Batch { users, items, values } = &*morsel.batch;
        let Self { keys, rows: dealt, numbers, step, values: own, null, .. } = self;
        null.clear();
        null.resize(rows.len(), false);
        match values {
            Some(values) => values.read(rows.clone(), step, own)?,
            None => {
                own.clear();
                own.resize(rows.len(), Some(0));
            }
        }
        self.users.read(users, morsel.number, rows.clone(), null)?;
        self.items.number(items, morsel.number, rows, null, numbers, keys)?;
        let value = |(row, user): (usize, u128)| {
            let is_kept = !null[row] && numbers[row] != UNLISTED;
            let value = if is_kept { value(own[row]) } else { None };
            value.map(|value| (user, numbers[row], value))
        };
        let UserKeys { hashes, integers, .. } = &self.users;
        if hashes.is_empty() {
            let users = integers.iter().map(|&user| user.into());
            dealt.extend(users.enumerate().filter_map(value), keys);
        } else {
            dealt.extend(hashes.iter().copied().enumerate().filter_map(value), keys);
        }
        Ok(())
    }
}

/// One thread's rows, and the number over all threads of each of the thread's items; none if they are the same.
type Part<R> = (Dealt<R>, Vec<u32>);

/// Returns the rows of all threads with the names of their items.
fn views<R>(parts: &[Part<R>]) -> Vec<(&Dealt<R>, &[u32])> {
    parts.iter().map(|(rows, names)| (rows, &**names)).collect()
}

/// Numbers the items of all threads alike.
///
/// # Errors
/// [`Error::Resource`](crate::error::Error::Resource) if there is no memory for an item.
fn joined<R>(
    read: impl IntoIterator<Item = (Dealt<R>, Numbered)>,
    item_type: LabelType,
    keys: &HashKeys,
) -> Result<(Vec<Part<R>>, Numbered)> {
    let (mut parts, mut items) = (Vec::new(), Numbered::new(item_type));
    for (rows, own) in read {
        if items.items.labels.is_empty() {
            items = own;
            parts.push((rows, Vec::new()));
        } else {
            let names = items.join(&own.items, true, keys)?;
            parts.push((rows, names));
        }
    }
    Ok((parts, items))
}

/// Calls `work` for each user with the user's key and items, and `close` with the number of each partition after its
/// users. Returns the state of each thread, which begins as
/// `begin()`.
fn each_user<R: Row, S: Send>(
    parts: &[(&Dealt<R>, &[u32])],
    (threads, keys): (usize, &HashKeys),
    tick: impl FnMut() -> Result<()>,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, u128, &mut [(u32, R::Total)]) + Sync,
    close: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<Vec<S>>
where
    [R; 21]: bytemuck::Pod,
{
    let len = |partition| parts.iter().map(|(rows, _)| rows.partition_len(partition)).sum();
    let sizes = (0..PARTITIONS).map(len);
    let begin = || (begin(), Users::default());
    let done = run_jobs(threads, sizes, tick, begin, |(own, users), partition, _, stop| {
        let read = |(rows, _): &(&Dealt<R>, &[u32])| rows.read(partition, users, keys, stop);
        let spilled = parts.iter().map(read).collect::<Result<Vec<_>>>()?;
        let all = parts
            .iter()
            .zip(&spilled)
            .map(|((rows, names), spilled)| (rows.pieces(partition).chain([&**spilled]), *names));
        users.each_of(all, keys, |user, items| work(own, user, items), stop)?;
        close(own, partition)
    })?;
    Ok(done.into_iter().map(|(own, _)| own).collect())
}

/// The items of one user with their priorities.
type Placed<T> = Vec<(u64, (u32, T))>;

/// Moves `l0` of a user's items to the front, chosen uniformly, and returns how many items are kept.
fn choose<T: Copy>(
    own: &mut [(u32, T)],
    l0: usize,
    placed: &mut Placed<T>,
    place: impl Fn(u32) -> u64,
) -> usize {
    if own.len() <= l0 {
        return own.len();
    }
    placed.clear();
    placed.extend(own.iter().map(|&one| (place(one.0), one)));
    placed.select_nth_unstable_by_key(l0, |&(place, (item, _))| (place, item));
    own.iter_mut().zip(&*placed).for_each(|(to, &(_, one))| *to = one);
    l0
}

#[cfg(test)]
mod tests;
