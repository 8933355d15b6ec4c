//! Sparse vector: the first noisy value that reaches a noisy threshold (Dwork and Roth 2014, Theorem 3.23).
//!
//! A search draws the noise of the threshold once, and then one noise for each value it visits. Noise is drawn in
//! blocks; draws beyond the value that a search finds are dropped, and no other value uses them.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;
use rand_distr::Distribution;

use crate::error::{Error, Result};
use crate::noise::Sampler;
use crate::random::rng::SecureRng;

/// Values whose noise is drawn at a time.
const BLOCK: usize = 1 << 9;
/// The base-2 logarithm of the most values that are shuffled in place, so that they fit into cache.
const IN_PLACE: u32 = 12;

/// A function that is called now and then. Its error ends the work, without an answer.
pub type Tick<'a> = &'a mut dyn FnMut() -> Result<()>;

/// A threshold, and the laws of its noise and of the noise of a value.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The value to reach.
    pub threshold: i64,
    /// The law of the noise of the threshold.
    pub of_threshold: &'a Sampler,
    /// The law of the noise of a value.
    pub of_query: &'a Sampler,
}

impl Search<'_> {
    /// Return the place of the first noisy value that reaches the noisy threshold. The search visits the values from
    /// `start` on, and then the values before `start`. It calls `tick` before each block of noise.
    ///
    /// # Errors
    /// The error of `tick`, which ends the search.
    pub fn first(
        &self,
        values: &[i64],
        start: usize,
        rng: &mut SecureRng,
        tick: Tick<'_>,
    ) -> Result<Option<usize>> {
        let bar = self.threshold.saturating_add(self.of_threshold.sample(rng));
        let (before, after) = values.split_at(start);
        if let Some(place) = self.first_above(bar, after, rng, tick)? {
            return Ok(Some(start + place));
        }
        self.first_above(bar, before, rng, tick)
    }

    fn first_above(
        &self,
        bar: i64,
        values: &[i64],
        rng: &mut SecureRng,
        tick: Tick<'_>,
    ) -> Result<Option<usize>> {
        let mut noise = [0; BLOCK];
        for (number, values) in values.chunks(BLOCK).enumerate() {
            tick()?;
            let noise = &mut noise[..values.len()];
            self.of_query.fill(rng, noise);
            let reaches = |(&value, &noise): (&i64, &i64)| value.saturating_add(noise) >= bar;
            if let Some(place) = values.iter().zip(noise.iter()).position(reaches) {
                return Ok(Some(number * BLOCK + place));
            }
        }
        Ok(None)
    }
}

/// Search `runs` times for an answer that is off by about the threshold or more, and measure each answer that a run
/// finds again with noise from `again`. All runs use one random order, and each begins at a random place.
///
/// `values` and `answers` must be equally long.
///
/// # Errors
/// [`Error::Parameter`] if there are not fewer than 2^32 values; the error of `tick`. The answers are then half
/// corrected, and must be dropped.
#[allow(clippy::too_many_arguments, reason = "the parameters of a stage")]
pub fn correct(
    values: &[i64],
    answers: &mut [i64],
    runs: usize,
    search: Search<'_>,
    again: &Sampler,
    rng: &mut SecureRng,
    tick: Tick<'_>,
) -> Result<()> {
    let order = shuffled(values.len(), rng)?;
    let size = order.len() as u32;
    if size == 0 {
        return Ok(());
    }
    let distance = |value: i64, answer: i64| value.saturating_sub(answer).saturating_abs();
    // The distances in the order of the searches, which then read memory from beginning to end.
    let rows = order.iter().map(|&row| row as usize);
    let mut distances: Vec<i64> = rows.map(|row| distance(values[row], answers[row])).collect();
    for _ in 0..runs {
        let start = below(size, rng) as usize;
        if let Some(place) = search.first(&distances, start, rng, tick)? {
            let row = order[place] as usize;
            answers[row] = values[row].saturating_add(again.sample(rng));
            distances[place] = distance(values[row], answers[row]);
        }
    }
    Ok(())
}

/// Return the numbers below `size` in a uniformly random order.
///
/// # Errors
/// [`Error::Parameter`] if `size` is not below 2^32.
pub fn shuffled(size: usize, rng: &mut SecureRng) -> Result<Vec<u32>> {
    shuffled_in_buckets(size, size.max(1).ilog2().saturating_sub(IN_PLACE), rng)
}

/// Shuffle by dealing the numbers into `2^bits` buckets at random, and shuffling each bucket (Rao and Sandelius 1961).
/// The order is uniform: the buckets' contents are exchangeable, and each bucket is in a uniform order.
fn shuffled_in_buckets(size: usize, bits: u32, rng: &mut SecureRng) -> Result<Vec<u32>> {
    let size = u32::try_from(size)
        .map_err(|_| Error::Parameter("a list to shuffle must have fewer than 2^32 entries"))?;
    if bits == 0 {
        let mut order: Vec<u32> = (0..size).collect();
        shuffle(&mut order, rng);
        return Ok(order);
    }
    let buckets: Vec<u32> = (0..size).map(|_| rng.next_u32() >> (32 - bits)).collect();
    let mut ends = vec![0_usize; 1 << bits];
    for &bucket in &buckets {
        ends[bucket as usize] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let mut order = vec![0; size as usize];
    for (number, &bucket) in (0..size).zip(&buckets) {
        let end = &mut ends[bucket as usize];
        order[*end] = number;
        *end += 1;
    }
    let mut rest = &mut order[..];
    let mut start = 0;
    for end in ends {
        let (bucket, others) = rest.split_at_mut(end - start);
        shuffle(bucket, rng);
        (rest, start) = (others, end);
    }
    Ok(order)
}

/// Shuffle in place (Fisher and Yates). `values` must have fewer than 2^32 entries.
fn shuffle(values: &mut [u32], rng: &mut SecureRng) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(last as u32 + 1, rng) as usize);
    }
}

