//! Released cells as CSV and JSON text: byte for byte the text that Python's modules `csv` and `json` write.

pub mod csv;
pub mod json;
pub mod json_rows;

use std::borrow::Cow;
use std::fmt::Write;

/// The decimal digits of the numbers below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Adds a signed integer.
pub fn push_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_unsigned(out, number.unsigned_abs());
}

/// Adds an unsigned integer. `write!` takes three times as long.
pub fn push_unsigned(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while number >= 10 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    // The loop also ends after an odd number of digits, whose first digit is left.
    if number > 0 || start == digits.len() {
        start -= 1;
        digits[start] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Returns bytes as text, injectively: a byte that is not UTF-8 as `\xff`, and a backslash as two.
#[must_use]
pub fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&b'\\')
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            // Writing to a string never fails.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_equal_those_of_the_standard_library() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        let tens = (0..20).map(|exponent| 10_u64.pow(exponent));
        for near in powers.chain(tens).chain([0, u64::MAX]) {
            for number in [near.wrapping_sub(1), near, near.wrapping_add(1)] {
                let mut out = Vec::new();
                push_unsigned(&mut out, number);
                assert_eq!(out, number.to_string().as_bytes());
                out.clear();
                push_signed(&mut out, number.cast_signed());
                assert_eq!(out, number.cast_signed().to_string().as_bytes());
            }
        }
    }

    #[test]
    fn bytes_become_text_injectively() {
        assert_eq!(decoded(b"a\xc3\xa9"), "aé");
        assert_eq!(decoded(b"\xff\\\xe2\x82A"), r"\xff\\\xe2\x82A");
    }
}
