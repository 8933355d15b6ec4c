//! A binary tree of sums of weights, which draws a leaf with a probability proportional to the
//! leaf's weight.
//!
//! The weight of a node is the sum of its children's weights, rounded up to 64 bits. A walk
//! descends from the root to a leaf. Let a node of weight `n` have children of weights `l` and `r`.
//! The walk goes left with probability `l/n` and right with probability `r/n`. Otherwise the walk
//! fails. So a walk ends at leaf `i` with a probability of exactly `weight_i / root`, where `root`
//! is the weight of the root, whatever the rounding. A walk and a change of one leaf take time
//! `O(log k)` for `k` leaves.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

/// A binary tree whose leaves hold weights, and whose inner nodes hold sums of weights.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree {
    nodes: Vec<Weight>,
    leaves: usize,
}

impl Tree {
    /// Builds a tree with these weights in its leaves.
    pub fn new(weights: impl ExactSizeIterator<Item = Weight>) -> Self {
        let leaves = weights.len().next_power_of_two();
        let mut nodes = vec![Weight::ZERO; 2 * leaves];
        for (leaf, weight) in weights.enumerate() {
            nodes[leaves + leaf] = weight;
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].plus(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// Sets the weight of a leaf.
    pub fn set(&mut self, leaf: usize, weight: Weight) {
        let mut node = self.leaves + leaf;
        self.nodes[node] = weight;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node].plus(self.nodes[2 * node + 1]);
        }
    }

    /// Walks from the root to a leaf, and returns the leaf. Returns `None` if the walk fails. At
    /// least one weight must be above zero.
    pub fn walk<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<usize> {
        let mut node = 1;
        while node < self.leaves {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            let position = Position::draw(rng, self.nodes[node]);
            node = match position.place(rng, left, right)? {
                Side::Left => 2 * node,
                Side::Right => 2 * node + 1,
            };
        }
        Some(node - self.leaves)
    }
}

/// The number `mantissa * 2^exponent`. The mantissa is zero or has its top bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    mantissa: u64,
    exponent: i64,
}

impl Weight {
    /// The weight zero.
    pub const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// Returns `number * 2^-halvings`.
    #[must_use]
    pub fn halved(number: u64, halvings: i64) -> Self {
        if number == 0 {
            return Self::ZERO;
        }
        let shift = number.leading_zeros();
        Self { mantissa: number << shift, exponent: -halvings - i64::from(shift) }
    }

    /// Returns the sum, rounded up to 64 bits.
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
        // The smaller weight in units of the last bit of the larger weight, rounded up.
        let shifted = if gap >= 64 {
            1
        } else {
            let dropped = small.mantissa & ((1_u64 << gap) - 1);
            (small.mantissa >> gap) + u64::from(dropped != 0)
        };
        match big.mantissa.checked_add(shifted) {
            Some(mantissa) => Self { mantissa, exponent: big.exponent },
            None => {
                let sum = u128::from(big.mantissa) + u128::from(shifted);
                Self { mantissa: sum.div_ceil(2) as u64, exponent: big.exponent + 1 }
            }
        }
    }

    /// Returns 64 binary digits of this weight in units of `2^unit`. Word -1 is the integer part,
    /// and word 0 is the first 64 digits of the fraction.
    fn word(self, unit: i64, index: i64) -> u64 {
        // The word's lowest bit is worth 2^(unit - 64 (index + 1)).
        let lowest = unit - 64 * (index + 1);
        match self.exponent - lowest {
            up @ 0..64 => self.mantissa << up,
            down @ -63..0 => self.mantissa >> -down,
            _ => 0,
        }
    }

    /// Returns how many words of the fraction can differ from zero.
    fn words(self, unit: i64) -> i64 {
        if self.mantissa == 0 { 0 } else { ((unit - self.exponent).max(0) + 63) / 64 }
    }
}

/// The child to which a walk goes.
enum Side {
    Left,
    Right,
}

/// A uniform random number between zero and a node's weight. The digits of its fraction are drawn
/// when they are needed.
struct Position {
    /// The largest integer part.
    top: u64,
    /// The number is stored in units of `2^unit`, the value of the last bit of the node's weight.
    unit: i64,
    /// The integer part.
    integer: u64,
    /// The 64-bit words of the fraction that were drawn so far.
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

    /// Returns `Left` if the number is below the left child's weight. Returns `Right` if the node's
    /// weight minus the number is below the right child's weight. Otherwise returns `None`.
    fn place<R: Rng + ?Sized>(mut self, rng: &mut R, left: Weight, right: Weight) -> Option<Side> {
        if self.below(rng, left, false) {
            Some(Side::Left)
        } else if self.below(rng, right, true) {
            Some(Side::Right)
        } else {
            None
        }
    }

    /// Returns whether the number is below a weight. If `mirrored`, returns whether the node's
    /// weight minus the number is below the weight.
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

    #[test]
    fn sums_are_rounded_up_to_64_bits() {
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
    fn a_halved_number_has_its_top_bit_set() {
        assert_eq!(Weight::halved(1, 0), Weight { mantissa: 1 << 63, exponent: -63 });
        assert_eq!(Weight::halved(6, 5), Weight { mantissa: 6 << 61, exponent: -66 });
        assert_eq!(Weight::halved(0, 5), Weight::ZERO);
    }
}