/// Return a uniform number below `n`, which must be above zero (Lemire 2019).
#[inline]
fn below(n: u32, rng: &mut SecureRng) -> u32 {
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(n);
        let low = product as u32;
        // Reject the lowest 2^32 mod n values of each number, so that all numbers have equally many.
        if low >= n || low >= n.wrapping_neg() % n {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::DiscreteLaplace;
    use crate::random::rng::repetitions;

    #[test]
    fn all_orders_are_equally_likely() {
        let runs = repetitions(240_000);
        for bits in 0..3 {
            let mut seen = std::collections::HashMap::new();
            let mut rng = SecureRng::seeded(u64::from(bits));
            for _ in 0..runs {
                let order = shuffled_in_buckets(4, bits, &mut rng).unwrap();
                *seen.entry(order).or_insert(0_u32) += 1;
            }
            let each = f64::from(runs) / 24.0;
            let squares: f64 = seen.values().map(|&n| (f64::from(n) - each).powi(2) / each).sum();
            assert_eq!(seen.len(), 24);
            // Chi squared with 23 degrees of freedom exceeds 70 with a probability of 1e-6.
            assert!(squares < 70.0, "{squares} with {bits} bits");
        }
    }

    #[test]
    fn an_order_of_any_size_has_every_number_once() {
        let mut rng = SecureRng::seeded(3);
        for size in [0, 1, 2, 4095, 8191, 8192, 100_003] {
            let mut order = shuffled(size, &mut rng).unwrap();
            let fixed = order.iter().enumerate().filter(|&(n, &m)| n == m as usize).count();
            assert!(size < 3 || fixed < 12);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..size as u32));
        }
        assert!(shuffled(1 << 32, &mut rng).is_err());
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        // 2^32 mod 3 is one, so the first word, zero, is rejected.
        assert_eq!(below(3, &mut SecureRng::scripted(&[0, 1 << 31])), 1);
        assert_eq!(below(3, &mut SecureRng::scripted(&[u32::MAX])), 2);
        assert_eq!(below(1, &mut SecureRng::scripted(&[u32::MAX])), 0);
        assert_eq!(below(1 << 31, &mut SecureRng::scripted(&[0])), 0);
        let mut rng = SecureRng::seeded(5);
        let n = u32::MAX / 3 * 2;
        let runs = repetitions(100_000);
        let low = (0..runs).filter(|_| below(n, &mut rng) < n / 2).count() as f64;
        assert!((low - f64::from(runs) / 2.0).abs() < 3.0 * f64::from(runs).sqrt());
    }

    #[test]
    fn a_search_visits_all_places_in_turn() {
        let none: Sampler = DiscreteLaplace::new(1.0 / 64.0).unwrap().into();
        let search = Search { threshold: 10, of_threshold: &none, of_query: &none };
        let mut rng = SecureRng::seeded(1);
        let mut values = vec![0; 3 * BLOCK + 7];
        let mut first =
            |values: &[i64], start| search.first(values, start, &mut rng, &mut || Ok(())).unwrap();
        assert_eq!(first(&values, 5), None);
        assert_eq!(first(&[], 0), None);
        for place in [0, 4, BLOCK, 3 * BLOCK + 6] {
            values[place] = 10;
            for start in [0, 4, 5, BLOCK, BLOCK + 1, values.len()] {
                let mut places = (start..values.len()).chain(0..start);
                let expected = places.find(|&place| values[place] == 10);
                assert_eq!(first(&values, start), expected);
            }
        }
        values.fill(i64::MIN);
        assert_eq!(first(&values, 0), None);
        assert_eq!(first(&[i64::MAX], 0), Some(0));
    }

    #[test]
    fn answers_that_are_off_are_measured_again() {
        let none: Sampler = DiscreteLaplace::new(1.0 / 64.0).unwrap().into();
        let search = Search { threshold: 100, of_threshold: &none, of_query: &none };
        let values: Vec<i64> = (0..5000).collect();
        let off = |row: usize| row % 500 == 3;
        let mut rng = SecureRng::seeded(2);
        for runs in [0, 4, 10, 12] {
            let start = |row| values[row] + if off(row) { -500 } else { 99 };
            let mut answers: Vec<i64> = (0..5000).map(start).collect();
            correct(&values, &mut answers, runs, search, &none, &mut rng, &mut || Ok(())).unwrap();
            let right = (0..5000).filter(|&row| answers[row] == values[row]).count();
            assert_eq!(right, runs.min(10));
            assert!((0..5000).all(|row| off(row) || answers[row] == values[row] + 99));
        }
        correct(&[], &mut [], 3, search, &none, &mut rng, &mut || Ok(())).unwrap();
    }
    #[test]
    fn an_interrupt_ends_a_search_and_no_draw_is_used_again() {
        let law: Sampler = DiscreteLaplace::new(4.0).unwrap().into();
        let search = Search { threshold: 1 << 40, of_threshold: &law, of_query: &law };
        let values = vec![0; 10 * BLOCK];
        let mut rng = SecureRng::seeded(7);
        let mut left = 3;
        let mut tick = || {
            left -= 1;
            if left == 0 { Err(Error::Resource("interrupted")) } else { Ok(()) }
        };
        let ended = search.first(&values, 0, &mut rng, &mut tick);
        assert_eq!(ended, Err(Error::Resource("interrupted")));
        // One draw for the threshold and two blocks.
        let mut twin = SecureRng::seeded(7);
        law.fill(&mut twin, &mut [0; 1 + 2 * BLOCK]);
        assert_eq!(rng.next_u64(), twin.next_u64());
    }
}
