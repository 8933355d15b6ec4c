//! Weighted sums of all of a user's numbers, in one norm: histograms of norms, shortened sums, and totals.
//!
//! A user has for each chosen item a whole number in each column. If a part of a user's vector depended on another
//! user, on the order of rows or on a rounded float, the sensitivity would not be the norm, and the guarantee would
//! fail. So all arithmetic is exact: sums have 128 bits, products 192, and squares are compared as whole numbers.

use crate::count::by_user::each_user;
use crate::count::by_user::measured::{Pairs, Total};
use crate::count::by_user::numbered::{Numbered, UNLISTED};
use crate::error::{Error, Result};
use crate::labels::Labels;

/// Binary exponents of norms from zero.
pub const BINS: usize = 192;
/// The binary exponent at which weighted numbers are cut.
pub const CUT: u32 = 28;
/// The most bits of a norm, and of a number whose square is added up.
const MOST_BITS: u32 = 24;
const SQUARED_BITS: u32 = 48;

const UNLIKE: Error = Error::Parameter("the pairs must be read alike, and have a column each");

/// What a column has for a pair of a user and an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One.
    Users,
    /// The number of rows.
    Rows,
    /// The sum of the values in steps.
    Sum,
    /// The number of rows with a value.
    Values,
}

/// A column of numbers: the index of its pairs, its kind, and the bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The index of the pairs that have it.
    pub pairs: usize,
    /// What it has.
    pub kind: Kind,
    /// The least number.
    pub low: i128,
    /// The largest number.
    pub high: i128,
}

impl Column {
    fn of(self, total: &Total) -> i128 {
        let number = match self.kind {
            Kind::Users => 1,
            Kind::Rows => total.rows.into(),
            Kind::Sum if total.values() == 0 => return 0,
            Kind::Sum => total.sum,
            Kind::Values => total.values().into(),
        };
        number.clamp(self.low, self.high)
    }
}

/// The whole numbers that weigh a column: a number q of item x becomes floor(|q| factors\[x\] / 2^shift).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multipliers {
    /// A factor for each item.
    pub factors: Vec<u64>,
    /// The binary places.
    pub shift: u32,
}

/// A product of 192 bits: its upper 128 bits, and its lower 64.
type Product = (u128, u64);

fn product(size: u128, factor: u64) -> Product {
    let (above, below) = (size >> 64, size & u128::from(u64::MAX));
    let below = below * u128::from(factor);
    (above * u128::from(factor) + (below >> 64), below as u64)
}

fn bit_length((above, below): Product) -> u32 {
    if above > 0 { 192 - above.leading_zeros() } else { 64 - below.leading_zeros() }
}

/// Returns a product over 2^shift, rounded down, but at most `most`, which has fewer than 64 bits.
fn shifted(product: Product, shift: u32, most: u64) -> u64 {
    if bit_length(product) > shift + 63 {
        return most;
    }
    let (above, below) = product;
    let number = match shift {
        0 => below,
        1..64 => (above as u64) << (64 - shift) | below >> shift,
        64..192 => (above >> (shift - 64)) as u64,
        _ => 0,
    };
    number.min(most)
}

/// Returns the binary exponent of the norm of products, rounded, or `None` if all are zero.
fn norm_bin(products: &[Product]) -> Option<usize> {
    let longest = products.iter().map(|&one| bit_length(one)).max().unwrap_or(0);
    let shift = longest.saturating_sub(SQUARED_BITS);
    let square = |&one: &Product| u128::from(shifted(one, shift, u64::MAX >> 1)).pow(2);
    // 2^32 squares of 96 bits have 128 bits.
    let square: u128 = products.iter().map(square).sum();
    (square > 0).then(|| ((128 - square.leading_zeros() + 2 * shift) / 2) as usize)
}

