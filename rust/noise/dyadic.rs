//! Exact dyadic numbers `m 2^e` with integers `m` and `e`, and rigorous bounds of `exp(-x) 2^s` at any precision.

use std::ops::{Add, Mul, Sub};
use std::sync::OnceLock;

use num_bigint::{BigInt, Sign};

/// An exact number `mantissa * 2^exponent`.
#[derive(Debug, Clone)]
pub struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl Dyadic {
    /// Create `mantissa * 2^exponent`.
    #[must_use]
    pub fn new(mantissa: impl Into<BigInt>, exponent: i64) -> Self {
        Self { mantissa: mantissa.into(), exponent }
    }

    /// Convert a finite float exactly. A float that is not finite becomes zero.
    #[must_use]
    pub fn from_f64(value: f64) -> Self {
        if !value.is_finite() {
            return Self::new(0, 0);
        }
        let bits = value.to_bits();
        let field = ((bits >> 52) & 0x7ff) as i64;
        let fraction = (bits & ((1 << 52) - 1)) as i64;
        let (mantissa, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        Self::new(if value < 0.0 { -mantissa } else { mantissa }, exponent)
    }

    /// Return `1 / self` rounded down to 64 significant bits; `self` must be positive.
    #[must_use]
    pub fn reciprocal(&self) -> Self {
        let places = self.mantissa.bits() + 63;
        let quotient = (BigInt::from(1) << places) / &self.mantissa;
        // The quotient has 64 bits, or 65 if the mantissa is a power of two.
        Self::new(quotient, -(places as i64) - self.exponent).truncated()
    }

    /// Round down to 64 significant bits; `self` must be positive.
    #[must_use]
    pub fn truncated(self) -> Self {
        let excess = self.mantissa.bits().saturating_sub(64);
        Self::new(self.mantissa >> excess, self.exponent + excess as i64)
    }

    /// Return mantissa and exponent of a non-negative number with at most 64 significant bits.
    #[must_use]
    pub fn parts(&self) -> (u64, i64) {
        let zeros = self.mantissa.trailing_zeros().unwrap_or(0);
        let mantissa = u64::try_from(&self.mantissa >> zeros).unwrap_or(u64::MAX);
        (mantissa, self.exponent + zeros as i64)
    }

    /// Return the largest `n` with `2^n <= self`; `self` must be positive.
    #[must_use]
    pub fn log2_floor(&self) -> i64 {
        self.mantissa.bits() as i64 - 1 + self.exponent
    }

    /// Return whether the number is below zero.
    #[must_use]
    #[cfg(test)]
    pub fn is_negative(&self) -> bool {
        self.mantissa.sign() == Sign::Minus
    }

    /// Return `floor(self * 2^bits)`.
    #[must_use]
    pub fn floor_scaled(&self, bits: i64) -> BigInt {
        shift(self.mantissa.clone(), self.exponent + bits)
    }

    fn aligned(self, other: Self) -> (BigInt, BigInt, i64) {
        let exponent = self.exponent.min(other.exponent);
        let left = self.mantissa << (self.exponent - exponent).unsigned_abs();
        let right = other.mantissa << (other.exponent - exponent).unsigned_abs();
        (left, right, exponent)
    }
}

impl Add for Dyadic {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (left, right, exponent) = self.aligned(other);
        Self::new(left + right, exponent)
    }
}

impl Sub for Dyadic {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        let (left, right, exponent) = self.aligned(other);
        Self::new(left - right, exponent)
    }
}

impl Mul for Dyadic {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }
}

/// Return integers `low <= exp(-x) 2^(s + bits) <= high`, at most two units apart for most `x`.
///
/// Does the same as [`exp_neg_bounds_of`], for a dyadic `x`.
#[must_use]
pub fn exp_neg_bounds(x: &Dyadic, s: i64, bits: u32) -> (BigInt, BigInt) {
    if x.mantissa == BigInt::ZERO && s + i64::from(bits) >= 0 {
        // exp(0) is exactly one. With equal bounds, a draw needs no further digits of its uniform number.
        let one = BigInt::from(1) << (s + i64::from(bits)).unsigned_abs();
        return (one.clone(), one);
    }
    exp_neg_bounds_of(|places| x.floor_scaled(places), s, bits)
}

