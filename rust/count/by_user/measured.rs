//! Several sums over one choice of each user's items: of users, rows, values, and of what means need.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::columns::Batch;
use crate::columns::values::Step;
use crate::count::bound::candidates::Candidates;
use crate::count::bound::user_choices::Choice;
use crate::count::by_user::dealt::Row;
use crate::count::by_user::numbered::{Numbered, Numbering, UNLISTED};
use crate::count::by_user::{Dealer, Part, Placed, choose, each_user, joined, views};
use crate::count::result::Counts;
use crate::count::threads::Limits;
use crate::count::{make_ready, morsels};
use crate::error::Result;
use crate::hash::HashKeys;
use crate::labels::{LabelType, Labels};
use crate::memory::arena::release_memory;

/// The most threads, and the memory limit in bytes without the batches.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Values outside 1 to 64 are clamped.
    pub threads: usize,
    /// `None` for no limit.
    pub memory: Option<usize>,
}

/// Which rows are read, and the unit of their values.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// The items that count; `None` for all.
    pub only: Option<&'a Labels>,
    /// The unit of the values.
    pub step: Step,
    /// Whether rows without a finite value are left out. Otherwise they count as rows alone.
    pub valued: bool,
}

/// A row with a value in steps, or without one, and how often it stands for itself and for a value.
pub(super) type Measured = [u64; 5];

/// The sum of the values of a pair of a user and an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// The sum of the values in steps, modulo 2^128, so that the order of rows does not matter.
    pub sum: i128,
    /// The number of rows.
    pub rows: u64,
    /// The number of rows with a value.
    pub valued: u64,
}

/// A part of a total: the sum, and the numbers of rows and of rows with a value.
type Value = (i128, u32, u32);

/// The most rows of a pair with a value. More could add up to more than 128 bits, so such a pair has no value.
const MOST_ROWS: u64 = 1 << 31;

impl Total {
    /// Returns the number of rows with a value; zero if there are too many.
    pub(super) fn values(&self) -> u64 {
        if self.valued > MOST_ROWS { 0 } else { self.valued }
    }
}

impl Row for Measured {
    type Value = Value;
    type Total = Total;
    fn new([low, high]: Choice, (sum, rows, valued): Value) -> Self {
        [low, high, sum as u64, (sum >> 64) as u64, u64::from(rows) << 32 | u64::from(valued)]
    }
    fn parts(&self) -> (Choice, Value) {
        let [low, high, below, above, rows] = *self;
        let sum = (u128::from(above) << 64 | u128::from(below)).cast_signed();
        ([low, high], (sum, (rows >> 32) as u32, rows as u32))
    }
    fn add(total: &mut Total, (sum, rows, valued): Value) {
        total.sum = total.sum.wrapping_add(sum);
        total.rows += u64::from(rows);
        total.valued += u64::from(valued);
    }
    fn take(total: &mut Total) -> (Value, bool) {
        let sum = std::mem::take(&mut total.sum);
        let most = |number: u64| number.min(u32::MAX.into()) as u32;
        let (rows, valued) = (most(total.rows), most(total.valued));
        total.rows -= u64::from(rows);
        total.valued -= u64::from(valued);
        ((sum, rows, valued), *total != Total::default())
    }
}

/// The part that a pair of a user and an item adds to the sums of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The number of rows, with the most that count.
    Rows(i64),
    /// The sum of the values, with its bounds in steps, in parts of 2^`shift` steps. It is rounded toward zero, so no
    /// part exceeds that of a bound.
    Sum(i128, i128, u32),
    /// The mean of the values less the centre of its bounds, times `w`, in parts of a step or of 2^`shift` steps; and
    /// `w`, the number of rows with a value but at most a given number. The bounds come first, then this number, the
    /// parts of a step, and `shift`, with which the result is rounded toward zero.
    Mean(i128, i128, i64, i64, u32),
}

impl Measure {
    /// Returns the number of sums of an item.
    #[must_use]
    pub fn sums(self) -> usize {
        if matches!(self, Self::Mean(..)) { 2 } else { 1 }
    }

