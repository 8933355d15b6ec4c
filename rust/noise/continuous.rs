//! Continuous noise in floating point, only for comparisons with papers and other libraries. NEVER use this noise for a
//! published count: the low-order bits of the sum can reveal the true count.
#![allow(clippy::float_arithmetic, reason = "continuous noise is floating point by design")]

use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

use super::float_gumbel::{fill_float_gumbel, float_gumbel};
use crate::random::rng::SecureRng;

/// Floating-point noise. The scale must be finite and above zero. Gaussian and Laplace draws for one seed may differ
/// between platforms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Continuous {
    /// The Gaussian distribution with this standard deviation.
    Gaussian(f64),
    /// The Laplace distribution with density `exp(-|x| / scale) / (2 scale)`.
    Laplace(f64),
    /// The Gumbel distribution with distribution function `exp(-exp(-x / scale))`.
    Gumbel(f64),
}

impl Distribution<f64> for Continuous {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        match *self {
            Self::Gaussian(scale) => {
                let standard: f64 = StandardNormal.sample(rng);
                scale * standard
            }
            Self::Laplace(scale) => {
                let magnitude: f64 = Exp1.sample(rng);
                if rng.next_u32() & 1 == 0 { scale * magnitude } else { -scale * magnitude }
            }
            Self::Gumbel(scale) => scale * float_gumbel(rng),
        }
    }
}

impl Continuous {
    /// Fill `out` with the same values as repeated sampling. Gumbel noise is drawn in bulk, which is faster.
    pub fn fill(&self, rng: &mut SecureRng, out: &mut [f64]) {
        match *self {
            Self::Gumbel(scale) => fill_float_gumbel(scale, rng, out),
            _ => out.iter_mut().for_each(|slot| *slot = self.sample(rng)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "moments take many draws")]
    fn moments_match_the_distributions() {
        let draws = 400_000;
        let euler = 0.577_215_664_901_532_9;
        let pi = std::f64::consts::PI;
        for (law, mean, variance) in [
            (Continuous::Gaussian(3.0), 0.0, 9.0),
            (Continuous::Laplace(3.0), 0.0, 18.0),
            (Continuous::Gumbel(3.0), 3.0 * euler, 9.0 * pi * pi / 6.0),
        ] {
            let mut rng = SecureRng::seeded(1);
            let values: Vec<f64> = (0..draws).map(|_| law.sample(&mut rng)).collect();
            let average = values.iter().sum::<f64>() / f64::from(draws);
            let spread = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(draws);
            assert!((average - mean).abs() < 5.0 * (variance / f64::from(draws)).sqrt());
            assert!((spread / variance - 1.0).abs() < 0.02);
        }
    }
}
