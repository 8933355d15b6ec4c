//! Floating-point bounds of discrete Gaussian tails. Bounds at most scales take well under a microsecond.
//!
//! Every bound has a proved relative error. If the bounds do not decide a comparison with a probability, the bounds
//! of [`super::tail`] decide it. Only additions, multiplications, divisions and square roots are used. IEEE 754
//! rounds each of these to within a relative `2^-53`, on every platform.
//!
//! Let `σ = 1/√(2c)`, `f(x) = exp(-c x²)`, `z = m/σ` and `g = z/σ`. Let `Z` be the sum of `f` over the integers. Mills'
//! ratio is `R(z) = ∫ exp((z² - t²)/2) dt` over `t >= z`.
//!
//! * From `σ = 8` on, `Z = √(π/c) (1 + r)` with `0 < r < 2^-1800` (Poisson summation).
//! * From `σ = 8` on and for `g <= 1`, the sum of `f(j) / f(m)` over `j >= m` is `σ R(z) + E + R_12`, by the
//!   Euler-Maclaurin formula of [`super::tail`]. For `z² >= 50`, `R_12` is at most `2^-30 g^11`, because `He_11(z) <=
//!   z^11` beyond the zeros of this Hermite polynomial. For a smaller z, `R_12` is at most `2^-30 · 2 √(12!) 64 c^6
//!   √(π/2c) / √f(m)`.
//! * Successive convergents of `R(z) = 1/(z + 1/(z + 2/(z + 3/(z + ...))))` are upper and lower bounds (Laplace). Below
//!   3, `R(z) = √(π/2) / f(m) - Σ z^(2n+1) / (2n+1)!!` (Abramowitz and Stegun 7.1.6). The difference is at least a 400th
//!   of the sum.
//! * Otherwise the weights `f(j)` are summed.

#![allow(
    clippy::float_arithmetic,
    reason = "bounds with proved errors; close comparisons are decided exactly"
)]

use super::decay::Decay;

/// `B_2k / (2k)!` as fractions, for `k = 1..=6` (Abramowitz and Stegun, 23.2).
pub(super) const BERNOULLI: [(i64, i64); 6] =
    [(1, 12), (-1, 720), (1, 30_240), (-1, 1_209_600), (1, 47_900_160), (-691, 1_307_674_368_000)];

/// More than the relative error of any bound here. Sums of weights have the largest error: there are at most 64 weights,
/// and their error is below `2^-33`.
const SLACK: f64 = 1.0 / (1 << 30) as f64;
/// Coefficients below `2^-7` belong to scales above 8.
const WIDE_BITS: i64 = -7;
/// The order of the convergents. From `z = 3` on, the relative difference to the next order is below 1e-12.
const CONVERGENTS: u32 = 40;
/// The terms of the series for `z` below 3. The omitted terms are below `2^-100`.
const TERMS: u32 = 60;
/// `2^-30 · 2 √(12!) 64 √(π/2)`, rounded up.
const CRAMER: f64 = 3.28e-3;
/// Weights are summed until a weight is at most this part of the first weight.
const LEAST: f64 = 1.0 / (1_u64 << 40) as f64;
/// Binary places of an exponent.
const PLACES: i64 = 60;
/// `floor(ln 2 · 2^60)`.
const LN2: u128 = 799_144_290_325_165_978;

impl Decay {
    /// Returns whether `self.tail(m) <= p`, which is an upper bound of `P[X >= m]`. Faster than the computation of
    /// the tail.
    #[must_use]
    pub fn tail_is_at_most(&self, m: i64, p: f64) -> bool {
        match self.float_tail(m) {
            Some((_, high)) if high <= p => true,
            Some((low, _)) if low > p => false,
            _ => self.tail(m) <= p,
        }
    }

    /// Returns true only if `P[X >= m] + P[X > m] <= p`. Uses upper bounds of both tails.
    #[must_use]
    pub fn two_tails_are_at_most(&self, m: i64, p: f64) -> bool {
        if let (Some((low, high)), Some((next_low, next_high))) =
            (self.float_tail(m), self.float_tail(m + 1))
        {
            if (high + next_high) * (1.0 + SLACK) <= p {
                return true;
            }
            if (low + next_low) * (1.0 - SLACK) > p {
                return false;
            }
        }
        (self.tail(m) + self.tail(m + 1)).next_up() <= p
    }

