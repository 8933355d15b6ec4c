//! Rows by user while there are few items, and by item once a thread finds too many.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::columns::Batch;
use crate::columns::values::Step;
use crate::count::bound::candidates::Candidates;
use crate::count::bound::lister::{Items, Keeper, Part as ListPart};
use crate::count::bound::user_choices::Choice;
use crate::count::by_user::dealt::{Dealt, Users};
use crate::count::by_user::numbered::{Numbered, Numbering};
use crate::count::by_user::{Dealer, Part, Placed, choose, each_user, joined, views};
use crate::count::dense::{Layout, Packed, Visit, most_items};
use crate::count::morsels::{self, MORSEL, Morsel};
use crate::count::pairs::Pair;
use crate::count::result::Counts;
use crate::count::spill::Spill;
use crate::count::threads::{Limits, STOPPED, run_jobs};
use crate::count::worker::{Done, Worker};
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::labels::{LabelType, Labels};
use crate::memory::arena::release_memory;

/// The most items of a thread. With more items, rows by item are as fast or faster.
const MOST_ITEMS: usize = if cfg!(test) { 100 } else { 1 << 14 };

/// All rows: by user if there are few items, or by item.
pub(crate) enum Rows<P: Pair> {
    ByUser(Few),
    ByItem(Vec<Done<P>>),
}

/// Rows of few items, by user.
pub(crate) struct Few {
    parts: Parts,
    items: Candidates,
}

/// The rows of all threads.
enum Parts {
    Dealt(Vec<Part<Choice>>),
    /// Rows of small numbers, whose items are their own numbers.
    Packed(Vec<Packed>),
}

/// Partitions the rows of all batches. `worker` makes the worker of a thread that partitions by item, or that packs
/// rows. `may_pack` allows rows of four bytes, which have another order of users.
pub(crate) fn read<P: Pair>(
    batches: impl Iterator<Item = Result<Batch>>,
    item_type: LabelType,
    (keys, limits): (&Arc<HashKeys>, &Limits),
    may_pack: bool,
    worker: impl Fn(Option<Packed>) -> Worker<P> + Sync,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Rows<P>> {
    let stop = AtomicBool::new(false);
    let mut batches = batches.peekable();
    let layout = match batches.peek() {
        Some(Ok(batch)) if may_pack && item_type.is_integer() => Layout::by_user(batch, keys),
        _ => None,
    };
    if let Some(layout) = layout {
        let job = || {
            let (worker, stop) = (worker(Some(Packed::by_user(layout))), &stop);
            move |morsels| worker.run(morsels, stop)
        };
        let done = morsels::share(batches, limits.threads, job, &stop, &mut tick)?;
        release_memory(0);
        return Few::packed(done, item_type, keys);
    }
    let (worker, step) = (|| worker(None), Step::new(1.0)?);
    let job = || {
        let mut dealer = Dealer::<Choice>::new(Numbering::new(None, item_type), keys, limits, step);
        let (stop, worker) = (&stop, &worker);
        // A label can be long, so few labels can be large.
        let most = limits.rows / 4;
        let is_full = move |items: &Numbering<'_>| {
            let items = &items.own.items;
            items.labels.len() > MOST_ITEMS || items.bytes_used() > most
        };
        move |mut morsels| match dealer
            .run(&mut morsels, stop, is_full, |value| value.map(|_| ()))?
        {
            None => Ok(Read::ByUser(Box::new((dealer.rows, dealer.items.own)))),
            Some(rest) => {
                let worker = moved((dealer.rows, dealer.items.own), worker(), stop)?;
                let rest = Some(rest).filter(|Morsel { start, end, .. }| start < end);
                let done = worker.run(rest.into_iter().chain(morsels), stop)?;
                Ok(Read::ByItem(Box::new(done)))
            }
        }
    };
    let read = morsels::share(batches, limits.threads, job, &stop, &mut tick)?;
    release_memory(0);
    if read.iter().all(|one| matches!(one, Read::ByUser(_))) {
        return Few::of(read, item_type, keys).map(Rows::ByUser);
    }
    let read: Vec<_> = read.into_iter().map(|one| Mutex::new(Some(one))).collect();
    let sizes = std::iter::repeat_n(1, read.len());
    let work = |done: &mut Vec<Done<P>>, number: usize, _, stop: &AtomicBool| {
        match read[number].lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(Read::ByItem(one)) => done.push(*one),
            Some(Read::ByUser(one)) => {
                done.push(moved(*one, worker(), stop)?.run(std::iter::empty(), stop)?);
            }
            None => {}
        }
        Ok(())
    };
    let done = run_jobs(limits.threads, sizes, tick, Vec::new, work)?;
    Ok(Rows::ByItem(done.into_iter().flatten().collect()))
}

