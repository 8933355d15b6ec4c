//! Fixed-point numbers with 64 fractional bits and a rigorous error bound, without floating point.

use super::dyadic::Dyadic;

/// `floor(2^64 ln 2)`.
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
/// The next 64 bits of `ln 2`.
const LN_2_LOW: u64 = 0xc9e3_b398_03f2_f6af;
/// The fractional part of `1 / ln 2`, in units of `2^-64`, rounded down.
const LOG2_E: u64 = 0x7154_7652_b82f_e177;

/// The largest error of [`exp_neg`], in units of `2^-64`, for an exact argument.
pub const EXP_ERROR: u64 = 1 << 5;

/// A real number known to within `error` units of `2^-64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// The number times `2^64`.
    pub value: i128,
    /// The largest error, in the same units.
    pub error: u64,
}

impl Fixed {
    /// Return `factor * mantissa 2^exponent`, at most one unit below the exact product. The product must lie below
    /// `2^62`.
    #[must_use]
    pub fn product(factor: i64, mantissa: u64, exponent: i64) -> Self {
        let product = i128::from(factor) * i128::from(mantissa);
        let places = exponent + 64;
        let value = match places {
            0.. => product << places,
            -126..0 => product >> -places,
            _ => product >> 127,
        };
        Self { value, error: 1 }
    }

    /// Return the difference. Its error is the sum of both errors.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { value: self.value - other.value, error: self.error + other.error }
    }

    /// Return an `n` such that `x - n ln 2` is certainly at least zero. This difference exceeds `ln 2` by at most
    /// about the error and `|x| + 2` units.
    #[must_use]
    pub fn halvings(self) -> i64 {
        let least = self.value - i128::from(self.error);
        // x / ln 2 = x + x (1/ln 2 - 1). Each part is rounded down. The slack covers the rounding of LOG2_E.
        let high = (least >> 64) * i128::from(LOG2_E);
        let low = (u128::from(least as u64) * u128::from(LOG2_E)) >> 64;
        let slack = (least >> 64).unsigned_abs() as i128 + 2;
        ((least + high + low as i128 - slack) >> 64) as i64
    }

    /// Return the number minus `n ln 2`, for `|n| < 2^47`.
    #[must_use]
    pub fn minus_ln2(self, n: i64) -> Self {
        let n = i128::from(n);
        let product = n * i128::from(LN_2) + ((n * i128::from(LN_2_LOW)) >> 64);
        Self { value: self.value - product, error: self.error + 2 }
    }

    /// Return `exp(-x)` in units of `2^-64`, and a bound of its error. A negative `x` counts as zero.
    #[must_use]
    pub fn exp_neg(self) -> (u64, u64) {
        let x = self.value.max(0).unsigned_abs();
        // The derivative of exp(-x) is at most one.
        (exp_neg(x), EXP_ERROR.saturating_add(self.error))
    }
}

impl From<&Dyadic> for Fixed {
    fn from(number: &Dyadic) -> Self {
        let value = i128::try_from(number.floor_scaled(64)).unwrap_or(i128::MAX >> 1);
        Self { value, error: 1 }
    }
}

/// Return `2^64 exp(-x / 2^64)` to within [`EXP_ERROR`]. The result is below `2^64`.
fn exp_neg(x: u128) -> u64 {
    // The quotient is at most one too small. Then y is below 2 ln 2, and the branch below corrects it.
    let mut n = x / (u128::from(LN_2) + 1);
    if n > 63 {
        return 0;
    }
    let mut y = x - ((n * (u128::from(LN_2) << 6 | u128::from(LN_2_LOW >> 58))) >> 6);
    if y >= u128::from(LN_2) {
        y -= u128::from(LN_2);
        n += 1;
    }
    let y = u64::try_from(y).unwrap_or(u64::MAX);
    // Horner's rule for the series 1 - y (1 - y/2 (1 - y/3 (...))), in units of 2^-63. Each step errs by at most two
    // units, and the next step multiplies this error by y/k < 0.7. The sum of the omitted terms is below 2^-70.
    let one = 1_u64 << 63;
    let mut sum = one;
    for k in (1..=20).rev() {
        let product = ((u128::from(y) * u128::from(sum)) >> 64) as u64;
        sum = one - product / k;
    }
    (u128::from(sum) << 1).min(u128::from(u64::MAX)) as u64 >> n.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::dyadic::exp_neg_bounds;
    use crate::random::rng::repetitions;
    use num_bigint::BigInt;

    #[test]
    fn the_exponential_is_within_its_stated_error() {
        for i in 0..u64::from(repetitions(20_000)) {
            let x = u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(i % 60);
            let (low, high) = exp_neg_bounds(&Dyadic::new(x, -64), 0, 64);
            let value = BigInt::from(exp_neg(x));
            assert!(&value + EXP_ERROR >= high && value <= low + EXP_ERROR, "{x}");
        }
        assert_eq!(exp_neg(0), u64::MAX);
        assert_eq!(exp_neg(u128::MAX >> 1), 0);
    }

    #[test]
    fn the_rest_after_the_halvings_is_small_and_not_negative() {
        for i in (0..20_000_i128).step_by(20_000 / repetitions(20_000) as usize) {
            let value = (i - 10_000) * 0x0123_4567_89ab_cdef_0123_4567 + i;
            let x = Fixed { value, error: 1 };
            let rest = x.minus_ln2(x.halvings());
            assert!(
                rest.value >= rest.error.into() && rest.value < (i128::from(LN_2) + (1 << 30)),
                "{value}"
            );
        }
    }

    #[test]
    fn products_are_rounded_down() {
        let third = Dyadic::from_f64(1.0 / 3.0);
        let (mantissa, exponent) = third.parts();
        for factor in [0_i64, 1, 7, -7, 1 << 40] {
            let exact = (third.clone() * Dyadic::new(factor, 0)).floor_scaled(64);
            assert_eq!(BigInt::from(Fixed::product(factor, mantissa, exponent).value), exact);
        }
        assert_eq!(Fixed::product(5, 1, -1000).value, 0);
    }
}