    /// Returns a lower and an upper bound of `P[X >= m]`. For most discrete Gaussians they differ by a relative 1e-8 at
    /// most, and are faster than [`Self::tail`].
    #[must_use]
    pub fn tail_bounds(&self, m: i64) -> (f64, f64) {
        if m <= 0 {
            let (low, high) = self.tail_bounds(1_i64.saturating_sub(m));
            return ((1.0 - high).next_down().max(0.0), (1.0 - low).next_up().min(1.0));
        }
        self.float_tail(m).unwrap_or_else(|| {
            let tail = self.tail(m);
            // The least tails are upper bounds only.
            (if tail > 1e-300 { tail * (1.0 - SLACK) } else { 0.0 }, tail)
        })
    }

    /// Returns a lower and an upper bound of `P[X >= m]`, widened by [`SLACK`]. Returns `None` for laws other than
    /// the discrete Gaussian, for tails below about `exp(-700)`, and for `m` outside `1..2^40`.
    fn float_tail(&self, m: i64) -> Option<(f64, f64)> {
        let m = u64::try_from(m).ok().filter(|&m| (1..1 << 40).contains(&m))?;
        if !self.square || self.limit.is_some() {
            return None;
        }
        let first = self.exp_of(u128::from(m).pow(2))?;
        let c = self.float_coefficient();
        let (low, high, least, most) = if self.coefficient.log2_floor() < WIDE_BITS {
            let gradient = 2.0 * c * m as f64;
            let (low, high) = if gradient > 1.0 {
                self.float_weights(m)?
            } else {
                wide_sum(m, c, gradient, first)
            };
            let all = (std::f64::consts::PI / c).sqrt();
            (low, high, all, all)
        } else {
            let (low, high) = self.float_weights(m)?;
            let (least, most) = self.float_weights(0)?;
            (low, high, 2.0 * least - 1.0, 2.0 * most - 1.0)
        };
        Some((first * low / most * (1.0 - SLACK), first * high / least * (1.0 + SLACK)))
    }

    /// Returns bounds of the sum of `f(j) / f(m)` over `j >= m`.
    ///
    /// Ratio `i` of two weights has a relative error of at most `(i + 1) 2^-46`. Weight `i` has a relative error of
    /// at most `(i + 1)² 2^-46`. There are at most 64 weights.
    fn float_weights(&self, m: u64) -> Option<(f64, f64)> {
        let mut ratio = self.exp_of(u128::from(2 * m + 1))?;
        let shrink = self.exp_of(2)?;
        let (mut weight, mut sum) = (1.0, 0.0);
        while weight > LEAST {
            sum += weight;
            weight *= ratio;
            ratio *= shrink;
        }
        // Each further ratio is smaller than the last ratio.
        Some((sum, sum + weight / (1.0 - ratio)))
    }

    fn float_coefficient(&self) -> f64 {
        let (mantissa, exponent) = self.coefficient.parts();
        // The power of two is exact. No scale has an exponent below -1000.
        mantissa as f64 * power_of_two(exponent)
    }

    /// Returns `exp(-c factor)` to within a relative `2^-46`, or `None` if it is below about `exp(-700)`.
    fn exp_of(&self, factor: u128) -> Option<f64> {
        let (mantissa, exponent) = self.coefficient.parts();
        // A factor of more than 64 bits is cut. The exponent is below 2^10, so its error is below 2^-53.
        let cut = (u128::BITS - factor.leading_zeros()).saturating_sub(64);
        let product = (factor >> cut) * u128::from(mantissa);
        let places = exponent + i64::from(cut) + PLACES;
        let units = if places < 0 {
            product.checked_shr(u32::try_from(-places).ok()?).unwrap_or(0)
        } else {
            let places = u32::try_from(places).ok()?;
            if product.leading_zeros() <= places {
                return None;
            }
            product << places
        };
        // The error is one unit here, and one unit for each halving below. In all it is at most 2^-49 of the result.
        let halvings = units / LN2;
        if halvings > 1009 {
            return None;
        }
        let rest = (units % LN2) as f64 / (1_u64 << PLACES) as f64;
        // Horner's rule. The omitted terms are below 2^-80. Each step adds an error of at most 3 · 2^-53, and
        // multiplies the earlier error by at most 0.7.
        let series = (1..=22_u32).rev().fold(1.0, |sum, n| 1.0 - rest / f64::from(n) * sum);
        Some(series * power_of_two(-(halvings as i64)))
    }
}