/// The rows of one thread.
enum Read<P: Pair> {
    ByUser(Box<(Dealt<Choice>, Numbered)>),
    ByItem(Box<Done<P>>),
}

/// Gives rows by user to a worker, which partitions them by item.
fn moved<P: Pair>(
    (mut rows, items): (Dealt<Choice>, Numbered),
    mut worker: Worker<P>,
    stop: &AtomicBool,
) -> Result<Worker<P>> {
    let (mut users, mut groups, mut open) = (Users::default(), Vec::new(), 0);
    for partition in 0..PARTITIONS {
        if stop.load(Ordering::Relaxed) {
            return Err(STOPPED);
        }
        let spilled = rows.read(partition, &mut users, worker.keys(), stop)?;
        for rows in rows.pieces(partition).chain(spilled.chunks(MORSEL)) {
            worker.adopt(rows, &items.items.labels, &mut groups)?;
            open += rows.len();
            if open >= MORSEL {
                worker.settle(&mut groups, stop)?;
                open = 0;
            }
        }
        rows.clear(partition);
    }
    Ok(worker)
}

impl Few {
    /// Numbers the items of all threads alike.
    fn of<P: Pair>(read: Vec<Read<P>>, item_type: LabelType, keys: &HashKeys) -> Result<Self> {
        let by_user = read.into_iter().filter_map(|one| match one {
            Read::ByUser(one) => Some(*one),
            Read::ByItem(_) => None,
        });
        let (parts, items) = joined(by_user, item_type, keys)?;
        Ok(Self { parts: Parts::Dealt(parts), items: items.items })
    }

    /// Takes the rows that all threads packed. Unpacks them if some did not fit, or if an item is large.
    fn packed<P: Pair>(
        mut done: Vec<Done<P>>,
        item_type: LabelType,
        keys: &HashKeys,
    ) -> Result<Rows<P>> {
        let most = |done: &Done<P>| done.packed.as_ref().map_or(u64::MAX, Packed::items);
        let items = done.iter().map(most).max().unwrap_or(0);
        let len = |done: &Done<P>| done.packed.as_ref().map_or(0, Packed::len);
        if items > most_items(4 * done.iter().map(len).sum::<usize>()) {
            for Done { packed, rows, .. } in &mut done {
                if let Some(packed) = packed.take() {
                    rows.rows = packed.unpack(keys);
                }
            }
            return Ok(Rows::ByItem(done));
        }
        let mut labels = Labels::new(item_type);
        labels.make_room(items as usize * 8)?;
        (0..items).for_each(|item| labels.push_integer(item));
        let parts = Parts::Packed(done.into_iter().filter_map(|done| done.packed).collect());
        Ok(Rows::ByUser(Self { parts, items: Candidates::of_integers(labels) }))
    }

    /// Returns whether the rows are packed. Then some items may have no rows.
    pub fn is_packed(&self) -> bool {
        matches!(self.parts, Parts::Packed(_))
    }

