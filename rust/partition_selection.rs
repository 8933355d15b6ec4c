//! Optimal partition selection: a partition of `n` users is released with the probability `π(n)` of a table
//! (Desfontaines et al. 2020, Lemma 1), exactly.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::parts::{Part, of_parts};
use crate::rng::SecureRng;

/// How many rows are decided at a time.
const BATCH: usize = 1024;

/// The rows of `counts` that are released. `chances[n]` is `π(n)` in units of `2^-64`; beyond the table it is
/// one, and for counts of zero and below it zero. Every row takes a word of the stream.
#[must_use]
pub fn partition_selection(counts: &[i64], chances: &[u64], rng: &mut SecureRng) -> Vec<usize> {
    let table = Table::new(chances);
    of_parts(counts, rng, |part| table.release_part(part)).concat()
}

/// The chances by count, the last one for all larger counts: their upper halves, and the whole.
struct Table {
    highs: Vec<u32>,
    /// Nothing where a release is certain.
    chances: Vec<Option<u64>>,
}

impl Table {
    fn new(chances: &[u64]) -> Self {
        let mut chances: Vec<_> = chances.iter().copied().map(Some).collect();
        match chances.first_mut() {
            Some(zero) => *zero = Some(0),
            None => chances.push(Some(0)),
        }
        chances.push(None);
        let high = |chance: &Option<u64>| chance.map_or(u32::MAX, |chance| (chance >> 32) as u32);
        Self { highs: chances.iter().map(high).collect(), chances }
    }

    #[inline]
    fn place(&self, count: i64) -> usize {
        (count.max(0) as usize).min(self.highs.len() - 1)
    }

    fn release_part(&self, (start, counts, mut rng): Part<'_>) -> Vec<usize> {
        let (mut rows, mut released) = (Vec::new(), [0; BATCH]);
        let mut decided = 0;
        while decided < counts.len() {
            let words = rng.upcoming().as_chunks().0;
            let batch = counts[decided..].iter().zip(words).take(BATCH);
            let (mut kept, mut quick) = (0, 0);
            for (&count, word) in batch {
                let (word, high) = (u32::from_le_bytes(*word), self.highs[self.place(count)]);
                if word == high {
                    break;
                }
                released[kept] = start + decided + quick;
                kept += usize::from(word < high);
                quick += 1;
            }
            rows.extend_from_slice(&released[..kept]);
            rng.skip(4 * quick);
            decided += quick;
            if let Some(&count) = counts.get(decided)
                && quick < BATCH
            {
                if self.decide(count, &mut rng) {
                    rows.push(start + decided);
                }
                decided += 1;
            }
        }
        rows
    }

    /// One decision, with a second word where the first leaves it open.
    #[cold]
    fn decide(&self, count: i64, rng: &mut SecureRng) -> bool {
        let word = rng.next_u32();
        let Some(chance) = self.chances[self.place(count)] else { return true };
        let high = (chance >> 32) as u32;
        if word == high { rng.next_u32() < chance as u32 } else { word < high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::repetitions;

    #[test]
    fn rows_are_released_as_often_as_the_table_says() {
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
    fn a_number_that_begins_like_the_chance_is_told_by_its_second_word() {
        let table = Table::new(&[0, 5 << 32 | 7]);
        for (words, released) in
            [([5, 6], true), ([5, 7], false), ([4, u32::MAX], true), ([6, 0], false)]
        {
            let mut rng = SecureRng::scripted(&words);
            assert_eq!(table.decide(1, &mut rng), released);
            let rows = table.release_part((3, &[1], SecureRng::scripted(&words)));
            assert_eq!(rows, if released { vec![3] } else { vec![] });
        }
        assert!(table.decide(2, &mut SecureRng::scripted(&[u32::MAX])));
    }
}
