//! Exact draws from a [`Decay`] of any scale, with a table of all values or with a table of blocks.
//!
//! For scales of at least 1024 a table of all values would be large. Instead, the sampler draws a block of `2^b` values
//! as if all values had the probability of the block's first value, which is the largest. It then draws a uniform place
//! in the block. The probability that it accepts the place is the ratio of the place's probability to that of the first
//! value. A block spans at most 1/64 of the scale, so about 99 of 100 places are accepted.
//!
//! A word is 32 or 64 random bits. A place is a value's position in its block. A trial is a proposed block and place. A
//! cell is an entry of the table: a value or a block. A random bit gives each value its sign.

use std::sync::OnceLock;

use rand::Rng;
use rand_distr::Distribution;

use super::bernoulli::{Prefix, bernoulli_exp_from};
use super::decay::Decay;
use super::dyadic::Dyadic;
use super::fixed::Fixed;
use super::table::{Guide, Table};
use crate::error::{Error, Result};
use crate::random::rng::SecureRng;

/// The binary logarithm of the smallest scale that uses blocks.
const TABLE_BITS: u32 = 10;
/// A scale spans at least `2^BLOCKS` blocks, and fewer than twice as many.
const BLOCKS: u32 = 6;
/// If a place has at most this many bits, a 32-bit word also has enough bits for the acceptance test.
const NARROW: u32 = 16;

/// A sampler of a symmetric distribution over the integers.
#[derive(Debug, Clone)]
pub struct Sampler {
    law: Decay,
    scale_bits: u32,
    /// Made at the first draw: plans need only the law.
    tables: OnceLock<Tables>,
}

/// The tables of a sampler. Scales of at least 1024 use blocks.
#[derive(Debug, Clone)]
struct Tables {
    table: Table,
    blocks: Option<Blocks>,
}

/// Draws places within blocks.
#[derive(Debug, Clone)]
struct Blocks {
    /// Blocks have `2^bits` values.
    bits: u32,
    /// A bound for each block. If the upper 32 bits of the word are below this bound, every place of the block is
    /// accepted. The bound is zero if the block needs further checks.
    accept_below: Vec<u32>,
    /// The distribution's coefficient is `mantissa 2^(up - 128)`.
    mantissa: u64,
    up: u32,
    /// The largest factor that [`Self::exponent`] multiplies by the coefficient.
    most: u64,
    /// The largest value of the distribution.
    limit: u64,
}

impl Sampler {
    /// Create a sampler. The weights of `law` must fall by at most a factor `e` over the first `2^scale_bits` values.
    /// They must be negligible after a few dozen times as many values.
    #[must_use]
    pub(super) fn new(law: Decay, scale_bits: u32) -> Self {
        Self { law, scale_bits, tables: OnceLock::new() }
    }

    #[inline]
    fn tables(&self) -> &Tables {
        self.tables.get().unwrap_or_else(|| {
            // Made before the lock is taken, so that a fork in the meantime leaves no lock held.
            let tables = Tables::new(&self.law, self.scale_bits);
            self.tables.get_or_init(|| tables)
        })
    }

    /// Return the distribution, which computes rigorous bounds of tails.
    #[must_use]
    pub fn law(&self) -> &Decay {
        &self.law
    }

