//! A law is a probability distribution over the integers from zero: `P[m] ∝ exp(-c m)` or `P[m] ∝ exp(-c m²)`.
//!
//! The first law is geometric, and the second law is half of a discrete Gaussian. `c` is the law's coefficient, and
//! `exp(-c m)` or `exp(-c m²)` is the weight of `m`. A block is `2^b` consecutive integers. Blocks whose values all
//! have the weight of the first value follow a law of the same kind with another coefficient.
//!
//! This module computes bounds of weights and cumulative probabilities at any precision. The cell of `m` is the
//! interval of cumulative probabilities from that of `m - 1` to that of `m`. [`super::table`] draws the cell of a
//! uniform number.

use num_bigint::BigInt;

use super::dyadic::{Dyadic, exp_neg_bounds};

/// A law for `0 <= m <= limit`.
#[derive(Debug, Clone)]
pub struct Decay {
    /// `c`, above zero, with at most 64 significant bits.
    pub(super) coefficient: Dyadic,
    /// Whether the exponent is quadratic.
    pub(super) square: bool,
    /// The largest value, if there is one.
    pub(super) limit: Option<u64>,
    /// Whether every value except zero has twice its weight. Then this is the law of the absolute value of a symmetric
    /// random variable.
    pub(super) mirrored: bool,
}

/// The cell of a number whose leading bits are known.
pub(super) enum Location {
    /// All numbers with these leading bits are in this cell.
    Cell(u64),
    /// The cell depends on further bits.
    Undecided,
}

impl Decay {
    /// Returns the law of blocks of `2^bits` consecutive values, each with the weight of its first value.
    #[must_use]
    pub(super) fn of_blocks(&self, bits: u32) -> Self {
        let power = if self.square { 2 * bits } else { bits };
        Self {
            coefficient: self.coefficient.clone() * Dyadic::new(1, i64::from(power)),
            square: self.square,
            limit: self.limit.map(|limit| limit >> bits),
            mirrored: false,
        }
    }

    /// Returns `c` times an integer.
    #[must_use]
    pub(super) fn exponent(&self, factor: impl Into<BigInt>) -> Dyadic {
        self.coefficient.clone() * Dyadic::new(factor, 0)
    }

    /// Returns two ratios that determine all weights `w(m)`, rounded down to `places` binary places.
    ///
    /// The first ratio is `w(1) / w(0) = exp(-c)`. The second ratio is the factor from `w(m + 1) / w(m)` to
    /// `w(m + 2) / w(m + 1)`. This factor is `exp(-2c)` for a quadratic exponent and one otherwise.
    #[must_use]
    pub(super) fn ratios(&self, places: u32) -> (BigInt, BigInt) {
        // The lower bounds are at most two units below the exact ratios.
        let [first, second] = [1, if self.square { 2 } else { 0 }]
            .map(|n| exp_neg_bounds(&self.exponent(n), 0, places).0);
        (first, second)
    }

    /// Returns `k` such that the weights of all values above `m` sum to at most `2^k` times the weight of `m + 1`.
    #[must_use]
    pub(super) fn tail_bits(&self, m: u64) -> u32 {
        // Each ratio is at most exp(-z), and 1 / (1 - exp(-z)) <= max(2/z, 2).
        let z = self.exponent(if self.square { 2 * m + 3 } else { 1 });
        (1 - z.log2_floor()).max(1) as u32
    }

    /// Returns lower bounds of the weights of `start`, `start + 1` and so on, divided by the weight of `start`. Also
    /// returns an upper bound of the difference between the exact sum of all these weights and the sum of the list.
    ///
    /// Units are `2^-places`. The list ends at the limit, or before a weight of at most one unit. Weight `i` of the
    /// list is at most `4 (i + 1)²` units too small. In each step, the error of the ratio grows by at most three
    /// units. The error of the weight grows by at most the error of the ratio plus one unit.
    #[must_use]
    pub(super) fn weights_from(&self, start: u64, places: u32) -> (Vec<BigInt>, BigInt) {
        let (first, shrink) = self.ratios(places);
        let mut ratio = match start {
            0 => first,
            // With a quadratic exponent, w(m + 1) / w(m) is exp(-c (2m + 1)).
            m => {
                exp_neg_bounds(&self.exponent(if self.square { 2 * m + 1 } else { 1 }), 0, places).0
            }
        };
        let mut weight = BigInt::from(1) << places;
        let mut weights = Vec::new();
        loop {
            let i = weights.len() as u64;
            weights.push(weight.clone());
            let lost = BigInt::from(4) * BigInt::from(i + 1).pow(3);
            if self.limit == Some(start + i) {
                return (weights, lost);
            }
            weight = (weight * &ratio) >> places;
            ratio = (ratio * &shrink) >> places;
            if weight.bits() <= 1 {
                let next = &weight + BigInt::from(4) * BigInt::from(i + 2).pow(2);
                return (weights, lost + (next << (1 + self.tail_bits(start + i))));
            }
        }
    }

