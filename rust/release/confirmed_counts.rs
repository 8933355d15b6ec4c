//! Confirmed counts, a mechanism that publishes items and noisy counts (proof: `docs/confirmed-counts.md`).
//!
//! * The query of an item with count `c` is `2c - N`, or `c` if the number of users N is not known.
//! * A slot is one of k̄ places for the largest counts. Slots without an item hold dummies.
//! * The bound is a published number. It is at least the query of every item outside the slots, except with a
//!   probability that is part of δ.
//! * A step draws a slot and measures the query of its item with noise. If the noisy query exceeds the bound by at
//!   least 2 and a margin, the step names the item: it publishes the item and the noisy query.
//! * A level is a set of noise scales and prices for items of about the same number of users. The position is the
//!   binary logarithm of the number of users that the next step looks for. The position determines the level.
//!
//! The level and the noise of a step, its price and every stop depend only on published values.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rand::Rng;
use rand_distr::Distribution;

use crate::error::{Error, Result};
use crate::noise::DiscreteGaussian;
use crate::release::slots::Slots;

/// Discrete Gaussian noise, its price in units of `2^-64`, and its part of δ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// The scale of the noise.
    pub sigma: f64,
    /// The price. The price of a step includes the draw of a slot.
    pub price: u128,
    /// The measurement's part of δ.
    pub delta: f64,
}

/// The noise scales and prices of the steps of one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The rate γ of the draw.
    pub gamma: f64,
    /// The largest allowed sum of the bound, the margin, 2 and the published N.
    pub ceiling: i64,
    /// The four choices of the noise on a query. The first choice has the largest scale.
    pub steps: [Measurement; 4],
    /// The noise of the largest query outside the slots, which gives the bound.
    pub outside: Measurement,
    /// The variance of the first choice, in squared users.
    pub variance: f64,
}

/// The parameters of a release. All of them are public, except N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The number of the lowest level.
    pub lowest: i64,
    /// The budget, in units of `2^-64`.
    pub budget: u128,
    /// k̄, the number of slots. It must be fixed before the data is read.
    pub k_bar: usize,
    /// The largest number of named rows.
    pub most_rows: usize,
    /// 2 if the query is `2c - N`, 1 if it is `c`.
    pub factor: i64,
    /// N; zero if the query is `c`.
    pub users: i64,
    /// The published noisy N; zero if the query is `c`.
    pub noisy_users: i64,
    /// The first position, in units of 1/256 octave.
    pub start: i64,
    /// The highest position.
    pub highest: i64,
    /// The sum of prices that a release pauses before, in units of `2^-64`.
    pub pause: Option<u128>,
}

/// Why a release ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The rest of the budget is below the price of the next measurement.
    Budget,
    /// The bound is too high for all four choices of noise.
    Outside,
    /// The position is below the lowest level.
    Level,
    /// The largest number of rows is named.
    Most,
    /// The next row of a truncated histogram is not known.
    Rows,
    /// The next price exceeds [`Setting::pause`]. The release can be resumed.
    Pause,
}

/// A named row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The row of the histogram.
    pub row: usize,
    /// The noisy query of the row's item.
    pub value: i64,
    /// The number of the noise scale: four times the level, counted from the lowest level, plus the choice of noise.
    pub scale: usize,
}

/// The transcript of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// The named rows in order.
    pub rows: Vec<Row>,
    /// The sum of the prices, in units of `2^-64`.
    pub spent: u128,
    /// The number of steps.
    pub steps: u64,
    /// The position of the next step.
    pub position: i64,
    /// The bound, and the level of its last measurement.
    pub bound: Option<(i64, i64)>,
    /// Why the release ended.
    pub ending: Ending,
}

/// The margin and the noise of each scale, computed when the scale is first used. They depend on the levels alone, and
/// serve all releases with the same levels.
#[derive(Debug, Default)]
pub struct ScaleCache {
    margins: HashMap<usize, i64>,
    reaches: HashMap<usize, i64>,
    laws: HashMap<usize, DiscreteGaussian>,
}

