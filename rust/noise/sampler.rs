//! Exact draws from a [`Decay`] of any scale: from a table of all its values, or from a table of blocks.
//!
//! From a scale of 1024 up a table of all values would be large. Then a block of `2^b` values is drawn as
//! if all its values were as likely as its first, the largest; a place in the block is drawn uniformly,
//! and accepted with what its value is less likely than the first. A block spans at most a 64th of the
//! scale, so that about 99 of 100 are accepted.

use rand::Rng;
use rand_distr::Distribution;

use super::bernoulli::{Prefix, bernoulli_exp_from};
use super::decay::Decay;
use super::dyadic::Dyadic;
use super::fixed::Fixed;
use super::table::{Guide, Table};
use crate::error::{Error, Result};
use crate::random::rng::SecureRng;

/// The least scale, as a power of two, of which not all values are tabulated.
const TABLE_BITS: u32 = 10;
/// A scale spans this many blocks or up to twice as many, as a power of two.
const BLOCKS: u32 = 6;
/// Up to this many bits for the place in a block, one word has enough more of them for the coin.
const NARROW: u32 = 16;

/// A sampler of a law over the integers from zero, or of its mirror image on both sides of zero.
#[derive(Debug, Clone)]
pub struct Sampler {
    law: Decay,
    table: Table,
    blocks: Option<Blocks>,
}

/// How a place in a block is drawn.
#[derive(Debug, Clone)]
struct Blocks {
    /// Blocks have `2^bits` values.
    bits: u32,
    /// For each block what the upper half of a coin must be below to accept any place in it; zero where
    /// there is more to a place than its coin.
    coins: Vec<u32>,
    /// The law's coefficient is `mantissa 2^(up - 128)`.
    mantissa: u64,
    up: u32,
    /// Multiples up to this one lie below one.
    most: u64,
    limit: u64,
}

impl Sampler {
    /// A sampler of a law that falls by at most `e` over `2^scale_bits` values from zero, and is nearly
    /// spent after a few dozen times as many.
    #[must_use]
    pub(super) fn new(law: Decay, scale_bits: u32) -> Self {
        if scale_bits < TABLE_BITS {
            return Self { table: Table::new(law.clone()), law, blocks: None };
        }
        let bits = scale_bits - BLOCKS;
        let (mantissa, exponent) = law.coefficient.parts();
        let zeros = mantissa.leading_zeros();
        // Above zero, as the coefficient is at least 2^-62, and below 64, as it is below 2^-9.
        let up = (128 + exponent - i64::from(zeros)) as u32;
        let limit = law.limit.unwrap_or(u64::MAX);
        let mut blocks = Blocks {
            bits,
            coins: Vec::new(),
            mantissa: mantissa << zeros,
            up,
            most: u64::MAX >> up,
            limit,
        };
        let table = Table::new(law.of_blocks(bits));
        let foreign = if bits <= NARROW { bits } else { bits.saturating_sub(32) };
        for block in 0..table.cells() {
            let (first, last) = (block << bits, (block + 1) << bits);
            let factor = if law.square { (1 << bits) * (first + last) } else { 1 << bits };
            // A coin whose upper half is below this lies below 1 - y for the last place of the block,
            // whatever the bits of the place that follow the coin's.
            let least = (!blocks.exponent(factor) >> 32) as u32;
            let coin = least >> foreign << foreign;
            blocks.coins.push(if first == 0 || last > limit { 0 } else { coin });
        }
        Self { table, law, blocks: Some(blocks) }
    }

    /// The law, which has an exact tail.
    #[must_use]
    pub fn law(&self) -> &Decay {
        &self.law
    }

