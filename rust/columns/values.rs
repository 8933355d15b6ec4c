//! Cells of a column to sum, read as floats of 64 bits.

use std::ops::Range;

use arrow_array::types::{ArrowPrimitiveType, Float16Type};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, ScalarBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::columns::integers::{BROKEN, Integers, OUT_OF_RANGE, bits, typed};
use crate::columns::strings::StringCells;
use crate::error::{Error, Result};
use crate::labels::LONGEST;

/// A float of 16 bits.
#[allow(non_camel_case_types, reason = "the name of a primitive type")]
type f16 = <Float16Type as ArrowPrimitiveType>::Native;

/// The largest absolute value of a row, in units. Larger sums are clipped anyway, to at most 2^30.
const MOST: f64 = (1_u64 << 53) as f64;

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

    /// Reads the cells of `rows` as numbers, NaN for a NULL cell and for one that is no number.
    ///
    /// # Errors
    /// [`Error::Input`] if a dictionary index or the bytes of a cell are out of range.
    pub fn read(&self, rows: Range<usize>, into: &mut Vec<f64>) -> Result<()> {
        into.clear();
        match &self.cells {
            Cells::Doubles(cells) => into.extend_from_slice(&cells[rows.clone()]),
            Cells::Singles(cells) => extend(into, &cells[rows.clone()], f64::from),
            _ => {
                for row in rows.clone() {
                    into.push(self.get(row)?.unwrap_or(f64::NAN));
                }
                return Ok(());
            }
        }
        if let Some(nulls) = self.nulls.as_ref().filter(|nulls| nulls.null_count() > 0) {
            for (value, row) in into.iter_mut().zip(rows) {
                if nulls.is_null(row) {
                    *value = f64::NAN;
                }
            }
        }
        Ok(())
    }

    /// Marks the cells of `rows` that are no finite numbers in `null`, which has the same length.
    ///
    /// # Errors
    /// The same as those of [`Self::read`].
    pub(crate) fn mark_unusable(
        &self,
        rows: Range<usize>,
        null: &mut [bool],
        cells: &mut Vec<f64>,
    ) -> Result<()> {
        self.read(rows, cells)?;
        null.iter_mut().zip(cells).for_each(|(null, cell)| *null |= !cell.is_finite());
        Ok(())
    }

    /// Returns a cell as a number, NaN if it is none, or `None` if it is NULL.
    ///
    /// # Errors
    /// [`Error::Input`] if a dictionary index or the bytes of the cell are out of range.
    pub fn get(&self, row: usize) -> Result<Option<f64>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        Ok(Some(match &self.cells {
            Cells::Signed(cells) => cells.get(row).cast_signed() as f64,
            Cells::Unsigned(cells) => cells.get(row) as f64,
            Cells::Halves(cells) => cells[row].to_f64(),
            Cells::Singles(cells) => cells[row].into(),
            Cells::Doubles(cells) => cells[row],
            Cells::Bools(cells) => f64::from(u8::from(cells.value(row))),
            Cells::Small(cells, scale) => decimal(cells[row].into(), *scale),
            Cells::Middle(cells, scale) => decimal(cells[row].into(), *scale),
            Cells::Large(cells, scale) => decimal(cells[row], *scale),
            Cells::Huge(cells, scale) => match cells[row].to_i128() {
                Some(digits) => decimal(digits, *scale),
                None => scaled(cells[row], *scale),
            },
            Cells::Strings(cells) => number(cells.get(row)?),
            Cells::Dictionary(indices, values) => {
                let index = usize::try_from(indices.get(row)).map_err(|_| OUT_OF_RANGE)?;
                if index >= values.len {
                    return Err(OUT_OF_RANGE);
                }
                return values.get(index);
            }
            Cells::Nothing => return Ok(None),
        }))
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

fn extend<T: ArrowNativeType>(into: &mut Vec<f64>, cells: &[T], number: impl Fn(T) -> f64) {
    into.extend(cells.iter().map(|&cell| number(cell)));
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

/// Returns a number in whole units of `resolution`, or `None` if it is not finite.
#[inline]
#[must_use]
pub fn units(number: f64, resolution: f64) -> Option<i64> {
    number.is_finite().then(|| (number / resolution).round().clamp(-MOST, MOST) as i64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        Array, ArrayRef, BooleanArray, Decimal32Array, Decimal64Array, Decimal128Array,
        Decimal256Array, DictionaryArray, Float16Array, Float32Array, Float64Array, Int8Array,
        LargeStringArray, NullArray, StringArray, StringViewArray, UInt64Array,
    };

    use super::*;

    fn read(array: &dyn Array) -> Vec<f64> {
        let values = Values::new(array.to_data()).unwrap();
        let mut all = Vec::new();
        values.read(0..values.len(), &mut all).unwrap();
        for (row, &value) in all.iter().enumerate() {
            let one = values.get(row).unwrap().unwrap_or(f64::NAN);
            assert!(one.to_bits() == value.to_bits() || one.is_nan() && value.is_nan());
        }
        all
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
            let found = read(&array);
            assert_eq!((found[0], found[2]), (7.0, -2.5), "{:?}", array.data_type());
            assert!(found[1].is_nan());
            assert_eq!(read(&array.slice(2, 1)), [-2.5]);
            assert!(read(&array.slice(1, 0)).is_empty());
        }
        assert_eq!(read(&Int8Array::from(vec![-3, 4])), [-3.0, 4.0]);
        assert_eq!(read(&UInt64Array::from(vec![u64::MAX])), [u64::MAX as f64]);
        assert_eq!(read(&BooleanArray::from(vec![true, false, true]).slice(1, 2)), [0.0, 1.0]);
        assert!(read(&NullArray::new(2)).iter().all(|value| value.is_nan()));
        let negative = Decimal128Array::from(vec![3]).with_precision_and_scale(10, -2).unwrap();
        assert_eq!(read(&negative), [300.0]);
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
        // A float of the digits divided by a float of the power would be 0.49999999999999994.
        let half = Decimal128Array::from(vec![5 * 10_i128.pow(33)])
            .with_precision_and_scale(38, 34)
            .unwrap();
        assert_eq!(read(&half), [0.5]);
        let wide =
            (0..70).fold(
                i256::from(35),
                |digits, n| if n < 69 { digits * i256::from(10) } else { digits },
            );
        let wide = Decimal256Array::from(vec![wide]).with_precision_and_scale(76, 70).unwrap();
        assert_eq!(read(&wide), [3.5]);
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
        assert_eq!(units(number(b"1e400"), 1.0), None);
        assert!(number(&b" 5".repeat(LONGEST)).is_nan());
        assert!(number(format!("{}5", " ".repeat(LONGEST)).as_bytes()).is_nan());
    }

    #[test]
    fn units_are_rounded_and_clamped() {
        assert_eq!(units(19.99, 0.01), Some(1999));
        assert_eq!((units(2.5, 1.0), units(-2.5, 1.0)), (Some(3), Some(-3)));
        assert_eq!((units(1e300, 1e-12), units(-1e300, 1.0)), (Some(1 << 53), Some(-(1 << 53))));
        assert_eq!((units(f64::NAN, 1.0), units(f64::INFINITY, 1.0)), (None, None));
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
