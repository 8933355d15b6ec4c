//! Optimal partition selection (Desfontaines et al. 2020, Lemma 1).
//!
//! A partition is an item, given by its row in a histogram. A partition with `n` users is released with the probability
//! `π(n)` from a table.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use pulp::{Arch, Simd, WithSimd};
use rand::Rng;

use crate::random::parallel::{Part, of_parts};
use crate::random::rng::SecureRng;

/// Rows decided at a time.
const BATCH: usize = 1024;

/// The first byte of probability one. It is larger than any random byte.
const CERTAIN: u16 = 256;

/// Return the released rows of `counts`.
///
/// `chances[n]` is `π(n)` in units of `2^-64`. Counts beyond the table have `π(n) = 1`, and counts of zero and below
/// have `π(n) = 0`. Each row reads one byte of a random stream. If this byte does not decide, the row reads more bits
/// from a second stream.
#[must_use]
pub fn partition_selection(counts: &[i64], chances: &[u64], rng: &mut SecureRng) -> Vec<usize> {
    let table = Table::new(chances);
    of_parts(counts, rng, |part| table.release_part(part)).concat()
}

/// The probabilities by count. Each is split into its first byte and its other seven bytes.
struct Table {
    /// The first bytes. The last entry is for all counts beyond the table.
    firsts: Vec<u16>,
    /// The other seven bytes.
    others: Vec<u64>,
    /// The largest count up to which the first bytes of all probabilities are zero.
    rare: i64,
}

impl Table {
    fn new(chances: &[u64]) -> Self {
        let mut chances = chances.to_vec();
        match chances.first_mut() {
            Some(zero) => *zero = 0,
            None => chances.push(0),
        }
        let firsts = chances.iter().map(|chance| (chance >> 56) as u16).chain([CERTAIN]);
        let firsts: Vec<u16> = firsts.collect();
        let rare = firsts.iter().take_while(|&&first| first == 0).count() as i64 - 1;
        Self { firsts, others: chances.iter().map(|chance| chance << 8 >> 8).collect(), rare }
    }

    #[inline]
    fn place(&self, count: i64) -> usize {
        (count.max(0) as usize).min(self.others.len())
    }

    fn release_part(&self, (start, counts, mut rng): Part<'_>) -> Vec<usize> {
        let mut more = rng.split();
        let arch = Arch::new();
        let (mut rows, mut bytes, mut open) = (Vec::new(), [0; BATCH], [0; BATCH]);
        for (number, counts) in counts.chunks(BATCH).enumerate() {
            let bytes = &mut bytes[..counts.len()];
            rng.fill_bytes(bytes);
            let open = &mut open[..counts.len().next_multiple_of(64)];
            arch.dispatch(Likely { counts, bytes, rare: self.rare, open });
            for (group, flags) in open.as_chunks().0.iter().enumerate() {
                let mut flags = bits(flags);
                while flags != 0 {
                    let row = 64 * group + flags.trailing_zeros() as usize;
                    flags &= flags - 1;
                    let place = self.place(counts[row]);
                    let (byte, first) = (u16::from(bytes[row]), self.firsts[place]);
                    if byte < first || byte == first && self.decide(place, &mut more) {
                        rows.push(start + number * BATCH + row);
                    }
                }
            }
        }
        rows
    }

    /// Decide with seven more random bytes. The first random byte equals the first byte of the probability.
    #[cold]
    fn decide(&self, place: usize, more: &mut SecureRng) -> bool {
        more.next_u64() >> 8 < self.others[place]
    }
}

/// Pack one flag per byte into bits. The first flag becomes the lowest bit.
#[inline]
fn bits(flags: &[u8; 64]) -> u64 {
    // Each set bit of the factor moves one flag to its place in the highest byte.
    let eight =
        |flags: &[u8; 8]| u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    flags.as_chunks().0.iter().rev().fold(0, |bits, flags| bits << 8 | eight(flags))
}

/// Flags the rows that may be released, given their random bytes. Uses vector instructions.
struct Likely<'a> {
    counts: &'a [i64],
    bytes: &'a [u8],
    rare: i64,
    open: &'a mut [u8],
}

impl WithSimd for Likely<'_> {
    type Output = ();

    #[inline]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { counts, bytes, rare, open } = self;
        open.fill(0);
        for ((open, &count), &byte) in open.iter_mut().zip(counts).zip(bytes) {
            *open = u8::from(count > rare) | u8::from(byte == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::repetitions;

    #[test]
    fn release_rates_match_the_table() {
        let chances = [u64::MAX, 1 << 62, u64::MAX / 3, u64::MAX - (1 << 40)];
        let rows = 6 * i64::from(repetitions(100_000));
        let counts: Vec<i64> = (0..rows).map(|row| row % 6 - 1).collect();
        let mut seen = [0_u32; 6];
        for row in partition_selection(&counts, &chances, &mut SecureRng::seeded(1)) {
            seen[row % 6] += 1;
        }
        let each = rows as u32 / 6;
        assert_eq!((seen[0], seen[1], seen[5]), (0, 0, each));
        let near = |seen: u32, share: u32| seen.abs_diff(each / share) < 20 + each / 50;
        assert!(near(seen[2], 4) && near(seen[3], 3) && seen[4] + 1 >= each);
    }

    #[test]
    fn the_other_bytes_decide_if_the_first_bytes_are_equal() {
        let table = Table::new(&[0, 5 << 56 | 7, u64::MAX]);
        let decided =
            |count, words: [u32; 2]| table.decide(count, &mut SecureRng::scripted(&words));
        assert!(decided(1, [6 << 8 | 255, 0]));
        assert!(!decided(1, [7 << 8, 0]));
        assert!(!decided(1, [0, 1]));
        assert!(!decided(0, [0, 0]));
        assert!(decided(2, [(1 << 24) - 1, u32::MAX]) && !decided(2, [u32::MAX, u32::MAX]));
        for (byte, released) in [(4, true), (6, false)] {
            // The first eight words of the part's stream are the key of its second stream.
            let mut script = [0; 9];
            script[8] = byte;
            let rows = table.release_part((3, &[1], SecureRng::scripted(&script)));
            assert_eq!(rows, if released { vec![3] } else { vec![] });
        }
    }
}
