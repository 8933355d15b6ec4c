//! Exact exponential-mechanism selection: one categorical draw, `P[i] ∝ exp(γ c_i)`, the law of the
//! largest `γ c_i` plus Gumbel noise (Rogers 2023, Algorithm 3; Rogers 2024, Algorithm 1).
//!
//! Every candidate has an envelope, a power of two not below its weight. A tree holds sums of
//! envelopes, rounded up. A draw walks down from the root: at a node of weight `n` with children `l`
//! and `r` it goes left with probability `l/n`, right with `r/n`, and starts again in the rest, so that
//! leaf `i` is reached with probability exactly `envelope_i / root`, rounding or not. There a coin of
//! `weight_i / envelope_i` accepts. The accepted candidate has exactly the law wanted; about two walks
//! are needed, and a walk and a change of one candidate cost `O(log k)`.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::error::Result;
use crate::noise::bernoulli_exp;
use crate::release::scores::{Choice, Scores};

/// Candidates with integer scores, and the stop element with a score of its own.
pub struct Candidates {
    scores: Scores,
    tree: Vec<Weight>,
    leaves: usize,
}

impl Candidates {
    /// The candidates of these scores.
    #[must_use]
    pub fn new(scores: Scores) -> Self {
        let leaves = scores.slots().next_power_of_two();
        let mut new = Self { tree: vec![Weight::ZERO; 2 * leaves], leaves, scores };
        for slot in 0..new.scores.slots() {
            new.tree[leaves + slot] = new.envelope(slot);
        }
        for node in (1..leaves).rev() {
            new.tree[node] = new.tree[2 * node].plus(new.tree[2 * node + 1]);
        }
        new
    }

    /// Puts another candidate into a slot (0 empties it) and sets the count that ⊥ is measured from.
    pub(crate) fn replace(&mut self, slot: usize, count: i64, bottom: i64) {
        self.scores.replace(slot, count, bottom);
        for slot in [slot, self.scores.slots() - 1] {
            let mut node = self.leaves + slot;
            self.tree[node] = self.envelope(slot);
            while node > 1 {
                node /= 2;
                self.tree[node] = self.tree[2 * node].plus(self.tree[2 * node + 1]);
            }
        }
    }

    /// One draw from the law of the exponential mechanism.
    pub fn select<R: Rng + ?Sized>(&self, rng: &mut R) -> Choice {
        loop {
            let Some(slot) = self.walk(rng) else { continue };
            let exponent = self.scores.exponent(slot);
            let halvings = exponent.halvings();
            let rest = exponent.minus_ln2(halvings);
            if bernoulli_exp(rng, rest, || (self.scores.exact_exponent(slot), halvings)) {
                return self.scores.choice(slot);
            }
        }
    }

    /// Up to `k` candidates without replacement, in the order of their selection, by the law of
    /// Plackett and Luce; ⊥ ends the list: whether it did comes second.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] where `k` is zero.
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

    /// From the root to a leaf, or to nowhere with the probability that rounding up has added.
    fn walk<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<usize> {
        let mut node = 1;
        while node < self.leaves {
            let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
            let position = Position::draw(rng, self.tree[node]);
            node = match position.place(rng, left, right)? {
                Side::Left => 2 * node,
                Side::Right => 2 * node + 1,
            };
        }
        Some(node - self.leaves)
    }

    /// A power of two that is never below the weight, and seldom more than twice it.
    fn envelope(&self, slot: usize) -> Weight {
        if self.scores.is_empty(slot) {
            return Weight::ZERO;
        }
        Weight { mantissa: 1 << 63, exponent: -63 - self.scores.exponent(slot).halvings() }
    }
}

/// `mantissa * 2^exponent`, the mantissa zero or with its top bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weight {
    mantissa: u64,
    exponent: i64,
}

impl Weight {
    const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// The sum, rounded up to 64 bits.
    fn plus(self, other: Self) -> Self {
        if self.mantissa == 0 {
            return other;
        }
        if other.mantissa == 0 {
            return self;
        }
        let (big, small) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let gap = big.exponent.abs_diff(small.exponent);
        // The smaller one in units of the larger one's last bit, rounded up.
        let shifted = if gap >= 64 {
            1
        } else {
            let lost = small.mantissa & ((1_u64 << gap) - 1);
            (small.mantissa >> gap) + u64::from(lost != 0)
        };
        match big.mantissa.checked_add(shifted) {
            Some(mantissa) => Self { mantissa, exponent: big.exponent },
            None => {
                let sum = u128::from(big.mantissa) + u128::from(shifted);
                Self { mantissa: sum.div_ceil(2) as u64, exponent: big.exponent + 1 }
            }
        }
    }

