//! The selection of the largest of real scores with Gumbel noise, in floating point, with the loss of
//! privacy that its rounding costs: one object, so that neither is used without the other.

use crate::error::{Error, Result};
use crate::noise::Continuous;
use crate::rng::SecureRng;

/// How many scales a score may lie below the best one.
const REACH: f64 = 512.0;
/// How many scores are given noise at a time.
const BATCH: usize = 512;

/// The exponential mechanism on scores between 0 and `spread`, by Gumbel noise of a scale.
///
/// A noisy score errs by at most `η = 2^-49 (scale (|G| + 1) + spread)`, where `|G| < 666`, so that each
/// probability is within a factor `exp(±2η / scale)` of the exact one and the bounded range grows by
/// `4η / scale` at most.
///
/// Noise beyond 665, which has a chance below `2^-959`, is missing. So that it never decides, scores are
/// lifted to within 512 scales of the best one: this moves no two neighbours' scores further apart, and
/// leaves every candidate more than `2^200` times the chance of what is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RealGumbel {
    scale: f64,
    spread: f64,
}

impl RealGumbel {
    /// A selection with this scale among scores of this spread, both fixed before the scores are seen.
    ///
    /// # Errors
    /// [`Error::Parameter`] where either is not from `1e-9` to `1e15`, or the spread over the scale is more
    /// than `2^32`.
    pub fn new(scale: f64, spread: f64) -> Result<Self> {
        let range = 1e-9..=1e15;
        if range.contains(&scale)
            && range.contains(&spread)
            && spread / scale <= (1_u64 << 32) as f64
        {
            Ok(Self { scale, spread })
        } else {
            Err(Error::Parameter(
                "scale and spread must lie between 1e-9 and 1e15, within 2^32 of each other",
            ))
        }
    }

    /// What one draw adds to the bounded range (the pure ε) of the exact exponential mechanism.
    #[must_use]
    pub fn loss(&self) -> f64 {
        // The factor makes up for the roundings of this line, and for the noise that is missing.
        (667.0 + self.spread / self.scale) / (1_u64 << 47) as f64 * (1.0 + 1e-12)
    }

    /// The slot selected; scores beyond 0 and the spread are moved there, and what is not a number
    /// counts as zero.
    ///
    /// # Errors
    /// [`Error::Parameter`] where there are no scores.
    pub fn select(&self, scores: &[f64], rng: &mut SecureRng) -> Result<usize> {
        let within = |score: f64| score.max(0.0).min(self.spread);
        let floor = scores.iter().copied().map(within).fold(0.0, f64::max) - REACH * self.scale;
        let mut noise = [0.0; BATCH];
        let mut best = None;
        for (part, first) in scores.chunks(BATCH).zip((0..).step_by(BATCH)) {
            Continuous::Gumbel(self.scale).fill(rng, &mut noise[..part.len()]);
            for ((slot, score), noise) in (first..).zip(part).zip(noise) {
                let noisy = within(*score).max(floor) + noise;
                if best.is_none_or(|(_, most)| noisy > most) {
                    best = Some((slot, noisy));
                }
            }
        }
        best.map(|(slot, _)| slot).ok_or(Error::Parameter("a selection needs at least one score"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::repetitions;

    #[test]
    fn draws_follow_the_exponential_mechanism() {
        let gumbel = RealGumbel::new(2.0, 10.0).unwrap();
        let mut rng = SecureRng::seeded(1);
        let (draws, mut seen) = (repetitions(300_000), [0_u32; 3]);
        for _ in 0..draws {
            seen[gumbel.select(&[1.5, -7.0, 99.0], &mut rng).unwrap()] += 1;
        }
        let weights = [0.75_f64.exp(), 1.0, 5_f64.exp()];
        for (seen, weight) in seen.into_iter().zip(weights) {
            let p = weight / weights.iter().sum::<f64>();
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(seen) - p * f64::from(draws)).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn the_loss_is_small_and_never_zero() {
        let loss = RealGumbel::new(2.0, 10.0).unwrap().loss();
        assert!(loss > 4.7e-12 && loss < 4.8e-12);
        for (scale, spread) in [(0.0, 1.0), (1.0, f64::NAN), (1e-9, 1e9), (1.0, f64::INFINITY)] {
            assert!(RealGumbel::new(scale, spread).is_err());
        }
        assert!(RealGumbel::new(1.0, 1.0).unwrap().select(&[], &mut SecureRng::seeded(1)).is_err());
    }
}
