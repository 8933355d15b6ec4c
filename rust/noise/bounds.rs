//! Interval arithmetic with integers of any length. Bounds are two integers that enclose a real number. Every operation
//! returns bounds that enclose the exact result.

use num_bigint::BigInt;

/// Integers that enclose a real number, in units of `2^-places`.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The lower bound.
    pub low: BigInt,
    /// The upper bound.
    pub high: BigInt,
    /// The number of fractional bits.
    pub places: u32,
}

impl Bounds {
    /// Create bounds in units of `2^-places`.
    pub fn new((low, high): (BigInt, BigInt), places: u32) -> Self {
        Self { low, high, places }
    }

    /// Create bounds of an integer. Both bounds equal the integer.
    pub fn integer(value: u32, places: u32) -> Self {
        let value = BigInt::from(value) << places;
        Self { low: value.clone(), high: value, places }
    }

    /// Return the sum. Both numbers must have the same places.
    pub fn plus(&self, other: &Self) -> Self {
        Self { low: &self.low + &other.low, high: &self.high + &other.high, places: self.places }
    }

    /// Return the difference. Both numbers must have the same places.
    pub fn minus(&self, other: &Self) -> Self {
        Self { low: &self.low - &other.high, high: &self.high - &other.low, places: self.places }
    }

    /// Return the product with an integer.
    pub fn scaled(&self, factor: u64) -> Self {
        Self { low: &self.low * factor, high: &self.high * factor, places: self.places }
    }

    /// Return the product of two non-negative numbers, with the places of `self`.
    pub fn times(&self, other: &Self) -> Self {
        let low = (&self.low * &other.low) >> other.places;
        let high = ((&self.high * &other.high) >> other.places) + 1;
        Self { low, high, places: self.places }
    }

    /// Return the quotient by a number above zero, with the places of `self`.
    pub fn over(&self, other: &Self) -> Self {
        let low = (&self.low << other.places) / &other.high;
        let high = (&self.high << other.places) / &other.low + 1;
        Self { low, high, places: self.places }
    }

    /// Return the upper bound as a float, rounded up. A value of at least one becomes 1.0; a value below the least
    /// normal float becomes that float.
    pub fn rounded_up(&self) -> f64 {
        let Self { high: value, places, .. } = self;
        let bits = value.bits() as i64;
        if *value <= BigInt::ZERO {
            return 0.0;
        }
        let exponent = bits - 1 - i64::from(*places);
        if exponent < -1022 {
            return f64::MIN_POSITIVE;
        }
        if exponent >= 0 {
            return 1.0;
        }
        let down = bits - 53;
        let mantissa =
            if down > 0 { ((value - 1) >> down as u64) + 1 } else { value << -down as u64 };
        let mantissa = u64::try_from(mantissa).unwrap_or(1 << 53);
        // A mantissa of 2^53 carries into the exponent bits, which is the correct next float.
        f64::from_bits((((exponent + 1023) as u64) << 52) + (mantissa - (1 << 52)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_round_up_to_floats() {
        let twentieth = 1.0 / f64::from(1 << 20);
        for (value, places, float) in [
            (BigInt::from(3), 2, 0.75),
            (BigInt::from(0), 2, 0.0),
            (BigInt::from(5), 2, 1.0),
            ((BigInt::from(1) << 80) + 1, 100, twentieth * (1.0 + f64::EPSILON)),
            ((BigInt::from(1) << 80) - 1, 100, twentieth),
            (BigInt::from(1), 2000, f64::MIN_POSITIVE),
        ] {
            let bounds = Bounds::new((BigInt::ZERO, value), places);
            assert!((bounds.rounded_up() - float).abs() == 0.0);
        }
    }
}
