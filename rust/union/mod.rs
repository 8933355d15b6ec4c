//! Item weights for set union.
//!
//! A weight is an integer in units of `2^-bits`. Every user adds weights to the user's items. These additions have a
//! norm of at most one, in l1 or in l2. A policy divides this budget of one among the items.
//!
//! The even policies of Gopi et al. (2020) divide the budget evenly. With the other policies, the additions of a user
//! depend on the weights that earlier users have produced.
//!
//! Water-filling moves whole units, as if one unit at a time. Let `w` and `w'` be weights and `b` and `b'` remaining
//! budgets in two tables that differ in one user. A move never increases `|w - w'| + |b - b'|`. So one added or removed
//! user changes the weights by at most exactly one in l1. The step policy computes in units of `2^-50`, and rounds down
//! to whole units at the end. The caller must add this rounding to the sensitivity.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

pub mod reader;
pub mod user_items;

use crate::error::{Error, Result};
use crate::union::user_items::Lists;

/// Fractional bits of the step policy's arithmetic.
const FINE: u32 = 50;
const ONE: u64 = 1 << FINE;

/// A policy that divides a user's budget among the user's items. Targets are in units of `2^-bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// Adds `√(n/d)`, at most 1, to each of `d` items. n is the number of items that weigh fully. The l2 norm is at
    /// most `√n`.
    EvenSquares(u64),
    /// Adds `1/d` to each of `d` items. The l1 norm is at most one.
    Even,
    /// Water-filling: raises all items below the target equally. The l1 norm is at most one.
    Water(u64),
    /// Moves all items below the target towards the target. The l2 norm is at most one.
    Step(u64),
}

impl Weighting {
    /// Return the weights of all items, in units of `2^-bits`. Users are processed in the order of the lists.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `bits` is above 40, or the target is zero or not below `2^(bits + 10)`.
    /// [`Error::Resource`] if a temporary file cannot be read.
    pub fn weights(self, lists: &Lists, bits: u32) -> Result<Vec<i64>> {
        let target = match self {
            Self::Water(t) | Self::Step(t) => t,
            Self::EvenSquares(_) | Self::Even => 1,
        };
        if bits > 40 || target >= 1 << (bits + 10) || target == 0 {
            return Err(Error::Parameter(
                "bits must be at most 40, and target must be above 0 and below 1024 * 2^bits",
            ));
        }
        let unit = 1_u64 << bits;
        let mut weights = vec![0_u64; lists.size()];
        match self {
            Self::EvenSquares(_) | Self::Even => {
                let share = |d: u64| match self {
                    Self::EvenSquares(full) => root(bits, full, d).min(unit),
                    _ => unit / d,
                };
                lists.each_user(|_, items| {
                    let share = if items.is_empty() { 0 } else { share(items.len() as u64) };
                    for &item in items {
                        weights[item as usize] = weights[item as usize].saturating_add(share);
                    }
                })?;
            }
            Self::Water(target) => {
                lists.each_user(|_, items| water(&mut weights, items, target, unit))?;
            }
            Self::Step(target) => {
                let target = target << (FINE - bits);
                lists.each_user(|_, items| step(&mut weights, items, target))?;
                for weight in &mut weights {
                    *weight >>= FINE - bits;
                }
            }
        }
        Ok(weights.into_iter().map(|weight| i64::try_from(weight).unwrap_or(i64::MAX)).collect())
    }
}

/// Return the largest integer whose square is at most `4^bits n / d`, for n below `2^40`.
fn root(bits: u32, n: u64, d: u64) -> u64 {
    ((u128::from(n) << (2 * bits)) / u128::from(d)).isqrt() as u64
}

/// Raise all items below the target by one unit in turn, until the budget is used up or all items reach the target.
fn water(weights: &mut [u64], items: &[u32], target: u64, budget: u64) {
    let mut gaps: Vec<u64> =
        items.iter().map(|&item| target.saturating_sub(weights[item as usize])).collect();
    gaps.sort_unstable();
    // All items that do not reach the target rise by `level`. `left` is the remaining budget, and `over` is the
    // number of these items.
    let (mut left, mut level, mut over) = (budget, 0, gaps.len() as u64);
    for &gap in &gaps {
        let cost = (gap - level).saturating_mul(over);
        if cost > left {
            break;
        }
        left -= cost;
        level = gap;
        over -= 1;
    }
    let (rise, mut rest) = left.checked_div(over).map_or((0, 0), |rise| (rise, left % over));
    level += rise;
    for &item in items {
        let weight = &mut weights[item as usize];
        let gap = target.saturating_sub(*weight);
        *weight += gap.min(level);
        if gap > level && rest > 0 {
            *weight += 1;
            rest -= 1;
        }
    }
}

/// Move the items towards the target, in proportion to their distances from the target. The l2 norm of the move is at
/// most one.
fn step(weights: &mut [u64], items: &[u32], target: u64) {
    let gap = |weight: u64| u128::from(target.saturating_sub(weight));
    let mut squares = items.iter().map(|&item| gap(weights[item as usize]).pow(2));
    // If the sum overflows, the user adds nothing. It does not overflow if the target times √l0 is below 2^14.
    let Some(sum) = squares.try_fold(0_u128, u128::checked_add) else { return };
    let norm = sum.isqrt() + u128::from(sum.isqrt().pow(2) < sum);
    for &item in items {
        let weight = &mut weights[item as usize];
        let gap = gap(*weight);
        *weight += if norm <= u128::from(ONE) { gap } else { u128::from(ONE) * gap / norm } as u64;
    }
}
