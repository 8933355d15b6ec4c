//! Private Count Release (Rogers 2024, Algorithm 2): select an item, publish its noisy count, remove
//! it, go on; and pay for each step from a list of prices that grow only when nothing was selected.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;
use rand_distr::Distribution;

use crate::error::{Error, Result};
use crate::noise::DiscreteGaussian;
use crate::release::gumbel::Candidates;
use crate::release::scores::{Choice, Scores};

/// One line of the price list: the scales of a call and what it costs, in units of `2^-64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// γ of the selection: one over the Gumbel scale.
    pub gamma: f64,
    /// What ⊥'s score exceeds that of the (k̄+1)-th count by.
    pub offset: f64,
    /// The scale of the count's discrete Gaussian noise.
    pub sigma: f64,
    /// The price of a selection, whatever it selects.
    pub call_price: u128,
    /// The price of a noisy count.
    pub count_price: u128,
}

/// What may be spent, and how many counts a call may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse {
    /// The budget, in units of `2^-64`.
    pub budget: u128,
    /// The most calls: each one risks a little of δ.
    pub calls: u64,
    /// k̄, fixed before the data was seen.
    pub k_bar: usize,
}

/// A published row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The row of the histogram.
    pub row: usize,
    /// Its noisy count.
    pub count: i64,
    /// The level that its noise came from.
    pub level: usize,
}

/// A release, with what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sale {
    /// The rows in the order of their release.
    pub rows: Vec<Row>,
    /// How many calls were made.
    pub calls: u64,
    /// The sum of the prices, in units of `2^-64`.
    pub spent: u128,
    /// Whether a truncated histogram ran out of rows before the budget did.
    pub stopped_early: bool,
}

