//! Text cells in JSON: only characters that JSON does not allow are escaped.

/// Adds a string.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let is_special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    out.push(b'"');
    if bytes.iter().fold(false, |any, byte| any | is_special(byte)) {
        for &byte in bytes {
            push_byte(out, byte);
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
}

fn push_byte(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\x08' => b'b',
        b'\x0c' => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0..0x20 => {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            return;
        }
        _ => {
            out.push(byte);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        push_string(&mut out, "a\"\\\n\u{1}\u{1f}é\u{7f}");
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"\\\\\\n\\u0001\\u001fé\u{7f}\"");
    }
}
