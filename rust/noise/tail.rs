//! Rigorous upper bounds of the tail `P[X >= m]` for every law of [`Decay`]. A bound exceeds the tail by a relative
//! `2^-52` or so.
//!
//! Geometric tails have a closed form. Gaussian tails of small scales are sums of weights. For large scales, the
//! Euler-Maclaurin formula replaces the sum with an integral, and bounds the remainder.

use num_bigint::BigInt;

use super::bounds::Bounds;
use super::decay::Decay;
use super::dyadic::{Dyadic, exp_neg_bounds, pi_bounds};
use super::float_tail::{BERNOULLI, mills};
use super::table::high_product;
use crate::error::{Error, Result};

/// Binary places in addition to the places that the size of a result needs.
const PLACES: u32 = 128;
/// Binary places of the sums of weights. The sums of scales up to 1,024 take twelve bits before the binary point.
const SUM_PLACES: u32 = 116;
/// Coefficients of squares below `2^-19` belong to scales of 512 and more.
const WIDE_BITS: i64 = -19;
/// Coefficients of squares below `2^-13` belong to scales of 64 and more.
const INTEGRAL_BITS: i64 = -13;

impl Decay {
    /// Returns an upper bound of `P[X >= m]`. `X` has this law, which must be mirrored, and a random sign.
    #[must_use]
    pub fn tail(&self, m: i64) -> f64 {
        if m <= 0 {
            // 1 - P[X >= 1 - m]
            let rest = self.upper_tail(1_u64.saturating_add(m.unsigned_abs()));
            return Bounds::integer(1, rest.places).minus(&rest).rounded_up();
        }
        self.upper_tail(m.unsigned_abs()).rounded_up()
    }

