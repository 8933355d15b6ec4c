//! Convolution powers of distributions on a grid, computed with a fast Fourier transform. The rounding error has a
//! rigorous bound.
//!
//! Let `u = 2^-53`. The relative error of a complex product is at most `√5 u` (Brent, Percival and Zimmermann 2007),
//! and that of a sum is at most `u`. The roots of unity below have an error of at most `2 u`. In a transform of `2^L`
//! numbers, every input reaches every output through `L` products and `L` sums, and the error factors multiply along
//! this path. So the error of an output is at most `((1 + √5 u)(1 + u)(1 + 2u))^L - 1 < 6 L u` times the sum of the
//! inputs' absolute values.
//!
//! Let a value `q` of a transform have an error of at most `e`. Then `q^k` has an error of at most
//! `(|q| + e)^k - |q|^k` plus the errors of the products. The inverse transform adds its own error, and averages the
//! errors of its inputs.

use num_bigint::BigInt;

use crate::error::{Error, Result};

/// The unit roundoff.
const U: f64 = f64::EPSILON / 2.0;
/// Fractional bits of the roots of unity during their computation.
const PLACES: u32 = 62;
/// The binary logarithm of the length of the largest transform.
const BITS_LIMIT: u32 = 24;
/// The largest number of parts, counted with repetitions.
const POWER_LIMIT: u64 = 1 << 30;
/// A factor that covers the rounding of the error bounds, which take up to `2^30` products.
const SLACK: f64 = 1.0 + 1e-6;

/// Return the cyclic convolution of all parts, and an error bound that holds for every entry. A part is a list of
/// masses and the number of times that it is repeated.
///
/// # Errors
/// [`Error::Parameter`] if the parts differ in length, or their length is not a power of two up to `2^24`. Also if a
/// mass is negative or not finite, or there are more than `2^30` parts in all.
pub fn compose(parts: &[(Vec<f64>, u64)]) -> Result<(Vec<f64>, f64)> {
    let size = parts.first().map_or(0, |(masses, _)| masses.len());
    let legal = |(masses, _): &(Vec<f64>, u64)| {
        masses.len() == size && masses.iter().all(|mass| mass.is_finite() && *mass >= 0.0)
    };
    let powers = parts.iter().try_fold(0, |sum: u64, (_, power)| sum.checked_add(*power));
    if !size.is_power_of_two()
        || size > 1 << BITS_LIMIT
        || !parts.iter().all(legal)
        || powers.is_none_or(|sum| sum > POWER_LIMIT)
    {
        return Err(Error::Parameter(
            "distributions to compose must have the same length, a power of two up to 2^24, and finite masses of at \
             least 0; they may be repeated at most 2^30 times in all",
        ));
    }
    let bits = size.trailing_zeros();
    let roots = roots(bits);
    let error = 6.0 * f64::from(bits.max(1)) * U;
    let mut product = vec![Complex { re: 1.0, im: 0.0 }; size];
    // For each entry, an upper bound of the absolute value of the exact product, and a bound of its relative error.
    let mut sizes = vec![1.0_f64; size];
    let mut losses = vec![0.0_f64; size];
    for (masses, power) in parts {
        let total = masses.iter().sum::<f64>() * SLACK;
        let mut transform: Vec<Complex> =
            masses.iter().map(|&re| Complex { re, im: 0.0 }).collect();
        fourier(&mut transform, &roots);
        // The transform of real numbers is conjugate symmetric, so the first half determines the second half.
        for (i, value) in transform.into_iter().take(size / 2 + 1).enumerate() {
            let size = value.re.hypot(value.im) * (1.0 + 8.0 * U) + error * total;
            product[i] = product[i].times(value.power(*power));
            sizes[i] *= raised(size, *power);
            // Add the transform's error for each factor, and more than √5 u for each product.
            let relative = if size > 0.0 { error * total / size } else { 0.0 };
            losses[i] += (*power as f64) * (relative + 3.0 * U);
        }
    }
    for i in size / 2 + 1..size {
        let mirror = size - i;
        product[i] = Complex { im: -product[mirror].im, ..product[mirror] };
        (sizes[i], losses[i]) = (sizes[mirror], losses[mirror]);
    }
    let mut spread = 0.0;
    for (size, loss) in sizes.iter().zip(&losses) {
        // The first error is at most 2.1 `size`, because the exact and the computed value are both at most about
        // `size`.
        spread += size * (loss.exp_m1().min(2.1) + error);
    }
    for value in &mut product {
        value.im = -value.im;
    }
    fourier(&mut product, &roots);
    let scale = 1.0 / size as f64;
    let composed = product.into_iter().map(|value| value.re * scale).collect();
    Ok((composed, spread * scale * SLACK + 1e-300))
}

/// Return `size^power` by repeated squaring.
fn raised(size: f64, mut power: u64) -> f64 {
    let (mut result, mut square) = (1.0, size);
    while power > 0 {
        if power & 1 == 1 {
            result *= square;
        }
        square *= square;
        power >>= 1;
    }
    result
}

/// A complex number.
#[derive(Debug, Clone, Copy)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    #[inline]
    fn times(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }

    /// Return the power. Each factor takes part in at most `power - 1` products.
    fn power(self, mut power: u64) -> Self {
        let (mut result, mut square) = (Self { re: 1.0, im: 0.0 }, self);
        while power > 0 {
            if power & 1 == 1 {
                result = result.times(square);
            }
            power >>= 1;
            if power > 0 {
                square = square.times(square);
            }
        }
        result
    }
}