/// Returns bounds of the sum of `f(j) / f(m)` over `j >= m`, if `σ > 8` and `gradient = 2 c m <= 1`; `first` is `f(m)`.
fn wide_sum(m: u64, c: f64, gradient: f64, first: f64) -> (f64, f64) {
    let deviations = m as f64 * (2.0 * c).sqrt();
    let square = deviations * deviations;
    let (least, most) = if deviations < 3.0 {
        let (mut term, mut sum) = (deviations, 0.0);
        for n in 1..=TERMS {
            sum += term;
            term *= square / f64::from(2 * n + 1);
        }
        let ratio = (std::f64::consts::PI / 2.0).sqrt() / first - sum;
        (ratio, ratio)
    } else {
        (mills(deviations, CONVERGENTS + 1), mills(deviations, CONVERGENTS))
    };
    // `g` holds two successive ratios of derivatives to f(m), without signs; see `integral_tail`.
    let (mut g, mut ends) = ((1.0, gradient), 0.5);
    for (k, (numerator, denominator)) in (0..).zip(BERNOULLI) {
        ends += g.1 * numerator as f64 / denominator as f64;
        for n in [2 * k + 1, 2 * k + 2] {
            g = (g.1, gradient * g.1 - f64::from(n) * 2.0 * c * g.0);
        }
    }
    let remainder = if square >= 50.0 {
        power::<11>(gradient) / f64::from(1 << 30)
    } else {
        CRAMER * power::<5>(c) * (c / first).sqrt()
    };
    let sigma = 1.0 / (2.0 * c).sqrt();
    (sigma * least + ends - remainder, sigma * most + ends + remainder)
}

fn power<const N: usize>(x: f64) -> f64 {
    [x; N].iter().product()
}

/// Returns a convergent of Mills' ratio. It is an upper bound for even orders, and a lower bound for odd orders.
pub(super) fn mills(z: f64, order: u32) -> f64 {
    1.0 / (1..=order).rev().fold(z, |rest, n| z + f64::from(n) / rest)
}

/// Returns `2^exponent`, if it is a normal float.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::DiscreteGaussian;

    fn law(sigma: f64) -> Decay {
        DiscreteGaussian::law(sigma).unwrap()
    }

    /// Scales near the change at 8, and a few scales from the smallest to the largest.
    const SIGMAS: [f64; 19] = [
        0.02, 0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.3, 7.99, 8.01, 11.0, 12.5, 20.0, 50.0, 70.0, 511.0,
        1e4, 1e6, 1e8,
    ];

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn bounds_contain_the_exact_tail_and_are_close() {
        let mut covered = 0;
        for sigma in SIGMAS {
            let law = law(sigma);
            for deviations in
                [1e-9, 0.1, 0.5, 1.0, 2.0, 2.99, 3.01, 4.5, 6.0, 7.05, 7.1, 8.0, 12.0, 20.0, 36.0]
            {
                let m = (deviations * sigma).ceil() as i64;
                let Some((low, high)) = law.float_tail(m) else { continue };
                let exact = law.tail(m);
                assert!(low <= exact && exact <= high, "{sigma} {m}: {low} {exact} {high}");
                assert!(high - low <= 1e-8 * high, "{sigma} {m}: {low} {high}");
                let (low, high) = law.tail_bounds(1 - m);
                assert!(low <= law.tail(1 - m) && 1.0 - exact <= high, "{sigma} {m}: {low} {high}");
                covered += 1;
            }
        }
        assert!(covered > 180, "{covered}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn comparisons_equal_those_of_the_bounds_in_tail() {
        for sigma in SIGMAS {
            let law = law(sigma);
            for deviations in [1.3, 3.0, 5.5, 9.0] {
                let m = (deviations * sigma).ceil() as i64 + 1;
                let (exact, sum) = (law.tail(m), law.tail(m) + law.tail(m + 1));
                for factor in [0.5, 1.0 - 1e-6, 1.0 - 1e-15, 1.0, 1.0 + 1e-15, 1.0 + 1e-6, 2.0] {
                    let p = exact * factor;
                    assert_eq!(law.tail_is_at_most(m, p), exact <= p, "{sigma} {m} {factor}");
                    let p = sum * factor;
                    assert_eq!(
                        law.two_tails_are_at_most(m, p),
                        sum.next_up() <= p,
                        "{sigma} {m} {factor}"
                    );
                }
            }
        }
    }

    #[test]
    fn exponentials_are_within_the_stated_error() {
        for (sigma, factor) in [
            (1.0, 1_u128),
            (1.0, 7),
            (0.1, 13),
            (3.0, 100),
            (1e4, 1 << 30),
            (1e9, 1 << 62),
            (1e9, (1 << 69) + 12345),
        ] {
            let law = law(sigma);
            let exact = (-0.5 / (sigma * sigma) * factor as f64).exp();
            assert!((law.exp_of(factor).unwrap() / exact - 1.0).abs() < 1e-12, "{sigma} {factor}");
        }
        assert_eq!(law(0.1).exp_of(15), None);
        assert_eq!(law(1e-3).exp_of(1 << 62), None);
    }
}
