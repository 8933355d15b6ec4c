//! Reads the sealed lines of a ledger quickly.
//!
//! A line is an event as JSON, a space, and its seal: the SHA-256 of the seal before it and of the line up to the seal.
//! This module reads only plain lines, which are charges, reservations and releases exactly as Python writes them. It
//! stops at any other line, also at one with a wrong seal. Python reads such a line itself and raises all errors.

use std::ops::Range;

use sha2::{Digest, Sha256};

/// Bytes of a seal in hexadecimal.
pub const SEAL: usize = 64;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Charged for a release that was made elsewhere.
    Charged,
    /// Charged for a release that is drawn next.
    Reserved,
    /// A reserved release that was published.
    Released,
}

/// A change of a dataset's charges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind.
    pub kind: Kind,
    /// The place of the dataset's name, as JSON without quotes.
    pub dataset: Range<usize>,
    /// The number of the event that reserved the charge, zero for [`Kind::Charged`].
    pub reserved: u128,
    /// The units of rho. Successive charges to one dataset are one change.
    pub rho: u128,
    /// The units of delta.
    pub delta: u128,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// The changes in order.
    pub changes: Vec<Change>,
    /// The end of the last plain line.
    pub end: usize,
    /// The number of the last event.
    pub number: u128,
    /// The seal of the last event.
    pub seal: [u8; SEAL],
}

/// Read plain lines from `start` on, after the event with this number and seal.
#[must_use]
pub fn read(content: &[u8], start: usize, number: u128, seal: [u8; SEAL]) -> Read {
    let mut read = Read { changes: Vec::new(), end: start, number, seal };
    while let Some((change, end, seal)) = plain(content, &read) {
        read.add(content, change);
        (read.end, read.number, read.seal) = (end, read.number + 1, seal);
    }
    read
}

impl Read {
    /// Add a change, if possible to the last one.
    fn add(&mut self, content: &[u8], new: Change) {
        if let Some(last) = self.changes.last_mut()
            && (last.kind, new.kind) == (Kind::Charged, Kind::Charged)
            && content[last.dataset.clone()] == content[new.dataset.clone()]
            && let Some(rho) = last.rho.checked_add(new.rho)
            && let Some(delta) = last.delta.checked_add(new.delta)
        {
            (last.rho, last.delta) = (rho, delta);
        } else {
            self.changes.push(new);
        }
    }
}

/// Return the next line's change, end and seal; `None` if the line is not plain or its seal is wrong.
fn plain(content: &[u8], read: &Read) -> Option<(Change, usize, [u8; SEAL])> {
    let number = read.number + 1;
    let mut line = Cursor { content, place: read.end };
    line.skip(b"{\"number\":")?;
    (line.whole()? == number).then_some(())?;
    line.skip(b",\"time\":")?;
    line.string()?;
    line.skip(b",\"kind\":")?;
    let kind = match &content[line.string()?] {
        b"charged" => Kind::Charged,
        b"reserved" => Kind::Reserved,
        b"released" => Kind::Released,
        _ => return None,
    };
    line.skip(b",\"dataset\":")?;
    let dataset = line.string()?;
    let reserved = match kind {
        Kind::Charged => 0,
        Kind::Reserved => number,
        Kind::Released => {
            line.skip(b",\"of\":")?;
            line.whole()?
        }
    };
    let (mut rho, mut delta) = (0, 0);
    if line.skip(b",\"rho\":").is_some() {
        rho = line.whole()?;
        line.skip(b",\"delta\":")?;
        delta = line.whole()?;
    }
    for name in [&b",\"mechanism\":"[..], b",\"parameters\":", b",\"version\":", b",\"digest\":"] {
        if line.skip(name).is_some() {
            line.string()?;
        }
    }
    line.skip(b",\"nonce\":")?;
    line.string()?;
    line.skip(b"} ")?;
    let found: [u8; SEAL] = content.get(line.place..line.place + SEAL)?.try_into().ok()?;
    let payload = &content[read.end..line.place];
    let hash = Sha256::new().chain_update(read.seal).chain_update(payload).finalize();
    (hex(&hash) == found).then_some(())?;
    line.place += SEAL;
    line.skip(b"\n")?;
    Some((Change { kind, dataset, reserved, rho, delta }, line.place, found))
}

fn hex(hash: &[u8]) -> [u8; SEAL] {
    let digit = |place: usize| {
        let half = hash[place / 2] >> (4 * (1 - place % 2)) & 15;
        b"0123456789abcdef"[usize::from(half)]
    };
    std::array::from_fn(digit)
}

/// A place in the content of a ledger.
struct Cursor<'a> {
    content: &'a [u8],
    place: usize,
}