    /// A draw; negative ones only of a mirrored law.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let Some(blocks) = &self.blocks else { return self.signed(self.table.sample(rng)) };
        loop {
            let (block, negative) = self.table.sample(rng);
            let trial = match blocks.bits {
                0..=NARROW => {
                    self.trial(blocks, block, negative, u64::from(rng.next_u32()) << 32, 32)
                }
                _ => self.trial(blocks, block, negative, rng.next_u64(), 64),
            };
            if trial.possible && (trial.likely() || self.accept(rng, &trial)) {
                return self.signed((trial.value, negative));
            }
        }
    }

    /// Fills `out` with what as many samples would be, faster.
    pub fn fill(&self, rng: &mut SecureRng, out: &mut [i64]) {
        match self.table.guide() {
            Guide::Narrow(buckets) => self.fill_by(buckets, rng, out),
            Guide::Wide(buckets) => self.fill_by(buckets, rng, out),
        }
    }

    fn fill_by<const N: usize>(&self, buckets: &[u64; N], rng: &mut SecureRng, out: &mut [i64]) {
        let mut filled = 0;
        while filled < out.len() {
            let rest = &mut out[filled..];
            let (drawn, bytes) = match &self.blocks {
                None => self.quick(rng.upcoming(), rest, |word| {
                    self.table.quick(buckets, u32::from_le_bytes(word))
                }),
                Some(blocks @ Blocks { bits: 0..=NARROW, .. }) => {
                    self.quick(rng.upcoming(), rest, |words| {
                        let words = u64::from_le_bytes(words);
                        let cell = self.table.quick(buckets, words as u32)?;
                        blocks.quick(cell, words & !u64::from(u32::MAX), 32)
                    })
                }
                Some(blocks) => self.quick(rng.upcoming(), rest, |words: [u8; 12]| {
                    let [a, b, c, d, wide @ ..] = words;
                    let cell = self.table.quick(buckets, u32::from_le_bytes([a, b, c, d]))?;
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

    /// Draws from words that are already there until one of the draws needs more: how many were drawn, and
    /// from how many bytes.
    #[inline]
    fn quick<const N: usize>(
        &self,
        bytes: &[u8],
        out: &mut [i64],
        draw: impl Fn([u8; N]) -> Option<(u64, bool)>,
    ) -> (usize, usize) {
        let mut drawn = 0;
        for (slot, words) in out.iter_mut().zip(bytes.as_chunks().0) {
            let Some(value) = draw(*words) else { break };
            *slot = self.signed(value);
            drawn += 1;
        }
        (drawn, drawn * N)
    }

    /// The value with its sign, by two's complement: no processor could predict a branch.
    #[inline]
    fn signed(&self, (magnitude, negative): (u64, bool)) -> i64 {
        let sign = -i64::from(negative & self.law.mirrored);
        (magnitude as i64 ^ sign).wrapping_sub(sign)
    }

    /// A place in a block from the upper `width` bits of a word: their lower end is the place, the rest
    /// begins the coin.
    #[inline]
    fn trial(&self, blocks: &Blocks, block: u64, negative: bool, word: u64, width: u32) -> Trial {
        // Values lie far below 2^62: nothing here can wrap.
        let place = blocks.place(word, width);
        let start = block.wrapping_shl(blocks.bits);
        let value = start | place;
        let factor =
            if self.law.square { place.wrapping_mul(start.wrapping_add(value)) } else { place };
        Trial {
            value,
            // Zero has no sign: one of its two draws is refused.
            possible: value <= blocks.limit && (value != 0 || !negative || !self.law.mirrored),
            factor,
            exponent: blocks.exponent(factor),
            coin: Prefix::new(word, width.wrapping_sub(blocks.bits)),
        }
    }

    /// The coin of a trial that is not likely enough.
    #[cold]
    fn accept<R: Rng + ?Sized>(&self, rng: &mut R, trial: &Trial) -> bool {
        let y = trial.exponent;
        // exp(-y) <= 1 - y + y²/2 refuses nearly always.
        let square = ((u128::from(y) * u128::from(y)) >> 65) as u64;
        if y < u64::MAX && trial.coin.first() >= (!y).saturating_add(square + 8) {
            return false;
        }
        let error = if y < u64::MAX { 4 } else { u64::MAX };
        let rest = Fixed { value: i128::from(y), error };
        bernoulli_exp_from(rng, trial.coin, rest, || (self.law.exponent(trial.factor), 0))
    }
}

/// A place in a block, and the coin that accepts it with probability `exp(-factor c)`.
struct Trial {
    value: u64,
    possible: bool,
    factor: u64,
    /// `factor c` in units of `2^-64`, at most two too large; the largest number from `1/2` up.
    exponent: u64,
    coin: Prefix,
}

impl Trial {
    /// Whether the coin lies below `1 - y`, as nearly all do, and so below `exp(-y)`.
    #[inline]
    fn likely(&self) -> bool {
        self.coin.last() <= !self.exponent
    }
}

impl Blocks {
    /// The lower end of the upper `width` bits of a word.
    #[inline]
    fn place(&self, word: u64, width: u32) -> u64 {
        (word >> (64 - width)) & !u64::MAX.wrapping_shl(self.bits)
    }

    /// The draw that needs neither a further word nor the exponent of its place.
    #[inline]
    fn quick(&self, (block, negative): (u64, bool), word: u64, width: u32) -> Option<(u64, bool)> {
        let coin = (word >> 32) as u32;
        let most = *self.coins.get(block as usize)?;
        let value = block.wrapping_shl(self.bits) | self.place(word, width);
        (coin < most).then_some((value, negative))
    }

    /// A multiple of the law's coefficient in units of `2^-64`, rounded up.
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

/// The binary logarithm, rounded down and at least zero, of a scale within a range.
///
/// # Errors
/// [`Error::Parameter`] with a message of the caller's, where the scale is out of range.
pub fn scale_bits(scale: f64, range: (f64, f64), message: &'static str) -> Result<u32> {
    if scale >= range.0 && scale <= range.1 {
        Ok(Dyadic::from_f64(scale).log2_floor().max(0) as u32)
    } else {
        Err(Error::Parameter(message))
    }
}

/// What every law over the integers offers, as a type around its [`Sampler`].
macro_rules! integer_law {
    ($law:ident) => {
        impl rand_distr::Distribution<i64> for $law {
            fn sample<R: rand::Rng + ?Sized>(&self, rng: &mut R) -> i64 {
                self.0.sample(rng)
            }
        }

        impl From<$law> for $crate::noise::Sampler {
            fn from(law: $law) -> Self {
                law.0
            }
        }
    };
}
pub(super) use integer_law;