/// Compute `Σ x_k ω^(jk)` with `ω = exp(-2πi/n)` for every `j`, in place. Reorders the values by bit reversal, then
/// adds them in butterflies.
fn fourier(values: &mut [Complex], roots: &[Complex]) {
    let size = values.len();
    let bits = size.trailing_zeros();
    for i in 1..size {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            values.swap(i, j);
        }
    }
    let mut half = 1;
    while half < size {
        let level: Vec<Complex> = roots.iter().step_by(size / (2 * half)).copied().collect();
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((a, b), root) in low.iter_mut().zip(high).zip(&level) {
                let turned = b.times(*root);
                *b = Complex { re: a.re - turned.re, im: a.im - turned.im };
                *a = Complex { re: a.re + turned.re, im: a.im + turned.im };
            }
        }
        half *= 2;
    }
}

/// Return `exp(-2πi j / 2^bits)` for `j` below `2^(bits - 1)`. Each root is a product of roots at powers of two,
/// computed in integers.
///
/// Each product errs by at most two units of `2^-62`, and each factor by at most one unit. There are fewer than 24
/// products in a row. Together with the rounding to a float, the error is below `2 u`.
fn roots(bits: u32) -> Vec<Complex> {
    let one = 1_i64 << PLACES;
    let mut table = vec![(one, 0_i64)];
    for (cosine, sine) in angles(bits) {
        for i in 0..table.len() {
            let (c, s) = table[i];
            let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
            let re = (product(c, cosine) - product(s, sine)) >> PLACES;
            let im = (product(c, sine) + product(s, cosine)) >> PLACES;
            table.push((re as i64, im as i64));
        }
    }
    let number = |x: i64| x as f64 / one as f64;
    table.into_iter().map(|(re, im)| Complex { re: number(re), im: -number(im) }).collect()
}

/// Return cosine and sine of a full turn divided by `2^(bits - i)`, for `i` from zero to `bits - 2`. Each angle is
/// half of the next angle.
fn angles(bits: u32) -> Vec<(i64, i64)> {
    let places = 2 * PLACES;
    let one = BigInt::from(1) << places;
    // Start with a quarter turn. Each square root errs by less than one unit, which is far below the kept bits.
    let (mut cosine, mut sine) = (BigInt::ZERO, one.clone());
    let mut angles = Vec::new();
    for _ in 1..bits {
        let kept = |value: &BigInt| i64::try_from(value >> PLACES).unwrap_or(0);
        angles.push((kept(&cosine), kept(&sine)));
        let half: BigInt = ((&one + &cosine) << (places - 1)).sqrt();
        sine = (sine << (places - 1)) / &half;
        cosine = half;
    }
    angles.reverse();
    angles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_unity_are_correct_to_two_units() {
        for bits in [1, 2, 3, 10, 18] {
            let roots = roots(bits);
            assert_eq!(roots.len(), 1 << (bits - 1));
            for (j, root) in roots.iter().enumerate() {
                let angle = -2.0 * std::f64::consts::PI * j as f64 / f64::from(1 << bits);
                let off = (root.re - angle.cos()).hypot(root.im - angle.sin());
                assert!(off <= 8.0 * U, "{bits} {j} {off}");
            }
        }
    }

    #[test]
    fn a_composed_coin_is_binomial_within_the_error_bound() {
        let mut coin = vec![0.0; 64];
        (coin[0], coin[1]) = (0.25, 0.75);
        let (law, error) = compose(&[(coin, 40)]).unwrap();
        let mut exact = vec![1.0_f64];
        for _ in 0..40 {
            let next = |i: usize| {
                let below = if i > 0 { exact[i - 1] } else { 0.0 };
                0.75 * below + 0.25 * exact.get(i).copied().unwrap_or(0.0)
            };
            exact = (0..=exact.len()).map(next).collect();
        }
        assert!(error < 1e-13);
        for (i, value) in law.iter().enumerate() {
            assert!((value - exact.get(i).copied().unwrap_or(0.0)).abs() <= error);
        }
    }

    #[test]
    fn the_convolution_of_several_parts_is_cyclic() {
        let point = |at: usize| (0..8).map(|i| f64::from(u8::from(i == at))).collect::<Vec<_>>();
        let (law, error) = compose(&[(point(3), 5), (point(2), 1), (point(1), 0)]).unwrap();
        assert!(
            law.iter().enumerate().all(|(i, p)| (p - f64::from(u8::from(i == 1))).abs() <= error)
        );
        let (one, _) = compose(&[(vec![0.5], 3)]).unwrap();
        assert!((one[0] - 0.125).abs() < 1e-15);
    }

    #[test]
    fn invalid_distributions_are_refused() {
        for parts in [
            vec![],
            vec![(vec![1.0; 3], 1)],
            vec![(vec![1.0; 2], 1), (vec![1.0; 4], 1)],
            vec![(vec![f64::NAN, 0.0], 1)],
            vec![(vec![-0.5, 0.5], 1)],
            vec![(vec![0.5, 0.5], 1 << 30), (vec![0.5, 0.5], 1)],
        ] {
            assert!(compose(&parts).is_err());
        }
    }
}