/// Shortens a vector to a norm of 2^bits, rounding toward zero.
fn shorten(vector: &mut [i64], bits: u32) {
    let square = |part: i64| u128::from(part.unsigned_abs()).pow(2);
    let (norm, limit) =
        (vector.iter().map(|&part| square(part)).sum::<u128>(), 1_u128 << (2 * bits));
    if norm <= limit {
        return;
    }
    let scale = ((limit as f64) / (norm as f64)).sqrt();
    for part in vector {
        // Parts have 28 bits, the limit 48 and the norm at most 88, so all products have 128 bits. The float is within
        // one of the root of the quotient, which the comparisons find.
        let exact = square(*part) * limit;
        let mut root = (part.unsigned_abs() as f64 * scale) as u128;
        while root * root * norm > exact {
            root -= 1;
        }
        while (root + 1) * (root + 1) * norm <= exact {
            root += 1;
        }
        *part = part.signum() * root as i64;
    }
}

/// A whole number of 192 bits with a sign, as the sum of three limbs.
#[derive(Debug, Default, Clone, Copy)]
struct Wide {
    above: i128,
    below: i128,
}

impl Wide {
    /// Adds or subtracts a product of fewer than 160 bits. 2^31 of them fit.
    fn add(&mut self, (above, below): Product, is_negative: bool) {
        let sign = if is_negative { -1 } else { 1 };
        self.above += sign * above.cast_signed();
        self.below += sign * i128::from(below);
    }

    /// Returns the sign, and the absolute value as a product.
    fn parts(self) -> (i64, Product) {
        let above = self.above + (self.below >> 64);
        let below = self.below as u64;
        if above < 0 {
            let (below, borrows) = (below.wrapping_neg(), below > 0);
            return (-1, ((-above - i128::from(borrows)).cast_unsigned(), below));
        }
        (1, (above.cast_unsigned(), below))
    }
}

/// The numbers of all users in all columns, for chosen items.
pub struct Weighted<'a> {
    pairs: Vec<&'a Pairs>,
    columns: Vec<Column>,
    /// For each part of each of the pairs, the code of each of its items: the place of the item times the number of
    /// pairs, plus the index of the pairs.
    codes: Vec<Vec<u32>>,
    len: usize,
}

/// One user's numbers of a column: the item and the number.
type Numbers = Vec<(usize, i128)>;

impl<'a> Weighted<'a> {
    /// Chooses items of pairs that have the same keys.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the pairs are not alike, or a list has an item twice. [`Error::Resource`] if there is no
    /// memory for an item.
    pub fn new(pairs: Vec<&'a Pairs>, columns: Vec<Column>, chosen: &Labels) -> Result<Self> {
        let [first, others @ ..] = &*pairs else { return Err(UNLIKE) };
        let is_alike =
            others.iter().all(|other| std::sync::Arc::ptr_eq(first.keys(), other.keys()));
        let fits = (chosen.len() as u64 + 1) * pairs.len() as u64 <= u64::from(UNLISTED);
        if !is_alike || !fits || columns.iter().any(|column| column.pairs >= pairs.len()) {
            return Err(UNLIKE);
        }
        let mut listed = Numbered::listed(chosen, first.item_type(), first.keys())?;
        let mut codes = Vec::new();
        for (index, own) in pairs.iter().enumerate() {
            let places = listed.join(&own.items, false, own.keys())?;
            let code = |place: u32| match place {
                UNLISTED => UNLISTED,
                place => place * pairs.len() as u32 + index as u32,
            };
            let named = |names: &Vec<u32>| match &**names {
                [] => places.iter().map(|&place| code(place)).collect(),
                names => names.iter().map(|&name| code(places[name as usize])).collect(),
            };
            codes.extend(own.parts.iter().map(|(_, names)| named(names)));
        }
        Ok(Self { pairs, columns, codes, len: chosen.len() })
    }

