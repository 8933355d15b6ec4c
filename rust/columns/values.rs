//! Cells of a column to sum, as whole numbers of steps.

use std::ops::Range;

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::columns::integers::{BROKEN, Integers, OUT_OF_RANGE, bits, typed};
use crate::columns::strings::StringCells;
use crate::error::{Error, Result};
use crate::labels::LONGEST;

/// A float of 16 bits.
#[allow(non_camel_case_types, reason = "the name of a primitive type")]
type f16 = <Float16Type as ArrowPrimitiveType>::Native;

/// The largest absolute value of a row, in steps. 2^31 of them add up within 128 bits.
const MOST: i128 = 1 << 95;

/// The unit to which values are rounded, halves to even: a power of two, or the shortest decimal of a float.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    float: f64,
    /// The step as a fraction.
    over: i256,
    under: i256,
}

impl Step {
    /// Creates a step.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a number outside 1e-12 to 1e12.
    pub fn new(float: f64) -> Result<Self> {
        if !(1e-12..=1e12).contains(&float) {
            return Err(Error::Parameter("the resolution must be from 1e-12 to 1e12"));
        }
        let bits = float.to_bits();
        let (over, under) = if bits << 12 == 0 {
            let power = (bits >> 52) as i32 - 1023;
            (1_i128 << power.max(0), 1_i128 << (-power).max(0))
        } else {
            let text = format!("{float:e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
            let digits = digits.replace('.', "").parse().unwrap_or(1);
            let power = power.parse().unwrap_or(0) - places as i32;
            (digits * 10_i128.pow(power.max(0) as u32), 10_i128.pow((-power).max(0) as u32))
        };
        Ok(Self { float, over: i256::from_i128(over), under: i256::from_i128(under) })
    }

    /// Returns a float in whole steps, or `None` if it is not finite.
    #[inline]
    fn of_float(&self, number: f64) -> Option<i128> {
        let steps = (number / self.float).round_ties_even();
        if steps.abs() < (1_u64 << 62) as f64 {
            return Some(i128::from(steps as i64));
        }
        number.is_finite().then(|| (steps as i128).clamp(-MOST, MOST))
    }

    /// Returns the digits of a decimal of this scale in whole steps: exactly if its last place is whole steps, else the
    /// float next to it in steps, as it is in other tables.
    fn of_digits(&self, digits: i256, scale: i8) -> Option<i128> {
        let ten = |power: i16| {
            let power = power.max(0).unsigned_abs();
            i256::from_i128(10).checked_pow(power.into())
        };
        let factor = || {
            let under = self.under.checked_mul(ten(-i16::from(scale))?)?;
            let over = self.over.checked_mul(ten(scale.into())?)?;
            (under.checked_rem(over)? == i256::ZERO).then(|| under.checked_div(over))?
        };
        let Some(factor) = factor() else {
            return self.of_float(match digits.to_i128() {
                Some(digits) => decimal(digits, scale),
                None => scaled(digits, scale),
            });
        };
        let end = i256::from_i128(if digits.is_negative() { -MOST } else { MOST });
        let steps = digits.checked_mul(factor).unwrap_or(end);
        steps.clamp(i256::from_i128(-MOST), i256::from_i128(MOST)).to_i128()
    }
}

/// Returns the float nearest to a decimal of this scale.
fn decimal(digits: i128, scale: i8) -> f64 {
    /// The powers of ten that a float holds exactly.
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    let power = usize::try_from(scale).ok().and_then(|scale| EXACT.get(scale));
    match power.filter(|_| digits.unsigned_abs() <= 1 << 53) {
        // Both numbers are exact, so the quotient is rounded once.
        Some(power) => digits as f64 / power,
        None => scaled(digits, scale),
    }
}

/// Returns the float nearest to the digits of a number of this scale.
fn scaled(digits: impl std::fmt::Display, scale: i8) -> f64 {
    format!("{digits}e{}", -i16::from(scale)).parse().unwrap_or(f64::NAN)
}

/// Returns the error for a column whose type has no numbers.
#[must_use]
pub fn no_numbers(column: &str) -> Error {
    Error::Schema(format!(
        "the column '{column}' must hold numbers, booleans, or text that holds numbers; cast dates, times and other \
         types to numbers first"
    ))
}

/// Returns whether a column of this type can be summed.
fn has_numbers(data_type: &DataType) -> bool {
    use DataType as D;
    match data_type {
        D::Dictionary(_, values) => !matches!(**values, D::Dictionary(..)) && has_numbers(values),
        D::Utf8 | D::LargeUtf8 | D::Utf8View | D::Null | D::Boolean => true,
        other => other.is_numeric(),
    }
}

/// Refuses a type that has no numbers: the sums would be noise alone.
///
/// # Errors
/// [`Error::Schema`] that names `column`.
pub(crate) fn require_numbers(data_type: &DataType, column: &str) -> Result<()> {
    if has_numbers(data_type) { Ok(()) } else { Err(no_numbers(column)) }
}

/// The cells of a column to sum.
pub struct Values {
    cells: Cells,
    nulls: Option<NullBuffer>,
    len: usize,
}

enum Cells {
    Signed(Integers),
    Unsigned(Integers),
    Halves(ScalarBuffer<f16>),
    Singles(ScalarBuffer<f32>),
    Doubles(ScalarBuffer<f64>),
    Bools(BooleanBuffer),
    /// Decimals of each width, and their scale.
    Small(ScalarBuffer<i32>, i8),
    Middle(ScalarBuffer<i64>, i8),
    Large(ScalarBuffer<i128>, i8),
    Huge(ScalarBuffer<i256>, i8),
    Strings(StringCells),
    Dictionary(Integers, Box<Values>),
    Nothing,
}

impl Values {
    /// Wraps an array whose type [`require_numbers`] accepts.
    ///
    /// # Errors
    /// [`Error::Schema`] for another type. [`Error::Input`] if a buffer is missing or too short.
    pub fn new(mut data: ArrayData) -> Result<Self> {
        use DataType as D;
        require_numbers(data.data_type(), "")?;
        data.align_buffers();
        let (offset, len) = (data.offset(), data.len());
        let cells = match data.data_type().clone() {
            _ if len == 0 => Cells::Nothing,
            D::Null => Cells::Nothing,
            D::Dictionary(index, _) => {
                let values = data.child_data().first().ok_or(BROKEN)?.clone();
                Cells::Dictionary(Integers::new(&data, &index)?, Box::new(Self::new(values)?))
            }
            D::Boolean => Cells::Bools(bits(&data, offset, len)?),
            D::Float16 => Cells::Halves(typed(&data, 0, offset, len)?),
            D::Float32 => Cells::Singles(typed(&data, 0, offset, len)?),
            D::Float64 => Cells::Doubles(typed(&data, 0, offset, len)?),
            D::Decimal32(_, scale) => Cells::Small(typed(&data, 0, offset, len)?, scale),
            D::Decimal64(_, scale) => Cells::Middle(typed(&data, 0, offset, len)?, scale),
            D::Decimal128(_, scale) => Cells::Large(typed(&data, 0, offset, len)?, scale),
            D::Decimal256(_, scale) => Cells::Huge(typed(&data, 0, offset, len)?, scale),
            own if own.is_unsigned_integer() => Cells::Unsigned(Integers::new(&data, &own)?),
            own if own.is_integer() => Cells::Signed(Integers::new(&data, &own)?),
            _ => Cells::Strings(StringCells::new(&data)?),
        };
        Ok(Self { cells, nulls: data.nulls().cloned(), len })
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the cells of `rows` in whole steps, `None` for a cell that is NULL or no finite number.
    ///
    /// # Errors
    /// [`Error::Input`] if a dictionary index or the bytes of a cell are out of range.
    pub fn read(
        &self,
        rows: Range<usize>,
        step: &Step,
        into: &mut Vec<Option<i128>>,
    ) -> Result<()> {
        into.clear();
        match (&self.cells, &self.nulls) {
            (Cells::Doubles(cells), None) => {
                into.extend(cells[rows].iter().map(|&cell| step.of_float(cell)));
            }
            _ => {
                for row in rows {
                    into.push(self.get(row, step)?.flatten());
                }
            }
        }
        Ok(())
    }

    /// Marks the cells of `rows` that are no finite numbers in `null`, which has the same length.
    ///
    /// # Errors
    /// The same as those of [`Self::read`].
    pub(crate) fn mark_unusable(&self, rows: Range<usize>, null: &mut [bool]) -> Result<()> {
        let step = Step::new(1.0)?;
        for (null, row) in null.iter_mut().zip(rows) {
            *null |= match &self.cells {
                Cells::Doubles(cells) if self.nulls.is_none() => !cells[row].is_finite(),
                _ => self.get(row, &step)?.flatten().is_none(),
            };
        }
        Ok(())
    }

    /// Returns a cell in whole steps, `Some(None)` if it is no finite number, or `None` if it is NULL.
    ///
    /// # Errors
    /// [`Error::Input`] if a dictionary index or the bytes of the cell are out of range.
    pub fn get(&self, row: usize, step: &Step) -> Result<Option<Option<i128>>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        let whole = |cell: i128, scale| {
            let is_own = scale == 0 && step.over == step.under && cell.abs() <= MOST;
            if is_own { Some(cell) } else { step.of_digits(i256::from_i128(cell), scale) }
        };
        Ok(Some(match &self.cells {
            Cells::Signed(cells) => whole(cells.get(row).cast_signed().into(), 0),
            Cells::Unsigned(cells) => whole(cells.get(row).into(), 0),
            Cells::Halves(cells) => step.of_float(cells[row].to_f64()),
            Cells::Singles(cells) => step.of_float(cells[row].into()),
            Cells::Doubles(cells) => step.of_float(cells[row]),
            Cells::Bools(cells) => whole(cells.value(row).into(), 0),
            Cells::Small(cells, scale) => whole(cells[row].into(), *scale),
            Cells::Middle(cells, scale) => whole(cells[row].into(), *scale),
            Cells::Large(cells, scale) => whole(cells[row], *scale),
            Cells::Huge(cells, scale) => step.of_digits(cells[row], *scale),
            Cells::Strings(cells) => step.of_float(number(cells.get(row)?)),
            Cells::Dictionary(indices, values) => {
                let index = usize::try_from(indices.get(row)).map_err(|_| OUT_OF_RANGE)?;
                if index >= values.len {
                    return Err(OUT_OF_RANGE);
                }
                return values.get(index, step);
            }
            Cells::Nothing => return Ok(None),
        }))
    }
}

/// Returns the number that text holds: a decimal in ASCII digits, with a point and an exponent, and spaces around it.
/// Other text is NaN, and so is text longer than a label, which some readers drop.
fn number(text: &[u8]) -> f64 {
    if text.len() > LONGEST {
        return f64::NAN;
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
    let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    let text = &text[start..end];
    // Rust also reads names, such as inf.
    let is_plain = |&byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if !text.iter().all(is_plain) {
        return f64::NAN;
    }
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        Array, ArrayRef, BooleanArray, Decimal32Array, Decimal64Array, Decimal128Array,
        Decimal256Array, DictionaryArray, Float16Array, Float32Array, Float64Array, Int8Array,
        Int64Array, LargeStringArray, NullArray, StringArray, StringViewArray, UInt64Array,
    };

    use super::*;

    fn steps(array: &dyn Array, step: f64) -> Vec<Option<i128>> {
        let (values, step) = (Values::new(array.to_data()).unwrap(), Step::new(step).unwrap());
        let (mut all, mut null) = (Vec::new(), vec![false; values.len()]);
        values.read(0..values.len(), &step, &mut all).unwrap();
        values.mark_unusable(0..values.len(), &mut null).unwrap();
        for (row, &value) in all.iter().enumerate() {
            assert_eq!(values.get(row, &step).unwrap().flatten(), value);
            assert_eq!(null[row], value.is_none());
        }
        all
    }

    fn halves(array: &dyn Array) -> Vec<Option<i128>> {
        steps(array, 0.5)
    }

    #[test]
    fn numbers_of_every_type_are_read_with_offsets_and_nulls() {
        let text = [Some("7"), None, Some(" -2.5e0\n")];
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from(vec![Some(7.0), None, Some(-2.5)])),
            Arc::new(Float32Array::from(vec![Some(7.0), None, Some(-2.5)])),
            Arc::new(Float16Array::from(vec![
                Some(f16::from_f32(7.0)),
                None,
                Some(f16::from_f32(-2.5)),
            ])),
            Arc::new(StringArray::from(text.to_vec())),
            Arc::new(LargeStringArray::from(text.to_vec())),
            Arc::new(StringViewArray::from(text.to_vec())),
            Arc::new(text.into_iter().collect::<DictionaryArray<Int8Type>>()),
            (Arc::new(
                Decimal32Array::from(vec![Some(700), None, Some(-250)])
                    .with_precision_and_scale(9, 2)
                    .unwrap(),
            )),
            (Arc::new(
                Decimal64Array::from(vec![Some(70), None, Some(-25)])
                    .with_precision_and_scale(18, 1)
                    .unwrap(),
            )),
            (Arc::new(
                Decimal128Array::from(vec![Some(7000), None, Some(-2500)])
                    .with_precision_and_scale(38, 3)
                    .unwrap(),
            )),
            (Arc::new(
                Decimal256Array::from(vec![Some(i256::from(70)), None, Some(i256::from(-25))])
                    .with_precision_and_scale(60, 1)
                    .unwrap(),
            )),
        ];
        for array in arrays {
            assert_eq!(halves(&array), [Some(14), None, Some(-5)], "{:?}", array.data_type());
            assert_eq!(halves(&array.slice(2, 1)), [Some(-5)]);
            assert!(halves(&array.slice(1, 0)).is_empty());
        }
        assert_eq!(halves(&Int8Array::from(vec![-3, 4])), [Some(-6), Some(8)]);
        let bools = BooleanArray::from(vec![true, false, true]);
        assert_eq!(halves(&bools.slice(1, 2)), [Some(0), Some(2)]);
        assert_eq!(halves(&NullArray::new(2)), [None, None]);
        let negative = Decimal128Array::from(vec![3]).with_precision_and_scale(10, -2).unwrap();
        assert_eq!(halves(&negative), [Some(600)]);
    }

    #[test]
    fn integers_and_decimals_are_exact_to_their_ends() {
        let ends = [i64::MIN, i64::MAX, -1, 0];
        assert_eq!(steps(&Int64Array::from(ends.to_vec()), 1.0), ends.map(|end| Some(end.into())));
        let fine = 2_f64.powi(-32);
        assert_eq!(
            steps(&Int64Array::from(ends.to_vec()), fine),
            ends.map(|end| Some(i128::from(end) << 32))
        );
        let largest = UInt64Array::from(vec![u64::MAX]);
        assert_eq!(steps(&largest, 1.0), [Some(u64::MAX.into())]);
        assert_eq!(steps(&largest, fine), [Some(MOST)]);
        let digits = [MOST, MOST + 1, -i128::MAX / 2, 12_345_678_901];
        let cells =
            Decimal128Array::from(digits.to_vec()).with_precision_and_scale(38, 10).unwrap();
        let expected = [Some(MOST), Some(MOST), Some(-MOST), Some(digits[3])];
        assert_eq!(steps(&cells, 1e-10), expected);
        assert_eq!(steps(&cells, 0.01)[3], Some(123));
        // 0.5 with 34 places, and 3.5 with 70: too many digits for 128 bits.
        let half = Decimal128Array::from(vec![5 * 10_i128.pow(33)])
            .with_precision_and_scale(38, 34)
            .unwrap();
        assert_eq!((steps(&half, fine), steps(&half, 1.0)), (vec![Some(1 << 31)], vec![Some(0)]));
        let wide = i256::from(10).checked_pow(69).unwrap() * i256::from(35);
        let wide = Decimal256Array::from(vec![wide]).with_precision_and_scale(76, 70).unwrap();
        assert_eq!((steps(&wide, fine), steps(&wide, 0.5)), (vec![Some(7 << 31)], vec![Some(7)]));
    }

    #[test]
    fn decimals_are_the_floats_nearest_to_their_text() {
        let digits =
            [5, 15, -25, 35, 123_456_789, (1 << 53) + 1, i128::from(i64::MAX), i128::MAX / 3];
        for scale in [0, 1, 2, 15, 18, 22, 23, 34, 38, -5] {
            for digits in digits {
                let text = format!("{digits}e{}", -i16::from(scale));
                assert_eq!(
                    decimal(digits, scale).to_bits(),
                    text.parse::<f64>().unwrap().to_bits(),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn decimals_are_rounded_half_to_even() {
        let digits = [5, 15, -5, -15, -25, 26, 14, -16];
        let expected = [0, 2, 0, -2, -2, 3, 1, -2].map(Some);
        for scale in [1, 20] {
            let cells = digits.iter().map(|&digits: &i128| digits * 10_i128.pow(scale as u32 - 1));
            let cells = Decimal128Array::from_iter_values(cells);
            let cells = cells.with_precision_and_scale(38, scale).unwrap();
            assert_eq!(steps(&cells, 1.0), expected);
            assert_eq!(steps(&cells, 0.1), digits.iter().map(|&one| Some(one)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn only_decimals_in_ascii_are_numbers() {
        for (text, expected) in [
            ("12", 12.0),
            (" 12 ", 12.0),
            ("+7", 7.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e1", 10.0),
            ("-0", 0.0),
            ("5.e1", 50.0),
        ] {
            assert!((number(text.as_bytes()) - expected).abs() < 1e-12, "{text}");
        }
        for text in [
            "1_000", "0x10", "1,5", "", " ", "x", "nan", "inf", "infinity", "TRUE", "\x0b7", ".",
            "1e", "e1", "+", "1 2", "--1", "\u{661}", "1.2.3", "5e1.0",
        ] {
            assert!(number(text.as_bytes()).is_nan(), "{text}");
        }
        assert_eq!(Step::new(1.0).unwrap().of_float(number(b"1e400")), None);
        assert!(number(&b" 5".repeat(LONGEST)).is_nan());
        assert!(number(format!("{}5", " ".repeat(LONGEST)).as_bytes()).is_nan());
    }

    #[test]
    fn floats_are_rounded_to_steps_and_cut() {
        let of = |number: f64, step: f64| Step::new(step).unwrap().of_float(number);
        let fine = 2_f64.powi(-32);
        for (number, step, expected) in [
            (19.99, 0.01, Some(1999)),
            (2.5, 1.0, Some(2)),
            (-3.5, 1.0, Some(-4)),
            (-0.0, 1.0, Some(0)),
            (0.42, fine, Some(1_803_886_264)),
            (5e-324, fine, Some(0)),
            (1.5 * fine, fine, Some(2)),
            (2_f64.powi(63), fine, Some(MOST)),
            (-2_f64.powi(62), fine, Some(-MOST / 2)),
            (1e300, 1e-12, Some(MOST)),
            (-1e300, 1.0, Some(-MOST)),
            (f64::MAX, fine, Some(MOST)),
            (f64::NAN, 1.0, None),
            (f64::INFINITY, fine, None),
        ] {
            assert_eq!(of(number, step), expected, "{number} {step}");
        }
        for step in [1e-13, 2e12, 0.0, -1.0, f64::NAN] {
            assert!(Step::new(step).is_err());
        }
    }

    #[test]
    fn types_without_numbers_are_refused() {
        for other in [
            DataType::Date32,
            DataType::Binary,
            DataType::Timestamp(arrow_schema::TimeUnit::Second, None),
        ] {
            assert!(
                matches!(require_numbers(&other, "v"), Err(Error::Schema(text)) if text.contains("'v'"))
            );
        }
    }
}
