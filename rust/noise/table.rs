//! Exact draws with a cumulative table. Nearly every draw reads one 32-bit word.
//!
//! A draw returns the cell of a uniform number. The cell of a value ends at the value's cumulative probability, and
//! begins at the end of the cell before. First 31 bits of the number are drawn, and further bits 64 at a time, until
//! all numbers with these bits are in one cell.
//!
//! The table holds the exact first 31 bits of the end of every cell. If the number's first bits differ from those of
//! all ends, they decide. Otherwise the first 64 bits of the ends are used, which are known to within two units. If
//! these bits do not decide, [`Decay::locate`] decides.

use num_bigint::BigInt;
use rand::Rng;

use super::decay::{Decay, Location};

/// The number of bits of a uniform number that are drawn first.
const FIRST: u32 = 31;
/// The largest error of [`End::word`].
const WORD_ERROR: u64 = 2;
/// The binary places of weights.
const PLACES: u32 = 128;
/// Weights below this one, in units of `2^-128`, change no word.
const LEAST_WEIGHT: u128 = 1 << 38;
/// Marks a bucket in which several cells end.
const SEVERAL: u32 = u32::MAX;

/// The end of a cell, which is a cumulative probability.
#[derive(Debug, Clone, Copy)]
struct End {
    /// The exact first 31 bits.
    first: u32,
    /// The first 64 bits, to within [`WORD_ERROR`].
    word: u64,
}

/// A cumulative table of a law. A guide leads from the leading bits of a number to the number's cell.
#[derive(Debug, Clone)]
pub struct Table {
    law: Decay,
    /// The ends of the cells, up to the first end whose 31 bits are all ones.
    ends: Vec<End>,
    guide: Guide,
}

/// One bucket for each value of the leading bits.
///
/// * If no cell ends in a bucket, the upper half is the largest number, and the lower half is the bucket's cell.
/// * If one cell ends in a bucket, the upper half is the first bits of this end, and the lower half is this cell.
/// * If several cells end in a bucket, the upper half is the first of these cells, and the lower half is [`SEVERAL`].
///
/// Both sizes are fixed, so that the compiler omits bounds checks.
#[derive(Debug, Clone)]
pub enum Guide {
    /// For up to `2^11` cells. This guide fits into the L1 cache.
    Narrow(Box<[u64; 1 << 12]>),
    /// For more than `2^11` cells.
    Wide(Box<[u64; 1 << 15]>),
}

impl Table {
    /// Creates the table of a law whose weights fall below `2^-90` within about `2^17` values.
    #[must_use]
    pub(super) fn new(law: Decay) -> Self {
        let words = words(&law);
        let mut ends: Vec<End> = Vec::with_capacity(words.len());
        let mut exact = None;
        for (m, &word) in words.iter().enumerate() {
            let first = match (word.saturating_sub(WORD_ERROR), word.saturating_add(WORD_ERROR)) {
                (low, high) if low >> 33 == high >> 33 => (word >> 33) as u32,
                _ => exact.get_or_insert_with(|| firsts(&law, words.len()))[m],
            };
            ends.push(End { first, word });
            if first == (1 << FIRST) - 1 {
                break;
            }
        }
        let guide = Guide::new(&ends);
        Self { law, ends, guide }
    }

