//! The table of [`super::partition_selection`], computed in integers (Desfontaines et al. 2020, Lemma 1).
//!
//! Numbers are in units of `2^-192`, as 64-bit limbs from the least up. A probability of the table has 64 bits, which
//! are its highest limb.
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use crate::error::{Error, Result};

/// The most limbs of the growth, which is at most `e^100`.
const LIMBS: usize = 6;
/// The most entries of a table.
const LIMIT: usize = 1 << 23;

type Unit = [u64; 3];

/// Return `π(0)`, `π(1)`, ... in units of `2^-64`, up to the last that is below one.
///
/// `π(n+1)` is the least of `growth π(n) + share` and `1 - decay (1 - π(n) - share)`, rounded down. `growth` is `e^ε`,
/// rounded down, `decay` is `e^-ε`, rounded up, and `share` is `δ`, rounded down.
///
/// # Errors
/// [`Error::Parameter`] if `growth` has more than six limbs, or the table would have more than `2^23` entries.
pub fn chance_table(growth: &[u64], decay: Unit, share: Unit) -> Result<Vec<u64>> {
    let mut factor = [0; LIMBS];
    factor.get_mut(..growth.len()).ok_or(TOO_LARGE)?.copy_from_slice(growth);
    let mut chances = vec![0];
    while let Some(&chance) = chances.last() {
        let following = match (rising(&factor, share, chance), falling(decay, share, chance)) {
            (Some(rising), Some(falling)) => rising.min(falling),
            (rising, falling) => match rising.or(falling) {
                Some(only) => only,
                None => return Ok(chances),
            },
        };
        if chances.len() == LIMIT {
            return Err(TOO_LARGE);
        }
        chances.push(following);
    }
    Ok(chances)
}

const TOO_LARGE: Error =
    Error::Parameter("epsilon and delta make the table of probabilities too large");

/// Return the highest limb of `growth chance + share`, or `None` if the sum is at least one.
#[inline]
fn rising(growth: &[u64; LIMBS], share: Unit, chance: u64) -> Option<u64> {
    // The product is in units of 2^-256.
    let mut carry = 0_u128;
    let product = growth.map(|limb| {
        carry += u128::from(limb) * u128::from(chance);
        let low = carry as u64;
        carry >>= 64;
        low
    });
    let [_, low, middle, high, above @ ..] = product;
    let (high, over) = added([low, middle, high], share);
    (!over && carry == 0 && above == [0; LIMBS - 4]).then_some(high)
}

/// Return the highest limb of `1 - decay (1 - chance - share)`, or `None` if that is at least one.
#[inline]
fn falling(decay: Unit, share: Unit, chance: u64) -> Option<u64> {
    let (kept, over) = negated(share);
    // 1 - share has a fourth limb if the share is zero. Then the table has no end.
    let (high, less) = kept[2].overflowing_sub(chance);
    if over || less || [kept[0], kept[1], high] == [0; 3] {
        return None;
    }
    let rest = [kept[0], kept[1], high];
    let mut product = [0_u64; 6];
    for (i, &limb) in decay.iter().enumerate() {
        let mut carry = 0_u128;
        for (j, &other) in rest.iter().enumerate() {
            carry += u128::from(limb) * u128::from(other) + u128::from(product[i + j]);
            product[i + j] = carry as u64;
            carry >>= 64;
        }
        product[i + 3] = carry as u64;
    }
    // Round the product up to units of 2^-192. It is below one, so the sum does not overflow.
    let part = u64::from(product[..3] != [0; 3]);
    let (low, carry) = product[3].overflowing_add(part);
    let (middle, carry) = product[4].overflowing_add(u64::from(carry));
    let (result, over) = negated([low, middle, product[5] + u64::from(carry)]);
    (!over).then_some(result[2])
}

/// Return the highest limb of a sum, and whether the sum is at least one.
#[inline]
fn added(a: Unit, b: Unit) -> (u64, bool) {
    let carry = a[0].overflowing_add(b[0]).1;
    let (middle, first) = a[1].overflowing_add(b[1]);
    let second = middle.overflowing_add(u64::from(carry)).1;
    let (high, third) = a[2].overflowing_add(b[2]);
    let (high, fourth) = high.overflowing_add(u64::from(first | second));
    (high, third | fourth)
}

/// Return one minus a number, and whether that is one.
#[inline]
fn negated(a: Unit) -> (Unit, bool) {
    let (low, carry) = (!a[0]).overflowing_add(1);
    let (middle, carry) = (!a[1]).overflowing_add(u64::from(carry));
    let (high, over) = (!a[2]).overflowing_add(u64::from(carry));
    ([low, middle, high], over)
}