    /// Calls `work` with the numbers of each user in each column.
    fn each<S: Send>(
        &self,
        tick: impl FnMut() -> Result<()>,
        begin: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, &[Numbers]) + Sync,
    ) -> Result<Vec<S>> {
        let Self { pairs, columns, codes, .. } = self;
        let parts = pairs.iter().flat_map(|own| &own.parts).zip(codes);
        let parts: Vec<_> = parts.map(|((rows, _), names)| (rows, &**names)).collect();
        let shared = (pairs[0].threads, &**pairs[0].keys());
        let begin = || (begin(), vec![Numbers::new(); columns.len()]);
        let add = |(state, numbers): &mut (S, Vec<Numbers>), _, own: &mut [(u32, Total)]| {
            for (column, numbers) in columns.iter().zip(&mut *numbers) {
                numbers.clear();
                numbers.extend(own.iter().filter(|(code, _)| *code != UNLISTED).filter_map(
                    |(code, total)| {
                        let (place, index) =
                            (*code as usize / pairs.len(), *code as usize % pairs.len());
                        (index == column.pairs).then(|| (place, column.of(total)))
                    },
                ));
            }
            work(state, numbers);
        };
        let done = each_user(&parts, shared, tick, begin, add, |_, _| Ok(()))?;
        Ok(done.into_iter().map(|(state, _)| state).collect())
    }

    /// Returns for each column the number of users by the binary exponent of the norm of their weighted numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there is not one weight for each item. Errors of `tick` and of temporary files.
    pub fn norms(&self, weights: &[u64], tick: impl FnMut() -> Result<()>) -> Result<Vec<i64>> {
        self.require([weights.len()])?;
        let begin = || (vec![0_i64; self.columns.len() * BINS], Vec::new());
        let work = |(bins, products): &mut (Vec<i64>, Vec<Product>), numbers: &[Numbers]| {
            for (own, bins) in numbers.iter().zip(bins.chunks_mut(BINS)) {
                products.clear();
                let weighed =
                    own.iter().map(|&(item, number)| (number.unsigned_abs(), weights[item]));
                products.extend(weighed.map(|(size, weight)| product(size, weight)));
                if let Some(bin) = norm_bin(products) {
                    bins[bin.min(BINS - 1)] += 1;
                }
            }
        };
        Ok(added(self.each(tick, begin, work)?.into_iter().map(|(bins, _)| bins)))
    }

    /// Returns for each item and each column the sum of the users' weighted numbers, each user's vector shortened to a
    /// norm of 2^bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the multipliers do not fit, or the norm has more than 24 bits. Errors of `tick` and of
    /// temporary files.
    pub fn sums(
        &self,
        multipliers: &[Multipliers],
        bits: u32,
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Vec<i64>> {
        self.require(multipliers.iter().map(|own| own.factors.len()))?;
        let width = self.columns.len();
        if multipliers.len() != width || bits > MOST_BITS {
            return Err(UNLIKE);
        }
        let begin = || (vec![0_i64; self.len * width], Vec::new());
        let work = |(sums, vector): &mut (Vec<i64>, Vec<i64>), numbers: &[Numbers]| {
            vector.clear();
            for (own, Multipliers { factors, shift }) in numbers.iter().zip(multipliers) {
                vector.extend(own.iter().map(|&(item, number)| {
                    let weighed = product(number.unsigned_abs(), factors[item]);
                    number.signum() as i64 * shifted(weighed, *shift, 1 << CUT).cast_signed()
                }));
            }
            shorten(vector, bits);
            let places = numbers.iter().enumerate();
            let places =
                places.flat_map(|(column, own)| own.iter().map(move |one| (column, one.0)));
            for ((column, item), &part) in places.zip(&*vector) {
                sums[item * width + column] += part;
            }
        };
        Ok(added(self.each(tick, begin, work)?.into_iter().map(|(sums, _)| sums)))
    }

    /// Returns the sums over users of three layers of a user's total in a column: to cap/4, to cap/2, and to cap. The
    /// total is the sum of the numbers times the factors of their items, over 2^shift.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the factors do not fit. Errors of `tick` and of temporary files.
    pub fn layers(
        &self,
        column: usize,
        factors: &[i64],
        shift: u32,
        cap: u64,
        tick: impl FnMut() -> Result<()>,
    ) -> Result<[i128; 3]> {
        self.require([factors.len()])?;
        if column >= self.columns.len() || factors.iter().any(|one| one.unsigned_abs() > 1 << 32) {
            return Err(UNLIKE);
        }
        let ends = [0, cap / 4, cap / 2, cap];
        let work = |layers: &mut [i128; 3], numbers: &[Numbers]| {
            let mut total = Wide::default();
            for &(item, number) in &numbers[column] {
                let size = product(number.unsigned_abs(), factors[item].unsigned_abs());
                total.add(size, (number < 0) != (factors[item] < 0));
            }
            let (sign, size) = total.parts();
            let size = shifted(size, shift, cap);
            for (layer, ends) in layers.iter_mut().zip(ends.windows(2)) {
                *layer += i128::from(sign) * i128::from(size.min(ends[1]) - size.min(ends[0]));
            }
        };
        let mut all = [0; 3];
        for own in self.each(tick, || [0; 3], work)? {
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        }
        Ok(all)
    }

    /// Refuses lists that do not have one number for each item.
    fn require(&self, lens: impl IntoIterator<Item = usize>) -> Result<()> {
        if lens.into_iter().all(|len| len == self.len) { Ok(()) } else { Err(UNLIKE) }
    }
}