    /// Draws a cell, and a random bit that is independent of the cell.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> (u64, bool) {
        let word = rng.next_u32();
        let quick = match &self.guide {
            Guide::Narrow(buckets) => self.quick(buckets, word),
            Guide::Wide(buckets) => self.quick(buckets, word),
        };
        quick.unwrap_or_else(|| (self.search(rng, word >> 1), word & 1 == 1))
    }

    /// Returns the guide, for [`Self::quick`].
    #[must_use]
    pub fn guide(&self) -> &Guide {
        &self.guide
    }

    /// Returns the cell and the random bit of a first word, or `None` if this word does not decide. Nearly every word
    /// decides.
    #[must_use]
    #[inline]
    pub fn quick<const N: usize>(&self, buckets: &[u64; N], word: u32) -> Option<(u64, bool)> {
        let first = word >> 1;
        let bucket = buckets[(first >> (FIRST - N.ilog2())) as usize];
        let (end, cell) = ((bucket >> 32) as u32, bucket as u32);
        let cell = match cell {
            SEVERAL => self.scan(end as usize, first)?,
            _ if first == end => return None,
            _ => u64::from(cell) + u64::from(first > end),
        };
        Some((cell, word & 1 == 1))
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Searches the ends from cell `from` on. Returns the number's cell, or `None` if the number's first bits equal
    /// those of an end.
    #[inline(never)]
    fn scan(&self, from: usize, first: u32) -> Option<u64> {
        let passed = self.ends[from..].iter().take_while(|end| end.first < first).count() + from;
        self.ends.get(passed).is_none_or(|end| end.first != first).then_some(passed as u64)
    }

    /// Returns the cell of a number whose first bits do not decide, by its first 64 bits or exactly.
    #[cold]
    fn search<R: Rng + ?Sized>(&self, rng: &mut R, first: u32) -> u64 {
        let passed = self.ends.partition_point(|end| end.first < first);
        let same = self.ends[passed..].iter().take_while(|end| end.first == first);
        let more = rng.next_u64();
        // The first 64 of the 95 bits.
        let word = u64::from(first) << 33 | more >> FIRST;
        let mut cell = passed as u64;
        for end in same {
            if word > end.word.saturating_add(WORD_ERROR) {
                cell += 1;
            } else if word < end.word.saturating_sub(WORD_ERROR) {
                return cell;
            } else {
                return self.locate(rng, first, more);
            }
        }
        if first == (1 << FIRST) - 1 && self.law.limit != Some(cell) {
            return self.locate(rng, first, more);
        }
        cell
    }

    /// Returns the cell of a number by exact arithmetic. Reads as many further words as needed.
    fn locate<R: Rng + ?Sized>(&self, rng: &mut R, first: u32, more: u64) -> u64 {
        let mut prefix = (BigInt::from(first) << 64) + more;
        let mut bits = FIRST + 64;
        loop {
            match self.law.locate(&prefix, bits) {
                Location::Cell(cell) => return cell,
                Location::Undecided => {
                    prefix = (prefix << 64) + rng.next_u64();
                    bits += 64;
                }
            }
        }
    }
}

/// Returns the exact first 31 bits of the ends of the first `cells` cells.
///
/// The precision grows until the lower and the upper bound of every end have equal first bits. This loop ends,
/// because no end has finitely many binary digits.
fn firsts(law: &Decay, cells: usize) -> Vec<u32> {
    let mut guard = 128;
    loop {
        let below_one = (BigInt::from(1) << (FIRST + guard)) - 1;
        let first = |(low, high): &(BigInt, BigInt)| {
            let floor = high.min(&below_one) >> guard;
            u32::try_from(&floor).ok().filter(|_| low >> guard == floor)
        };
        let bounds = law.cumulative(FIRST + guard);
        match bounds.iter().take(cells).map(first).collect::<Option<Vec<u32>>>() {
            Some(firsts) if firsts.len() == cells => return firsts,
            _ => guard *= 2,
        }
    }
}

/// Returns the cumulative probabilities of a law in units of `2^-64`, to within [`WORD_ERROR`].
///
/// The list ends at a probability within `2^-32` of one, or before the largest value of the law.
///
/// This function computes like [`Decay::cumulative`], but in integers of 128 bits. Weight `m` is at most `4 (m + 1)²`
/// units of `2^-128` too small. The sum is in units of `2^-96`, and weights below [`LEAST_WEIGHT`] are omitted. The
/// total error is below `2^-75` for `2^17` values.
fn words(law: &Decay) -> Vec<u64> {
    let (ratio, shrink) = law.ratios(PLACES);
    let unit = |number: BigInt| u128::try_from(number).unwrap_or(u128::MAX);
    let (mut ratio, shrink) = (unit(ratio), unit(shrink));
    let mut weight = u128::MAX;
    let mut sums: Vec<u128> = Vec::new();
    let mut sum = 0_u128;
    loop {
        let m = sums.len() as u64;
        sum += if law.mirrored && m > 0 { weight >> 31 } else { weight >> 32 };
        sums.push(sum);
        if law.limit == Some(m) {
            sums.pop();
            break;
        }
        weight = high_product(weight, ratio);
        ratio = high_product(ratio, shrink);
        if weight < LEAST_WEIGHT {
            break;
        }
    }
    // 2^(127 + 96) / Z, where Z is at least one.
    let inverse = unit((BigInt::from(1) << 223) / sum);
    let mut words = Vec::with_capacity(sums.len());
    for sum in sums {
        let word = (high_product(sum, inverse) >> 31).min(u128::from(u64::MAX)) as u64;
        words.push(word);
        if word > u64::MAX - (1 << 32) {
            break;
        }
    }
    words
}

