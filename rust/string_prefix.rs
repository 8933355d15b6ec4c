//! The prefix of a string: the string's length and its first 24 bytes, padded with zeros. The prefix
//! is the whole string if the string has at most 24 bytes.

use std::ops::Range;

/// A string's length and first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringPrefix {
    /// The string's first 24 bytes in little-endian words. Zeros follow a shorter string.
    pub words: [u64; WORDS],
    /// The number of bytes of the string.
    pub len: usize,
}

/// A string and its prefix.
#[derive(Clone, Copy)]
pub struct PrefixedString<'a> {
    /// The prefix.
    pub mark: StringPrefix,
    /// All bytes of the string.
    pub bytes: &'a [u8],
}

impl<'a> PrefixedString<'a> {
    /// Computes the prefix of a string.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { mark: StringPrefix::new(bytes), bytes }
    }

    /// Returns whether the string is UTF-8.
    #[inline]
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        self.mark.is_whole() && self.mark.is_ascii() || std::str::from_utf8(self.bytes).is_ok()
    }
}

/// The number of words of a prefix.
const WORDS: usize = 3;
/// The number of bytes of a word.
const WORD: usize = size_of::<u64>();
/// For each length of a string, a mask of the string's bytes in the words of the prefix.
const KEPT: [[u64; WORDS]; StringPrefix::WHOLE + 1] = {
    let mut kept = [[0; WORDS]; StringPrefix::WHOLE + 1];
    let mut len = 0;
    while len <= StringPrefix::WHOLE {
        let mut byte = 0;
        while byte < len {
            kept[len][byte / WORD] |= 0xFF << (8 * (byte % WORD));
            byte += 1;
        }
        len += 1;
    }
    kept
};

impl StringPrefix {
    /// The number of bytes of the longest string whose prefix is the whole string.
    pub const WHOLE: usize = WORDS * WORD;

    /// Returns the prefix of a string.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; Self::WHOLE];
        let most = bytes.len().min(Self::WHOLE);
        padded[..most].copy_from_slice(&bytes[..most]);
        let words: [u64; WORDS] = bytemuck::cast(padded);
        Self { words: words.map(u64::from_le), len: bytes.len() }
    }

    /// Returns the prefix of the string at the range `cell` of a buffer.
    ///
    /// If the buffer has 24 bytes from the start of the string on, no branch depends on the string's
    /// length. The processor could not predict such a branch.
    ///
    /// # Panics
    /// If the buffer ends before the cell.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    pub fn of_cell(buffer: &[u8], cell: Range<usize>) -> Self {
        let len = cell.len();
        let Some(beginning) = buffer[cell.start..].first_chunk::<{ StringPrefix::WHOLE }>() else {
            return Self::new(&buffer[cell]);
        };
        let [a, b, c]: [u64; WORDS] = bytemuck::cast(*beginning);
        let kept = &KEPT[len.min(Self::WHOLE)];
        let words =
            [u64::from_le(a) & kept[0], u64::from_le(b) & kept[1], u64::from_le(c) & kept[2]];
        Self { words, len }
    }

    /// Returns whether the prefix is the whole string.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.len <= Self::WHOLE
    }

    /// Returns the first 24 bytes of the string. Zeros follow a shorter string.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::WHOLE] {
        bytemuck::cast(self.words.map(u64::to_le))
    }

    /// Returns whether the first 24 bytes of the string are ASCII.
    #[inline]
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.words.iter().fold(0, |all, word| all | word) & 0x8080_8080_8080_8080 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns strings of the bytes zero and one. Many of these strings differ in few bytes.
    fn strings() -> Vec<Vec<u8>> {
        let bytes = |len: usize| {
            (0..=len * len)
                .map(move |n| (0..len).map(|k| u8::from(k * k * 7 % (n + 1) > n / 2)).collect())
        };
        (0..30).flat_map(bytes).collect()
    }

    #[test]
    fn a_prefix_identifies_a_string_of_at_most_24_bytes() {
        let strings = strings();
        for a in &strings {
            for b in strings.iter().filter(|b| b.len() <= StringPrefix::WHOLE) {
                assert_eq!(StringPrefix::new(a) == StringPrefix::new(b), a == b);
            }
        }
    }

    #[test]
    fn the_bytes_behind_a_string_do_not_change_its_prefix() {
        for string in strings() {
            for behind in [0, 1, 7, 8, 20, 24] {
                let mut buffer = vec![b'a'; 3];
                buffer.extend(&string);
                buffer.extend(vec![b'b'; behind]);
                let prefix = StringPrefix::of_cell(&buffer, 3..3 + string.len());
                assert_eq!(prefix, StringPrefix::new(&string));
            }
        }
    }

    #[test]
    fn the_words_are_a_short_strings_bytes_and_then_zeros() {
        for string in strings().iter().filter(|string| string.len() <= StringPrefix::WHOLE) {
            let prefix = StringPrefix::new(string);
            let bytes = prefix.bytes();
            assert_eq!(&bytes[..string.len()], &string[..]);
            assert!(bytes[string.len()..].iter().all(|&byte| byte == 0) && prefix.is_ascii());
        }
        assert!(!StringPrefix::new("né".as_bytes()).is_ascii());
    }
}