    /// Word `index` of the fraction of this weight, in units of `2^unit`: 0 is the one right of the
    /// point, and -1 the integer part.
    fn word(self, unit: i64, index: i64) -> u64 {
        // The word's lowest bit is worth 2^(unit - 64 (index + 1)).
        let lowest = unit - 64 * (index + 1);
        match self.exponent - lowest {
            up @ 0..64 => self.mantissa << up,
            down @ -63..0 => self.mantissa >> -down,
            _ => 0,
        }
    }

    /// How many words of the fraction can differ from zero.
    fn words(self, unit: i64) -> i64 {
        if self.mantissa == 0 { 0 } else { ((unit - self.exponent).max(0) + 63) / 64 }
    }
}

enum Side {
    Left,
    Right,
}

/// A uniform position between zero and a node's weight: an integer part in units of the weight's last
/// bit, and as many words of the fraction as anyone has looked at.
struct Position {
    top: u64,
    unit: i64,
    integer: u64,
    fraction: Vec<u64>,
}

impl Position {
    fn draw<R: Rng + ?Sized>(rng: &mut R, node: Weight) -> Self {
        let integer = loop {
            let word = rng.next_u64();
            if word < node.mantissa {
                break word;
            }
        };
        Self { top: node.mantissa - 1, unit: node.exponent, integer, fraction: Vec::new() }
    }

    /// Left in the lowest part, right in the highest, neither between them.
    fn place<R: Rng + ?Sized>(mut self, rng: &mut R, left: Weight, right: Weight) -> Option<Side> {
        if self.below(rng, left, false) {
            Some(Side::Left)
        } else if self.below(rng, right, true) {
            Some(Side::Right)
        } else {
            None
        }
    }

    /// Whether the position, or its mirror image in the node, lies below a weight.
    fn below<R: Rng + ?Sized>(&mut self, rng: &mut R, weight: Weight, mirrored: bool) -> bool {
        let integer = if mirrored { self.top - self.integer } else { self.integer };
        let bound = weight.word(self.unit, -1);
        if integer != bound {
            return integer < bound;
        }
        for index in 0..weight.words(self.unit) {
            if self.fraction.len() == index as usize {
                self.fraction.push(rng.next_u64());
            }
            let word = self.fraction[index as usize];
            let word = if mirrored { !word } else { word };
            let bound = weight.word(self.unit, index);
            if word != bound {
                return word < bound;
            }
        }
        false
    }
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
    fn sums_are_rounded_up_and_never_by_more_than_a_unit() {
        let one = Weight { mantissa: 1 << 63, exponent: -63 };
        let tiny = Weight { mantissa: 1 << 63, exponent: -1000 };
        assert_eq!(one.plus(one), Weight { mantissa: 1 << 63, exponent: -62 });
        assert_eq!(one.plus(tiny).mantissa, (1 << 63) + 1);
        assert_eq!(tiny.plus(Weight::ZERO), tiny);
        let ones = Weight { mantissa: u64::MAX, exponent: 0 };
        assert_eq!(ones.plus(tiny), Weight { mantissa: 1 << 63, exponent: 1 });
    }

    #[test]
    fn words_of_a_weight_are_its_binary_digits() {
        let w = Weight { mantissa: 0xf000_0000_0000_0001, exponent: -68 };
        assert_eq!(w.word(0, -1), 0);
        assert_eq!(w.word(0, 0), 0x0f00_0000_0000_0000);
        assert_eq!(w.word(0, 1), 0x1000_0000_0000_0000);
        assert_eq!(w.word(0, 2), 0);
        assert_eq!(w.words(0), 2);
        assert_eq!(w.word(-66, -1), 0x3c00_0000_0000_0000);
    }

    #[test]
    fn draws_follow_the_exponential_mechanism() {
        // theory: h = {5, 3, 1}, ε = 1, k̄ = 2, T = 3.995732273554; the last digits are not tested.
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
    fn a_changed_tree_is_the_tree_of_the_changed_counts() {
        let mut changed = candidates(&[90, 70, 40, 3], 90, 0.3, 2, 9.5);
        changed.replace(0, 2, 1);
        changed.replace(2, 0, 0);
        let fresh = candidates(&[2, 70, 0, 3], 90, 0.3, 0, 9.5);
        assert_eq!(changed.tree, fresh.tree);
    }

    #[test]
    fn far_apart_scores_neither_overflow_nor_stall() {
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
        let nothing = candidates(&[], 0, 1.0, 0, 1.0).peel(1, &mut rng);
        assert_eq!(nothing, Ok((vec![], true)));
        assert!(candidates(&[], 0, 1.0, 0, 1.0).peel(0, &mut rng).is_err());
    }
}
