//! Private Count Release (Rogers 2024, Algorithm 2).
//!
//! A step selects a row of the histogram or the stop element ⊥. If it selects a row, it also publishes the row's noisy
//! count and removes the row. If it selects ⊥, the next level begins. A level sets the noise of its steps and their
//! prices, which are privacy costs. Each step chooses among k̄ slots, which hold the largest counts that are left.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;
use rand_distr::Distribution;

use crate::error::{Error, Result};
use crate::noise::DiscreteGaussian;
use crate::release::gumbel::Candidates;
use crate::release::scores::{Choice, Scores};

/// The noise scales and the prices of the steps of one level. Prices are in units of `2^-64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// γ of the selection, the inverse of the Gumbel scale.
    pub gamma: f64,
    /// The offset by which the score of ⊥ exceeds the score of the (k̄+1)-th largest count.
    pub offset: f64,
    /// The scale of the discrete Gaussian noise on the count.
    pub sigma: f64,
    /// The price of a selection, including a selection of ⊥.
    pub call_price: u128,
    /// The price of a noisy count.
    pub count_price: u128,
}

/// The limits of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The budget, in units of `2^-64`.
    pub budget: u128,
    /// The largest number of steps. Each step adds to δ.
    pub calls: u64,
    /// k̄, the number of slots. It must be fixed before the data is read.
    pub k_bar: usize,
}

/// A released row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The row of the histogram.
    pub row: usize,
    /// The noisy count of the row.
    pub count: i64,
    /// The number of the level that released the row.
    pub level: usize,
}

/// A release and its total price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The rows in order of release.
    pub rows: Vec<Row>,
    /// The number of steps.
    pub calls: u64,
    /// The total price, in units of `2^-64`.
    pub spent: u128,
    /// Whether the release stopped because a truncated histogram ran out of rows.
    pub stopped_early: bool,
}

