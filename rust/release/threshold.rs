//! Noisy counts above a threshold, for items that are not known in advance.
//!
//! A row is an item's place in a histogram. The row's noisy count is its count plus noise. A noisy count passes if it
//! exceeds the threshold; it is then released. The same object decides which noisy counts pass and computes the
//! probability that a noisy count passes, so both use the same threshold and noise.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use crate::error::{Error, Result};
use crate::noise::Sampler;
use crate::random::parallel::{Part, of_parts};
use crate::random::rng::SecureRng;

/// Integer noise, and the threshold that a noisy count must exceed.
#[derive(Debug, Clone)]
pub struct Threshold {
    noise: Sampler,
    value: i64,
}

/// Released row numbers and their noisy counts.
pub type Rows = (Vec<usize>, Vec<i64>);

impl Threshold {
    /// The largest absolute value of a threshold.
    pub const LIMIT: i64 = 1 << 60;

    /// Create a threshold that releases noisy counts larger than `value`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the absolute value of `value` is above [`Self::LIMIT`].
    pub fn new(noise: Sampler, value: i64) -> Result<Self> {
        if value.unsigned_abs() > Self::LIMIT.unsigned_abs() {
            return Err(Error::Parameter("a threshold must lie between -2^60 and 2^60"));
        }
        Ok(Self { noise, value })
    }

    /// Return the least threshold of at least `count` with `chance(count) <= p`. So the noisy count of a true `count`
    /// passes with probability at most `p`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `p` is not a normal number between zero and one, or `count` is not between 0 and `2^35`.
    pub fn for_chance(noise: Sampler, count: i64, p: f64) -> Result<Self> {
        if !(0..=1 << 35).contains(&count) {
            return Err(Error::Parameter("a count must lie between 0 and 2^35"));
        }
        let margin = noise.law().quantile(p)?;
        Self::new(noise, count - 1 + margin)
    }

    /// Return the threshold, which a noisy count must exceed.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.value
    }

    /// Return whether a noisy count passes.
    #[must_use]
    pub fn passes(&self, noisy: i64) -> bool {
        noisy > self.value
    }

    /// Return an upper bound of the probability that the noisy count of a true `count` passes.
    #[must_use]
    pub fn chance(&self, count: i64) -> f64 {
        // Integer noise X passes if count + X > value, that is, if X >= value - count + 1.
        self.noise.law().tail(self.value.saturating_sub(count).saturating_add(1))
    }

    /// Add noise to `counts`. Return the rows whose noisy counts pass, and these noisy counts. Never return a row whose
    /// count is at most zero, because no user has its item.
    #[must_use]
    pub fn release(&self, counts: &[i64], rng: &mut SecureRng) -> Rows {
        let parts = of_parts(counts, rng, |part| self.release_part(part));
        let (rows, noisy): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        (rows.concat(), noisy.concat())
    }

    fn release_part(&self, (start, counts, mut rng): Part<'_>) -> Rows {
        let mut noise = vec![0; counts.len()];
        self.noise.fill(&mut rng, &mut noise);
        let (mut rows, mut noisy) = Rows::default();
        for ((row, &count), noise) in (start..).zip(counts).zip(noise) {
            let value = count.saturating_add(noise);
            if count > 0 && self.passes(value) {
                rows.push(row);
                noisy.push(value);
            }
        }
        (rows, noisy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{DiscreteGaussian, DiscreteLaplace, TruncatedGeometric};
    use crate::random::rng::repetitions;

    #[test]
    #[cfg_attr(miri, ignore = "too many digits")]
    fn thresholds_for_a_probability_match_precomputed_values() {
        let laplace: Sampler = DiscreteLaplace::new(1.0).unwrap().into();
        let threshold = Threshold::for_chance(laplace, 1, 1e-6).unwrap();
        assert_eq!(threshold.value(), 14);
        assert!((threshold.chance(1) / 6.078_962_034_778_8e-7 - 1.0).abs() < 1e-12);
        assert!((threshold.chance(14) / 0.268_941_421_37 - 1.0).abs() < 1e-10);
        for (sigma, count, p, value) in
            [(1.0, 1, 1e-6, 6), (2.0, 1, 1e-9, 13), (30.0, 3, 1e-12, 214)]
        {
            let gaussian: Sampler = DiscreteGaussian::new(sigma).unwrap().into();
            assert_eq!(Threshold::for_chance(gaussian, count, p).unwrap().value(), value);
        }
        assert!(threshold.passes(15) && !threshold.passes(14));
    }

    #[test]
    fn bounded_noise_releases_all_large_counts_and_no_zeros() {
        let bounded: Sampler = TruncatedGeometric::new(1.0, 11).unwrap().into();
        let threshold = Threshold::new(bounded, 11).unwrap();
        let mut rng = SecureRng::seeded(1);
        let rows = repetitions(200_000) as usize;
        let counts: Vec<i64> = (0..rows).map(|row| if row % 2 == 0 { 0 } else { 23 }).collect();
        let (released, noisy) = threshold.release(&counts, &mut rng);
        assert!(released.into_iter().eq((1..rows).step_by(2)));
        assert!(noisy.iter().all(|&value| (12..=34).contains(&value)));
        assert_eq!(threshold.release(&[], &mut rng), (vec![], vec![]));
        assert_eq!(threshold.release(&[-1, i64::MIN], &mut rng), (vec![], vec![]));
    }
}