/// Names rows of `counts` (descending) while the budget covers a further step.
///
/// `limit` is the number of rows to which the histogram was truncated, also if it had fewer rows. A truncated count
/// must not be read as zero, so the release ends before it would read such a count. `cache` keeps what depends on
/// `levels` alone. `resumed` is a release of the same counts that paused; the release continues it.
///
/// # Errors
/// [`Error::Parameter`] if counts are not in descending order, a parameter is out of range, or `resumed` is a release
/// of other counts.
pub fn confirm<R: Rng + ?Sized>(
    counts: &[i64],
    limit: Option<usize>,
    levels: &[Level],
    setting: &Setting,
    resumed: Option<Confirmed>,
    cache: &mut ScaleCache,
    rng: &mut R,
) -> Result<Confirmed> {
    if setting.k_bar == 0 || levels.is_empty() || !counts.is_sorted_by(|a, b| a >= b) {
        return Err(Error::Parameter("k_bar must be at least 1 and counts must descend"));
    }
    if limit.is_some_and(|limit| counts.len() > limit) {
        return Err(Error::Parameter("a histogram has at most as many rows as its limit"));
    }
    let shown = &counts[..counts.len().min(setting.k_bar + setting.most_rows + 1)];
    let mut slots = Slots::new(shown, setting.k_bar);
    let mut sale = resumed.unwrap_or(Confirmed {
        rows: Vec::new(),
        spent: 0,
        steps: 0,
        position: setting.start,
        bound: None,
        ending: Ending::Level,
    });
    let mut accuracy = 0.0;
    for row in &sale.rows {
        let level = levels.get(row.scale / 4).ok_or(OTHER_COUNTS)?;
        slots.remove(slots.drawn(row.row).ok_or(OTHER_COUNTS)?);
        accuracy = with_count(accuracy, setting.factor, level.steps[row.scale % 4].sigma);
    }
    let pauses = |sum| setting.pause.is_some_and(|pause| sum > pause);
    loop {
        let number = (sale.position + 8).div_euclid(LEVEL_WIDTH);
        let Ok(at) = usize::try_from(number - setting.lowest) else {
            return Ok(ended(sale, Ending::Level));
        };
        let level = levels.get(at).ok_or(Error::Parameter("the position is above all levels"))?;
        let following = setting.k_bar + sale.rows.len();
        if sale.rows.len() == setting.most_rows {
            return Ok(ended(sale, Ending::Most));
        }
        if limit.is_some_and(|limit| following >= limit) {
            return Ok(ended(sale, Ending::Rows));
        }
        let reserve = if setting.factor == 2 { reserve(accuracy, level.variance) } else { 0 };
        let mut passing = cache.passing(at, level, sale.bound, setting, true)?;
        if passing.is_none() && sale.bound.is_none_or(|(_, last)| last - number >= FRESH) {
            if pauses(sale.spent + level.outside.price) {
                return Ok(ended(sale, Ending::Pause));
            }
            if sale.spent + level.outside.price + reserve > setting.budget
                || level.outside.delta >= 0.5
            {
                return Ok(ended(sale, Ending::Budget));
            }
            sale.spent += level.outside.price;
            let outside = counts.get(following).copied().unwrap_or(0);
            let error = cache.law(4 * levels.len() + at, level.outside.sigma)?.sample(rng);
            let noisy = setting.factor * outside - setting.users + error;
            let above = noisy + cache.reach(at, level.outside)?;
            sale.bound = Some((sale.bound.map_or(above, |(least, _)| least.min(above)), number));
            passing = cache.passing(at, level, sale.bound, setting, true)?;
        }
        if passing.is_none() {
            passing = cache.passing(at, level, sale.bound, setting, false)?;
        }
        let Some((choice, least)) = passing else {
            return Ok(ended(sale, Ending::Outside));
        };
        let step = level.steps[choice];
        if pauses(sale.spent + step.price) {
            return Ok(ended(sale, Ending::Pause));
        }
        if sale.spent + step.price + reserve > setting.budget || step.delta >= 0.5 {
            return Ok(ended(sale, Ending::Budget));
        }
        sale.spent += step.price;
        sale.steps += 1;
        let drawn = slots.draw(at, level.gamma, rng)?;
        // Draw noise for a dummy too, so that the time of a step does not distinguish dummies from items.
        let error = cache.law(4 * at + choice, step.sigma)?.sample(rng);
        let confirmed = drawn.and_then(|drawn| {
            let row = slots.row(drawn);
            let value = setting.factor * counts[row] - setting.users + error;
            (value >= least).then_some((drawn, Row { row, value, scale: 4 * at + choice }))
        });
        let Some((drawn, row)) = confirmed else {
            sale.position -= if sale.rows.is_empty() { FIRST_FALL } else { FALL };
            continue;
        };
        slots.remove(drawn);
        accuracy = with_count(accuracy, setting.factor, step.sigma);
        sale.rows.push(row);
        let mut seen = number * LEVEL_WIDTH - 2 * OCTAVE;
        if let Ok(sum @ 1..) = u64::try_from(row.value + setting.noisy_users) {
            seen = seen.max(octaves(sum) - OCTAVE * (setting.factor - 1));
        }
        let change = (seen - sale.position + RISE).clamp(-OCTAVE / 2, OCTAVE / 2).div_euclid(4);
        sale.position = setting.highest.min(sale.position + change);
    }
}

const OTHER_COUNTS: Error = Error::Parameter("a release is resumed with other counts or levels");

/// An octave (a factor of two) in units of a position.
const OCTAVE: i64 = 256;
/// The distance of two levels in units of a position.
const LEVEL_WIDTH: i64 = 16;
/// The bound may be measured again this many levels below its last measurement.
const FRESH: i64 = 3;
/// How far the position falls after a step that names no item, before the first named item.
const FIRST_FALL: i64 = 112;
/// How far the position falls after a step that names no item, after the first named item.
const FALL: i64 = 48;
/// The position moves towards a value this far above the last named item.
const RISE: i64 = 40;

fn ended(mut sale: Confirmed, ending: Ending) -> Confirmed {
    sale.ending = ending;
    sale
}