    /// Returns the largest part that a pair adds to a sum, or `None` beyond 128 bits.
    #[must_use]
    pub fn largest(self) -> Option<i128> {
        match self {
            Self::Rows(most) => Some(most.into()),
            Self::Sum(low, high, shift) => {
                Some(low.checked_abs()?.max(high.checked_abs()?) >> shift)
            }
            Self::Mean(low, high, most, parts, shift) => {
                let centre = Self::centre(low, high);
                let widest = high.checked_sub(centre)?.max(centre.checked_sub(low)?);
                Some(widest.checked_mul(most.into())?.checked_mul(parts.into())? >> shift)
            }
        }
    }

    /// Returns the number from which means are measured: halfway between their bounds, rounded down.
    fn centre(low: i128, high: i128) -> i128 {
        (low + high).div_euclid(2)
    }

    /// Returns what a pair adds to each sum. `luck` is a random number for the pair, which rounds a mean without bias.
    pub(super) fn of(self, total: &Total, luck: u32) -> [i64; 2] {
        match self {
            Self::Rows(most) => [total.rows.min(most.cast_unsigned()).cast_signed(), 0],
            Self::Sum(..) | Self::Mean(..) if total.values() == 0 => [0, 0],
            Self::Sum(low, high, shift) => [(total.sum.clamp(low, high) / (1 << shift)) as i64, 0],
            Self::Mean(low, high, most, parts, shift) => {
                let rows = i128::from(total.values());
                let weight = rows.min(most.into());
                // Values are at most 2^95, and rows at most 2^31. The product of the widest mean, the weight and the
                // parts has 128 bits, because `largest` has them.
                let centre = Self::centre(low, high);
                let sum = total.sum.clamp(low * rows, high * rows) - centre * rows;
                let scale = weight * i128::from(parts);
                let (whole, rest) = (sum.div_euclid(rows), sum.rem_euclid(rows));
                // The quotient lies between whole numbers, so rounding it up or down does not leave its bounds.
                let up = (rows * i128::from(luck)) >> 32;
                let scaled = whole * scale + (rest * scale + up).div_euclid(rows);
                [(scaled / (1 << shift)) as i64, weight as i64]
            }
        }
    }
}

/// The rows of all pairs by user.
pub struct Pairs {
    pub(super) parts: Vec<Part<Measured>>,
    pub(super) items: Candidates,
    keys: Arc<HashKeys>,
    item_type: LabelType,
    pub(super) threads: usize,
}

impl Pairs {
    /// Reads rows. With the keys of other pairs, users choose the same items.
    ///
    /// # Errors
    /// The same as those of [`count_distinct`](crate::count::count_distinct).
    pub fn read(
        batches: impl Iterator<Item = Result<Batch>>,
        item_type: LabelType,
        Reading { only, step, valued }: Reading<'_>,
        keys: Option<&Arc<HashKeys>>,
        room: Room,
        mut tick: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let keys = match keys {
            Some(keys) => Arc::clone(keys),
            None => Arc::new(HashKeys::from_os()?),
        };
        let (limits, stop) = (Limits::within(room.threads, room.memory), AtomicBool::new(false));
        let listed = only.map(|only| Numbered::listed(only, item_type, &keys)).transpose()?;
        let alone = (!valued).then_some((0, 1, 0));
        let value = |value: Option<i128>| value.map(|steps| (steps, 1, 1)).or(alone);
        let job = || {
            let mut dealer = Dealer::<Measured>::new(
                Numbering::new(listed.as_ref(), item_type),
                &keys,
                &limits,
                step,
            );
            let stop = &stop;
            move |mut morsels| {
                dealer.run(&mut morsels, stop, |_| false, value)?;
                Ok((dealer.rows, dealer.items.own))
            }
        };
        let read = morsels::share(batches, limits.threads, job, &stop, &mut tick)?;
        release_memory(0);
        let (parts, items) = match listed {
            Some(listed) => {
                (read.into_iter().map(|(rows, _)| (rows, Vec::new())).collect(), listed)
            }
            None => joined(read, item_type, &keys)?,
        };
        make_ready(room.memory);
        Ok(Self { parts, items: items.items, keys, item_type, threads: limits.threads })
    }

    /// Returns the keys that choose each user's items.
    #[must_use]
    pub fn keys(&self) -> &Arc<HashKeys> {
        &self.keys
    }

    /// Returns the type of the items.
    #[must_use]
    pub fn item_type(&self) -> LabelType {
        self.item_type
    }

