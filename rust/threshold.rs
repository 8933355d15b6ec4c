//! The threshold of an unknown domain: the rule by which a noisy count is released, and the chance that
//! a count passes it, as one object, so that they cannot disagree.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use std::panic::resume_unwind;
use std::thread;

use crate::error::{Error, Result};
use crate::noise::Sampler;
use crate::rng::SecureRng;

/// Rows that share a stream of random bits, whatever the number of threads.
const CHUNK: usize = 1 << 16;

/// Integer noise, and the value that a noisy count must exceed.
#[derive(Debug, Clone)]
pub struct Threshold {
    noise: Sampler,
    value: i64,
}

/// Released rows of a histogram and their noisy counts.
pub type Rows = (Vec<usize>, Vec<i64>);

impl Threshold {
    /// The largest threshold, far above any count.
    pub const LIMIT: i64 = 1 << 60;

    /// A noisy count is released if it is larger than `value`.
    ///
    /// # Errors
    /// [`Error::Parameter`] where `value` is further from zero than [`Self::LIMIT`].
    pub fn new(noise: Sampler, value: i64) -> Result<Self> {
        if value.unsigned_abs() > Self::LIMIT.unsigned_abs() {
            return Err(Error::Parameter("a threshold must lie between -2^60 and 2^60"));
        }
        Ok(Self { noise, value })
    }

    /// The least threshold, from `count` up, that a true count of `count` passes with probability `p` at
    /// most, by a rigorous bound of the tail.
    ///
    /// # Errors
    /// [`Error::Parameter`] where `p` is not above zero and below one, or `count` is not from 0 to `2^35`.
    pub fn for_chance(noise: Sampler, count: i64, p: f64) -> Result<Self> {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::Parameter("the chance of a release must lie between 0 and 1"));
        }
        if !(0..=1 << 35).contains(&count) {
            return Err(Error::Parameter("a count must lie between 0 and 2^35"));
        }
        let margin = noise.law().quantile(p);
        Self::new(noise, count - 1 + margin)
    }

    /// What a noisy count must exceed.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.value
    }

    /// The rule: whether a noisy count is released.
    #[must_use]
    pub fn passes(&self, noisy: i64) -> bool {
        noisy > self.value
    }

    /// An upper bound of the probability that the noisy count of a true `count` passes.
    #[must_use]
    pub fn chance(&self, count: i64) -> f64 {
        // count + X > value if and only if X >= value - count + 1.
        self.noise.law().tail(self.value.saturating_sub(count).saturating_add(1))
    }

    /// The rows of `counts` whose noisy counts pass, and those counts. Rows with a count of zero are not in
    /// the domain and never pass.
    ///
    /// # Errors
    /// [`Error::Parameter`] where a count is negative.
    pub fn release(&self, counts: &[i64], rng: &mut SecureRng) -> Result<Rows> {
        if counts.iter().any(|&count| count < 0) {
            return Err(Error::Parameter("counts must not be negative"));
        }
        let mut tasks: Vec<(usize, &[i64], SecureRng)> = counts
            .chunks(CHUNK)
            .enumerate()
            .map(|(i, part)| (i * CHUNK, part, rng.split()))
            .collect();
        let threads =
            thread::available_parallelism().map_or(1, usize::from).min(tasks.len()).max(1);
        let share = tasks.len().div_ceil(threads);
        let parts: Vec<Rows> = thread::scope(|scope| {
            let (here, there) = tasks.split_at_mut(share);
            let others: Vec<_> = there
                .chunks_mut(share.max(1))
                .map(|share| scope.spawn(|| self.release_parts(share)))
                .collect();
            let mut parts = vec![self.release_parts(here)];
            parts.extend(
                others
                    .into_iter()
                    .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))),
            );
            parts
        });
        let (rows, noisy): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((rows.concat(), noisy.concat()))
    }

    fn release_parts(&self, tasks: &mut [(usize, &[i64], SecureRng)]) -> Rows {
        let mut noise = vec![0; CHUNK];
        let (mut rows, mut noisy) = Rows::default();
        for (start, counts, rng) in tasks {
            let noise = &mut noise[..counts.len()];
            self.noise.fill(rng, noise);
            for ((row, &count), &noise) in (*start..).zip(counts.iter()).zip(noise.iter()) {
                let value = count.saturating_add(noise);
                if count > 0 && self.passes(value) {
                    rows.push(row);
                    noisy.push(value);
                }
            }
        }
        (rows, noisy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{DiscreteGaussian, DiscreteLaplace, TruncatedGeometric};

    #[test]
    fn the_threshold_is_the_least_one_for_its_chance() {
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
    fn rows_without_users_are_never_released_and_large_ones_always() {
        let bounded: Sampler = TruncatedGeometric::new(1.0, 11).unwrap().into();
        let threshold = Threshold::new(bounded, 11).unwrap();
        let mut rng = SecureRng::seeded(1);
        let counts: Vec<i64> = (0..200_000).map(|row| if row % 2 == 0 { 0 } else { 23 }).collect();
        let (rows, noisy) = threshold.release(&counts, &mut rng).unwrap();
        assert!(rows.iter().copied().eq((1..200_000).step_by(2)));
        assert!(noisy.iter().all(|&value| (12..=34).contains(&value)));
        assert_eq!(threshold.release(&[], &mut rng), Ok((vec![], vec![])));
        assert!(threshold.release(&[-1], &mut rng).is_err());
    }
}
