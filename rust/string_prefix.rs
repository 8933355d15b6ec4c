//! What tells a string from others: its length and its beginning, which is all of a short one.

use std::ops::Range;

/// A string's length and its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringPrefix {
    /// Its first bytes, zeros behind a shorter one.
    pub words: [u64; WORDS],
    /// How many bytes it has.
    pub len: usize,
}

/// A string and its mark.
#[derive(Clone, Copy)]
pub struct PrefixedString<'a> {
    /// What tells it from others.
    pub mark: StringPrefix,
    /// All of it.
    pub bytes: &'a [u8],
}

impl<'a> PrefixedString<'a> {
    /// A string.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { mark: StringPrefix::new(bytes), bytes }
    }

    /// Whether it is UTF-8.
    #[inline]
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        self.mark.is_whole() && self.mark.is_ascii() || std::str::from_utf8(self.bytes).is_ok()
    }
}

const WORDS: usize = 3;
const WORD: usize = size_of::<u64>();
/// What a string of each length leaves of the words that begin where it does.
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
    /// The length up to which a mark tells a string from all others.
    pub const WHOLE: usize = WORDS * WORD;

    /// The mark of a string.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; Self::WHOLE];
        let most = bytes.len().min(Self::WHOLE);
        padded[..most].copy_from_slice(&bytes[..most]);
        let words: [u64; WORDS] = bytemuck::cast(padded);
        Self { words: words.map(u64::from_le), len: bytes.len() }
    }

    /// The mark of the string that is `cell` of a buffer. Where the buffer goes on behind it, no jump depends on the
    /// string's length, which nobody could foresee.
    ///
    /// # Panics
    /// Where the buffer ends before the cell.
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

    /// Whether the mark tells the string from all others.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.len <= Self::WHOLE
    }

    /// The first bytes of the string, zeros behind a shorter one.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::WHOLE] {
        bytemuck::cast(self.words.map(u64::to_le))
    }

    /// Whether the string is ASCII as far as the words go.
    #[inline]
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.words.iter().fold(0, |all, word| all | word) & 0x8080_8080_8080_8080 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings of zeros and ones, which differ little.
    fn strings() -> Vec<Vec<u8>> {
        let bytes = |len: usize| {
            (0..=len * len)
                .map(move |n| (0..len).map(|k| u8::from(k * k * 7 % (n + 1) > n / 2)).collect())
        };
        (0..30).flat_map(bytes).collect()
    }

    #[test]
    fn short_strings_with_one_mark_are_equal() {
        let strings = strings();
        for a in &strings {
            for b in strings.iter().filter(|b| b.len() <= StringPrefix::WHOLE) {
                assert_eq!(StringPrefix::new(a) == StringPrefix::new(b), a == b);
            }
        }
    }

    #[test]
    fn what_lies_behind_a_string_is_not_in_its_mark() {
        for string in strings() {
            for behind in [0, 1, 7, 8, 20, 24] {
                let mut buffer = vec![b'a'; 3];
                buffer.extend(&string);
                buffer.extend(vec![b'b'; behind]);
                let mark = StringPrefix::of_cell(&buffer, 3..3 + string.len());
                assert_eq!(mark, StringPrefix::new(&string));
            }
        }
    }

    #[test]
    fn the_words_are_the_bytes_of_a_short_string_and_zeros() {
        for string in strings().iter().filter(|string| string.len() <= StringPrefix::WHOLE) {
            let mark = StringPrefix::new(string);
            let bytes = mark.bytes();
            assert_eq!(&bytes[..string.len()], &string[..]);
            assert!(bytes[string.len()..].iter().all(|&byte| byte == 0) && mark.is_ascii());
        }
        assert!(!StringPrefix::new("né".as_bytes()).is_ascii());
    }
}