    /// Returns the number of items of each user.
    ///
    /// # Errors
    /// Errors of `tick` and of temporary files.
    pub fn sizes(&self, tick: impl FnMut() -> Result<()>) -> Result<Vec<i64>> {
        let work = |sizes: &mut Vec<i64>, _, own: &mut [(u32, Total)]| sizes.push(own.len() as i64);
        let shared = (self.threads, &*self.keys);
        Ok(each_user(&views(&self.parts), shared, tick, Vec::new, work, |_, _| Ok(()))?.concat())
    }

    /// Returns for each user the absolute value of the sum of one of the user's items, chosen uniformly. Sums of more
    /// than 63 bits become the largest number.
    ///
    /// # Errors
    /// Errors of `tick` and of temporary files.
    pub fn extents(&self, tick: impl FnMut() -> Result<()>) -> Result<Vec<i64>> {
        let Self { parts, items, keys, threads, .. } = self;
        let begin = || (Vec::new(), Placed::new());
        let work = |(extents, placed): &mut (Vec<i64>, Placed<Total>),
                    user: u128,
                    own: &mut [(u32, Total)]| {
            choose(own, 1, placed, |item| items.place(user, item as usize, keys));
            let first = own.first().filter(|(_, total)| total.values() > 0);
            let extent = first.map_or(0, |(_, total)| total.sum.unsigned_abs());
            extents.push(extent.min(i64::MAX.unsigned_abs().into()) as i64);
        };
        let done = each_user(&views(parts), (*threads, keys), tick, begin, work, |_, _| Ok(()))?;
        Ok(done.into_iter().flat_map(|(extents, _)| extents).collect())
    }

    /// Returns the number of users of each item, for at most `l0` items of each user, chosen uniformly.
    ///
    /// # Errors
    /// Errors of `tick` and of temporary files, or if there is no memory for the labels.
    pub fn counts(&self, l0: usize, tick: impl FnMut() -> Result<()>) -> Result<Counts> {
        let sums = self.summed(self.items.labels.len(), 1, l0, tick, |sums, (_, item), _| {
            sums[item as usize] += 1;
        })?;
        let mut counts = Counts { labels: self.items.labels.clone(), counts: sums, users: None };
        counts.drop_zeros()?;
        Ok(counts)
    }

    /// Returns for each item of `chosen` the sums of all measures, over the same choice of each user's items as
    /// [`Self::counts`] with this `l0`.
    ///
    /// # Errors
    /// The same as those of [`Self::counts`], and those of a list that has an item twice.
    pub fn measured(
        &self,
        chosen: &Labels,
        l0: usize,
        measures: &[Measure],
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Vec<i64>> {
        let (items, keys) = (&self.items, &self.keys);
        let mut listed = Numbered::listed(chosen, self.item_type, &self.keys)?;
        let places = listed.join(&self.items, false, &self.keys)?;
        let width = measures.iter().map(|measure| measure.sums()).sum();
        self.summed(chosen.len(), width, l0, tick, |sums, (user, item), total| {
            let place = places[item as usize];
            if place == UNLISTED {
                return;
            }
            // Chosen items have small priorities: their low bits are still random.
            let luck = items.place(user, item as usize, keys) as u32;
            let mut sums = sums[place as usize * width..].iter_mut();
            for measure in measures {
                let own = measure.of(total, luck);
                for (more, sum) in own.into_iter().take(measure.sums()).zip(&mut sums) {
                    *sum += more;
                }
            }
        })
    }

    /// Returns `width` sums of each of `len` items. `add` adds a pair to them.
    fn summed(
        &self,
        len: usize,
        width: usize,
        l0: usize,
        tick: impl FnMut() -> Result<()>,
        add: impl Fn(&mut [i64], (u128, u32), &Total) + Sync,
    ) -> Result<Vec<i64>> {
        let Self { parts, items, keys, threads, .. } = self;
        let begin = || (vec![0_i64; len * width], Placed::new());
        let work = |(sums, placed): &mut (Vec<i64>, Placed<Total>),
                    user: u128,
                    own: &mut [(u32, Total)]| {
            let kept = choose(own, l0, placed, |item| items.place(user, item as usize, keys));
            own[..kept].iter().for_each(|(item, total)| add(sums, (user, *item), total));
        };
        let done = each_user(&views(parts), (*threads, keys), tick, begin, work, |_, _| Ok(()))?;
        let mut all = vec![0; len * width];
        for (own, _) in done {
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        }
        Ok(all)
    }
}