    /// Counts the users of each item, up to `cap`, and all users. Each user keeps the first `l0` items in the user's
    /// order.
    pub fn count(
        self,
        l0: usize,
        cap: Option<i64>,
        (threads, keys): (usize, &HashKeys),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Counts> {
        let Self { parts, items } = self;
        let begin = || (vec![0_i64; items.labels.len()], 0_u64, Vec::new());
        let work = |(counts, users, placed): &mut (Vec<i64>, u64, Vec<_>),
                    user: u128,
                    own: &mut [(u32, ())]| {
            let kept = choose(own, l0, placed, |item| items.place(user, item as usize, keys));
            own[..kept].iter().for_each(|&(item, ())| counts[item as usize] += 1);
            *users += 1;
        };
        let done = parts.each_user((threads, keys), tick, begin, work, |_, _| Ok(()))?;
        let (mut counts, mut users) = (vec![0; items.labels.len()], 0);
        for (own, more, _) in done {
            counts.iter_mut().zip(own).for_each(|(all, own)| *all += own);
            users += more;
        }
        let cap = cap.unwrap_or(i64::MAX);
        for count in &mut counts {
            *count = cap.min(*count);
        }
        let mut counts = Counts { labels: items.labels, counts, users: Some(users) };
        counts.drop_zeros()?;
        Ok(counts)
    }

    /// Lists the first `l0` items of each user, by partition of the users, with their files. Returns the items too. Lists
    /// may take `room` bytes of memory.
    pub fn list(
        self,
        l0: usize,
        room: usize,
        (threads, keys): (usize, &HashKeys),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<(Vec<ListPart>, Vec<Spill>, Candidates)> {
        let is_packed = self.is_packed();
        let Self { parts, items } = self;
        let used = AtomicUsize::new(0);
        let work = |own: &mut Listing<'_>, user: u128, found: &mut [(u32, ())]| {
            let all = found.len();
            let kept =
                choose(found, l0, &mut own.placed, |item| items.place(user, item as usize, keys));
            let found = &mut found[..kept];
            // Packed items are in order.
            if !is_packed || kept < all {
                found.sort_unstable_by_key(|&(item, ())| items.rank(item as usize));
            }
            own.users.push((user, own.items.len(), kept as u32));
            own.items.extend(found.iter().map(|&(item, ())| item));
        };
        let close = |own: &mut Listing<'_>, partition| {
            let part = own.part(partition, is_packed);
            own.made.keep(part)
        };
        let begin = || Listing::new(Keeper::new(&used, room));
        let done = parts.each_user((threads, keys), tick, begin, work, close)?;
        let (made, files) = Keeper::all(done.into_iter().map(|own| own.made))?;
        Ok((made, files, items))
    }
}

impl Parts {
    /// Does what [`each_user`] does.
    fn each_user<S: Send>(
        &self,
        (threads, keys): (usize, &HashKeys),
        tick: impl FnMut() -> Result<()>,
        begin: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, u128, &mut [(u32, ())]) + Sync,
        close: impl Fn(&mut S, usize) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let parts = match self {
            Self::Dealt(parts) => {
                return each_user(&views(parts), (threads, keys), tick, begin, work, close);
            }
            Self::Packed(parts) => parts,
        };
        let len = |partition| parts.iter().map(|part| part.partition_len(partition)).sum();
        let begin = || (begin(), Visit::default());
        let visit = |(own, visit): &mut (S, Visit), partition, len, stop: &AtomicBool| {
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED);
            }
            if len > 0 {
                visit.each_user(parts, partition, |user, items| work(own, user, items));
            }
            close(own, partition)
        };
        let done = run_jobs(threads, (0..PARTITIONS).map(len), tick, begin, visit)?;
        Ok(done.into_iter().map(|(own, _)| own).collect())
    }
}

/// One thread's lists.
struct Listing<'a> {
    made: Keeper<'a>,
    /// The key of each user of the current partition, with the start and the number of the user's items.
    users: Vec<(u128, usize, u32)>,
    items: Vec<u32>,
    placed: Placed<()>,
}

impl<'a> Listing<'a> {
    fn new(made: Keeper<'a>) -> Self {
        Self { made, users: Vec::new(), items: Vec::new(), placed: Vec::new() }
    }

    /// Returns the lists of the current partition. Users are ordered by their keys unless they were packed.
    fn part(&mut self, partition: usize, is_packed: bool) -> ListPart {
        let Self { users, items, .. } = self;
        if !is_packed {
            users.sort_unstable();
        }
        let mut part = ListPart { partition, ..ListPart::default() };
        part.users.reserve_exact(users.len());
        let mut own = Vec::with_capacity(items.len());
        for (user, start, len) in users.drain(..) {
            part.users.push((user as u64, len));
            own.extend_from_slice(&items[start..start + len as usize]);
        }
        items.clear();
        part.items = Items::Memory(own);
        part
    }
}