    /// Draw one value.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let Tables { table, blocks } = self.tables();
        let Some(blocks) = blocks else { return Self::signed(table.sample(rng)) };
        loop {
            let (block, negative) = table.sample(rng);
            let trial = match blocks.bits {
                0..=NARROW => {
                    self.trial(blocks, block, negative, u64::from(rng.next_u32()) << 32, 32)
                }
                _ => self.trial(blocks, block, negative, rng.next_u64(), 64),
            };
            if trial.possible && (trial.likely() || self.accept(rng, &trial)) {
                return Self::signed((trial.value, negative));
            }
        }
    }

    /// Fill `out` with the same values as repeated sampling. Values are drawn in bulk, which is faster.
    pub fn fill(&self, rng: &mut SecureRng, out: &mut [i64]) {
        match self.tables().table.guide() {
            Guide::Narrow(buckets) => self.fill_by(buckets, rng, out),
            Guide::Wide(buckets) => self.fill_by(buckets, rng, out),
        }
    }

    fn fill_by<const N: usize>(&self, buckets: &[u64; N], rng: &mut SecureRng, out: &mut [i64]) {
        let Tables { table, blocks } = self.tables();
        let mut filled = 0;
        while filled < out.len() {
            let rest = &mut out[filled..];
            let (drawn, bytes) = match blocks {
                None => Self::quick(rng.upcoming(), rest, |word| {
                    table.quick(buckets, u32::from_le_bytes(word))
                }),
                Some(blocks @ Blocks { bits: 0..=NARROW, .. }) => {
                    Self::quick(rng.upcoming(), rest, |words| {
                        let words = u64::from_le_bytes(words);
                        let cell = table.quick(buckets, words as u32)?;
                        blocks.quick(cell, words & !u64::from(u32::MAX), 32)
                    })
                }
                Some(blocks) => Self::quick(rng.upcoming(), rest, |words: [u8; 12]| {
                    let [a, b, c, d, wide @ ..] = words;
                    let cell = table.quick(buckets, u32::from_le_bytes([a, b, c, d]))?;
                    blocks.quick(cell, u64::from_le_bytes(wide), 64)
                }),
            };
            rng.skip(bytes);
            filled += drawn;
            if let Some(slot) = out.get_mut(filled) {
                *slot = self.draw(rng);
                filled += 1;
            }
        }
    }

    /// Draw from buffered words until a draw needs further words. Return the number of draws and the number of bytes
    /// used.
    #[inline]
    fn quick<const N: usize>(
        bytes: &[u8],
        out: &mut [i64],
        draw: impl Fn([u8; N]) -> Option<(u64, bool)>,
    ) -> (usize, usize) {
        let mut drawn = 0;
        for (slot, words) in out.iter_mut().zip(bytes.as_chunks().0) {
            let Some(value) = draw(*words) else { break };
            *slot = Self::signed(value);
            drawn += 1;
        }
        (drawn, drawn * N)
    }

    /// Apply the sign by two's complement. The sign is random, so the processor would mispredict a branch half of the
    /// time.
    #[inline]
    fn signed((magnitude, negative): (u64, bool)) -> i64 {
        let sign = -i64::from(negative);
        (magnitude as i64 ^ sign).wrapping_sub(sign)
    }

    /// Propose a place in a block from the upper `width` bits of a word. The low bits of these are the place. The
    /// other bits are the first bits of the uniform number of the acceptance test.
    #[inline]
    fn trial(&self, blocks: &Blocks, block: u64, negative: bool, word: u64, width: u32) -> Trial {
        // Values are far below 2^62, so nothing here can overflow.
        let place = blocks.place(word, width);
        let start = block.wrapping_shl(blocks.bits);
        let value = start | place;
        let factor =
            if self.law.square { place.wrapping_mul(start.wrapping_add(value)) } else { place };
        Trial {
            value,
            // Zero has no sign, so a negative zero is rejected.
            possible: value <= blocks.limit && (value != 0 || !negative),
            factor,
            exponent: blocks.exponent(factor),
            uniform: Prefix::new(word, width.wrapping_sub(blocks.bits)),
        }
    }

    /// Return whether a trial is accepted. Called if the quick test did not decide.
    #[cold]
    fn accept<R: Rng + ?Sized>(&self, rng: &mut R, trial: &Trial) -> bool {
        let y = trial.exponent;
        // This test with exp(-y) <= 1 - y + y²/2 rejects nearly all of these trials.
        let square = ((u128::from(y) * u128::from(y)) >> 65) as u64;
        if y < u64::MAX && trial.uniform.first() >= (!y).saturating_add(square + 8) {
            return false;
        }
        let error = if y < u64::MAX { 4 } else { u64::MAX };
        let rest = Fixed { value: i128::from(y), error };
        bernoulli_exp_from(rng, trial.uniform, rest, || (self.law.exponent(trial.factor), 0))
    }
}

