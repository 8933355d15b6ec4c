//! Optimal partition selection: a partition of `n` users is released with the probability `π(n)` of a table
//! (Desfontaines et al. 2020, Lemma 1), exactly.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::parts::{Part, of_parts};
use crate::rng::SecureRng;

/// The rows of `counts` that are released. `chances[n]` is `π(n)` in units of `2^-64`; beyond the table it is
/// one, and for counts of zero and below it zero.
#[must_use]
pub fn partition_selection(counts: &[i64], chances: &[u64], rng: &mut SecureRng) -> Vec<usize> {
    of_parts(counts, rng, |part| release_part(part, chances)).concat()
}

fn release_part((start, counts, mut rng): Part<'_>, chances: &[u64]) -> Vec<usize> {
    let mut rows = Vec::new();
    for (row, &count) in (start..).zip(counts) {
        if count <= 0 {
            continue;
        }
        let released = match chances.get(count as usize) {
            Some(&chance) => below(chance, &mut rng),
            None => true,
        };
        if released {
            rows.push(row);
        }
    }
    rows
}

/// Whether a uniform number lies below a chance; its second word is drawn where the first leaves it open.
#[inline]
fn below(chance: u64, rng: &mut SecureRng) -> bool {
    let (word, high) = (rng.next_u32(), (chance >> 32) as u32);
    if word == high { rng.next_u32() < chance as u32 } else { word < high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_released_as_often_as_the_table_says() {
        let chances = [u64::MAX, 1 << 62, u64::MAX / 3, u64::MAX - (1 << 40)];
        let counts: Vec<i64> = (0..600_000).map(|row| row % 6 - 1).collect();
        let mut seen = [0_u32; 6];
        for row in partition_selection(&counts, &chances, &mut SecureRng::seeded(1)) {
            seen[row % 6] += 1;
        }
        assert_eq!((seen[0], seen[1], seen[5]), (0, 0, 100_000));
        assert!(seen[2].abs_diff(25_000) < 700 && seen[3].abs_diff(33_333) < 750);
        assert!(seen[4] >= 99_999);
    }

    #[test]
    fn a_number_that_begins_like_the_chance_is_told_by_its_second_word() {
        let chance = 5 << 32 | 7;
        for (words, released) in
            [([5, 6], true), ([5, 7], false), ([4, u32::MAX], true), ([6, 0], false)]
        {
            assert_eq!(below(chance, &mut SecureRng::scripted(&words)), released);
        }
    }
}
