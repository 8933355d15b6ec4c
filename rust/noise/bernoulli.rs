//! A coin that lands heads with probability exactly `exp(-x) 2^s`: a lazily refined uniform number is
//! compared with the probability, and bits are read until the comparison cannot change.

use num_bigint::BigInt;
use rand::Rng;

use super::dyadic::{Dyadic, exp_neg_bounds};

/// What the platform's `exp` and the conversion of 64 random bits may err by, generously.
const FLOAT_ERROR: f64 = 1.0 / (1_u64 << 47) as f64;

/// True with probability exactly `exp(-x) 2^s`, which must lie in `[0, 1]`.
///
/// `approximation` is `x - s ln 2` up to an error of at most `slack`; `exact` gives `(x, s)` and is
/// called with probability about `slack + 2^-46`. The bits read do not depend on the approximation:
/// as many 64-bit words as it takes to tell the uniform number from the probability.
pub fn bernoulli_exp<R: Rng + ?Sized>(
    rng: &mut R,
    approximation: f64,
    slack: f64,
    exact: impl FnOnce() -> (Dyadic, i64),
) -> bool {
    let word = rng.next_u64();
    let uniform = (word >> 11) as f64 / (1_u64 << 53) as f64;
    let probability = (-approximation).exp();
    // exp(slack) - 1 <= 2 slack up to 1, and beyond that nothing is answered here.
    let error = 2.0 * slack + FLOAT_ERROR;
    if uniform < probability - error {
        return true;
    }
    if uniform > probability + error {
        return false;
    }
    let (x, s) = exact();
    compare_exactly(rng, word, &x, s)
}

/// Goes on reading words until the uniform number is below or above `exp(-x) 2^s`.
fn compare_exactly<R: Rng + ?Sized>(rng: &mut R, word: u64, x: &Dyadic, s: i64) -> bool {
    let mut prefix = BigInt::from(word);
    let mut bits = 64;
    loop {
        // 64 bits beyond the prefix make the bounds of the probability tighter than any prefix.
        let (low, high) = exp_neg_bounds(x, s, bits + 64);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SecureRng;

    fn heads(x: f64, slack: f64, draws: u32) -> u32 {
        let mut rng = SecureRng::seeded(11);
        let coin = |_| bernoulli_exp(&mut rng, x, slack, || (Dyadic::from_f64(x), 0));
        (0..draws).map(coin).map(u32::from).sum()
    }

    #[test]
    fn the_exact_path_decides_as_the_fast_path() {
        for x in [0.0, 0.01, 0.5, 1.0, 3.0] {
            assert_eq!(heads(x, 0.0, 2_000), heads(x, 10.0, 2_000));
        }
    }

    #[test]
    fn heads_come_as_often_as_they_should() {
        let draws = 1_000_000;
        for x in [0.05_f64, 0.5, 1.0, 2.5] {
            let p = (-x).exp();
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(heads(x, 0.0, draws)) - p * f64::from(draws)).abs() < 5.0 * sd);
        }
        assert_eq!(heads(0.0, 0.0, 1_000), 1_000);
    }
}
