//! Bounded symmetric noise, `P[x] ∝ (N² - x²)^m` on the integers `|x| < N`. N is the reach and m the power. The
//! probabilities have the shape of a beta distribution.
//!
//! The draw is by rejection, in integers. A uniform candidate `x` must pass `m` tests with the probability
//! `(N² - x²) / N²` each. For large `m`, about one candidate in `2 √(m/π)` is accepted.

use rand::Rng;
use rand_distr::Distribution;

use super::bernoulli::uniform_below;
use crate::error::{Error, Result};

/// Integer noise whose absolute value is below `reach`.
#[derive(Debug, Clone, Copy)]
pub struct BoundedBeta {
    reach: u64,
    power: u32,
}

impl BoundedBeta {
    /// The largest reach. The square of the reach fits into 64 bits.
    pub const REACH_LIMIT: u64 = 1 << 31;
    /// The largest power.
    pub const POWER_LIMIT: u32 = 1000;

    /// Create noise with `|x| < reach`. A larger `power` gives narrower noise.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `reach` is not between 1 and [`Self::REACH_LIMIT`] or `power` above
    /// [`Self::POWER_LIMIT`].
    pub fn new(reach: u64, power: u32) -> Result<Self> {
        if !(1..=Self::REACH_LIMIT).contains(&reach) || power > Self::POWER_LIMIT {
            return Err(Error::Parameter(
                "reach must lie between 1 and 2^31, and power must be at most 1,000",
            ));
        }
        Ok(Self { reach, power })
    }
}

impl Distribution<i64> for BoundedBeta {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let square = self.reach * self.reach;
        loop {
            let candidate = uniform_below(rng, 2 * self.reach - 1) as i64 - (self.reach as i64 - 1);
            let limit = square - candidate.unsigned_abs().pow(2);
            if (0..self.power).all(|_| uniform_below(rng, square) < limit) {
                return candidate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::{SecureRng, repetitions};

    #[test]
    fn draws_follow_the_distribution() {
        let law = BoundedBeta::new(4, 3).unwrap();
        let weights: Vec<f64> = (-3_i64..=3).map(|x| ((16 - x * x) as f64).powi(3)).collect();
        let total: f64 = weights.iter().sum();
        let draws = repetitions(200_000);
        let mut seen = [0_u32; 7];
        let mut rng = SecureRng::seeded(3);
        (0..draws).for_each(|_| seen[(law.sample(&mut rng) + 3) as usize] += 1);
        for (count, weight) in seen.iter().zip(&weights) {
            let p = weight / total;
            let expected = f64::from(draws) * p;
            assert!((f64::from(*count) - expected).abs() < 6.0 * (expected * (1.0 - p)).sqrt());
        }
    }

    #[test]
    fn parameters_beyond_the_ends_of_the_range_are_refused() {
        let mut rng = SecureRng::seeded(4);
        assert_eq!(BoundedBeta::new(1, 1000).unwrap().sample(&mut rng), 0);
        let widest = BoundedBeta::new(BoundedBeta::REACH_LIMIT, 2).unwrap();
        assert!(widest.sample(&mut rng).unsigned_abs() < BoundedBeta::REACH_LIMIT);
        for (reach, power) in [(0, 1), (BoundedBeta::REACH_LIMIT + 1, 1), (5, 1001)] {
            assert!(BoundedBeta::new(reach, power).is_err());
        }
    }
}
