//! Finds quotes, delimiters and line ends, 64 bytes at a time.

/// Bytes of a span, which are compared together. Each byte has one bit in a 64-bit integer.
pub(super) const SPAN: usize = 64;

/// Marked bytes of a span. Bit `n` is set if byte `n` of the span is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    /// Quotes and the other requested bytes.
    pub all: u64,
    /// Quotes only.
    pub quotes: u64,
}

impl Marks {
    /// Finds quotes and the bytes `a`, `b` and `c` in a span.
    pub fn of(span: &[u8; SPAN], [a, b, c]: [u8; 3]) -> Self {
        let quotes = word(span, |byte| u8::from(byte == b'"'));
        let is_other = |byte| u8::from(byte == a) | u8::from(byte == b) | u8::from(byte == c);
        let others = word(span, is_other);
        Self { all: quotes | others, quotes }
    }
}

/// Returns one bit for each byte of a span. `mark` must return zero or one.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the compiler vectorizes it at its call")]
fn word(span: &[u8; SPAN], mark: impl Fn(u8) -> u8) -> u64 {
    let mut flags = [0; SPAN];
    for (flag, &byte) in flags.iter_mut().zip(span) {
        *flag = mark(byte);
    }
    // The product moves the lowest bit of byte n to bit 56 + n. No two terms of the product have the
    // same bit, so there is no carry.
    let gather =
        |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let eights = flags.as_chunks().0.iter().enumerate();
    eights.fold(0, |bits, (place, eight)| bits | gather(eight) << (8 * place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_matching_byte_has_its_bit() {
        for place in 0..SPAN {
            for (byte, is_quote) in [(b'"', true), (b';', false), (b'\n', false), (b'\r', false)] {
                let mut span = [b'a'; SPAN];
                span[place] = byte;
                let bit = 1 << place;
                let expected = Marks { all: bit, quotes: if is_quote { bit } else { 0 } };
                assert_eq!(Marks::of(&span, *b";\n\r"), expected);
            }
        }
        assert_eq!(Marks::of(&[b'"'; SPAN], *b",\n\n"), Marks { all: u64::MAX, quotes: u64::MAX });
        assert_eq!(Marks::of(&[0xff; SPAN], *b",\n\n"), Marks { all: 0, quotes: 0 });
    }
}