impl Cursor<'_> {
    fn rest(&self) -> &[u8] {
        &self.content[self.place..]
    }

    /// Skip a text.
    fn skip(&mut self, text: &[u8]) -> Option<()> {
        self.rest().starts_with(text).then(|| self.place += text.len())
    }

    /// Read a whole number below 10^36, without a sign and leading zeros.
    fn whole(&mut self) -> Option<u128> {
        let len = self.rest().iter().take_while(|digit| digit.is_ascii_digit()).count();
        let digits = &self.rest()[..len];
        if !(1..=36).contains(&len) || (len > 1 && digits[0] == b'0') {
            return None;
        }
        let add = |sum: u128, &digit: &u8| sum * 10 + u128::from(digit - b'0');
        let whole = match digits.len() {
            // Most numbers fit 64 bits, which are faster.
            ..=19 => digits.iter().fold(0, |sum, &digit| sum * 10 + u64::from(digit - b'0')).into(),
            _ => digits.iter().fold(0, add),
        };
        self.place += len;
        Some(whole)
    }

    /// Read a string in ASCII, and return its place without the quotes.
    fn string(&mut self) -> Option<Range<usize>> {
        self.skip(b"\"")?;
        let start = self.place;
        loop {
            let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && !b"\"\\".contains(byte);
            self.place += self.rest().iter().take_while(|byte| is_plain(byte)).count();
            match self.rest() {
                [b'"', ..] => {
                    self.place += 1;
                    return Some(start..self.place - 1);
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => {
                    self.place += 2;
                }
                [b'\\', b'u', code @ ..] if code.len() >= 4 => {
                    code[..4].iter().all(u8::is_ascii_hexdigit).then_some(())?;
                    self.place += 6;
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [u8; SEAL] = [b'0'; SEAL];

    /// Returns lines with valid seals after the event 1.
    fn sealed(payloads: &[&str]) -> Vec<u8> {
        let (mut content, mut seal) = (Vec::new(), FIRST);
        for payload in payloads {
            seal = hex(&Sha256::new().chain_update(seal).chain_update(payload).finalize());
            content.extend([payload.as_bytes(), &seal, b"\n"].concat());
        }
        content
    }

    fn line(number: u32, what: &str) -> String {
        format!("{{\"number\":{number},\"time\":\"t\",{what},\"nonce\":\"0\"}} ")
    }

    #[test]
    fn charges_are_summed_and_other_lines_end_the_reading() {
        let lines = [
            line(2, r#""kind":"charged","dataset":"a\u00e9","rho":5,"delta":0"#),
            line(
                3,
                r#""kind":"charged","dataset":"a\u00e9","rho":7,"delta":300000000000000000000"#,
            ),
            line(
                4,
                r#""kind":"reserved","dataset":"b","rho":1,"delta":2,"mechanism":"m","version":"\"""#,
            ),
            line(5, r#""kind":"released","dataset":"b","of":4,"digest":"00""#),
            line(6, r#""kind":"opened","dataset":"c","rho":1,"delta":2,"parameters":"{}""#),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let content = sealed(&lines);
        let found = read(&content, 0, 1, FIRST);
        let of = |kind, (reserved, rho, delta)| (kind, reserved, rho, delta);
        let changes: Vec<_> =
            found.changes.iter().map(|c| (c.kind, c.reserved, c.rho, c.delta)).collect();
        assert_eq!(
            changes,
            [
                of(Kind::Charged, (0, 12, 300_000_000_000_000_000_000)),
                of(Kind::Reserved, (4, 1, 2)),
                of(Kind::Released, (4, 0, 0)),
            ]
        );
        assert_eq!(&content[found.changes[0].dataset.clone()], br"a\u00e9");
        assert_eq!((found.number, found.end), (5, sealed(&lines[..4]).len()));
        assert_eq!(found.seal, content[found.end - 65..found.end - 1]);
    }

    #[test]
    fn any_changed_byte_of_a_line_ends_the_reading_before_it() {
        let lines = [
            line(2, r#""kind":"charged","dataset":"a","rho":5,"delta":0"#),
            line(3, r#""kind":"charged","dataset":"a","rho":5,"delta":0"#),
        ];
        let content = sealed(&[&lines[0], &lines[1]]);
        let first = content.len() / 2;
        for place in 0..content.len() {
            for bit in 0..8 {
                let mut broken = content.clone();
                broken[place] ^= 1 << bit;
                let end = if place < first { 0 } else { first };
                assert_eq!(read(&broken, 0, 1, FIRST).end, end, "{place}");
            }
        }
        for len in 0..content.len() {
            assert_eq!(read(&content[..len], 0, 1, FIRST).end, if len < first { 0 } else { first });
        }
    }

    #[test]
    fn lines_that_json_reads_otherwise_are_not_plain() {
        for what in [
            r#""kind":"charged","dataset":"a","rho":05,"delta":0"#,
            r#""kind":"charged","dataset":"a","rho":-5,"delta":0"#,
            r#""kind":"charged","dataset":"a","rho":5.0,"delta":0"#,
            r#""kind":"charged","dataset":"a","rho":5,"delta":0,"rho":1"#,
            r#""kind":"charged","dataset":"a\q","rho":5,"delta":0"#,
            r#""kind":"charged","dataset":"a\u00g0","rho":5,"delta":0"#,
            r#""kind":"charged","dataset":"ä","rho":5,"delta":0"#,
            r#""kind":"charged","dataset":"a","rho":5"#,
            r#""kind":"charged","dataset":"a","rho":1000000000000000000000000000000000000,"delta":0"#,
            r#""kind":"released","dataset":"a","rho":5,"delta":0"#,
            "\"kind\":\"charged\",\"dataset\":\"a\tb\",\"rho\":5,\"delta\":0",
        ] {
            assert_eq!(read(&sealed(&[&line(2, what)]), 0, 1, FIRST).end, 0, "{what}");
        }
        let other = line(3, r#""kind":"charged","dataset":"a","rho":5,"delta":0"#);
        assert_eq!(read(&sealed(&[&other]), 0, 1, FIRST).end, 0);
        assert_eq!(read(&sealed(&[&other]), 0, 2, FIRST).number, 3);
    }
}