/// Returns the upper half of a product of 256 bits.
pub(super) fn high_product(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let middle = ((a_low * b_low) >> 64) + ((a_high * b_low) & LOW) + ((a_low * b_high) & LOW);
    a_high * b_high + ((a_high * b_low) >> 64) + ((a_low * b_high) >> 64) + (middle >> 64)
}

impl Guide {
    fn new(ends: &[End]) -> Self {
        if ends.len() <= 1 << 11 {
            Self::sorted(ends, Self::Narrow)
        } else {
            Self::sorted(ends, Self::Wide)
        }
    }

    fn sorted<const N: usize>(ends: &[End], of: impl Fn(Box<[u64; N]>) -> Self) -> Self {
        let mut cell = 0_usize;
        let mut buckets = Box::new([0; N]);
        for (number, bucket) in buckets.iter_mut().enumerate() {
            let inside = |end: &&End| (end.first >> (FIRST - N.ilog2())) as usize == number;
            let inside = ends[cell..].iter().take_while(inside).count();
            let (end, before) = match inside {
                0 => (u32::MAX, cell as u32),
                1 => (ends[cell].first, cell as u32),
                _ => (cell as u32, SEVERAL),
            };
            *bucket = u64::from(end) << 32 | u64::from(before);
            cell += inside;
        }
        of(buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::dyadic::Dyadic;
    use crate::random::rng::SecureRng;

    fn law(coefficient: f64, square: bool, limit: Option<u64>, mirrored: bool) -> Decay {
        Decay { coefficient: Dyadic::from_f64(coefficient), square, limit, mirrored }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn words_are_the_cumulative_probabilities() {
        for law in [
            law(0.01, true, None, true),
            law(0.003, false, None, false),
            law(0.1, false, Some(30), true),
            law(2e-5, true, None, true),
            law(700.0, true, None, true),
        ] {
            let exact = law.cumulative(64);
            let words = words(&law);
            assert!(!words.is_empty());
            for (word, (low, high)) in words.into_iter().zip(exact) {
                assert!(BigInt::from(word) + WORD_ERROR >= high);
                assert!(BigInt::from(word) <= low + WORD_ERROR);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn first_bits_do_not_depend_on_the_precision() {
        for law in [
            law(0.02, true, None, true),
            law(0.4, false, Some(5), true),
            law(9.0, true, None, true),
        ] {
            let cells = words(&law).len();
            let exact = law.cumulative(FIRST + 500);
            let exact = exact.iter().map(|(low, _)| u32::try_from(low >> 500).unwrap());
            assert!(firsts(&law, cells).into_iter().eq(exact.take(cells)));
        }
    }

    #[test]
    fn high_product_is_the_upper_half_of_a_product() {
        for (a, b) in
            [(u128::MAX, u128::MAX), (1 << 127, 3), (0x1234 << 90 | 0x77, 0x9876 << 60 | 0x55)]
        {
            let exact = (BigInt::from(a) * BigInt::from(b)) >> 128;
            assert_eq!(BigInt::from(high_product(a, b)), exact);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn cells_equal_those_of_exact_arithmetic_on_every_path() {
        for law in [
            law(0.02, true, None, true),
            law(0.4, false, Some(5), true),
            law(900.0, true, None, true),
        ] {
            let table = Table::new(law.clone());
            let edges = table.ends.iter().map(|end| end.first);
            let near =
                edges.flat_map(|e| [e.saturating_sub(1), e, e + 1]).filter(|e| e >> FIRST == 0);
            for first in near.chain([0, (1 << FIRST) - 1]) {
                for more in [0_u64, 1 << 40, u64::MAX / 3, u64::MAX - 5] {
                    let script = [first << 1, more as u32, (more >> 32) as u32, 9, 9];
                    let (cell, bit) = table.sample(&mut SecureRng::scripted(&script));
                    let exact = match law.locate(&BigInt::from(first), FIRST) {
                        Location::Cell(cell) => cell,
                        Location::Undecided => {
                            table.locate(&mut SecureRng::scripted(&script[3..]), first, more)
                        }
                    };
                    assert_eq!((cell, bit), (exact, false));
                }
            }
        }
    }
}