/// Adds up lists of one length.
fn added(lists: impl IntoIterator<Item = Vec<i64>>) -> Vec<i64> {
    let mut lists = lists.into_iter();
    let mut all = lists.next().unwrap_or_default();
    for list in lists {
        all.iter_mut().zip(list).for_each(|(all, own)| *all += own);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_192_bits_are_shifted_and_measured() {
        for (size, factor) in
            [(0, 0), (1, 1), (u128::MAX, u64::MAX), (1 << 126, 1 << 20), (3 << 63, 5)]
        {
            let found = product(size, factor);
            let length = bit_length(found);
            let whole = |shift: u32| {
                size.checked_mul(factor.into()).map(|one| one.checked_shr(shift).unwrap_or(0))
            };
            for shift in [0, 1, 63, 64, 65, 127, 128, 150, 191, 192, 250] {
                let own = shifted(found, shift, 1 << 62);
                if let Some(whole) = whole(shift) {
                    assert_eq!(u128::from(own), whole.min(1 << 62), "{size} {factor} {shift}");
                }
                assert!(own > 0 || length <= shift);
            }
        }
        assert_eq!(norm_bin(&[]), None);
        assert_eq!(norm_bin(&[(0, 0)]), None);
        // 2^j has the bin j, and the root of 2^(2j + 1) the next one.
        for bits in 0..126 {
            assert_eq!(norm_bin(&[product(1 << bits, 1)]), Some(bits));
            assert_eq!(norm_bin(&[product(1 << bits, 1); 2]), Some(bits + 1));
        }
    }

    #[test]
    fn shortened_vectors_keep_the_limit_and_are_the_largest_whole_ones() {
        let mut state = 1_u64;
        let mut below = |bits: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i64 % (1 << bits)
        };
        for round in 0..2_000 {
            let bits = 1 + round % 24;
            let given: Vec<i64> = (0..1 + round % 40).map(|_| below(28) - (1 << 27)).collect();
            let mut vector = given.clone();
            shorten(&mut vector, bits);
            let square =
                |one: &[i64]| one.iter().map(|part| i128::from(*part).pow(2)).sum::<i128>();
            let (norm, limit) = (square(&given), 1_i128 << (2 * bits));
            assert!(square(&vector) <= limit);
            for (part, given) in vector.iter().zip(&given).filter(|_| norm > limit) {
                let (part, exact) = (i128::from(part.abs()), i128::from(*given).pow(2) * limit);
                assert!(part * part * norm <= exact && (part + 1) * (part + 1) * norm > exact);
                assert!(part == 0 || (*given > 0) == (part > 0 && *given > 0));
            }
        }
    }

    #[test]
    fn sums_of_signed_products_have_their_sign_and_size() {
        let mut total = Wide::default();
        let big = product(1 << 126, 1 << 20);
        for is_negative in [false, true, true] {
            total.add(big, is_negative);
        }
        total.add((0, 7), false);
        let (sign, size) = total.parts();
        assert_eq!((sign, bit_length(size)), (-1, 146));
        total.add(big, false);
        assert_eq!(total.parts(), (1, (0, 7)));
        total.add((0, 9), true);
        assert_eq!(total.parts(), (-1, (0, 2)));
    }
}