/// Return integers `low <= exp(-x) 2^(s + bits) <= high` for a real number given by `floor(x 2^places)`.
///
/// Write `x = n ln 2 + y` with `0 <= y < ln 2`, and sum the series of `exp(-y)` in fixed point with `p` fractional
/// bits. In units of `2^-p`, the error of `x` is at most one. The error of `n ln 2` is at most `2 n p`, because the
/// series of `ln 2` has fewer than `p` terms. The error of each term of the series of `exp` is at most two. The total
/// error is below `2^(48 + integer bits of x)` units for every `p < 2^32`. A further 64 guard bits keep the bounds
/// tight.
#[must_use]
fn exp_neg_bounds_of(x: impl Fn(i64) -> BigInt, s: i64, bits: u32) -> (BigInt, BigInt) {
    let error_bits = 48 + x(0).bits() as i64 + 1;
    let precision = i64::from(bits) + error_bits + 64;
    let ln2 = ln2_scaled(precision);
    let scaled = x(precision);
    let mut n = &scaled / &ln2;
    if scaled.sign() == Sign::Minus {
        n -= 1;
    }
    let Ok(n) = i64::try_from(&n) else {
        // The number of halvings exceeds 64 bits, so the result is far below one unit. No caller needs a huge
        // negative x.
        return (BigInt::ZERO, BigInt::from(1));
    };
    if n > i64::from(bits) + s + 2 {
        return (BigInt::ZERO, BigInt::from(1));
    }
    let y = scaled - n * &ln2;
    let sum = exp_neg_series(&y, precision);
    let error = BigInt::from(1) << error_bits.unsigned_abs();
    let down = i64::from(bits) + s - n - precision;
    let low = shift((&sum - &error).max(BigInt::ZERO), down);
    (low, shift(sum + error, down) + 1)
}

/// Return `floor(value * 2^bits)` for a shift in either direction.
fn shift(value: BigInt, bits: i64) -> BigInt {
    match bits {
        0.. => value << bits.unsigned_abs(),
        _ if bits.unsigned_abs() > value.bits() + 1 => {
            BigInt::from(if value.sign() == Sign::Minus { -1 } else { 0 })
        }
        _ => value >> bits.unsigned_abs(),
    }
}

/// Binary places of the constants `ln 2` and `π` in memory. Most tails need the fewer places, which take microseconds to
/// compute. Tails down to the least float need fewer than the other number.
const KEPT: [u32; 2] = [512, 4096];

/// Returns an integer below `2^precision ln 2`, by at most `2 precision` units.
fn ln2_scaled(precision: i64) -> BigInt {
    static LN2: [OnceLock<BigInt>; 2] = [const { OnceLock::new() }; 2];
    for (kept, value) in KEPT.map(i64::from).into_iter().zip(&LN2) {
        if precision <= kept {
            return value.get_or_init(|| ln2_series(kept)) >> (kept - precision);
        }
    }
    ln2_series(precision)
}

/// Computes [`ln2_scaled`] from the series of `ln 2 = 2 atanh(1/3)`.
fn ln2_series(precision: i64) -> BigInt {
    let mut power: BigInt = (BigInt::from(2) << precision.unsigned_abs()) / 3;
    let mut sum = BigInt::ZERO;
    let mut divisor = 1_u64;
    while power.sign() == Sign::Plus {
        sum += &power / divisor;
        power /= 9;
        divisor += 2;
    }
    sum
}

/// Returns integers `low <= π 2^places <= high`.
#[must_use]
pub fn pi_bounds(places: u32) -> (BigInt, BigInt) {
    static PI: [OnceLock<(BigInt, BigInt)>; 2] = [const { OnceLock::new() }; 2];
    for (kept, value) in KEPT.into_iter().zip(&PI) {
        if places <= kept {
            let (low, high) = value.get_or_init(|| pi_series(kept));
            return (low >> (kept - places), (high >> (kept - places)) + 1);
        }
    }
    pi_series(places)
}

/// Computes [`pi_bounds`] with Machin's formula `π = 16 atan(1/5) - 4 atan(1/239)`.
fn pi_series(places: u32) -> (BigInt, BigInt) {
    let guard = 32;
    let one = BigInt::from(1) << (places + guard);
    let atan = |n: u32| {
        let (mut power, mut sum, mut k) = (&one / n, BigInt::ZERO, 1_i64);
        while power.sign() == Sign::Plus {
            sum += &power / k;
            power /= n * n;
            k = if k > 0 { -(k + 2) } else { 2 - k };
        }
        sum
    };
    // There are fewer than 2^16 terms. Each term errs by at most two units, and is multiplied by at most sixteen.
    let pi = (atan(5) << 4) - (atan(239) << 2);
    let error = BigInt::from(1) << 24;
    ((&pi - &error) >> guard, ((pi + error) >> guard) + 1)
}

