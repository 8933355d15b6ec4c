//! Decodes the bytes of a file to UTF-8.

use std::io::{Read, Result as IoResult};

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8, whose bytes are not changed.
    #[default]
    Utf8,
    /// ISO 8859-1.
    Latin1,
    /// Windows-1252, which has printable characters in place of control characters of ISO 8859-1.
    Windows1252,
    /// UTF-16. A byte order mark decides the order of bytes; without it the first byte is the lower one.
    Utf16,
}

impl Encoding {
    /// Returns the encoding of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "utf-8" => Self::Utf8,
            "latin-1" => Self::Latin1,
            "windows-1252" => Self::Windows1252,
            "utf-16" => Self::Utf16,
            _ => return None,
        })
    }

    /// Returns the bytes of a file in UTF-8. Reads at most `block` bytes at a time.
    pub(super) fn decoded(self, bytes: Box<dyn Read + Send>, block: usize) -> Box<dyn Read + Send> {
        if self == Self::Utf8 {
            return bytes;
        }
        let decoder = Decoder {
            bytes,
            block: vec![0; block],
            encoding: self,
            is_big: None,
            rest: Vec::new(),
            text: Vec::new(),
            at: 0,
        };
        Box::new(decoder)
    }
}

/// The characters of the bytes 0x80 to 0x9f in Windows-1252. The five bytes that it leaves open are control characters.
const WINDOWS: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];
/// A byte that no UTF-8 text has. It stands for half a character of UTF-16, so that its row is dropped.
const NO_TEXT: u8 = 0xff;

/// Decodes bytes to UTF-8.
struct Decoder<R> {
    bytes: R,
    block: Vec<u8>,
    encoding: Encoding,
    /// Whether the first byte of UTF-16 is the higher one; `None` before the first character.
    is_big: Option<bool>,
    /// Bytes whose character has not ended.
    rest: Vec<u8>,
    /// Decoded text, of which `at` bytes were read.
    text: Vec<u8>,
    at: usize,
}

impl<R: Read> Decoder<R> {
    fn fill(&mut self) -> IoResult<()> {
        let held = self.bytes.read(&mut self.block)?;
        self.text.clear();
        self.at = 0;
        if self.encoding == Encoding::Utf16 {
            self.rest.extend_from_slice(&self.block[..held]);
            self.utf16(held == 0);
            return Ok(());
        }
        for &byte in &self.block[..held] {
            let letter = match (self.encoding, byte) {
                (Encoding::Windows1252, 0x80..=0x9f) => WINDOWS[usize::from(byte - 0x80)],
                _ => char::from(byte),
            };
            push(letter, &mut self.text);
        }
        Ok(())
    }

    fn utf16(&mut self, is_over: bool) {
        let mut at = 0;
        while let Some(pair) = self.rest.get(at..at + 2) {
            let is_big = *self.is_big.get_or_insert(pair == [0xfe, 0xff]);
            let unit = |at: usize| {
                let pair = self.rest.get(at..at + 2)?;
                let pair = [pair[0], pair[1]];
                Some(if is_big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
            };
            let Some(first) = unit(at) else { break };
            let is_high = (0xd800..0xdc00).contains(&first);
            let second = unit(at + 2);
            if is_high && second.is_none() && !is_over {
                break;
            }
            let units = if is_high { [Some(first), second] } else { [Some(first), None] };
            match char::decode_utf16(units.into_iter().flatten()).next() {
                Some(Ok(letter)) => {
                    push(letter, &mut self.text);
                    at += 2 * letter.len_utf16();
                }
                _ => {
                    self.text.push(NO_TEXT);
                    at += 2;
                }
            }
        }
        self.rest.drain(..at);
        if is_over && !self.rest.is_empty() {
            self.rest.clear();
            self.text.push(NO_TEXT);
        }
    }
}

fn push(letter: char, text: &mut Vec<u8>) {
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        while self.at == self.text.len() {
            let was_pending = self.rest.len();
            self.fill()?;
            if self.text.is_empty() && self.rest.len() == was_pending {
                return Ok(0);
            }
        }
        let len = into.len().min(self.text.len() - self.at);
        into[..len].copy_from_slice(&self.text[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives few bytes at a time.
    struct Slow(Vec<u8>, usize);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
            let len = self.1.min(self.0.len()).min(into.len());
            into[..len].copy_from_slice(&self.0[..len]);
            self.0.drain(..len);
            Ok(len)
        }
    }

    fn decoded(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        let results: Vec<Vec<u8>> = [1, 2, 3, 1000]
            .map(|step| {
                let mut found = Vec::new();
                let slow = Box::new(Slow(bytes.to_vec(), step));
                encoding.decoded(slow, 1 << 10).read_to_end(&mut found).unwrap();
                found
            })
            .into();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        results[0].clone()
    }

    #[test]
    fn bytes_become_utf8() {
        assert_eq!(decoded(Encoding::Utf8, b"\xff\xc3\xa9"), b"\xff\xc3\xa9");
        assert_eq!(decoded(Encoding::Latin1, b"a\xe9\x80"), "a\u{e9}\u{80}".as_bytes());
        assert_eq!(
            decoded(Encoding::Windows1252, b"\x80\xe9\x9f"),
            "\u{20ac}\u{e9}\u{178}".as_bytes()
        );
        let text = "a,\u{e9}\u{1f600}\n";
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> =
                "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(order).collect();
            assert_eq!(decoded(Encoding::Utf16, &bytes), format!("\u{feff}{text}").as_bytes());
        }
        let unmarked: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded(Encoding::Utf16, &unmarked), text.as_bytes());
    }

    #[test]
    fn half_characters_are_no_text() {
        for (bytes, expected) in [
            (&b"a\0\x00\xd8b\0"[..], &b"a\xffb"[..]),
            (b"a\0\x00\xdcb\0", b"a\xffb"),
            (b"a\0\x00\xd8", b"a\xff"),
            (b"a\0b", b"a\xff"),
            (b"", b""),
        ] {
            assert_eq!(decoded(Encoding::Utf16, bytes), expected);
        }
    }
}
