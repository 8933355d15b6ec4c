//! Exact scores of candidates for selection.
//!
//! A slot holds one candidate, which is an item with an integer count. The score of an item is its count times a rate
//! γ. The stop element ⊥ is the last candidate. Its score exceeds the score of a given count by an offset. Scores are
//! also computed in fixed point, which is faster and has a known error.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use crate::error::{Error, Result};
use crate::noise::{Dyadic, Fixed};

/// Slots with the scores `gamma * counts[i]`, and after these slots ⊥ with the score `gamma * bottom + offset`. A slot
/// whose count is zero is empty. A score is returned as its distance below `gamma * reference`.
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

/// The result of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The candidate in this slot.
    Slot(usize),
    /// The stop element ⊥.
    Bottom,
}

impl Scores {
    /// The largest count, which is larger than the number of people on earth. Together with [`Self::GAMMA_LIMIT`], it
    /// keeps the score of every item at `2^45` or below, within the range of [`Fixed`].
    pub const COUNT_LIMIT: i64 = 1 << 35;
    /// The largest γ; see [`Self::COUNT_LIMIT`].
    pub const GAMMA_LIMIT: f64 = 1024.0;

    /// Create scores. `reference` changes no probability. Counts below zero become zero, and counts above
    /// [`Self::COUNT_LIMIT`] become this limit. An error would reveal that such counts exist.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `gamma` is not above 0 and at most 1,024, or `offset` is not within 1e9 of zero.
    pub fn new(
        counts: &[i64],
        reference: i64,
        gamma: f64,
        bottom: i64,
        offset: f64,
    ) -> Result<Self> {
        if !(gamma > 0.0 && gamma <= Self::GAMMA_LIMIT && (-1e9..=1e9).contains(&offset)) {
            return Err(Error::Parameter(
                "gamma must be above 0 and at most 1,024, and offset within 1e9 of zero; use a larger scale or delta",
            ));
        }
        let (gamma, offset) = (Dyadic::from_f64(gamma), Dyadic::from_f64(offset));
        let (rate, fixed_offset) = (gamma.parts(), Fixed::from(&offset));
        let counts = counts.iter().copied().map(clamped).collect();
        let (reference, bottom) = (clamped(reference), clamped(bottom));
        Ok(Self { gamma, rate, offset, fixed_offset, reference, counts, bottom })
    }

    /// Return the number of slots, including ⊥, which is last.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.counts.len() + 1
    }

    /// Return whether a slot is empty. The slot of ⊥ is never empty.
    #[must_use]
    pub fn is_empty(&self, slot: usize) -> bool {
        self.counts.get(slot) == Some(&0)
    }

    /// Return the count from which the score of ⊥ is computed.
    #[must_use]
    pub fn bottom(&self) -> i64 {
        self.bottom
    }

    /// Convert a slot number to a choice.
    #[must_use]
    pub fn choice(&self, slot: usize) -> Choice {
        if slot < self.counts.len() { Choice::Slot(slot) } else { Choice::Bottom }
    }

    /// Replace the count of a slot, and set the count from which the score of ⊥ is computed.
    pub(crate) fn replace(&mut self, slot: usize, count: i64, bottom: i64) {
        self.counts[slot] = clamped(count);
        self.bottom = clamped(bottom);
    }

    /// Return how far the score of a slot lies below `gamma * reference`, in fixed point.
    #[must_use]
    pub(crate) fn exponent(&self, slot: usize) -> Fixed {
        let below = |count| Fixed::product(self.reference - count, self.rate.0, self.rate.1);
        match self.counts.get(slot) {
            Some(&count) => below(count),
            None => below(self.bottom).minus(self.fixed_offset),
        }
    }

    /// Return how far the score of a slot lies below `gamma * reference`, exactly.
    #[must_use]
    pub(crate) fn exact_exponent(&self, slot: usize) -> Dyadic {
        let below = |count| self.gamma.clone() * Dyadic::new(self.reference - count, 0);
        match self.counts.get(slot) {
            Some(&count) => below(count),
            None => below(self.bottom) - self.offset.clone(),
        }
    }
}

/// Clamp a count to the range from zero to [`Scores::COUNT_LIMIT`].
fn clamped(count: i64) -> i64 {
    count.clamp(0, Scores::COUNT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (gamma, offset) in
            [(0.0, 1.0), (f64::NAN, 1.0), (2048.0, 1.0), (1.0, f64::INFINITY), (1.0, f64::NAN)]
        {
            assert!(Scores::new(&[1], 1, gamma, 0, offset).is_err());
        }
    }

    #[test]
    fn counts_out_of_range_are_clamped() {
        let mut odd = Scores::new(&[-1, i64::MAX, 5], i64::MAX, 1.0, i64::MIN, 1.0).unwrap();
        let limit = Scores::COUNT_LIMIT;
        let even = Scores::new(&[0, limit, 5], limit, 1.0, 0, 1.0).unwrap();
        odd.replace(2, i64::MAX, -3);
        assert!(odd.is_empty(0) && odd.bottom() == 0 && odd.exponent(2) == even.exponent(1));
        assert!((0..2).all(|slot| odd.exponent(slot) == even.exponent(slot)));
    }
}
