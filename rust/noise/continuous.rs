//! Continuous noise in floating point, for what is not published as it is: square-root streams, the
//! comparison with papers, the selection of real scores. NEVER on the path of a published count, whose
//! low-order bits would tell what it was.
#![allow(
    clippy::float_arithmetic,
    reason = "continuous noise is floating point; nothing exact is here"
)]

use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// Floating-point noise of a scale, around zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Continuous {
    /// The Gaussian of this standard deviation.
    Gaussian(f64),
    /// The Laplace law with density `exp(-|x| / scale) / (2 scale)`.
    Laplace(f64),
    /// The Gumbel law with distribution function `exp(-exp(-x / scale))`.
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
            // The upper tail is as fine as the middle: it comes from numbers near zero.
            Self::Gumbel(scale) => scale * -(-(-full_uniform(rng)).ln_1p()).ln(),
        }
    }
}

/// A uniform number in `(0, 1)`: its exponent by coins, its mantissa by 52 bits.
fn full_uniform<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    let word = rng.next_u64();
    // Twelve coins, and a mark behind them.
    let mut zeros = (word << 52 | 1 << 51).leading_zeros();
    if zeros == 12 {
        let more = (0..15).map(|_| rng.next_u64().leading_zeros());
        let mut open = true;
        zeros += more.take_while(|&more| std::mem::replace(&mut open, more == 64)).sum::<u32>();
    }
    f64::from_bits((word >> 12) | u64::from(1022 - zeros) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SecureRng;

    #[test]
    fn moments_are_those_of_the_laws() {
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

    #[test]
    fn uniform_numbers_have_full_exponents() {
        let half = full_uniform(&mut SecureRng::scripted(&[1 << 11, 0]));
        assert!((half - 0.5).abs() == 0.0);
        // Twelve coins, then 64, then three more.
        let tiny = full_uniform(&mut SecureRng::scripted(&[0, 0, 0, 0, 0, 1 << 28, 0, 0]));
        assert!((tiny - (-80.0_f64).exp2()).abs() == 0.0);
        let least = full_uniform(&mut SecureRng::scripted(&[0; 40]));
        assert!(least > 0.0 && least < 1e-290);
    }
}
