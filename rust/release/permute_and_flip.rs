//! Permute-and-flip, which selects one candidate.
//!
//! A candidate is an item or the stop element ⊥. Candidates are visited in random order. A candidate whose score is `x`
//! below the largest score is selected with probability `exp(-x)`. The result has the distribution of the candidate
//! with the largest sum of score and exponential noise (Ding et al. 2021).
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::noise::{bernoulli_exp, uniform_below};
use crate::release::scores::{Choice, Scores};

/// Select one candidate. Empty slots are never selected.
pub fn permute_and_flip<R: Rng + ?Sized>(scores: &Scores, rng: &mut R) -> Choice {
    let bottom = scores.slots() - 1;
    let mut order: Vec<usize> = (0..=bottom).filter(|&slot| !scores.is_empty(slot)).collect();
    let best = scores.best();
    let (lead, lead_fixed) = (scores.exact_exponent(best), scores.exponent(best));
    loop {
        let left = order.len();
        for passed in 0..left {
            let chosen = passed + uniform_below(rng, (left - passed) as u64) as usize;
            order.swap(passed, chosen);
            let slot = order[passed];
            let rest = scores.exponent(slot).minus(lead_fixed);
            if bernoulli_exp(rng, rest, || (scores.exact_exponent(slot) - lead.clone(), 0)) {
                return scores.choice(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::{SecureRng, repetitions};

    #[test]
    fn draws_follow_the_distribution_of_exponential_noise() {
        // Scores 2, 1 and 0. In each of the six orders the first success is selected; the best candidate always
        // succeeds.
        let (b, c) = ((-1.0_f64).exp(), (-2.0_f64).exp());
        let second = b * (0.5 - c / 6.0);
        let third = c * (0.5 - b / 6.0);
        let law = [1.0 - second - third, second, third];
        let scores = Scores::new(&[4, 3], 4, 1.0, 1, 1.0).unwrap();
        let (draws, mut seen) = (repetitions(300_000), [0_u32; 3]);
        let mut rng = SecureRng::seeded(8);
        for _ in 0..draws {
            match permute_and_flip(&scores, &mut rng) {
                Choice::Slot(slot) => seen[slot] += 1,
                Choice::Bottom => seen[2] += 1,
            }
        }
        for (seen, p) in seen.into_iter().zip(law) {
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(seen) - p * f64::from(draws)).abs() < 5.0 * sd, "{seen} {p}");
        }
    }

    #[test]
    fn the_stop_element_is_selected_if_its_score_is_far_above() {
        let mut rng = SecureRng::seeded(8);
        let scores = Scores::new(&[4, 0, 3], 4, 1.0, 2, 700.0).unwrap();
        assert_eq!(permute_and_flip(&scores, &mut rng), Choice::Bottom);
        let nothing = Scores::new(&[0, 0], 0, 1.0, 0, 1.0).unwrap();
        assert_eq!(permute_and_flip(&nothing, &mut rng), Choice::Bottom);
    }
}