/// Sum the series of `exp(-y)` for `0 <= y < 1`. `y` and the sum have `precision` fractional bits.
fn exp_neg_series(y: &BigInt, precision: i64) -> BigInt {
    let mut term = BigInt::from(1) << precision.unsigned_abs();
    let mut sum = BigInt::ZERO;
    let mut k = 0_u64;
    while term.sign() != Sign::NoSign {
        if k.is_multiple_of(2) {
            sum += &term;
        } else {
            sum -= &term;
        }
        k += 1;
        term = ((term * y) >> precision.unsigned_abs()) / k;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds_as_f64(x: f64, s: i64) -> (f64, f64) {
        let (low, high) = exp_neg_bounds(&Dyadic::from_f64(x), s, 60);
        let scale = (-60.0_f64).exp2();
        let number = |v: BigInt| i128::try_from(v).unwrap() as f64 * scale;
        (number(low), number(high))
    }

    #[test]
    fn bounds_enclose_the_exponential_tightly() {
        for x in [0.0, 1e-300, 0.1, 0.5, std::f64::consts::LN_2, 1.0, 10.0, 40.0, -0.3, -20.0] {
            let (low, high) = bounds_as_f64(x, 0);
            let truth = (-x).exp();
            assert!(low <= truth * (1.0 + 1e-15) && truth * (1.0 - 1e-15) <= high, "{x}");
            assert!(high - low < 1e-17 + truth * 4e-16, "{x}");
        }
    }

    #[test]
    fn s_multiplies_the_bounds_by_a_power_of_two() {
        let (low, _) = bounds_as_f64(700.0, 1010);
        let truth = (1010.0 * std::f64::consts::LN_2 - 700.0).exp();
        assert!((low / truth - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_first_digits_of_one_over_e_are_right() {
        // floor(2^128 / e), from the decimal expansion of e.
        let (low, high) = exp_neg_bounds(&Dyadic::new(1, 0), 0, 128);
        let truth = "125182886983370532117250726298150828301".parse::<BigInt>().unwrap();
        assert!(low <= truth && truth <= high && &high - &low <= BigInt::from(2));
    }

    #[test]
    fn the_first_digits_of_pi_are_right() {
        // floor(2^128 π), from the hexadecimal expansion of π.
        let truth = "1069028584064966747859680373161870783300".parse::<BigInt>().unwrap();
        let (low, high) = pi_bounds(128);
        assert!(low <= truth && truth <= high && high - low <= BigInt::from(2));
    }

    #[test]
    fn floats_are_converted_exactly() {
        let third = Dyadic::from_f64(1.0 / 3.0);
        let back = third.clone() + Dyadic::from_f64(-1.0 / 3.0);
        assert_eq!(back.mantissa, BigInt::ZERO);
        assert_eq!(third.floor_scaled(2), BigInt::from(1));
        assert_eq!(third.parts(), (0x0015_5555_5555_5555, -54));
        let five = Dyadic::from_f64(2.5) * Dyadic::new(2, 0) - Dyadic::from_f64(5e-324);
        assert_eq!(five.floor_scaled(0), BigInt::from(4));
    }

    #[test]
    fn reciprocals_are_rounded_down_to_64_bits() {
        for value in [1.0, 3.0, 0.1, 1e-6, 1e18, 5e-324, f64::MAX] {
            let (number, one) = (Dyadic::from_f64(value), Dyadic::new(1, 0));
            let reciprocal = number.reciprocal();
            let (mantissa, exponent) = reciprocal.parts();
            let unit = Dyadic::new(1, reciprocal.log2_floor() - 63);
            assert_eq!(
                Dyadic::new(mantissa, exponent).floor_scaled(9_000),
                reciprocal.floor_scaled(9_000)
            );
            assert!(!(one.clone() - reciprocal.clone() * number.clone()).is_negative());
            assert!((one - (reciprocal + unit) * number).is_negative());
        }
    }
}
