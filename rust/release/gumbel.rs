//! Exact selection with the exponential mechanism, which draws candidate `i` with probability `P[i] ∝ exp(γ c_i)`.
//!
//! A candidate is an item with a count `c_i`, or the stop element ⊥. To select ⊥ is to select no item. The index of the
//! largest `γ c_i` plus Gumbel noise has the same distribution (Rogers 2023, Algorithm 3; Rogers 2024, Algorithm 1).
//!
//! The draw is by rejection. Every candidate has an envelope, which is a power of two that is at least the candidate's
//! weight. A walk through a [`Tree`] of envelopes ends at candidate `i` with probability exactly `envelope_i / root`.
//! The candidate is then accepted with probability `weight_i / envelope_i`. About two walks are needed.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::error::Result;
use crate::noise::bernoulli_exp;
use crate::release::scores::{Choice, Scores};
use crate::release::tree::{Tree, Weight};

/// Items with integer counts, and the stop element ⊥ with its own score.
pub struct Candidates {
    scores: Scores,
    tree: Tree,
}

impl Candidates {
    /// Create the candidates of these scores.
    #[must_use]
    pub fn new(scores: Scores) -> Self {
        let tree = Tree::new((0..scores.slots()).map(|slot| envelope(&scores, slot)));
        Self { scores, tree }
    }

    /// Replace the count of a slot, and set the count `bottom`, from which the score of ⊥ is computed. A count of zero
    /// empties the slot.
    pub(crate) fn replace(&mut self, slot: usize, count: i64, bottom: i64) {
        self.scores.replace(slot, count, bottom);
        for slot in [slot, self.scores.slots() - 1] {
            self.tree.set(slot, envelope(&self.scores, slot));
        }
    }

    /// Draw once from the exponential mechanism.
    pub fn select<R: Rng + ?Sized>(&self, rng: &mut R) -> Choice {
        loop {
            let Some(slot) = self.tree.walk(rng) else { continue };
            if accepted(&self.scores, slot, rng) {
                return self.scores.choice(slot);
            }
        }
    }

    /// Select up to `k` items without replacement (Plackett-Luce distribution). A selection of ⊥ ends the list.
    /// Return the slots of the items in order of selection, and whether ⊥ was selected.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] if `k` is zero.
    pub fn peel<R: Rng + ?Sized>(mut self, k: usize, rng: &mut R) -> Result<(Vec<usize>, bool)> {
        if k == 0 {
            return Err(crate::error::Error::Parameter("k must be at least 1"));
        }
        let mut selected = Vec::new();
        while selected.len() < k {
            let Choice::Slot(slot) = self.select(rng) else { return Ok((selected, true)) };
            selected.push(slot);
            let bottom = self.scores.bottom();
            self.replace(slot, 0, bottom);
        }
        Ok((selected, false))
    }
}

/// Return a power of two that is at least the weight, and rarely more than twice it.
fn envelope(scores: &Scores, slot: usize) -> Weight {
    if scores.is_empty(slot) {
        return Weight::ZERO;
    }
    Weight::halved(1, scores.exponent(slot).halvings())
}

/// Return true with probability `weight / envelope`.
pub(super) fn accepted<R: Rng + ?Sized>(scores: &Scores, slot: usize, rng: &mut R) -> bool {
    let exponent = scores.exponent(slot);
    let halvings = exponent.halvings();
    bernoulli_exp(rng, exponent.minus_ln2(halvings), || (scores.exact_exponent(slot), halvings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::{SecureRng, repetitions};

    fn candidates(
        counts: &[i64],
        reference: i64,
        gamma: f64,
        bottom: i64,
        offset: f64,
    ) -> Candidates {
        Candidates::new(Scores::new(counts, reference, gamma, bottom, offset).unwrap())
    }

    #[test]
    fn draws_follow_the_exponential_mechanism() {
        // The slots hold the counts 5 and 3, and γ = 1. The score of ⊥ is 3.995732273554 above the score 1.
        let (draws, mut seen) = (repetitions(400_000), [0_u32; 3]);
        let candidates = candidates(&[5, 3], 5, 1.0, 1, 3.995_732_273_554);
        let mut rng = SecureRng::seeded(3);
        for _ in 0..draws {
            match candidates.select(&mut rng) {
                Choice::Slot(slot) => seen[slot] += 1,
                Choice::Bottom => seen[2] += 1,
            }
        }
        let law = [0.469_246_378_219_82, 0.063_505_591_504_133, 0.467_248_030_276_05];
        for (seen, p) in seen.into_iter().zip(law) {
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(seen) - p * f64::from(draws)).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn a_changed_tree_equals_a_fresh_tree_of_the_same_counts() {
        let mut changed = candidates(&[90, 70, 40, 3], 90, 0.3, 2, 9.5);
        changed.replace(0, 2, 1);
        changed.replace(2, 0, 0);
        let fresh = candidates(&[2, 70, 0, 3], 90, 0.3, 0, 9.5);
        assert_eq!(changed.tree, fresh.tree);
    }

    #[test]
    fn the_largest_of_far_apart_scores_is_selected() {
        let limit = Scores::COUNT_LIMIT;
        let mut candidates = candidates(&[limit, 1, 7], limit, Scores::GAMMA_LIMIT, 0, 40.0);
        let mut rng = SecureRng::seeded(2);
        assert_eq!(candidates.select(&mut rng), Choice::Slot(0));
        candidates.replace(0, 0, 0);
        assert_eq!(candidates.select(&mut rng), Choice::Slot(2));
        candidates.replace(2, 0, 0);
        assert_eq!(candidates.select(&mut rng), Choice::Slot(1));
        candidates.replace(1, 0, 0);
        assert_eq!(candidates.select(&mut rng), Choice::Bottom);
    }

    #[test]
    fn peeling_ends_after_k_or_at_the_stop_element() {
        let mut rng = SecureRng::seeded(4);
        let all = candidates(&[900, 500, 100], 900, 1.0, 0, 1.0).peel(3, &mut rng);
        assert_eq!(all, Ok((vec![0, 1, 2], false)));
        let some = candidates(&[900, 500, 100], 900, 1.0, 0, 300.0).peel(3, &mut rng);
        assert_eq!(some, Ok((vec![0, 1], true)));
        let empty = candidates(&[], 0, 1.0, 0, 1.0).peel(1, &mut rng);
        assert_eq!(empty, Ok((vec![], true)));
        assert!(candidates(&[], 0, 1.0, 0, 1.0).peel(0, &mut rng).is_err());
    }
}
