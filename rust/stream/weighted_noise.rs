//! Sums of the noise of all rounds so far, weighted by age and rounded to integers. The sums are the product of a lower
//! triangular Toeplitz matrix and the noise.
//!
//! The column is a list of integers, one for each round. The weights are the terms of a series whose convolution with
//! the column is constant. So if counts are convolved with the column and then with the weights, the result is running
//! counts. A running count plus a rounded sum of noise is therefore a function of noisy integers alone, provided that
//! every rounding is correct.
//!
//! Sums are computed with 30 fractional bits. If 30 bits do not decide a rounding, 62 bits are used. If 62 bits do not
//! decide it either, the item is undecided, and the caller is told so. A lane is the place of an item in a group of
//! eight items.
//!
//! Rounds beyond the column's length are in further epochs. Each epoch has as many rounds as the column, and sums of its
//! own. The sum of an item is then the sum in the current epoch plus the last sums of all finished epochs, and it is
//! rounded once.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use pulp::{Arch, Simd, WithSimd};

use crate::error::{Error, Result};
use crate::noise::Sampler;
use crate::random::keystream::LANES;
use crate::random::parallel::over_parts;
use crate::stream::node_noise::{ItemKey, NodeNoise, SHARING, block_of_draws};

/// Rounds that are computed together, because they share a block of random words.
const AHEAD: usize = SHARING as usize;
/// One number for each item of a group.
type Row<T> = [T; LANES];

/// Fractional bits of the precise weights.
const PRECISE: u32 = 62;
/// Fractional bits of the quick weights.
const QUICK: u32 = 30;
/// Approximate number of products per task.
const WORK: usize = 1 << 20;

/// Up to eight items that are computed together.
#[derive(Default)]
struct Group {
    /// The noise of the items, by blocks of rounds. The noise of round zero is zero.
    drawn: Vec<[Row<i32>; AHEAD]>,
    /// The sum, over all rounds, of the largest absolute noise of the items.
    reach: u64,
    /// The rounded sums for the rounds of the last block.
    sums: [Row<i64>; AHEAD],
    /// One bit for each sum, which is set if the sum is undecided.
    open: [u8; AHEAD],
    /// The number of finished epochs.
    finished: usize,
    /// The last sums of the finished epochs, added up, with precise weights.
    before: Row<i128>,
    /// The reach of the finished epochs.
    reach_before: u64,
}

/// The noise of all items in all rounds so far, and its weighted sums.
pub struct WeightedNoise {
    /// The first number of the column is `2^bits`.
    bits: u32,
    /// The weights in units of `2^-62`, each at most two units off.
    precise: Vec<i64>,
    /// The weights in units of `2^-30`, each at most one unit off, with zeros before and after them.
    quick: Vec<i32>,
    groups: Vec<Group>,
    items: usize,
    /// The number of finished epochs.
    epoch: usize,
    /// The number of blocks of the current epoch up to the current round.
    blocks: usize,
}

impl WeightedNoise {
    /// Create the sums for a column. Its length is the horizon, which is the largest number of rounds. Its first
    /// number is a power of two, at least twice the horizon and at most `2^20`. The other numbers must differ by at
    /// most 1/2 from the first number times the coefficients of `(1 - x)^(-1/2)`; this is not checked.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the first number is wrong, or another number is negative or above half of the first.
    pub fn new(column: &[i64]) -> Result<Self> {
        let wrong = Error::Parameter(
            "column must begin with a power of two, at least twice its length and at most 2^20; its other values must lie between 0 and half of that",
        );
        let Some((&first, rest)) = column.split_first() else { return Err(wrong) };
        let long = i64::try_from(2 * column.len()).unwrap_or(i64::MAX);
        if !(long..=1 << 20).contains(&first)
            || first.count_ones() != 1
            || rest.iter().any(|&c| c < 0 || 2 * c > first + 1)
        {
            return Err(wrong);
        }
        let bits = first.trailing_zeros();
        let precise = inverse(column, bits);
        let mut quick = vec![0; AHEAD - 1];
        let half = 1 << (PRECISE - QUICK - 1);
        quick.extend(precise.iter().map(|&w| ((w + half) >> (PRECISE - QUICK)) as i32));
        quick.extend([0; AHEAD]);
        Ok(Self { bits, precise, quick, groups: Vec::new(), items: 0, epoch: 0, blocks: 0 })
    }

    /// Return the weights in units of `2^-62`, each at most two units off.
    #[must_use]
    pub fn weights(&self) -> &[i64] {
        &self.precise
    }

