//! The discrete Gaussian, `P[x] ∝ exp(-h x²)` over the integers with `h = 1/(2σ²)` rounded down.
//!
//! Canonne, Kamath and Steinke (2020), Algorithm 3, with the discrete Laplace proposal's scale `t` a
//! power of two, so that every exponent is a dyadic rational and every coin is exact.

use rand::Rng;
use rand_distr::Distribution;

use super::{Dyadic, bernoulli_exp};
use crate::error::{Error, Result};

/// Integer noise with the tails of a Gaussian: zCDP like the continuous one (theorem 4 of the source).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiscreteGaussian {
    /// `1/(2σ²)`, rounded down: never less noise than was asked for.
    precision: f64,
    /// `t = 2^scale_bits`, at least σ.
    scale_bits: u32,
    /// At least `1/(4 h t²)`, so that the acceptance exponent is never negative.
    headroom: f64,
}

impl DiscreteGaussian {
    /// The smallest and the largest σ that can be asked for.
    pub const SIGMA_RANGE: (f64, f64) = (1e-3, 1e9);

    /// Noise of scale `sigma` or a hair more.
    ///
    /// # Errors
    /// [`Error::Parameter`] where `sigma` is not in [`Self::SIGMA_RANGE`].
    pub fn new(sigma: f64) -> Result<Self> {
        let (least, most) = Self::SIGMA_RANGE;
        if !(least..=most).contains(&sigma) {
            return Err(Error::Parameter("sigma must lie between 0.001 and 1e9"));
        }
        // Three roundings of half an ulp each, undone by stepping further than that.
        let precision = 0.5 / (sigma * sigma) * (1.0 - 4.0 * f64::EPSILON);
        let scale_bits = sigma.max(1.0).log2().ceil() as u32;
        let scale = f64::from(scale_bits).exp2();
        let headroom = 0.25 / (precision * scale * scale) * (1.0 + 8.0 * f64::EPSILON);
        Ok(Self { precision, scale_bits, headroom })
    }

    /// A magnitude with `P[m] ∝ exp(-m / t)`: the remainder by rejection, the quotient by coins.
    fn magnitude<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let mask = (1_u64 << self.scale_bits) - 1;
        let exponent = -i64::from(self.scale_bits);
        let scale = f64::from(self.scale_bits).exp2();
        let remainder = loop {
            let low = rng.next_u64() & mask;
            if bernoulli_exp(rng, low as f64 / scale, 0.0, || (Dyadic::new(low, exponent), 0)) {
                break low as i64;
            }
        };
        let mut quotient = 0_i64;
        while bernoulli_exp(rng, 1.0, 0.0, || (Dyadic::new(1, 0), 0)) {
            quotient += 1;
        }
        remainder + (quotient << self.scale_bits)
    }
}

impl Distribution<i64> for DiscreteGaussian {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        loop {
            let magnitude = self.magnitude(rng);
            let negative = rng.next_u64() & 1 == 1;
            if negative && magnitude == 0 {
                continue;
            }
            // exp(-h m²) over exp(-m/t), less its greatest value exp(1/(4 h t²)).
            let m = magnitude as f64;
            let square = self.precision * m * m;
            let linear = m / f64::from(self.scale_bits).exp2();
            let slack = (square + linear + self.headroom) * (4.0 * f64::EPSILON);
            let exact = || {
                let square =
                    Dyadic::from_f64(self.precision) * Dyadic::new(i128::from(magnitude).pow(2), 0);
                let linear = Dyadic::new(magnitude, -i64::from(self.scale_bits));
                (square + Dyadic::from_f64(self.headroom) - linear, 0)
            };
            if bernoulli_exp(rng, square - linear + self.headroom, slack, exact) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SecureRng;

    fn moments(sigma: f64, draws: usize) -> (f64, f64) {
        let mut rng = SecureRng::seeded(5);
        let noise = DiscreteGaussian::new(sigma).unwrap();
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let x = noise.sample(&mut rng) as f64;
            sum += x;
            squares += x * x;
        }
        (sum / draws as f64, squares / draws as f64)
    }

    #[test]
    fn the_variance_is_that_of_the_discrete_law() {
        // Variances summed from the definition with forty digits.
        let table =
            [(0.5, 0.215_012_675_088_14), (1.0, 0.999_999_788_768_77), (3.0, 9.0), (1e6, 1e12)];
        for (sigma, variance) in table {
            let (mean, second) = moments(sigma, 200_000);
            assert!(mean.abs() < 5.0 * sigma / 200_000_f64.sqrt());
            assert!((second / variance - 1.0).abs() < 0.02, "sigma {sigma}: {second}");
        }
    }

    #[test]
    fn sigma_out_of_range_is_refused() {
        for sigma in [0.0, -1.0, 1e-4, 1e10, f64::NAN, f64::INFINITY] {
            assert!(DiscreteGaussian::new(sigma).is_err());
        }
    }

    #[test]
    fn noise_is_never_less_than_asked_for() {
        for sigma in [0.001, 0.3, 1.0, 1.7, 4_605.236_852_65, 1e9] {
            let noise = DiscreteGaussian::new(sigma).unwrap();
            let twice = Dyadic::from_f64(noise.precision) * Dyadic::new(2, 0);
            let product = twice * Dyadic::from_f64(sigma) * Dyadic::from_f64(sigma);
            assert!(!(Dyadic::new(1, 0) - product).is_negative(), "2 h sigma^2 <= 1");
        }
    }
}
