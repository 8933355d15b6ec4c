//! Text cells in CSV: quoted as in RFC 4180, and escaped if a spreadsheet might run or change them.

/// Adds a cell, and returns whether it was escaped by an apostrophe.
pub fn push_cell(out: &mut Vec<u8>, text: &str) -> bool {
    let escaped = is_escaped(text);
    let is_special = |&byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    let quoted = text.as_bytes().iter().fold(false, |any, byte| any | is_special(byte));
    if quoted {
        out.push(b'"');
    }
    if escaped {
        out.push(b'\'');
    }
    if quoted {
        for (part, piece) in text.split('"').enumerate() {
            if part > 0 {
                out.extend_from_slice(b"\"\"");
            }
            out.extend_from_slice(piece.as_bytes());
        }
        out.push(b'"');
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    escaped
}

/// Completes a row that began at a length of `out`. A row of one empty cell is quoted, because a line without anything
/// is no row.
pub fn end_row(out: &mut Vec<u8>, begin: usize) {
    if out.len() == begin {
        out.extend_from_slice(b"\"\"");
    }
}

/// Returns whether a cell is escaped. It is, if it begins with an apostrophe, a control character, or the sign of a
/// formula after any spaces and invisible characters.
#[must_use]
pub fn is_escaped(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    if matches!(first, '!'..='~' if !matches!(first, '\'' | '+' | '-' | '=' | '@')) {
        return false;
    }
    if matches!(first, '\'' | '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}') {
        return true;
    }
    text.chars().find(|&char| !is_invisible(char)).is_some_and(is_sign)
}

/// Returns whether a character is a space, a control character, or one that programs may ignore.
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\0'..='\x20' | '\x7f'..='\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}'
        | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns whether a character begins formulas, or becomes such a character by compatibility normalisation.
fn is_sign(char: char) -> bool {
    matches!(
        char,
        '=' | '+' | '-' | '@' | '\u{207a}'..='\u{207c}' | '\u{208a}'..='\u{208c}' | '\u{2212}'
        | '\u{2a75}' | '\u{2a76}' | '\u{fb29}' | '\u{fe62}' | '\u{fe63}' | '\u{fe66}'
        | '\u{fe6b}' | '\u{ff0b}' | '\u{ff0d}' | '\u{ff1d}' | '\u{ff20}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_escaped() {
        for (text, cell) in [
            ("home", "home"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("q\"q\"", "\"q\"\"q\"\"\""),
            ("=a", "'=a"),
            ("'", "''"),
            (" \u{feff}＝\r", "\"' \u{feff}＝\r\""),
            (" a=", " a="),
            ("é=", "é="),
            ("\u{200b}", "\u{200b}"),
            ("\t", "'\t"),
        ] {
            let mut out = Vec::new();
            let escaped = push_cell(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), cell);
            assert_eq!(escaped, cell != text && cell.contains('\''));
        }
    }
}
