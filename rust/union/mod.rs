//! Item weights for set union, integers in units of `2^-bits`. Every user adds at most one in total.
//!
//! The plain weights of Gopi et al. (2020) divide a user's unit evenly among their items, in l2 or in l1. The others
//! are adaptive.
//!
//! Water-filling and greedy filling move whole units, in effect one at a time. For states of weights `w` and
//! remaining budget `b`, a move never increases `|w - w'| + |b - b'|`. So adding or removing one user changes the
//! weights by at most one in l1, exactly. The l2 policies compute in units of `2^-50` and round down to whole units
//! at the end; the caller must add this rounding to the sensitivity.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

mod bucket;
pub mod gather;
mod label_numbers;
pub mod user_items;

use crate::error::{Error, Result};
use crate::union::user_items::Lists;

/// Fractional bits of the l2 policies' arithmetic.
const FINE: u32 = 50;
const ONE: u64 = 1 << FINE;

/// A policy that divides a user's unit among their items. Targets are in units of `2^-bits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// `1/√d` to each of `d` items: one in l2.
    EvenSquares,
    /// `1/d` to each of `d` items: one in l1.
    Even,
    /// Water-filling: raises all items below the target equally; one in l1.
    Water(u64),
    /// Fills items up to the target in the user's order; one in l1. The rest is divided evenly.
    Greedy(u64),
    /// A step of l2 length one towards the target for all items below it.
    Step(u64),
    /// `1/√d` to each item. For users with at most as many items as the second number, the part of their `1/d` above
    /// the target is taken back, and at most half of it is divided evenly among their items.
    Adaptive(u64, usize),
}

impl Weighting {
    /// Return the weights of all items, in units of `2^-bits`. Users are processed in the order of the lists.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `bits` is above 40, or the target is zero or not below `2^(bits + 10)`.
    pub fn weights(self, lists: &Lists, bits: u32) -> Result<Vec<i64>> {
        let target = match self {
            Self::Water(t) | Self::Greedy(t) | Self::Step(t) | Self::Adaptive(t, _) => t,
            Self::EvenSquares | Self::Even => 1,
        };
        if bits > 40 || target >= 1 << (bits + 10) || target == 0 {
            return Err(Error::Parameter(
                "bits must be at most 40, and target must be above 0 and below 1024 * 2^bits",
            ));
        }
        let unit = 1_u64 << bits;
        let in_turn = (0..lists.users()).map(|user| lists.of_user(user));
        let mut weights = vec![0_u64; lists.size];
        match self {
            Self::EvenSquares | Self::Even => {
                let share = |d: u64| if self == Self::Even { unit / d } else { root(bits, d) };
                for items in in_turn.filter(|items| !items.is_empty()) {
                    let share = share(items.len() as u64);
                    for &item in items {
                        weights[item as usize] = weights[item as usize].saturating_add(share);
                    }
                }
            }
            Self::Water(target) => {
                in_turn.for_each(|items| water(&mut weights, items, target, unit));
            }
            Self::Greedy(target) => {
                in_turn.clone().for_each(|items| greedy(&mut weights, items, target, unit));
                // Which items a user's budget does not reach depends on other users, and an item without weight is
                // not in the domain. Give every item of any user at least one unit, so that a user changes the domain
                // only by their own items.
                for &item in in_turn.flatten() {
                    weights[item as usize] = weights[item as usize].max(1);
                }
            }
            Self::Step(target) => {
                let target = target << (FINE - bits);
                in_turn.for_each(|items| step(&mut weights, items, target));
                for weight in &mut weights {
                    *weight >>= FINE - bits;
                }
            }
            Self::Adaptive(target, few) => {
                weights = adaptive(lists, target << (FINE - bits), few, bits);
            }
        }
        Ok(weights.into_iter().map(|weight| i64::try_from(weight).unwrap_or(i64::MAX)).collect())
    }
}

/// Return the largest integer whose square is at most `4^bits / d`.
fn root(bits: u32, d: u64) -> u64 {
    ((1_u128 << (2 * bits)) / u128::from(d)).isqrt() as u64
}

/// Raise all items below the target by one unit in turn, until the budget is used up or all reach the target.
fn water(weights: &mut [u64], items: &[u32], target: u64, budget: u64) {
    let mut gaps: Vec<u64> =
        items.iter().map(|&item| target.saturating_sub(weights[item as usize])).collect();
    gaps.sort_unstable();
    // `level` is how far all unfinished items rise; `left` are the units that remain for the first items.
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

/// Fill items up to the target, one after the other, until the budget is used up. Any rest is divided unit by unit in
/// the same order, so an item that everybody has rises far above the target.
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

/// Move by a step of l2 length at most one along the gaps to the target.
fn step(weights: &mut [u64], items: &[u32], target: u64) {
    let gap = |weight: u64| u128::from(target.saturating_sub(weight));
    let mut squares = items.iter().map(|&item| gap(weights[item as usize]).pow(2));
    // A user whose sum overflows adds nothing: the target times the root of l0 must stay below 2^14.
    let Some(sum) = squares.try_fold(0_u128, u128::checked_add) else { return };
    let norm = sum.isqrt() + u128::from(sum.isqrt().pow(2) < sum);
    for &item in items {
        let weight = &mut weights[item as usize];
        let gap = gap(*weight);
        *weight += if norm <= u128::from(ONE) { gap } else { u128::from(ONE) * gap / norm } as u64;
    }
}

/// Compute the adaptive weights. The excess of the first pass above the target returns to the users who contributed
/// it, and at most half of it is divided evenly among their items.
fn adaptive(lists: &Lists, target: u64, few: usize, bits: u32) -> Vec<u64> {
    let is_few = |items: &&[u32]| !items.is_empty() && items.len() <= few;
    let all = || (0..lists.users()).map(|user| lists.of_user(user));
    let mut first = vec![0_u128; lists.size];
    for items in all().filter(is_few) {
        for &item in items {
            first[item as usize] += u128::from(ONE / items.len() as u64);
        }
    }
    // The fraction of each item's weight above the target, rounded down.
    let target = u128::from(target);
    let above = |weight: u128| {
        if weight > target { ONE - (target * u128::from(ONE)).div_ceil(weight) as u64 } else { 0 }
    };
    let spare: Vec<u64> = first.iter().map(|&weight| above(weight)).collect();
    let mut weights: Vec<u128> = first.into_iter().map(|weight| weight.min(target)).collect();
    for items in all().filter(|items| !items.is_empty()) {
        let d = items.len() as u64;
        let mut share = root(FINE, d);
        if items.len() <= few {
            let spared: u64 = items.iter().map(|&item| spare[item as usize] / d).sum();
            share = share - ONE / d + spared / (2 * few as u64);
        }
        for &item in items {
            weights[item as usize] += u128::from(share);
        }
    }
    let coarse = |weight: u128| u64::try_from(weight >> (FINE - bits)).unwrap_or(u64::MAX);
    weights.into_iter().map(coarse).collect()
}
