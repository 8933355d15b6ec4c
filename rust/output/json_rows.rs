//! Rows of JSON as rows of CSV, only if the JSON is exactly what this library writes.

use std::str::from_utf8;

use super::csv;

/// Adds the rows of `text` as CSV. A row of the text consists of the `pieces` with a cell after each but the last. The
/// first `skipped` bytes of the first row's first piece are absent.
///
/// `float` gets a number that is no integer, and returns its text in CSV. Returns `None` if `float` does, or if the text
/// is not exactly of this form. The rows that were added are then meaningless.
pub fn push_csv_rows<F: FnMut(&str) -> Option<String>>(
    out: &mut Vec<u8>,
    text: &[u8],
    pieces: &[Vec<u8>],
    mut skipped: usize,
    mut float: F,
) -> Option<()> {
    let (last, pieces) = pieces.split_last()?;
    let mut rest = text;
    let mut cell = String::new();
    while !rest.is_empty() {
        let begin = out.len();
        for (column, piece) in pieces.iter().enumerate() {
            rest = rest.strip_prefix(piece.get(std::mem::take(&mut skipped)..)?)?;
            if column > 0 {
                out.push(b',');
            }
            rest = match rest.strip_prefix(b"\"") {
                Some(string) => push_string(out, string, &mut cell)?,
                None => push_number(out, rest, &mut float)?,
            };
        }
        csv::end_row(out, begin);
        out.push(b'\n');
        rest = rest.strip_prefix(last.as_slice())?;
    }
    Some(())
}

/// Adds a string and returns the text after its closing quote. The text begins after the opening quote.
fn push_string<'a>(out: &mut Vec<u8>, text: &'a [u8], cell: &mut String) -> Option<&'a [u8]> {
    cell.clear();
    let mut rest = text;
    loop {
        let end = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')?;
        let (plain, after) = (from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
        match rest[end] {
            b'"' if cell.is_empty() => {
                csv::push_cell(out, plain);
                return Some(after);
            }
            b'"' => {
                cell.push_str(plain);
                csv::push_cell(out, cell);
                return Some(after);
            }
            b'\\' => {
                cell.push_str(plain);
                rest = push_escaped(cell, after)?;
            }
            _ => return None,
        }
    }
}

/// Adds an escaped character and returns the text after it. The text begins after the backslash.
fn push_escaped<'a>(cell: &mut String, text: &'a [u8]) -> Option<&'a [u8]> {
    let (&kind, rest) = text.split_first()?;
    let char = match kind {
        b'"' | b'\\' => kind.into(),
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let (digits, rest) = rest.split_at_checked(4)?;
            let digits = from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
            cell.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
            return Some(rest);
        }
        _ => return None,
    };
    cell.push(char);
    Some(rest)
}

/// Adds a number and returns the text after it.
fn push_number<'a>(
    out: &mut Vec<u8>,
    text: &'a [u8],
    float: &mut impl FnMut(&str) -> Option<String>,
) -> Option<&'a [u8]> {
    let end = text.iter().position(|byte| matches!(byte, b',' | b'}' | b'\n'))?;
    let (number, rest) = text.split_at(end);
    let is_integer = match number.strip_prefix(b"-").unwrap_or(number) {
        [b'1'..=b'9', more @ ..] => more.len() < 20 && more.iter().all(u8::is_ascii_digit),
        _ => number == b"0",
    };
    if is_integer {
        out.extend_from_slice(number);
    } else {
        out.extend_from_slice(float(from_utf8(number).ok()?)?.as_bytes());
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Option<String> {
        let pieces = ["{\"a\": ", ", \"b\": ", "}\n"].map(|piece| piece.as_bytes().to_vec());
        let mut out = Vec::new();
        let float = |number: &str| (number == "1.5").then(|| number.to_owned());
        push_csv_rows(&mut out, text.as_bytes(), &pieces, 0, float)?;
        String::from_utf8(out).ok()
    }

    #[test]
    fn exact_rows_become_csv() {
        let text = "{\"a\": \"x\\\"\\u00e9\\n\", \"b\": -12}\n{\"a\": \"\", \"b\": 1.5}\n";
        assert_eq!(rows(text).unwrap(), "\"x\"\"é\n\",-12\n,1.5\n");
        assert_eq!(rows("").unwrap(), "");
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "{\"a\": \"x\", \"b\": 1}",
            "{\"a\": \"x\",\"b\": 1}\n",
            "{\"a\": \"x\", \"b\": 01}\n",
            "{\"a\": \"x\", \"b\": -0}\n",
            "{\"a\": \"x\", \"b\": 2.5}\n",
            "{\"a\": \"x\", \"b\": null}\n",
            "{\"a\": \"x\", \"b\": 123456789012345678901}\n",
            "{\"a\": \"x\n\", \"b\": 1}\n",
            "{\"a\": \"\\ud800\", \"b\": 1}\n",
            "{\"a\": \"\\u+123\", \"b\": 1}\n",
            "{\"a\": \"\\x\", \"b\": 1}\n",
            "{\"a\": \"x",
            " {\"a\": \"x\", \"b\": 1}\n",
        ] {
            assert_eq!(rows(text), None);
        }
    }
}
