//! Exact Bernoulli draws. A draw compares a uniform number with a probability. Bits of the number are read until
//! further bits cannot change the result.
//!
//! A fast comparison knows the probability to within an error. If this error is too large, an exact comparison computes
//! the probability to any precision. The number of bits read does not depend on which comparison decides.

use num_bigint::BigInt;
use rand::Rng;

use super::dyadic::{Dyadic, exp_neg_bounds};
use super::fixed::Fixed;

/// The first bits of a uniform number in `[0, 1)`, stored in the upper bits of a word.
#[derive(Debug, Clone, Copy)]
pub struct Prefix {
    word: u64,
    bits: u32,
}

impl Prefix {
    /// Draw a prefix of 64 fresh bits.
    pub fn draw<R: Rng + ?Sized>(rng: &mut R) -> Self {
        Self { word: rng.next_u64(), bits: 64 }
    }

    /// Take the upper `bits` bits of a word; `bits` is 1 to 64.
    #[must_use]
    #[inline]
    pub fn new(word: u64, bits: u32) -> Self {
        Self { word: word & !(u64::MAX >> 1 >> (bits - 1)), bits }
    }

    /// Return the smallest possible value of the number, in units of `2^-64`.
    #[must_use]
    pub fn first(self) -> u64 {
        self.word
    }

    /// Return the largest possible value of the number's first 64 bits, in the same units.
    #[must_use]
    #[inline]
    pub fn last(self) -> u64 {
        self.word | (u64::MAX >> 1 >> (self.bits - 1))
    }

    /// Return whether the number is below a probability, which is known to within `error`. Both are in units of
    /// `2^-64`. Return `None` if the bits read so far do not decide.
    #[must_use]
    pub fn below(self, probability: u64, error: u64) -> Option<bool> {
        if self.last() < probability.saturating_sub(error) {
            return Some(true);
        }
        (self.word >= probability.saturating_add(error) && probability.checked_add(error).is_some())
            .then_some(false)
    }

    /// Return whether the number is below a probability `p`. Read words of 64 bits until the result is certain.
    /// `bounds(bits)` must return integers `low <= p 2^bits <= high` whose difference does not grow with `bits`.
    #[cold]
    pub fn below_exactly<R: Rng + ?Sized>(
        self,
        rng: &mut R,
        bounds: impl Fn(u32) -> (BigInt, BigInt),
    ) -> bool {
        let mut prefix = BigInt::from(self.word.checked_shr(64 - self.bits).unwrap_or(0));
        let mut bits = self.bits;
        loop {
            // The bounds have 64 bits more than the prefix, so their difference is below one unit of the prefix.
            let (low, high) = bounds(bits + 64);
            if (&prefix + 1_u32) << 64 <= low {
                return true;
            }
            if &prefix << 64 >= high {
                return false;
            }
            prefix = (prefix << 64) + rng.next_u64();
            bits += 64;
        }
    }
}

/// Return true with probability exactly `exp(-x) 2^s`, which must lie in `[0, 1]`.
///
/// `rest` approximates `x - s ln 2`. `exact` returns `(x, s)`, and is called with a probability of about `2^-58`.
pub fn bernoulli_exp<R: Rng + ?Sized>(
    rng: &mut R,
    rest: Fixed,
    exact: impl FnOnce() -> (Dyadic, i64),
) -> bool {
    let prefix = Prefix::draw(rng);
    bernoulli_exp_from(rng, prefix, rest, exact)
}

/// Do the same as [`bernoulli_exp`], but use the bits of `prefix` as the first bits of the uniform number.
pub fn bernoulli_exp_from<R: Rng + ?Sized>(
    rng: &mut R,
    prefix: Prefix,
    rest: Fixed,
    exact: impl FnOnce() -> (Dyadic, i64),
) -> bool {
    let (probability, error) = rest.exp_neg();
    prefix.below(probability, error).unwrap_or_else(|| {
        let (x, s) = exact();
        prefix.below_exactly(rng, |bits| exp_neg_bounds(&x, s, bits))
    })
}

/// Draw a uniform integer below `n` by rejection; `n` must be above zero.
pub fn uniform_below<R: Rng + ?Sized>(rng: &mut R, n: u64) -> u64 {
    let mask = u64::MAX >> (n | 1).leading_zeros();
    loop {
        let draw = rng.next_u64() & mask;
        if draw < n {
            return draw;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::{SecureRng, repetitions};

    fn count_heads(x: f64, error: u64, draws: u32) -> u32 {
        let mut rng = SecureRng::seeded(11);
        let x = Dyadic::from_f64(x);
        let rest = Fixed { error, ..Fixed::from(&x) };
        let coin = |_| bernoulli_exp(&mut rng, rest, || (x.clone(), 0));
        (0..draws).map(coin).map(u32::from).sum()
    }

    #[test]
    fn the_exact_path_agrees_with_the_fast_path() {
        for x in [0.0, 0.01, 0.5, 1.0, 3.0, 100.0] {
            let draws = repetitions(2_000);
            assert_eq!(count_heads(x, 1, draws), count_heads(x, u64::MAX, draws));
        }
    }

    #[test]
    fn the_share_of_heads_matches_the_probability() {
        let draws = repetitions(1_000_000);
        for x in [0.05_f64, 0.5, 1.0, 2.5] {
            let p = (-x).exp();
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(count_heads(x, 1, draws)) - p * f64::from(draws)).abs() < 5.0 * sd);
        }
        assert_eq!(count_heads(0.0, 1, 1_000), 1_000);
    }
}