    /// Returns the least `m >= 1` with `self.tail(m) <= p`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `p` is not a normal number between zero and one.
    pub fn quantile(&self, p: f64) -> Result<i64> {
        if !(p.is_normal() && p > 0.0 && p < 1.0) {
            return Err(Error::Parameter("p must lie between 2.3e-308 and 1"));
        }
        // The tail of the widest law is negligible at 2^60.
        let most = 1_i64 << 60;
        let holds = |m: i64| m >= most || self.tail_is_at_most(m, p);
        let guess = self.guess(p).clamp(1, most);
        // Go from the guess towards the quantile in steps that double, until a step passes the quantile. Then bisect.
        let (mut low, mut high, mut step) = (guess - 1, guess, 1);
        while !holds(high) {
            (low, high) = (high, high.saturating_add(step).min(most));
            step *= 2;
        }
        step = 1;
        while low > 0 && holds(low) {
            (low, high) = ((low - step).max(0), low);
            step *= 2;
        }
        while high - low > 1 {
            let middle = i64::midpoint(low, high);
            if holds(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }

    /// Returns an estimate of the quantile.
    #[allow(clippy::float_arithmetic, reason = "a wrong guess only costs time")]
    fn guess(&self, p: f64) -> i64 {
        let (mantissa, exponent) = self.coefficient.parts();
        let coefficient = mantissa as f64 * (exponent as f64).exp2();
        let about = if !self.square {
            -(p * (1.0 + (-coefficient).exp())).ln() / coefficient
        } else if p < 0.5 {
            // The quantile of the continuous law, with an error of at most 5e-4 scales (Abramowitz and Stegun,
            // 26.2.23), and two steps of Newton's method.
            let t = (-2.0 * p.ln()).sqrt();
            let above = t.mul_add(t.mul_add(0.010_328, 0.802_853), 2.515_517);
            let below = t.mul_add(t.mul_add(t.mul_add(0.001_308, 0.189_269), 1.432_788), 1.0);
            let mut z = t - above / below;
            for _ in 0..2 {
                let ratio = mills(z.max(1.5), 40);
                let tail = (ratio * (0.5 / std::f64::consts::PI).sqrt()).ln() - z * z / 2.0;
                z += if z > 1.5 { (tail - p.ln()) * ratio } else { 0.0 };
            }
            z.mul_add((0.5 / coefficient).sqrt(), 0.5)
        } else {
            1.0
        };
        about.ceil() as i64
    }

    /// Returns bounds of `P[X >= m]` for `m >= 1`.
    fn upper_tail(&self, m: u64) -> Bounds {
        if self.limit.is_some_and(|limit| m > limit) {
            return Bounds { low: BigInt::ZERO, high: BigInt::ZERO, places: 0 };
        }
        let power = BigInt::from(m).pow(if self.square { 2 } else { 1 });
        let exponent = self.exponent(power);
        // The tail is about exp(-x), which is at least 2^-halvings.
        let halvings = u32::try_from(exponent.floor_scaled(1)).unwrap_or(u32::MAX);
        if halvings > 1500 {
            // The tail is below exp(-750), which is below the least positive float.
            return Bounds { low: BigInt::ZERO, high: BigInt::from(1), places: 1080 };
        }
        let places = PLACES + 2 * halvings;
        if !self.square {
            self.geometric_tail(m, places)
        } else if !self.is_wide(m) {
            self.summed_tail(m, &exponent, places)
        } else {
            self.integral_tail(m, &exponent, places)
        }
    }

    /// Returns true only if the remainder of [`Self::integral_tail`] is below `2^-60` of the tail.
    ///
    /// This holds for scales from 512 on. For scales from 64 on, it holds if `m` is at most an eighth of the scale's
    /// square, because `g_11` is at most about `(2 c m)^11`.
    fn is_wide(&self, m: u64) -> bool {
        let bits = self.coefficient.log2_floor();
        bits < WIDE_BITS
            || bits < INTEGRAL_BITS && self.exponent(16 * m).floor_scaled(0) == BigInt::ZERO
    }

    /// Returns `a^m (1 - a^(k - m + 1)) / (1 + a - 2 a^(k + 1))` for a law with limit `k`.
    ///
    /// Without a limit, the powers with `k` are zero.
    fn geometric_tail(&self, m: u64, places: u32) -> Bounds {
        let power = |n: u64| Bounds::new(exp_neg_bounds(&self.exponent(n), 0, places), places);
        let beyond = |n: Option<u64>| n.map_or(Bounds::integer(0, places), power);
        let one = Bounds::integer(1, places);
        let part = one.minus(&beyond(self.limit.map(|k| k - m + 1)));
        let end = beyond(self.limit.map(|k| k + 1));
        power(m).times(&part).over(&one.plus(&power(1)).minus(&end).minus(&end))
    }

    /// Returns the sum of the weights from `m` up, divided by the sum of all weights.
    fn summed_tail(&self, m: u64, exponent: &Dyadic, places: u32) -> Bounds {
        let first = Bounds::new(exp_neg_bounds(exponent, 0, places), places);
        let from = |m: u64| self.sum_from(m);
        // A mirrored law has each weight twice, except the weight of zero.
        let half = from(0);
        let zero = Bounds::integer(1, SUM_PLACES);
        first.times(&from(m)).over(&half.plus(&half).minus(&zero))
    }

    /// Returns the sum of the weights from `start` up, divided by the weight of `start`.
    ///
    /// This function computes like [`Self::weights_from`], but in integers of 128 bits. Weight `i` is at most `4 (i +
    /// 1)²` units of `2^-SUM_PLACES` too small. For scales up to 1,024, the sum is below `2^12` and has fewer than
    /// `2^14` weights.
    fn sum_from(&self, start: u64) -> Bounds {
        let unit = |number: BigInt| u128::try_from(number).unwrap_or(u128::MAX);
        let shrink = unit(self.ratios(128).1);
        let step = if self.square { 2 * start + 1 } else { 1 };
        let mut ratio = unit(exp_neg_bounds(&self.exponent(step), 0, 128).0);
        let (mut weight, mut sum, mut i) = (1_u128 << SUM_PLACES, 0_u128, 0_u64);
        loop {
            sum += weight;
            weight = high_product(weight, ratio);
            ratio = high_product(ratio, shrink);
            if weight <= 1 || self.limit == Some(start + i) {
                break;
            }
            i += 1;
        }
        // The total error of the weights up to `i`, and a bound of all further weights, in units.
        let lost = BigInt::from(4) * BigInt::from(i + 1).pow(3);
        let next = BigInt::from(weight) + BigInt::from(4) * BigInt::from(i + 2).pow(2);
        let low = BigInt::from(sum);
        let high = &low + lost + (next << (1 + self.tail_bits(start + i)));
        Bounds { low, high, places: SUM_PLACES }
    }

    /// Returns bounds of `P[X >= m] = (∫ f + f(m) E + R) / Z` with `f(x) = exp(-c x²)` and the integral from `m` on.
    ///
    /// By Poisson summation, `Z = √(π/c) (1 + r)` with `0 < r < 2^-100000` for `c < 2^-13`. Let `q = √(c/π)`.
    ///
    /// * `q ∫ f = 1/2 - m q f(m) Σ (2 c m²)^n / (2n + 1)!!` (Abramowitz and Stegun 7.1.6);
    /// * `E = 1/2 + Σ B_2k/(2k)! g_(2k-1)`, where `f^(n) = (-1)^n g_n f` and `g_(n+1) = 2 c (m g_n - n g_(n-1))`;
    /// * `|R| <= 2 ζ(12) / (2π)^12 ∫ |f^(12)|`, and the integral is at most `|g_11(m)| f(m)` where
    ///   `c m² >= 25`, beyond the zeros of `g_12`, and by Cramér's bound of Hermite's functions at most
    ///   `2 √(12!) (2c)^6 exp(-c m²/2) √(π/2c)` anywhere.
    fn integral_tail(&self, m: u64, exponent: &Dyadic, places: u32) -> Bounds {
        let f = Bounds::new(exp_neg_bounds(exponent, 0, places), places);
        let (pi_low, pi_high) = pi_bounds(places);
        let c: BigInt = self.coefficient.floor_scaled(3 * i64::from(places));
        // √(c/π) in units of 2^-places. c has 3 times as many places and π as many, so the quotient has twice as many.
        let q = Bounds {
            low: (&c / &pi_high).sqrt(),
            high: BigInt::sqrt(&((c + 1) / &pi_low + 1)) + 1,
            places,
        };

        let x = exponent.floor_scaled(i64::from(places) + 1);
        let mut term = BigInt::from(1) << places;
        let mut series = BigInt::ZERO;
        let mut n = 0_u32;
        while term.bits() > 0 {
            series += &term;
            n += 1;
            term = ((term * &x) >> places) / (2 * n + 1);
        }
        // The error of a term is at most the error of the term before times 2 c m² / (2n + 1), plus two units. There
        // are fewer than 2^13 terms, and the product of these ratios is at most exp(c m²). So the total error is at
        // most 2^(halvings + 30) units.
        let lost = BigInt::from(1) << (30 + (places - PLACES) / 2);
        let series = Bounds { low: series.clone(), high: series + lost, places };
        let m_f_q = f.times(&q).scaled(m);
        let half =
            Bounds::new((BigInt::from(1) << (places - 1), BigInt::from(1) << (places - 1)), places);
        let integral = half.minus(&m_f_q.times(&series));

        let (ends, last) = self.ends(m, places);
        let seams = f.times(&q).times(&ends);
        // 2 ζ(12) / (2π)^12 < 2^-30.7 < 2^-30.
        let remainder = if x >= BigInt::from(50) << places {
            f.times(&q).times(&last).high >> 30
        } else {
            // 2^-30 · 2 √(12!) · 64 c^6 · √(π/2c) √(c/π) exp(-c m²/2), with √(12!) < 2^15 and √½ < 1.
            let sixth = (0..6).fold(Dyadic::new(1, 0), |power, _| power * self.coefficient.clone());
            let root = exp_neg_bounds(&(exponent.clone() * Dyadic::new(1, -1)), 0, places).1;
            (((sixth.floor_scaled(i64::from(places)) + 1) * root) >> (places + 8)) + 1
        };
        let sum = integral.plus(&seams);
        // r and the rounding of the remainder are below the last place.
        Bounds { low: sum.low - &remainder - 1, high: sum.high + remainder + 1, places }
    }

    /// Returns `E` of [`Self::integral_tail`], and `|g_11|`.
    fn ends(&self, m: u64, places: u32) -> (Bounds, Bounds) {
        let twice = self.exponent(2);
        let mut g = (Dyadic::new(1, 0), twice.clone() * Dyadic::new(m, 0));
        let one = BigInt::from(1) << places;
        let mut low: BigInt = &one >> 1;
        for (k, (numerator, denominator)) in BERNOULLI.iter().enumerate() {
            // g.1 is g_(2k+1) here.
            low += g.1.floor_scaled(i64::from(places)) * *numerator / *denominator;
            for n in [2 * k + 1, 2 * k + 2] {
                if n == 11 {
                    break;
                }
                let next = g.1.clone() * Dyadic::new(m, 0) - g.0 * Dyadic::new(n as u64, 0);
                g = (g.1, twice.clone() * next);
            }
        }
        let last = g.1.floor_scaled(i64::from(places));
        let last = if last < BigInt::ZERO { -last } else { last };
        // There are six terms. The errors of each term's product and quotient are far below 1024 units in all.
        let ends = Bounds { low: &low - 1024_u32, high: low + 1024_u32, places };
        (ends, Bounds { low: &last - 1_u32, high: last + 1_u32, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(coefficient: f64, square: bool, limit: Option<u64>) -> Decay {
        Decay { coefficient: Dyadic::from_f64(coefficient), square, limit, mirrored: true }
    }

    fn near(value: f64, truth: f64) {
        assert!(
            value >= truth * (1.0 - 1e-15) && value <= truth * (1.0 + 1e-12),
            "{value} {truth}"
        );
    }

    #[test]
    fn geometric_tails_equal_the_closed_form() {
        let laplace = law(0.5, false, None);
        near(laplace.tail(1), 0.377_540_668_798_145_4);
        near(laplace.tail(0), 0.622_459_331_201_854_6);
        near(laplace.tail(40), (-20.0_f64).exp() / (1.0 + (-0.5_f64).exp()));
        near(laplace.tail(-3), 1.0 - (-2.0_f64).exp() / (1.0 + (-0.5_f64).exp()));
        // Theory: k = 11 for epsilon 1 and delta 1e-5.
        let bounded = law(1.0, false, Some(11));
        assert!((bounded.tail(11) / 7.718_211_827_601_5e-6 - 1.0).abs() < 1e-13);
        assert!((bounded.tail(1) / 0.268_939_345_623_14 - 1.0).abs() < 1e-13);
        assert!(
            bounded.tail(12) == 0.0 && bounded.tail(-11) >= 1.0 && bounded.tail(-11) < 1.0 + 1e-15
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn gaussian_tails_equal_the_sums_of_weights() {
        for (sigma, m) in [(0.3, 1), (1.0, 5), (2.0, 6), (10.0, 49), (100.0, 700)] {
            let c = 0.5 / (sigma * sigma);
            let weights =
                |from: i64| (from..4_000).map(|x| (-c * (x * x) as f64).exp()).rev().sum::<f64>();
            near(law(c, true, None).tail(m), weights(m) / (2.0 * weights(1) + 1.0) * (1.0 - 2e-14));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn integral_tails_agree_with_sums_if_both_are_accurate() {
        // The scales are 724 and 70. The remainder is small if m is at most an eighth of the scale's square.
        let wide =
            [1, 2, 300, 724, 3_000, 3_600, 3_700, 8_000, 12_000, 25_000].map(|m| (-20.0_f64, m));
        let narrow = [1, 2, 50, 70, 200, 350, 500, 608].map(|m| (-13.25_f64, m));
        for (bits, m) in wide.into_iter().chain(narrow) {
            let law = law(bits.exp2(), true, None);
            assert!(law.is_wide(m), "{bits} {m}");
            let exponent = law.exponent(BigInt::from(m).pow(2));
            let places = PLACES + 2 * u32::try_from(exponent.floor_scaled(1)).unwrap();
            let sum = law.summed_tail(m, &exponent, places);
            let integral = law.integral_tail(m, &exponent, places);
            assert!(sum.low <= integral.high && integral.low <= sum.high, "{m}");
            for bounds in [sum, integral] {
                assert!((&bounds.high - &bounds.low) << 60 <= bounds.high, "{m}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn the_quantile_is_the_first_value_whose_tail_is_small_enough() {
        for law in [law(0.5, false, None), law(0.02, true, None), law(1e-12, true, None)] {
            for p in [0.3, 1e-6, 1e-30] {
                let m = law.quantile(p).unwrap();
                assert!(law.tail(m) <= p && law.tail(m - 1) > p);
            }
        }
        assert_eq!(law(1.0, false, Some(3)).quantile(f64::MIN_POSITIVE), Ok(4));
        for p in [0.0, 5e-324, 1.0, -0.5, f64::NAN, f64::INFINITY] {
            assert!(law(1.0, false, None).quantile(p).is_err());
        }
    }
}