    /// Advance to a round of an epoch. Return the rounded sum of every item, and the undecided items. Round zero of an
    /// epoch is the end of the epoch before.
    ///
    /// # Errors
    /// [`Error::Parameter`] for round zero of epoch zero, a round beyond the length of an epoch, or a round before the
    /// current block.
    pub fn advance(
        &mut self,
        noise: &NodeNoise,
        (epoch, round): (usize, usize),
        law: &Sampler,
    ) -> Result<(Vec<i64>, Vec<usize>)> {
        let blocks = round / AHEAD + 1;
        if (epoch, round) == (0, 0)
            || round > self.precise.len()
            || (epoch, blocks) < (self.epoch, self.blocks)
        {
            return Err(Error::Parameter(
                "rounds must be in ascending order, from 1 to the horizon",
            ));
        }
        let same = (epoch, blocks) == (self.epoch, self.blocks);
        let known = if same { self.items / LANES } else { 0 };
        if let Some(last) = self.groups.get_mut(self.items / LANES)
            && !self.items.is_multiple_of(LANES)
            && noise.items() > self.items
        {
            // New items fill the free lanes of this group.
            *last = Group::default();
        }
        self.items = noise.items();
        (self.epoch, self.blocks) = (epoch, blocks);
        self.groups.resize_with(self.items.div_ceil(LANES), Group::default);
        let size = (WORK / (LANES * AHEAD * AHEAD * blocks)).max(1);
        let (bits, quick, precise) = (self.bits, &self.quick[..], &self.precise[..]);
        let keys = noise.keys().get(known * LANES..).unwrap_or_default();
        let parts = self.groups[known..].chunks_mut(size).zip(keys.chunks(size * LANES));
        over_parts(parts, |(groups, keys)| {
            for (group, keys) in groups.iter_mut().zip(keys.chunks(LANES)) {
                group.finish(keys, epoch, precise, law);
                group.draw(keys, epoch * length_in_blocks(precise.len()), blocks, law);
                group.sum(quick, bits);
                group.settle(precise, bits);
            }
        });
        let place = round % AHEAD;
        let sums =
            self.groups.iter().flat_map(|group| group.sums[place]).take(self.items).collect();
        let open = |item: &usize| self.groups[item / LANES].open[place] >> (item % LANES) & 1 == 1;
        Ok((sums, (0..self.items).filter(open).collect()))
    }

    /// Draw the noise of an item again: for each epoch, from its first round to its last, or to the last of the current
    /// block.
    #[must_use]
    pub fn history(&self, noise: &NodeNoise, item: usize, law: &Sampler) -> Vec<Vec<i64>> {
        let keys = noise.keys().get(item..=item).unwrap_or_default();
        let length = self.precise.len();
        let blocks = length_in_blocks(length);
        let drawn = |epoch: usize| {
            let mut group = Group::default();
            let shown = if epoch < self.epoch { blocks } else { self.blocks };
            group.draw(keys, epoch * blocks, shown, law);
            group
                .drawn
                .as_flattened()
                .iter()
                .skip(1)
                .take(length)
                .map(|row| row[0].into())
                .collect()
        };
        (0..=self.epoch).map(drawn).collect()
    }
}

/// Return the number of blocks of the rounds from zero to `length`. The epochs share no block.
fn length_in_blocks(length: usize) -> usize {
    length / AHEAD + 1
}

impl Group {
    /// Finish all epochs before `epoch`: draw the rest of their noise, and add their last sums to `before`.
    fn finish(&mut self, keys: &[ItemKey], epoch: usize, precise: &[i64], law: &Sampler) {
        let blocks = length_in_blocks(precise.len());
        while self.finished < epoch {
            self.draw(keys, self.finished * blocks, blocks, law);
            for (lane, before) in self.before.iter_mut().enumerate() {
                *before += weighted(&self.drawn.as_flattened()[..=precise.len()], lane, precise);
            }
            self.drawn = Vec::new();
            self.reach_before += std::mem::take(&mut self.reach);
            self.finished += 1;
        }
    }

    /// Draw the noise of the first `blocks` blocks of an epoch that is not drawn yet. The epoch begins with block
    /// `first`.
    fn draw(&mut self, keys: &[ItemKey], first: usize, blocks: usize, law: &Sampler) {
        self.drawn.reserve_exact(blocks.saturating_sub(self.drawn.len()));
        for block in self.drawn.len()..blocks {
            let mut drawn = block_of_draws(keys, (first + block) as u64, law);
            if block == 0 {
                drawn[0] = [0; LANES];
            }
            // Noise outside 32 bits has a probability below e^-2000, which the slack of the thresholds covers.
            let narrow =
                drawn.map(|row| row.map(|z| z.clamp(-i64::from(i32::MAX), i32::MAX.into()) as i32));
            for row in &narrow {
                self.reach += u64::from(row.iter().map(|z| z.unsigned_abs()).max().unwrap_or(0));
            }
            self.drawn.push(narrow);
        }
    }

