//! Sums of clipped values for listed items, and the number of listed items of each user.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::columns::Batch;
use crate::count::by_user::dealt::Row;
use crate::count::by_user::numbered::{Numbered, Numbering};
use crate::count::by_user::{Dealer, Placed, Valued, choose, each_user, finite, in_units};
use crate::count::{Limits, make_ready, morsels};
use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::{LabelType, Labels};
use crate::memory::arena::release_memory;

/// How the values of a user's rows are added up.
#[derive(Debug, Clone, Copy)]
pub struct Clipping {
    /// The least and the largest sum of a user for an item, in units: from -2^30 to 2^30.
    pub bounds: (i64, i64),
    /// The unit of the values.
    pub resolution: f64,
    /// The most items of a user that count, chosen uniformly among the user's listed items.
    pub l0: usize,
}

/// The most threads, and the memory limit in bytes without the batches.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Values outside 1 to 64 are clamped.
    pub threads: usize,
    /// `None` for no limit.
    pub memory: Option<usize>,
}

/// Returns the sum over users of their clipped sums for each of `items`. The batches have values. Rows whose value is
/// not a finite number do not count.
///
/// # Errors
/// The same as those of [`count_distinct`](crate::count::count_distinct).
pub fn clipped_sums(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    items: &Labels,
    clipping: Clipping,
    room: Room,
    tick: impl FnMut() -> Result<()>,
) -> Result<Vec<i64>> {
    let len = items.len();
    let begin = || (vec![0; len], Vec::new());
    let value = in_units(clipping.resolution);
    let work = |(sums, placed): &mut (Vec<i64>, Vec<_>),
                user: u128,
                own: &mut [(u32, i128)],
                listed: &Numbered,
                keys: &HashKeys| {
        add_kept(sums, (user, own), (placed, clipping), listed, keys);
    };
    let sums = grouped::<Valued, _>(batches, types, items, room, tick, value, begin, work)?;
    let mut all = vec![0; len];
    for (own, _) in sums {
        all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
    }
    Ok(all)
}

/// Adds the clipped totals of a user to the sums of their items, for at most `l0` items, chosen uniformly.
pub(super) fn add_kept(
    sums: &mut [i64],
    (user, own): (u128, &mut [(u32, i128)]),
    (placed, clipping): (&mut Placed<i128>, Clipping),
    listed: &Numbered,
    keys: &HashKeys,
) {
    let (low, high) = clipping.bounds;
    let place = |item: u32| listed.items.place(user, item as usize, keys);
    let kept = choose(own, clipping.l0, placed, place);
    for &(item, total) in &own[..kept] {
        sums[item as usize] += total.clamp(low.into(), high.into()) as i64;
    }
}

/// Returns the number of distinct items in `items` of each user who has any, in any order of the users.
///
/// # Errors
/// The same as those of [`clipped_sums`].
pub fn listed_sizes(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    items: &Labels,
    room: Room,
    tick: impl FnMut() -> Result<()>,
) -> Result<Vec<i64>> {
    let work =
        |sizes: &mut Vec<i64>, _: u128, own: &mut [(u32, ())], _: &Numbered, _: &HashKeys| {
            sizes.push(own.len() as i64);
        };
    let done = grouped::<[u64; 2], _>(batches, types, items, room, tick, finite, Vec::new, work)?;
    Ok(done.concat())
}

/// Reads the rows of listed items and calls `work` for each user, with the totals of the user's items. Returns the
/// state of each thread, which begins as `begin()`.
#[allow(clippy::too_many_arguments, reason = "the steps of two functions")]
fn grouped<R: Row, S: Send>(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    items: &Labels,
    room: Room,
    mut tick: impl FnMut() -> Result<()>,
    value: impl Fn(f64) -> Option<R::Value> + Sync,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, u128, &mut [(u32, R::Total)], &Numbered, &HashKeys) + Sync,
) -> Result<Vec<S>>
where
    [R; 21]: bytemuck::Pod,
{
    let (keys, stop) = (Arc::new(HashKeys::from_os()?), AtomicBool::new(false));
    let listed = Numbered::listed(items, types.1, &keys)?;
    let limits = Limits::within(room.threads, room.memory);
    let job = || {
        let items = Numbering::new(Some(&listed), types.1);
        let mut dealer = Dealer::<R>::new(items, &keys, &limits);
        let (stop, value) = (&stop, &value);
        move |mut morsels| {
            dealer.run(&mut morsels, stop, |_| false, value)?;
            Ok((dealer.rows, Vec::new()))
        }
    };
    let parts = morsels::share(batches, limits.threads, job, &stop, &mut tick)?;
    release_memory(0);
    let work = |own: &mut S, user, items: &mut [(u32, R::Total)]| {
        work(own, user, items, &listed, &keys);
    };
    let done = each_user(&parts, (limits.threads, &keys), tick, begin, work, |_, _| Ok(()));
    make_ready(room.memory);
    done
}
