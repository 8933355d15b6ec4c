//! Exact exponential-mechanism selection: one categorical draw, `P[i] ∝ exp(γ c_i)`, the law of the
//! largest `γ c_i` plus Gumbel noise (Rogers 2023, Algorithm 3; Rogers 2024, Algorithm 1).
//!
//! Every candidate has an envelope, a power of two not below its weight. A tree holds sums of
//! envelopes, rounded up. A draw walks down from the root: at a node of weight `n` with children `l`
//! and `r` it goes left with probability `l/n`, right with `r/n`, and starts again in the rest, so that
//! leaf `i` is reached with probability exactly `envelope_i / root`, rounding or not. There a coin of
//! `weight_i / envelope_i` accepts. The accepted candidate has exactly the law wanted; about two walks
//! are needed, and a walk and a change of one candidate cost `O(log k)`.

#![deny(clippy::float_arithmetic)]

use rand::Rng;

use crate::error::{Error, Result};
use crate::noise::{Dyadic, Fixed, bernoulli_exp};

/// Candidates with integer scores, and the stop element with a score of its own.
pub struct Candidates {
    gamma: Dyadic,
    /// The mantissa and the exponent of γ.
    rate: (u64, i64),
    offset: Dyadic,
    fixed_offset: Fixed,
    reference: i64,
    counts: Vec<i64>,
    bottom: i64,
    tree: Vec<Weight>,
    leaves: usize,
}

/// What a draw selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The candidate in this slot.
    Slot(usize),
    /// The stop element ⊥.
    Bottom,
}

impl Candidates {
    /// The largest count, more users than there are people. With [`Self::GAMMA_LIMIT`] it keeps every
    /// score below `2^45`, within what [`Fixed`] holds.
    pub const COUNT_LIMIT: i64 = 1 << 35;
    /// The largest γ; see [`Self::COUNT_LIMIT`].
    pub const GAMMA_LIMIT: f64 = 1024.0;

    /// Slots with scores `gamma * counts[i]`, those with a count of zero being empty, and ⊥ with score
    /// `gamma * bottom + offset`. Scores are measured from `reference`, which changes no law.
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
        let leaves = (counts.len() + 1).next_power_of_two();
        let tree = vec![Weight::ZERO; 2 * leaves];
        let counts = counts.to_vec();
        let (gamma, offset) = (Dyadic::from_f64(gamma), Dyadic::from_f64(offset));
        let (rate, fixed_offset) = (gamma.parts(), Fixed::from(&offset));
        let mut new =
            Self { gamma, rate, offset, fixed_offset, reference, counts, bottom, tree, leaves };
        for slot in 0..=new.counts.len() {
            new.tree[leaves + slot] = new.envelope(slot);
        }
        for node in (1..leaves).rev() {
            new.tree[node] = new.tree[2 * node].plus(new.tree[2 * node + 1]);
        }
        Ok(new)
    }

    /// Puts another candidate into a slot (0 empties it) and sets the count that ⊥ is measured from.
    ///
    /// Both must lie between 0 and [`Self::COUNT_LIMIT`].
    pub fn replace(&mut self, slot: usize, count: i64, bottom: i64) {
        self.counts[slot] = count;
        self.bottom = bottom;
        for slot in [slot, self.counts.len()] {
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
            let exponent = self.exponent(slot);
            let halvings = exponent.halvings();
            let rest = exponent.minus_ln2(halvings);
            if bernoulli_exp(rng, rest, || (self.exact_exponent(slot), halvings)) {
                return if slot == self.counts.len() { Choice::Bottom } else { Choice::Slot(slot) };
            }
        }
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

    /// `x` of the weight `exp(-x)` of a slot.
    fn exponent(&self, slot: usize) -> Fixed {
        let bottom = slot == self.counts.len();
        let count = if bottom { self.bottom } else { self.counts[slot] };
        let score = Fixed::product(self.reference - count, self.rate.0, self.rate.1);
        if bottom { score.minus(self.fixed_offset) } else { score }
    }

    /// The same without an error.
    fn exact_exponent(&self, slot: usize) -> Dyadic {
        let bottom = slot == self.counts.len();
        let count = if bottom { self.bottom } else { self.counts[slot] };
        let score = self.gamma.clone() * Dyadic::new(self.reference - count, 0);
        if bottom { score - self.offset.clone() } else { score }
    }

    /// The least power of two that is not below the weight for certain, give or take rounding.
    fn envelope(&self, slot: usize) -> Weight {
        if slot < self.counts.len() && self.counts[slot] == 0 {
            return Weight::ZERO;
        }
        Weight { mantissa: 1 << 63, exponent: -63 - self.exponent(slot).halvings() }
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
    use crate::rng::SecureRng;

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
        let (draws, mut seen) = (400_000, [0_u32; 3]);
        let candidates = Candidates::new(&[5, 3], 5, 1.0, 1, 3.995_732_273_554).unwrap();
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
        let mut changed = Candidates::new(&[90, 70, 40, 3], 90, 0.3, 2, 9.5).unwrap();
        changed.replace(0, 2, 1);
        changed.replace(2, 0, 0);
        let fresh = Candidates::new(&[2, 70, 0, 3], 90, 0.3, 0, 9.5).unwrap();
        assert_eq!(changed.tree, fresh.tree);
    }

    #[test]
    fn far_apart_scores_neither_overflow_nor_stall() {
        let limit = Candidates::COUNT_LIMIT;
        let mut candidates =
            Candidates::new(&[limit, 1, 7], limit, Candidates::GAMMA_LIMIT, 0, 40.0).unwrap();
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
            assert!(Candidates::new(&counts, 1, gamma, bottom, offset).is_err());
        }
    }
}