    /// Compute the rounded sums for the rounds of the last block with quick weights, and mark the undecided sums.
    fn sum(&mut self, quick: &[i32], bits: u32) {
        let sums = Arch::new().dispatch(Sums { rows: self.drawn.as_flattened(), quick });
        let before = self.before.map(|sum| (sum >> (PRECISE - QUICK)) as i64);
        let unit = QUICK + bits;
        let error = i64::try_from(self.reach + self.reach_before + 2).unwrap_or(i64::MAX);
        for ((sum, rounded), open) in sums.iter().zip(&mut self.sums).zip(&mut self.open) {
            *open = 0;
            for (lane, (sum, rounded)) in sum.iter().zip(rounded).enumerate() {
                let moved = sum.wrapping_add(before[lane]).wrapping_add(offset(QUICK, bits) as i64);
                *rounded = moved >> unit;
                let rest = moved & ((1 << unit) - 1);
                *open |= u8::from(rest < error || rest >= (1 << unit) - error) << lane;
            }
        }
    }

    /// Round the undecided sums again with precise weights. Clear the marks of the sums that this decides.
    fn settle(&mut self, precise: &[i64], bits: u32) {
        let rows = self.drawn.as_flattened();
        let first = rows.len() - AHEAD;
        for (place, open) in self.open.iter_mut().enumerate() {
            let lanes = *open;
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                let sum = self.before[lane] + weighted(&rows[..=first + place], lane, precise);
                let moved = sum + offset(PRECISE, bits);
                let reach = i128::from(self.reach + self.reach_before);
                let (unit, error) = (PRECISE + bits, 2 * reach + 1);
                self.sums[place][lane] = (moved >> unit) as i64;
                let rest = moved & ((1 << unit) - 1);
                if (error..(1 << unit) - error).contains(&rest) {
                    *open &= !(1 << lane);
                }
            }
        }
    }
}

/// The sums for the rounds of the last block, in units of `2^-30` of the noise.
struct Sums<'a> {
    rows: &'a [Row<i32>],
    quick: &'a [i32],
}

impl WithSimd for Sums<'_> {
    type Output = [Row<i64>; AHEAD];

    #[inline(always)]
    #[allow(clippy::inline_always)] // compiled for the vector unit that the caller dispatches to
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let mut sums = [[0_i64; LANES]; AHEAD];
        // The first row is multiplied by the last weights. The last row is multiplied by the first weight and by the
        // zeros before this weight.
        let windows = self.quick[..self.rows.len() + AHEAD - 1].windows(AHEAD).rev();
        for (row, weights) in self.rows.iter().zip(windows) {
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                for (sum, &z) in sum.iter_mut().zip(row) {
                    // An intermediate sum may overflow 64 bits. The arithmetic is modulo 2^64, and the final sum is far
                    // below 2^63.
                    *sum = sum.wrapping_add(i64::from(weight) * i64::from(z));
                }
            }
        }
        sums
    }
}

/// Return the weighted sum of one item's noise. The last row has the first weight.
fn weighted(rows: &[Row<i32>], lane: usize, weights: &[i64]) -> i128 {
    let past = rows.iter().rev().map(|row| i128::from(row[lane]));
    past.zip(weights).map(|(z, &weight)| z * i128::from(weight)).sum()
}

/// Return the rounding offset, which is half of the rounding unit plus a third of a unit of the noise. An exact sum is
/// never a third, so it is never exactly on a rounding boundary.
fn offset(point: u32, bits: u32) -> i128 {
    (1 << (point + bits - 1)) + (1 << point) / 3
}