/// Releases rows of `counts` (descending) while the purse holds the dearest outcome of a further call.
///
/// `limit` says that the histogram was cut to that many rows, whether or not there were more: the rows
/// left must always show the (k̄+1)-th count, and reading one that was cut as zero would void δ, so the
/// release stops early instead. That it depends on the limit alone, and not on how many items there
/// were, keeps the stop itself from telling them.
///
/// # Errors
/// [`Error::Parameter`] if counts ascend or anything is out of range.
pub fn price_list<R: Rng + ?Sized>(
    counts: &[i64],
    limit: Option<usize>,
    levels: &[Level],
    purse: Purse,
    rng: &mut R,
) -> Result<Sale> {
    if purse.k_bar == 0 || !counts.is_sorted_by(|a, b| a >= b) {
        return Err(Error::Parameter("k_bar must be at least 1 and counts must descend"));
    }
    if limit.is_some_and(|limit| counts.len() > limit) {
        return Err(Error::Parameter("a histogram has at most as many rows as its limit"));
    }
    let mut sale = Sale { rows: Vec::new(), calls: 0, spent: 0, stopped_early: false };
    let mut slots: Vec<usize> = (0..counts.len().min(purse.k_bar)).collect();
    // The row that follows those in the slots.
    let mut next = purse.k_bar;
    for (number, level) in levels.iter().enumerate() {
        let noise = DiscreteGaussian::new(level.sigma)?;
        let dearest = level.call_price + level.count_price.max(level.call_price);
        let row_count = |row: usize| counts.get(row).copied().unwrap_or(0);
        let shown: Vec<i64> = slots.iter().map(|&row| row_count(row)).collect();
        let reference = shown.iter().copied().max().unwrap_or(0);
        let bottom = row_count(next);
        let scores = Scores::new(&shown, reference, level.gamma, bottom, level.offset)?;
        let mut candidates = Candidates::new(scores);
        loop {
            if sale.calls == purse.calls || sale.spent + dearest > purse.budget {
                return Ok(sale);
            }
            if limit.is_some_and(|limit| next >= limit) {
                sale.stopped_early = true;
                return Ok(sale);
            }
            sale.calls += 1;
            sale.spent += level.call_price;
            let Choice::Slot(slot) = candidates.select(rng) else { break };
            let row = slots[slot];
            let count = counts[row].saturating_add(noise.sample(rng));
            sale.rows.push(Row { row, count, level: number });
            sale.spent += level.count_price;
            slots[slot] = next;
            next += 1;
            candidates.replace(slot, row_count(slots[slot]), row_count(next));
        }
    }
    Ok(sale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::SecureRng;

    const UNIT: f64 = 18_446_744_073_709_551_616.0;

    fn levels(epsilon: f64, number: i32, k_bar: f64, delta: f64) -> Vec<Level> {
        let level = |j: i32| {
            let gamma = epsilon * f64::from(j).mul_add(0.5, 0.0).exp2();
            let price = (gamma * gamma / 8.0 * UNIT).ceil() as u128;
            Level {
                gamma,
                offset: gamma + (k_bar / delta).ln(),
                sigma: 2.0 / gamma,
                call_price: price,
                count_price: price,
            }
        };
        (0..number).map(level).collect()
    }

    #[test]
    fn large_counts_are_released_and_paid_for() {
        let prices = levels(0.5, 4, 2.0, 1e-6);
        let purse = Purse { budget: (2.0 * UNIT) as u128, calls: 100, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        let sale = price_list(&[9000, 8000, 7000, 2], None, &prices, purse, &mut rng).unwrap();
        let mut rows: Vec<usize> = sale.rows.iter().map(|r| r.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2]);
        for row in &sale.rows {
            assert!((row.count - [9000, 8000, 7000][row.row]).abs() < 60);
        }
        let levels_of_calls = 3 * prices[0].call_price + 3 * prices[0].count_price;
        assert!(sale.spent > levels_of_calls && sale.spent <= purse.budget);
        assert!(!sale.stopped_early);
    }

    #[test]
    fn a_truncated_histogram_stops_when_its_rows_run_out() {
        let prices = levels(0.5, 4, 2.0, 1e-6);
        let purse = Purse { budget: u128::MAX / 4, calls: 100, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        let cut = [9000, 8000, 7000, 6000];
        let sale = price_list(&cut, Some(4), &prices, purse, &mut rng).unwrap();
        assert_eq!((sale.rows.len(), sale.calls, sale.stopped_early), (2, 2, true));
        let sale = price_list(&[9000, 8000], Some(2), &prices, purse, &mut rng).unwrap();
        assert_eq!((sale.rows.len(), sale.calls, sale.stopped_early), (0, 0, true));
        assert!(price_list(&cut, Some(3), &prices, purse, &mut rng).is_err());
    }

    #[test]
    fn the_stop_depends_on_the_limit_and_not_on_the_number_of_items() {
        let prices = levels(0.5, 4, 2.0, 1e-6);
        let purse = Purse { budget: u128::MAX / 4, calls: 100, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        for items in [2, 3, 4] {
            let counts = &[9000, 8000, 7000, 1][..items];
            let sale = price_list(counts, Some(4), &prices, purse, &mut rng).unwrap();
            assert_eq!((sale.rows.len(), sale.stopped_early), (2, true));
        }
    }

    #[test]
    fn nothing_is_released_from_nothing_and_every_level_is_paid() {
        let prices = levels(0.5, 4, 2.0, 1e-6);
        let purse = Purse { budget: u128::MAX / 4, calls: 100, k_bar: 2 };
        let sale = price_list(&[], None, &prices, purse, &mut SecureRng::seeded(1)).unwrap();
        assert_eq!((sale.rows.len(), sale.calls), (0, 4));
        assert_eq!(sale.spent, prices.iter().map(|l| l.call_price).sum::<u128>());
    }

    #[test]
    fn the_number_of_calls_is_a_hard_limit() {
        let prices = levels(0.5, 4, 2.0, 1e-6);
        let purse = Purse { budget: u128::MAX / 4, calls: 2, k_bar: 2 };
        let mut rng = SecureRng::seeded(1);
        let sale = price_list(&[9000, 8000, 7000], None, &prices, purse, &mut rng).unwrap();
        assert_eq!((sale.calls, sale.rows.len()), (2, 2));
    }

    #[test]
    fn a_call_is_made_if_its_dearest_outcome_can_just_be_paid() {
        let prices = levels(0.5, 4, 2.0, 1e-6);
        let dearest = prices[0].call_price + prices[0].count_price;
        for (budget, calls) in [(dearest, 1), (dearest - 1, 0)] {
            let purse = Purse { budget, calls: 100, k_bar: 2 };
            let rng = &mut SecureRng::seeded(1);
            let sale = price_list(&[9000, 8000, 7000], None, &prices, purse, rng).unwrap();
            assert_eq!((sale.calls, sale.rows.len()), (calls, calls as usize));
        }
    }
}
