//! Scores of a selection: an integer count each, times a rate γ, and a stop element ⊥ that lies above a
//! count by an offset; exactly, and nearly as quickly as in floating point.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use crate::error::{Error, Result};
use crate::noise::{Dyadic, Fixed};

/// Slots with scores `gamma * counts[i]`, those with a count of zero being empty, and after them ⊥ with
/// score `gamma * bottom + offset`. Scores are measured downwards from `gamma * reference`.
pub struct Scores {
    gamma: Dyadic,
    /// The mantissa and the exponent of γ.
    rate: (u64, i64),
    offset: Dyadic,
    fixed_offset: Fixed,
    reference: i64,
    counts: Vec<i64>,
    bottom: i64,
}

/// What a draw selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The candidate in this slot.
    Slot(usize),
    /// The stop element ⊥.
    Bottom,
}

impl Scores {
    /// The largest count, more users than there are people. With [`Self::GAMMA_LIMIT`] it keeps every
    /// score below `2^45`, within what [`Fixed`] holds.
    pub const COUNT_LIMIT: i64 = 1 << 35;
    /// The largest γ; see [`Self::COUNT_LIMIT`].
    pub const GAMMA_LIMIT: f64 = 1024.0;

    /// Scores measured from `reference`, which changes no law.
    ///
    /// # Errors
    /// [`Error::Parameter`] where `gamma`, `offset` or a count is out of range.
    pub fn new(
        counts: &[i64],
        reference: i64,
        gamma: f64,
        bottom: i64,
        offset: f64,
    ) -> Result<Self> {
        if !(gamma > 0.0 && gamma <= Self::GAMMA_LIMIT && (-1e9..=1e9).contains(&offset)) {
            return Err(Error::Parameter("gamma or offset of a selection is out of range"));
        }
        let legal = 0..=Self::COUNT_LIMIT;
        if ![reference, bottom].iter().chain(counts).all(|c| legal.contains(c)) {
            return Err(Error::Parameter("counts must lie between 0 and 2^35"));
        }
        let (gamma, offset) = (Dyadic::from_f64(gamma), Dyadic::from_f64(offset));
        let (rate, fixed_offset) = (gamma.parts(), Fixed::from(&offset));
        let counts = counts.to_vec();
        Ok(Self { gamma, rate, offset, fixed_offset, reference, counts, bottom })
    }

    /// How many slots there are, ⊥ included, which is the last.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.counts.len() + 1
    }

    /// Whether a slot has no candidate.
    #[must_use]
    pub fn is_empty(&self, slot: usize) -> bool {
        self.counts.get(slot) == Some(&0)
    }

    /// The count that ⊥ is measured from.
    #[must_use]
    pub fn bottom(&self) -> i64 {
        self.bottom
    }

    /// A slot as what it selects.
    #[must_use]
    pub fn choice(&self, slot: usize) -> Choice {
        if slot < self.counts.len() { Choice::Slot(slot) } else { Choice::Bottom }
    }

    /// Puts another count into a slot and sets the count that ⊥ is measured from.
    pub fn replace(&mut self, slot: usize, count: i64, bottom: i64) {
        self.counts[slot] = count;
        self.bottom = bottom;
    }

    /// How far the score of a slot lies below the reference.
    #[must_use]
    pub fn exponent(&self, slot: usize) -> Fixed {
        let below = |count| Fixed::product(self.reference - count, self.rate.0, self.rate.1);
        match self.counts.get(slot) {
            Some(&count) => below(count),
            None => below(self.bottom).minus(self.fixed_offset),
        }
    }

    /// The same without an error.
    #[must_use]
    pub fn exact_exponent(&self, slot: usize) -> Dyadic {
        let below = |count| self.gamma.clone() * Dyadic::new(self.reference - count, 0);
        match self.counts.get(slot) {
            Some(&count) => below(count),
            None => below(self.bottom) - self.offset.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (counts, gamma, bottom, offset) in [
            (vec![1], 0.0, 0, 1.0),
            (vec![1], f64::NAN, 0, 1.0),
            (vec![1], 2048.0, 0, 1.0),
            (vec![-1], 1.0, 0, 1.0),
            (vec![i64::MAX], 1.0, 0, 1.0),
            (vec![1], 1.0, -1, 1.0),
            (vec![1], 1.0, 0, f64::INFINITY),
        ] {
            assert!(Scores::new(&counts, 1, gamma, bottom, offset).is_err());
        }
    }
}
