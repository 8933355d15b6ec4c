//! Gumbel noise in floating point, `G = -ln E` with `E = -ln U` for a uniform number U. NEVER use this noise for a
//! published count.
//!
//! A random bit sets `U` to `u` or `1 - u`, for a number `u` that is uniform below one half. The smallest `u` is
//! about `2^-960`, so both tails are as precise as the middle. The logarithms use only operations that every
//! processor rounds in the same way, and that vectorise.
//!
//! The result differs from the exact result for the drawn digits by at most `2^-49 (|G| + 1)`. The relative error of
//! `u` is at most `2^-52`, so that of `E` is at most `1.45 2^-52`. The relative error of [`ln_1p`] is at most `1.6
//! 2^-52`, plus less than `2^-60` for the omitted terms. Each sum with a multiple of `ln 2` adds at most `2^-53` of
//! either term.
//!
//! A word is 64 random bits.
#![allow(clippy::float_arithmetic, reason = "Gumbel noise is floating point by design")]
#![allow(clippy::inline_always, reason = "only inlined code is compiled for wide vector units")]

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

use pulp::{Arch, Simd, WithSimd};
use rand::Rng;

use crate::random::rng::SecureRng;

/// A word below this value has too few significant digits for a full mantissa.
const LEAST: u64 = 1 << 53;
/// The largest number of further words of one draw.
const MORE: usize = 14;
/// The place value of the last of 64 digits.
const PLACE: f64 = 1.0 / (1_u128 << 64) as f64;

/// Draw one value of scale one.
pub fn float_gumbel<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    let word = rng.next_u64();
    if word >= LEAST { from_word(word) } else { from_tail(word, rng) }
}

/// Fill `out` with the same values as repeated draws times the scale, in bulk.
pub fn fill_float_gumbel(scale: f64, rng: &mut SecureRng, out: &mut [f64]) {
    let mut filled = 0;
    while filled < out.len() {
        let words = rng.upcoming().as_chunks().0;
        let drawn = Arch::new().dispatch(Block { scale, words, out: &mut out[filled..] });
        rng.skip(8 * drawn);
        filled += drawn;
        if let Some(slot) = out.get_mut(filled) {
            *slot = scale * float_gumbel(rng);
            filled += 1;
        }
    }
}

/// Buffered words, and the output for their draws.
struct Block<'a> {
    scale: f64,
    words: &'a [[u8; 8]],
    out: &'a mut [f64],
}

impl WithSimd for Block<'_> {
    /// The number of valid draws. All draws before the first word with too few digits are valid.
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        let mut short = false;
        for (slot, word) in self.out.iter_mut().zip(self.words) {
            let word = u64::from_le_bytes(*word);
            short |= word < LEAST;
            *slot = self.scale * from_word(word);
        }
        let ready = self.words.len().min(self.out.len());
        let all = &self.words[..ready];
        if short {
            all.iter().take_while(|word| u64::from_le_bytes(**word) >= LEAST).count()
        } else {
            ready
        }
    }
}

/// Convert one word to a draw. The last bit chooses `u` or `1 - u`, and the other 63 bits are the digits of `u`.
#[inline(always)]
fn from_word(word: u64) -> f64 {
    gumbel((word >> 1) as f64 * PLACE, word & 1 == 1)
}

/// Convert a word with too few digits to a draw. Read further digits until there are enough.
#[cold]
fn from_tail<R: Rng + ?Sized>(word: u64, rng: &mut R) -> f64 {
    let (mut digits, mut place) = (u128::from(word >> 1), PLACE);
    for _ in 0..MORE {
        if digits < 1 << 52 {
            digits = digits << 64 | u128::from(rng.next_u64());
            place *= PLACE;
        }
    }
    gumbel(digits.max(1) as f64 * place, word & 1 == 1)
}

/// Return `-ln(-ln U)` for `u` below one half. `U` is `u` if `low`, and `1 - u` otherwise.
#[inline(always)]
fn gumbel(u: f64, low: bool) -> f64 {
    let (mut k, mut f) = split(u);
    if !low {
        // 1 + f is 1 - u, or 2 (1 - u) if 1 - u is below √½. Both values of f are exact.
        let far = u > 1.0 - FRAC_1_SQRT_2;
        k = if far { -1.0 } else { 0.0 };
        f = if far { 1.0 - 2.0 * u } else { -u };
    }
    let (k, f) = split(-(k * LN_2 + ln_1p(f)));
    -(k * LN_2 + ln_1p(f))
}

/// Return the exact `k` and `f` with `x = 2^k (1 + f)` and `1 + f` in `[√½, √2)`.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let root = FRAC_1_SQRT_2.to_bits();
    let bits = x.to_bits().wrapping_add(1.0_f64.to_bits() - root);
    // Put the exponent into the low bits of the float 2^52 + k + 1023.
    let k = f64::from_bits(bits >> 52 | 0x433 << 52) - ((1_u64 << 52) + 1023) as f64;
    // This addition cannot overflow. `wrapping_add` has no overflow check, which would prevent vectorisation.
    (k, f64::from_bits((bits & ((1 << 52) - 1)).wrapping_add(root)) - 1.0)
}

/// Return `ln(1 + f) = 2 atanh(s)` with `s = f / (2 + f)`, by its series up to `s^23`. For `|s| < 0.172` the relative
/// error of the omitted terms is below `2^-60`.
#[inline(always)]
fn ln_1p(f: f64) -> f64 {
    let s = f / (2.0 + f);
    let square = s * s;
    let mut sum = 0.0;
    for n in (1..=11_u32).rev() {
        sum = (sum + 1.0 / f64::from(2 * n + 1)) * square;
    }
    2.0 * s + 2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::repetitions;

    #[test]
    fn draws_equal_the_double_logarithms_of_their_words() {
        let mut rng = SecureRng::seeded(1);
        for _ in 0..repetitions(2_000) {
            let word = rng.next_u64();
            let u = (word >> 1) as f64 * PLACE;
            let e = if word & 1 == 1 { -u.ln() } else { -(-u).ln_1p() };
            let exact = -e.ln();
            let ours = from_word(word);
            assert!((ours - exact).abs() <= 1e-15 * (exact.abs() + 1.0), "{ours} {exact}");
        }
    }

    #[test]
    fn tails_read_digits_from_further_words() {
        let draw = |words: &[u32]| float_gumbel(&mut SecureRng::scripted(words));
        // u = 2^-80, from the second bit of the upper half of the second word, in either tail.
        let upper = draw(&[0, 0, 0, 1 << 16]);
        let lower = draw(&[1, 0, 0, 1 << 16]);
        assert!((upper - 80.0 * LN_2).abs() < 1e-13 && (lower + (80.0 * LN_2).ln()).abs() < 1e-13);
        let zeros = [0; 40];
        assert!((draw(&zeros) - 960.0 * LN_2).abs() < 1e-12);
    }

    #[test]
    fn draws_do_not_depend_on_the_size_of_batches() {
        let (mut a, mut b) = (SecureRng::seeded(5), SecureRng::seeded(5));
        for size in [0, 1, 3, 600, 5_000, 17] {
            let mut out = vec![0.0; size];
            fill_float_gumbel(2.0, &mut a, &mut out);
            assert!(out.iter().all(|x| x.to_bits() == (2.0 * float_gumbel(&mut b)).to_bits()));
        }
        assert_eq!(a.next_u64(), b.next_u64());
    }
}