/// Return the weights. Their convolution with the column, divided by the column's first number, is about `2^62` in
/// every round. Each step rounds by at most half a unit. The absolute values of the column's inverse sum to at most
/// four, so no weight is more than two units off.
fn inverse(column: &[i64], bits: u32) -> Vec<i64> {
    let mut weights: Vec<i64> = Vec::with_capacity(column.len());
    for n in 0..column.len() {
        let past = weights.iter().zip(column[1..=n].iter().rev());
        let known: i128 = past.map(|(&weight, &c)| i128::from(weight) * i128::from(c)).sum();
        let left = (1_i128 << (PRECISE + bits)) - known;
        weights.push(((left + (1 << (bits - 1))) >> bits) as i64);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::DiscreteGaussian;

    fn column(horizon: usize, bits: u32) -> Vec<i64> {
        let mut f = f64::from(1 << bits);
        (0..horizon)
            .map(|k| {
                f *= if k == 0 { 1.0 } else { 1.0 - 0.5 / k as f64 };
                f.round_ties_even() as i64
            })
            .collect()
    }

    fn keyed(items: u8) -> NodeNoise {
        let mut noise = NodeNoise::default();
        noise.extend(&(0..items).map(|n| [n; 32]).collect::<Vec<_>>());
        noise
    }

    #[test]
    fn weights_invert_the_column() {
        for (horizon, bits) in [(1, 1), (4, 3), (1000, 11)] {
            let column = column(horizon, bits);
            let weights = WeightedNoise::new(&column).unwrap().precise;
            for n in 0..horizon {
                let past = weights[..=n].iter().zip(column[..=n].iter().rev());
                let sum: i128 = past.map(|(&w, &c)| i128::from(w) * i128::from(c)).sum();
                assert!((sum - (1_i128 << (PRECISE + bits))).abs() <= 1 << bits, "{n}");
            }
        }
    }

    #[test]
    fn sums_do_not_depend_on_which_rounds_were_computed_before() {
        let law = DiscreteGaussian::new(5000.0).unwrap().into();
        let all = keyed(45);
        let mut at_once = WeightedNoise::new(&column(100, 8)).unwrap();
        let expected: Vec<_> =
            (1..=100).map(|round| at_once.advance(&all, (0, round), &law).unwrap()).collect();
        assert_eq!(at_once.history(&all, 44, &law)[0].len(), 100);
        let mut late = WeightedNoise::new(&column(100, 8)).unwrap();
        for (round, items) in [(3, 3), (4, 11), (8, 16), (9, 16), (40, 44), (41, 45), (100, 45)] {
            let (sums, open) = late.advance(&keyed(items), (0, round), &law).unwrap();
            assert_eq!(sums, expected[round - 1].0[..items.into()], "{round}");
            assert!(open.is_empty());
        }
        for round in [0, 9, 101] {
            assert!(late.advance(&keyed(45), (0, round), &law).is_err(), "{round}");
        }
    }

    #[test]
    fn sums_equal_sums_in_128_bit_arithmetic() {
        let law = DiscreteGaussian::new(900.0).unwrap().into();
        let noise = keyed(9);
        let mut sums = WeightedNoise::new(&column(30, 6)).unwrap();
        let weights = sums.weights().to_vec();
        for round in 1..=30 {
            let (found, _) = sums.advance(&noise, (0, round), &law).unwrap();
            for (item, &found) in found.iter().enumerate() {
                let past = sums.history(&noise, item, &law)[0][..round].to_vec();
                let total: i128 = past
                    .iter()
                    .rev()
                    .zip(&weights)
                    .map(|(&z, &w)| i128::from(z) * i128::from(w))
                    .sum();
                assert_eq!(i128::from(found), (total + offset(PRECISE, 6)) >> (PRECISE + 6));
            }
        }
    }

    #[test]
    fn sums_go_on_from_epoch_to_epoch() {
        let law = DiscreteGaussian::new(900.0).unwrap().into();
        let all = keyed(19);
        let weights = WeightedNoise::new(&column(10, 6)).unwrap().weights().to_vec();
        let mut at_once = WeightedNoise::new(&column(10, 6)).unwrap();
        for epoch in 0..4 {
            for round in usize::from(epoch == 0)..=10 {
                let (found, open) = at_once.advance(&all, (epoch, round), &law).unwrap();
                assert!(open.is_empty());
                let mut late = WeightedNoise::new(&column(10, 6)).unwrap();
                if epoch > 1 {
                    late.advance(&keyed(3), (epoch - 2, 7), &law).unwrap();
                    late.advance(&keyed(5), (epoch - 1, 9), &law).unwrap();
                }
                assert_eq!(late.advance(&all, (epoch, round), &law).unwrap().0, found);
                for (item, &found) in found.iter().enumerate() {
                    let mut past = at_once.history(&all, item, &law);
                    past[epoch].truncate(round);
                    let each = past.iter().flat_map(|noises| noises.iter().rev().zip(&weights));
                    let total: i128 = each.map(|(&z, &w)| i128::from(z) * i128::from(w)).sum();
                    assert_eq!(i128::from(found), (total + offset(PRECISE, 6)) >> (PRECISE + 6));
                }
            }
        }
        assert!(at_once.advance(&all, (3, 7), &law).is_err());
        assert!(at_once.advance(&all, (2, 10), &law).is_err());
    }

    #[test]
    fn invalid_columns_are_refused() {
        for column in [&[][..], &[1], &[3, 1], &[4, 2, 1], &[8, 5], &[8, -1], &[1 << 30]] {
            assert!(WeightedNoise::new(column).is_err(), "{column:?}");
        }
    }
}