    /// Returns bounds of `2^bits P[M <= m]` for `m = 0, 1, ...` and M of this law. The list ends when the probability
    /// of all further values is far below `2^-bits`.
    #[must_use]
    pub(super) fn cumulative(&self, bits: u32) -> Vec<(BigInt, BigInt)> {
        // For m weights, `missing` is 4 m³ units plus a bound of the tail, and twice as much if the
        // law is mirrored. The 128 guard bits keep it far below `2^-bits`.
        let places = bits + 128;
        let (mut weights, mut missing) = self.weights_from(0, places);
        if self.mirrored {
            weights.iter_mut().skip(1).for_each(|weight| *weight *= 2);
            missing *= 2;
        }
        let least: BigInt = weights.iter().sum();
        let most = &least + &missing;
        let mut sum = BigInt::ZERO;
        let bound = |weight: &BigInt| {
            sum += weight;
            let high: BigInt = ((&sum + &missing) << bits) / &least + 1;
            ((&sum << bits) / &most, high.min(BigInt::from(1) << bits))
        };
        weights.iter().map(bound).collect()
    }

    /// Returns the cell of a uniform number whose first `bits` binary digits are `prefix`.
    #[must_use]
    pub(super) fn locate(&self, prefix: &BigInt, bits: u32) -> Location {
        let mut guard = 64;
        loop {
            let ends = self.cumulative(bits + guard);
            let from = prefix << guard;
            let to = (prefix + 1_u32) << guard;
            // The first `passed` cells certainly end at or before the prefix. The next cell may end after the prefix.
            let passed = ends.partition_point(|(_, high)| *high <= from);
            let last = self.limit == Some(passed as u64);
            // Whether the prefix is all ones. Then `to` is one, and any cell but a last one ends
            // below it.
            let open = to.bits() > u64::from(bits + guard);
            match ends.get(passed) {
                Some((low, _)) if last || *low >= to => return Location::Cell(passed as u64),
                Some((low, high)) if *low > from && (open || *high < to) => {
                    return Location::Undecided;
                }
                _ => guard += 64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(coefficient: f64, square: bool, limit: Option<u64>, mirrored: bool) -> Decay {
        Decay { coefficient: Dyadic::from_f64(coefficient), square, limit, mirrored }
    }

    fn numbers(bounds: &[(BigInt, BigInt)], bits: u32) -> Vec<f64> {
        let unit = -f64::from(bits);
        let number = |b: &(BigInt, BigInt)| {
            assert!(&b.1 - &b.0 <= BigInt::from(2));
            i128::try_from(&b.0).unwrap() as f64 * unit.exp2()
        };
        bounds.iter().map(number).collect()
    }

    #[test]
    fn cumulative_probabilities_match_the_geometric_law() {
        let cells = numbers(&law(0.5, false, None, false).cumulative(100), 100);
        for (m, p) in cells.iter().enumerate() {
            assert!((p - (1.0 - (-0.5 * (m as f64 + 1.0)).exp())).abs() < 1e-15);
        }
        assert!(cells.len() > 130);
        let cells = numbers(&law(0.5, false, Some(1), true).cumulative(100), 100);
        let zero = 1.0 / (1.0 + 2.0 * (-0.5_f64).exp());
        assert!((cells[0] - zero).abs() < 1e-15 && (cells[1] - 1.0).abs() < 1e-15);
    }

    #[test]
    fn blocks_follow_the_law_with_another_coefficient() {
        let squares = law(0.25, true, None, true).of_blocks(1);
        assert_eq!(squares.coefficient.floor_scaled(0), BigInt::from(1));
        let blocks = law(0.5, false, Some(9), true).of_blocks(1);
        assert_eq!(blocks.coefficient.floor_scaled(0), BigInt::from(1));
        assert_eq!((blocks.limit, blocks.mirrored), (Some(4), false));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn a_number_is_located_or_undecided_until_more_digits() {
        let half = law(std::f64::consts::LN_2, false, None, false);
        let locate = |prefix: u32, bits| match half.locate(&BigInt::from(prefix), bits) {
            Location::Cell(cell) => Some(cell),
            Location::Undecided => None,
        };
        // LN_2 is slightly below ln 2, so the cells end slightly before 1/2, 3/4, 7/8 ...
        assert_eq!((locate(0, 1), locate(0b01, 2), locate(0b00, 2)), (None, None, Some(0)));
        assert_eq!(
            (locate(0b100, 3), locate(0b1110, 4), locate(0b11100, 5)),
            (Some(1), None, Some(3))
        );
        assert_eq!(locate(u32::MAX, 32), None);
        // One cell has nearly all the mass. The ends of the other cells share hundreds of thousands of digits.
        let point = law(5e5, true, None, true);
        assert!(matches!(point.locate(&BigInt::from(u32::MAX), 32), Location::Undecided));
        assert!(matches!(point.locate(&BigInt::from(u32::MAX - 1), 32), Location::Cell(0)));
    }
}