/// Release rows of `counts` (descending) while the budget covers a selection plus the
/// larger of the level's two prices. A step may spend less than that.
///
/// `limit` is the number of rows to which the histogram was truncated, also if it had fewer rows. Every step reads
/// the (k̄+1)-th largest count that is left. To read a truncated count as zero would invalidate δ, so the release
/// stops early instead. This stop depends on the limit and on the number of released rows, but not on the number of
/// items.
///
/// # Errors
/// [`Error::Parameter`] if counts are not in descending order or a parameter is out of range.
pub fn private_count_release<R: Rng + ?Sized>(
    counts: &[i64],
    limit: Option<usize>,
    levels: &[Level],
    limits: Limits,
    rng: &mut R,
) -> Result<Release> {
    if limits.k_bar == 0 || !counts.is_sorted_by(|a, b| a >= b) {
        return Err(Error::Parameter(
            "k_bar must be at least 1, and counts must be in descending order",
        ));
    }
    if limit.is_some_and(|limit| counts.len() > limit) {
        return Err(Error::Parameter(
            "there are more counts than limit; pass at most limit counts",
        ));
    }
    let mut release = Release { rows: Vec::new(), calls: 0, spent: 0, stopped_early: false };
    let mut slots: Vec<usize> = (0..counts.len().min(limits.k_bar)).collect();
    // The next row to enter a slot.
    let mut next = limits.k_bar;
    for (number, level) in levels.iter().enumerate() {
        let noise = DiscreteGaussian::new(level.sigma)?;
        let largest_price = level.call_price + level.count_price.max(level.call_price);
        let row_count = |row: usize| counts.get(row).copied().unwrap_or(0);
        let slot_counts: Vec<i64> = slots.iter().map(|&row| row_count(row)).collect();
        let reference = slot_counts.iter().copied().max().unwrap_or(0);
        let bottom = row_count(next);
        let scores = Scores::new(&slot_counts, reference, level.gamma, bottom, level.offset)?;
        let mut candidates = Candidates::new(scores);
        loop {
            if release.calls == limits.calls || release.spent + largest_price > limits.budget {
                return Ok(release);
            }
            if limit.is_some_and(|limit| next >= limit) {
                release.stopped_early = true;
                return Ok(release);
            }
            release.calls += 1;
            release.spent += level.call_price;
            let Choice::Slot(slot) = candidates.select(rng) else { break };
            let row = slots[slot];
            let count = counts[row].saturating_add(noise.sample(rng));
            release.rows.push(Row { row, count, level: number });
            release.spent += level.count_price;
            slots[slot] = next;
            next += 1;
            candidates.replace(slot, row_count(slots[slot]), row_count(next));
        }
    }
    Ok(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::SecureRng;

    const UNIT: f64 = 18_446_744_073_709_551_616.0;

    fn levels(epsilon: f64, number: i32, k_bar: f64, delta: f64) -> Vec<Level> {
        let level = |j: i32| {
            let gamma = epsilon * f64::from(j).mul_add(0.5, 0.0).exp2();
            let cost = (gamma * gamma / 8.0 * UNIT).ceil() as u128;
            Level {
                gamma,
                offset: gamma + (k_bar / delta).ln(),
                sigma: 2.0 / gamma,
                call_price: cost,
                count_price: cost,
            }
        };
        (0..number).map(level).collect()
    }

    #[test]
    fn large_counts_are_released_within_the_budget() {
        let levels = levels(0.5, 4, 2.0, 1e-6);
        let limits = Limits { budget: (2.0 * UNIT) as u128, calls: 100, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        let release =
            private_count_release(&[9000, 8000, 7000, 2], None, &levels, limits, &mut rng).unwrap();
        let mut rows: Vec<usize> = release.rows.iter().map(|r| r.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2]);
        for row in &release.rows {
            assert!((row.count - [9000, 8000, 7000][row.row]).abs() < 60);
        }
        let least_cost = 3 * levels[0].call_price + 3 * levels[0].count_price;
        assert!(release.spent > least_cost && release.spent <= limits.budget);
        assert!(!release.stopped_early);
    }

    #[test]
    fn a_release_stops_when_a_truncated_histogram_runs_out() {
        let levels = levels(0.5, 4, 2.0, 1e-6);
        let limits = Limits { budget: u128::MAX / 4, calls: 100, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        let cut = [9000, 8000, 7000, 6000];
        let release = private_count_release(&cut, Some(4), &levels, limits, &mut rng).unwrap();
        assert_eq!((release.rows.len(), release.calls, release.stopped_early), (2, 2, true));
        let release =
            private_count_release(&[9000, 8000], Some(2), &levels, limits, &mut rng).unwrap();
        assert_eq!((release.rows.len(), release.calls, release.stopped_early), (0, 0, true));
        assert!(private_count_release(&cut, Some(3), &levels, limits, &mut rng).is_err());
    }

    #[test]
    fn the_stop_depends_on_the_limit_and_not_on_the_number_of_items() {
        let levels = levels(0.5, 4, 2.0, 1e-6);
        let limits = Limits { budget: u128::MAX / 4, calls: 100, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        for items in [2, 3, 4] {
            let counts = &[9000, 8000, 7000, 1][..items];
            let release =
                private_count_release(counts, Some(4), &levels, limits, &mut rng).unwrap();
            assert_eq!((release.rows.len(), release.stopped_early), (2, true));
        }
    }

    #[test]
    fn an_empty_histogram_releases_nothing_and_uses_every_level() {
        let levels = levels(0.5, 4, 2.0, 1e-6);
        let limits = Limits { budget: u128::MAX / 4, calls: 100, k_bar: 2 };
        let release =
            private_count_release(&[], None, &levels, limits, &mut SecureRng::seeded(1)).unwrap();
        assert_eq!((release.rows.len(), release.calls), (0, 4));
        assert_eq!(release.spent, levels.iter().map(|l| l.call_price).sum::<u128>());
    }

    #[test]
    fn the_number_of_steps_never_exceeds_the_limit() {
        let levels = levels(0.5, 4, 2.0, 1e-6);
        let limits = Limits { budget: u128::MAX / 4, calls: 2, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        let release =
            private_count_release(&[9000, 8000, 7000], None, &levels, limits, &mut rng).unwrap();
        assert_eq!((release.calls, release.rows.len()), (2, 2));
    }

    #[test]
    fn a_step_runs_if_the_budget_equals_its_largest_price() {
        let levels = levels(0.5, 4, 2.0, 1e-6);
        let largest_price = levels[0].call_price + levels[0].count_price;
        for (budget, calls) in [(largest_price, 1), (largest_price - 1, 0)] {
            let limits = Limits { budget, calls: 100, k_bar: 2 };
            let rng = &mut SecureRng::seeded(1);
            let release =
                private_count_release(&[9000, 8000, 7000], None, &levels, limits, rng).unwrap();
            assert_eq!((release.calls, release.rows.len()), (calls, calls as usize));
        }
    }
}
