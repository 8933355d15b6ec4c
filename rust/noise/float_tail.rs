//! Floating-point bounds of discrete Gaussian tails. Bounds at most scales take well under a microsecond.
//!
//! Every bound has a proved relative error. If the bounds do not decide a comparison with a probability, the bounds
//! of [`super::tail`] decide it. Only additions, multiplications, divisions and square roots are used. IEEE 754
//! rounds each of these to within a relative `2^-53`, on every platform.
//!
//! Let `σ = 1/√(2c)` and `f(x) = exp(-c x²)`. Let `Z` be the sum of `f` over the integers. Mills' ratio is
//! `R(z) = ∫ exp((z² - t²)/2) dt` over `t >= z`.
//!
//! * From `σ = 64` on, `Z = √(π/c) (1 + r)` with `0 < r < 2^-100000` (Poisson summation). Beyond `σ`, `f` is convex. So
//!   the midpoint rule gives at most the integral, and the trapezoid rule at least the integral:
//!   `∫ f(x) dx + f(m)/2 <= Σ f(j) <= ∫ f(x) dx`, where the sum runs over `j >= m`, and the integrals begin at `m` and
//!   at `m - 1/2`.
//! * Successive convergents of `R(z) = 1/(z + 1/(z + 2/(z + 3/(z + ...))))` are upper and lower bounds (Laplace).
//! * Below `σ = 64`, the weights `f(j)` are summed.

#![allow(
    clippy::float_arithmetic,
    reason = "bounds with proved errors; close comparisons are decided exactly"
)]

use super::decay::Decay;

/// More than the relative error of any bound here. Sums of `2^10` weights have the largest error, which is below
/// `2^-26`.
const SLACK: f64 = 1.0 / (1 << 24) as f64;
/// Coefficients below `2^-13` belong to scales of 64 and more.
const WIDE_BITS: i64 = -13;
/// The order of the convergents. The relative difference to the next order is 3e-5 at `z = 1`, 2e-7 at 1.5 and 1e-9
/// at 2.
const CONVERGENTS: u32 = 40;
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

    /// Returns a lower and an upper bound of `P[X >= m]`, widened by [`SLACK`]. Returns `None` for laws other than
    /// the discrete Gaussian, for tails below about `exp(-700)`, and for `m` outside `1..2^31`. From `σ = 64` on,
    /// also returns `None` for `m` up to about σ.
    fn float_tail(&self, m: i64) -> Option<(f64, f64)> {
        let m = u64::try_from(m).ok().filter(|&m| (1..1 << 31).contains(&m))?;
        if !self.square || !self.mirrored || self.limit.is_some() {
            return None;
        }
        let (low, high) = if self.coefficient.log2_floor() < WIDE_BITS {
            self.wide_float_tail(m)?
        } else {
            self.summed_float_tail(m)?
        };
        Some((low * (1.0 - SLACK), high * (1.0 + SLACK)))
    }

    fn wide_float_tail(&self, m: u64) -> Option<(f64, f64)> {
        let c = self.float_coefficient();
        let inverse_sigma = (2.0 * c).sqrt();
        if (m as f64 - 1.0) * inverse_sigma < 1.001 {
            return None;
        }
        let at = self.exp_of(u128::from(m).pow(2), 0)?;
        let before = self.exp_of(u128::from(2 * m - 1).pow(2), -2)?;
        let root_pi = std::f64::consts::PI.sqrt();
        let root_two_pi = (2.0 * std::f64::consts::PI).sqrt();
        let least = mills(m as f64 * inverse_sigma, CONVERGENTS + 1);
        let most = mills((m as f64 - 0.5) * inverse_sigma, CONVERGENTS);
        Some((at * (least / root_two_pi + 0.5 * c.sqrt() / root_pi), before * most / root_two_pi))
    }

    fn summed_float_tail(&self, m: u64) -> Option<(f64, f64)> {
        let first = self.exp_of(u128::from(m).pow(2), 0)?;
        let (low, high) = self.float_weights(m)?;
        let (least, most) = self.float_weights(0)?;
        Some((first * low / (2.0 * most - 1.0), first * high / (2.0 * least - 1.0)))
    }

    /// Returns bounds of the sum of `f(j) / f(m)` over `j >= m`.
    ///
    /// Ratio `i` of two weights has a relative error of at most `(i + 1) 2^-46`. Weight `i` has a relative error of
    /// at most `(i + 1)² 2^-46`. Below `σ = 64` there are at most `2^10` weights.
    fn float_weights(&self, m: u64) -> Option<(f64, f64)> {
        let mut ratio = self.exp_of(u128::from(2 * m + 1), 0)?;
        let shrink = self.exp_of(2, 0)?;
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

    /// Returns `exp(-c factor 2^shift)` to within a relative `2^-46`, or `None` if it is below about `exp(-700)`.
    fn exp_of(&self, factor: u128, shift: i64) -> Option<f64> {
        let (mantissa, exponent) = self.coefficient.parts();
        let product = factor.checked_mul(u128::from(mantissa))?;
        let places = exponent + shift + PLACES;
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

/// Returns a convergent of Mills' ratio. It is an upper bound for even orders, and a lower bound for odd orders.
fn mills(z: f64, order: u32) -> f64 {
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

    /// Scales near the change at 64, and a few scales from the smallest to the largest.
    const SIGMAS: [f64; 19] = [
        0.02, 0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.3, 8.0, 20.0, 50.0, 63.9, 64.1, 70.0, 100.0, 511.0,
        1e4, 1e6, 1e8,
    ];

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn bounds_contain_the_exact_tail_and_are_close() {
        let mut covered = 0;
        for sigma in SIGMAS {
            let law = law(sigma);
            for deviations in [0.5, 1.0, 1.2, 2.0, 3.0, 4.5, 6.0, 8.0, 12.0, 20.0, 36.0] {
                let m = (deviations * sigma).ceil() as i64;
                let Some((low, high)) = law.float_tail(m) else { continue };
                let exact = law.tail(m);
                assert!(low <= exact && exact <= high, "{sigma} {m}: {low} {exact} {high}");
                let step = (-(deviations + 1.0) / sigma.max(1.0)).exp();
                assert!(high - low <= (1.0 - step).max(3e-5) * high, "{sigma} {m}: {low} {high}");
                covered += 1;
            }
        }
        assert!(covered > 140, "{covered}");
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
        for (sigma, factor) in
            [(1.0, 1_u128), (1.0, 7), (0.1, 13), (3.0, 100), (1e4, 1 << 30), (1e9, 1 << 62)]
        {
            let law = law(sigma);
            let exact = (-0.5 / (sigma * sigma) * factor as f64).exp();
            assert!(
                (law.exp_of(factor, 0).unwrap() / exact - 1.0).abs() < 1e-12,
                "{sigma} {factor}"
            );
        }
        assert_eq!(law(0.1).exp_of(15, 0), None);
        assert_eq!(law(1e-3).exp_of(1 << 62, 0), None);
    }
}
