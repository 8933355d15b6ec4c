//! Item weights for set union.
//!
//! A weight is an integer in units of `2^-bits`. Every user adds weights to the user's items. These additions have a
//! norm of at most one, in l1 or in l2. A policy divides this budget of one among the items.
//!
//! The even policies of Gopi et al. (2020) divide the budget evenly. The other policies are adaptive: the additions
//! of a user depend on the weights that earlier users or a first pass have produced.
//!
//! Water-filling and greedy filling move whole units, as if one unit at a time. Let `w` and `w'` be weights and `b`
//! and `b'` remaining budgets in two tables that differ in one user. A move never increases `|w - w'| + |b - b'|`. So
//! one added or removed user changes the weights by at most exactly one in l1. The adaptive l2 policies compute in
//! units of `2^-50`, and round down to whole units at the end. The caller must add this rounding to the sensitivity.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

pub mod reader;
pub mod user_items;

use crate::error::{Error, Result};
use crate::union::user_items::Lists;

/// Fractional bits of the l2 policies' arithmetic.
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
    /// Raises one item after the other to the target, in the user's order, and divides the rest evenly. The l1 norm
    /// is one.
    Greedy(u64),
    /// Moves all items below the target towards the target. The l2 norm is at most one.
    Step(u64),
    /// Adds `1/√d` to each of `d` items. A user with at most as many items as the second number first adds `1/d` to
    /// each item. The part of these additions above the target is taken back, and at most half of it is divided
    /// evenly among the user's items.
    Adaptive(u64, usize),
}

impl Weighting {
    /// Return the weights of all items, in units of `2^-bits`. Users are processed in the order of the lists.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `bits` is above 40, or the target is zero or not below `2^(bits + 10)`.
    /// [`Error::Resource`] if a temporary file cannot be read.
    pub fn weights(self, lists: &Lists, bits: u32) -> Result<Vec<i64>> {
        let target = match self {
            Self::Water(t) | Self::Greedy(t) | Self::Step(t) | Self::Adaptive(t, _) => t,
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
            Self::Greedy(target) => {
                lists.each_user(|_, items| greedy(&mut weights, items, target, unit))?;
                // Other users decide which items a user's budget does not reach, and an item without weight is never
                // released. So every item of any user gets at least one unit. Then a user changes only for the user's
                // own items whether an item has weight.
                lists.each_user(|_, items| {
                    for &item in items {
                        weights[item as usize] = weights[item as usize].max(1);
                    }
                })?;
            }
            Self::Step(target) => {
                let target = target << (FINE - bits);
                lists.each_user(|_, items| step(&mut weights, items, target))?;
                for weight in &mut weights {
                    *weight >>= FINE - bits;
                }
            }
            Self::Adaptive(target, few) => {
                weights = adaptive(lists, target << (FINE - bits), few, bits)?;
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

/// Raise items to the target, one after the other, until the budget is used up. The rest of the budget is divided
/// evenly. So an item that all users have rises far above the target.
fn greedy(weights: &mut [u64], items: &[u32], target: u64, mut budget: u64) {
    for &item in items {
        let weight = &mut weights[item as usize];
        let added = target.saturating_sub(*weight).min(budget);
        *weight += added;
        budget -= added;
    }
    if budget == 0 {
        return;
    }
    let number = items.len() as u64;
    for (place, &item) in (0..number).zip(items) {
        let dealt = budget / number + u64::from(place < budget % number);
        let weight = &mut weights[item as usize];
        *weight = weight.saturating_add(dealt);
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

/// Compute the adaptive weights. In the first pass, users with at most `few` items add `1/d` to each of `d` items.
/// The excess of an item above the target returns to these users. Each user divides at most half of the returned excess
/// evenly among the user's items.
fn adaptive(lists: &Lists, target: u64, few: usize, bits: u32) -> Result<Vec<u64>> {
    let mut first = vec![0_u128; lists.size()];
    lists.each_user(|_, items| {
        for &item in items.iter().filter(|_| items.len() <= few) {
            first[item as usize] += u128::from(ONE / items.len() as u64);
        }
    })?;
    // The fraction of each item's weight above the target, rounded down.
    let target = u128::from(target);
    let above = |weight: u128| {
        if weight > target { ONE - (target * u128::from(ONE)).div_ceil(weight) as u64 } else { 0 }
    };
    let spare: Vec<u64> = first.iter().map(|&weight| above(weight)).collect();
    let mut weights: Vec<u128> = first.into_iter().map(|weight| weight.min(target)).collect();
    lists.each_user(|_, items| {
        let d = items.len().max(1) as u64;
        let mut share = root(FINE, 1, d);
        if items.len() <= few {
            let spared: u64 = items.iter().map(|&item| spare[item as usize] / d).sum();
            share = share - ONE / d + spared / (2 * few as u64);
        }
        for &item in items {
            weights[item as usize] += u128::from(share);
        }
    })?;
    let coarse = |weight: u128| u64::try_from(weight >> (FINE - bits)).unwrap_or(u64::MAX);
    Ok(weights.into_iter().map(coarse).collect())
}