impl Tables {
    fn new(law: &Decay, scale_bits: u32) -> Self {
        if scale_bits < TABLE_BITS {
            return Self { table: Table::new(law.clone()), blocks: None };
        }
        let bits = scale_bits - BLOCKS;
        let (mantissa, exponent) = law.coefficient.parts();
        let zeros = mantissa.leading_zeros();
        // This is above zero because the coefficient is at least 2^-62, and below 64 because the coefficient is below
        // 2^-9.
        let up = (128 + exponent - i64::from(zeros)) as u32;
        let limit = law.limit.unwrap_or(u64::MAX);
        let mut blocks = Blocks {
            bits,
            accept_below: Vec::new(),
            mantissa: mantissa << zeros,
            up,
            most: u64::MAX >> up,
            limit,
        };
        let table = Table::new(law.of_blocks(bits));
        let place_bits = if bits <= NARROW { bits } else { bits.saturating_sub(32) };
        for block in 0..table.cells() {
            let (first, last) = (block << bits, (block + 1) << bits);
            let factor = if law.square { (1 << bits) * (first + last) } else { 1 << bits };
            // A uniform number whose upper 32 bits are below `least` is below 1 - y for the last place of the block.
            // The shifts clear the bits of the place, because any place may follow.
            let least = (!blocks.exponent(factor) >> 32) as u32;
            let uniform = least >> place_bits << place_bits;
            blocks.accept_below.push(if first == 0 || last > limit { 0 } else { uniform });
        }
        Self { table, blocks: Some(blocks) }
    }
}

/// A proposed value. It is accepted if a uniform number is below `exp(-factor c)`; `c` is the distribution's
/// coefficient.
struct Trial {
    value: u64,
    /// Whether the value is at most the limit and is not a negative zero.
    possible: bool,
    factor: u64,
    /// `factor c` in units of `2^-64`, at most two units too large; `u64::MAX` if the factor is too large.
    exponent: u64,
    /// The first bits of the uniform number.
    uniform: Prefix,
}

impl Trial {
    /// Return whether the uniform number is certainly below `1 - y`, and thus below `exp(-y)`, for `y = factor c`.
    /// This holds for nearly all trials.
    #[inline]
    fn likely(&self) -> bool {
        self.uniform.last() <= !self.exponent
    }
}

impl Blocks {
    /// Return the place, which is the low bits of the upper `width` bits of a word.
    #[inline]
    fn place(&self, word: u64, width: u32) -> u64 {
        (word >> (64 - width)) & !u64::MAX.wrapping_shl(self.bits)
    }

    /// Return a value and its sign if the first word of the uniform number decides without the exponent of the place.
    #[inline]
    fn quick(&self, (block, negative): (u64, bool), word: u64, width: u32) -> Option<(u64, bool)> {
        let uniform = (word >> 32) as u32;
        let most = *self.accept_below.get(block as usize)?;
        let value = block.wrapping_shl(self.bits) | self.place(word, width);
        (uniform < most).then_some((value, negative))
    }

    /// Return `factor` times the distribution's coefficient in units of `2^-64`, rounded up by at most two units.
    /// Return `u64::MAX` for factors above `most`.
    #[inline]
    fn exponent(&self, factor: u64) -> u64 {
        if factor > self.most {
            return u64::MAX;
        }
        let product = u128::from(factor.wrapping_shl(self.up)) * u128::from(self.mantissa);
        ((product >> 64) as u64).saturating_add(2)
    }
}

impl Distribution<i64> for Sampler {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        self.draw(rng)
    }
}

/// Check the range of a scale. Return the scale's binary logarithm, rounded down, or zero for scales below one.
///
/// # Errors
/// [`Error::Parameter`] with the caller's message if the scale is out of range.
pub fn scale_bits(scale: f64, range: (f64, f64), message: &'static str) -> Result<u32> {
    if scale >= range.0 && scale <= range.1 {
        Ok(Dyadic::from_f64(scale).log2_floor().max(0) as u32)
    } else {
        Err(Error::Parameter(message))
    }
}

/// Implements the common traits of an integer distribution that wraps a [`Sampler`].
macro_rules! integer_law {
    ($law:ident) => {
        impl rand_distr::Distribution<i64> for $law {
            fn sample<R: rand::Rng + ?Sized>(&self, rng: &mut R) -> i64 {
                self.0.sample(rng)
            }
        }

        impl From<$law> for $crate::noise::sampler::Sampler {
            fn from(law: $law) -> Self {
                law.0
            }
        }
    };
}
pub(super) use integer_law;