impl ScaleCache {
    /// Returns the noise of a scale.
    fn law(&mut self, scale: usize, sigma: f64) -> Result<&DiscreteGaussian> {
        Ok(match self.laws.entry(scale) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(free) => free.insert(DiscreteGaussian::new(sigma)?),
        })
    }

    /// Returns how far the noise of a level's bound reaches.
    fn reach(&mut self, at: usize, outside: Measurement) -> Result<i64> {
        Ok(match self.reaches.entry(at) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(free) => *free.insert(reach(outside.sigma, outside.delta)?),
        })
    }

    /// Forgets the noise of releases with many levels, whose tables take megabytes.
    pub fn shrink(&mut self) {
        const MOST: usize = 128;
        if self.laws.len() > MOST {
            self.laws.clear();
        }
    }

    /// Returns the first choice of noise for which the bound is not too high, and the least noisy query that names an
    /// item. Returns `None` if there is no bound or no such choice. If `first`, tries only the first choice.
    fn passing(
        &mut self,
        at: usize,
        level: &Level,
        bound: Option<(i64, i64)>,
        setting: &Setting,
        first: bool,
    ) -> Result<Option<(usize, i64)>> {
        let Some((bound, _)) = bound else { return Ok(None) };
        for (choice, step) in level.steps.iter().enumerate().take(if first { 1 } else { 4 }) {
            let margin = match self.margins.entry(4 * at + choice) {
                Entry::Occupied(found) => *found.get(),
                Entry::Vacant(free) => *free.insert(margin(step.sigma, step.delta)?),
            };
            let least = bound + 2 + margin;
            if least + setting.noisy_users <= level.ceiling {
                return Ok(Some((choice, least)));
            }
        }
        Ok(None)
    }
}

/// Returns the least `m >= 0` with `P[X > m] <= min(delta, 1/2)`, for noise X of scale `sigma`.
fn margin(sigma: f64, delta: f64) -> Result<i64> {
    Ok(DiscreteGaussian::law(sigma)?.quantile(delta.min(0.5))? - 1)
}

/// Returns the least `B >= sigma + 1` with `P[X >= B] + P[X > B] <= delta`, for noise X of scale `sigma`.
#[allow(clippy::float_arithmetic, reason = "halves delta, and rounds sigma + 1 up to an integer")]
fn reach(sigma: f64, delta: f64) -> Result<i64> {
    let law = DiscreteGaussian::law(sigma)?;
    let least = (sigma + 1.0).next_up().ceil() as i64;
    // For this B, each of both tails is at most delta / 2. The least B is at most a few values lower.
    let mut reach = law.quantile(delta / 2.0)?.max(least);
    while reach > least && law.two_tails_are_at_most(reach - 1, delta) {
        reach -= 1;
    }
    Ok(reach)
}

/// Returns the price to reserve for the last measurement of N, in units of `2^-64`. No guarantee depends on this price.
#[allow(
    clippy::float_arithmetic,
    reason = "the input is published, and no guarantee depends on rounding"
)]
fn reserve(accuracy: f64, variance: f64) -> u128 {
    let rho = (2.0 + (accuracy * variance + 1.0).sqrt()) / (8.0 * variance);
    (rho * 18_446_744_073_709_551_616.0).ceil() as u128
}

/// Adds a count to a sum of `1 / variance` of counts, in users, and returns the new sum.
#[allow(
    clippy::float_arithmetic,
    reason = "the input is published, and no guarantee depends on rounding"
)]
fn with_count(accuracy: f64, factor: i64, sigma: f64) -> f64 {
    accuracy + (factor * factor) as f64 / (sigma * sigma)
}

/// Returns the binary logarithm of a number, which must be at least one. The unit is 1/256, rounded to the nearest.
fn octaves(number: u64) -> i64 {
    let mut mantissa = u128::from(number) << number.leading_zeros();
    let mut result = i64::from(number.ilog2());
    for _ in 0..9 {
        mantissa = (mantissa * mantissa) >> 63;
        let bit = mantissa >> 64;
        mantissa >>= bit;
        result = 2 * result + bit as i64;
    }
    (result + 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octaves_match_logarithms() {
        for number in [1_u64, 2, 3, 7, 100, 1023, 1024, 65_537, 999_999_999, 1 << 40] {
            let exact = (number as f64).log2() * 256.0;
            assert!((octaves(number) as f64 - exact).abs() <= 0.5 + 1e-6, "{number}");
        }
    }

    #[test]
    fn margins_match_the_test_vectors() {
        // Computed with 40 digits for rho = 1, delta = 1e-6, the factor 2, and the levels 64 and 112.
        assert_eq!(margin(2.3104_f64.sqrt(), 2.754_947_737_63e-7), Ok(7));
        assert_eq!(margin(147.8656_f64.sqrt(), 4.304_605_838e-9), Ok(70));
        let of = |variance: f64, delta| reach(variance.sqrt(), delta);
        assert_eq!(of(0.9216, 5.425_347_222_22e-7), Ok(5));
        assert_eq!(of(58.9824, 8.477_107_055_03e-9), Ok(45));
    }
}
