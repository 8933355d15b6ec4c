//! Labels met lately, each at the one place that its hash allows: to look one up touches one line of the cache.

/// How many are remembered: at first and where few come back, and at most.
const FEW: usize = 1 << 10;
const MOST: usize = 1 << 16;

/// What tells a label from others: its hash above its length, its first eight bytes and its last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The lower half of the hash, above the length or what stands for it.
    pub head: u64,
    ends: [u64; 2],
}

impl Mark {
    /// The length up to which a mark tells a label from all others.
    pub const WHOLE: usize = 16;
    /// No label's.
    const NONE: Self = Self { head: u64::MAX, ends: [0; 2] };

    /// The mark of a label with this head.
    #[inline]
    #[must_use]
    pub fn new(head: u64, bytes: &[u8]) -> Self {
        let ends = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
            _ => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                [u64::from_le_bytes(word), 0]
            }
        };
        Self { head, ends }
    }

    #[inline]
    fn place(&self, places: usize) -> usize {
        (self.head >> 32) as usize & (places - 1)
    }
}

/// A label met lately: where its record is, and its code.
#[derive(Clone, Copy)]
pub(crate) struct Met {
    mark: Mark,
    /// Where its record is.
    pub place: u32,
    /// Its code.
    pub code: u32,
}

/// The labels met lately.
pub(crate) struct Recent {
    met: Vec<Met>,
    /// Since their number was last looked at.
    found: usize,
    new: usize,
    /// Whether remembering more has not helped.
    few_return: bool,
}

impl Default for Recent {
    fn default() -> Self {
        Self { met: none(FEW), found: 0, new: 0, few_return: false }
    }
}

impl Recent {
    /// What was met lately under this mark.
    #[inline]
    pub fn find(&mut self, mark: Mark) -> Option<Met> {
        let met = self.met[mark.place(self.met.len())];
        let found = met.mark == mark;
        self.found += usize::from(found);
        found.then_some(met)
    }

    /// Remembers a label in the place of another.
    #[inline]
    pub fn remember(&mut self, mark: Mark, place: u32, code: u32) {
        let places = self.met.len();
        self.met[mark.place(places)] = Met { mark, place, code };
        self.new += 1;
        if self.new > places {
            self.adapt();
        }
    }

    /// Remembers more labels where many come, and few again where hardly one comes back.
    #[cold]
    fn adapt(&mut self) {
        let size = match self.met.len() {
            size if size < MOST && !self.few_return => 2 * size,
            MOST if self.found < self.new / 16 => FEW,
            size => size,
        };
        self.few_return |= size == FEW;
        (self.found, self.new) = (0, 0);
        for met in std::mem::replace(&mut self.met, none(size)) {
            if met.mark != Mark::NONE {
                self.met[met.mark.place(size)] = met;
            }
        }
    }
}

fn none(places: usize) -> Vec<Met> {
    vec![Met { mark: Mark::NONE, place: 0, code: 0 }; places]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_while_there_is_room_and_few_are_kept_where_none_does() {
        let mark = |n: u64| Mark::new(n << 32 | 8, &n.to_le_bytes());
        let mut recent = Recent::default();
        for n in 0..10_000 {
            recent.remember(mark(n), n as u32, 7);
        }
        assert_eq!(recent.met.len(), 1 << 13);
        assert!(
            (9_000..10_000).all(|n| recent.find(mark(n)).is_some_and(|met| met.place == n as u32))
        );
        assert!(recent.find(mark(20_000)).is_none());
        (0..300_000).for_each(|n| recent.remember(mark(n), 0, 0));
        assert_eq!(recent.met.len(), FEW);
    }

    #[test]
    fn short_labels_with_one_mark_are_equal() {
        let labels: [&[u8]; 7] =
            [b"", b"\0", b"\0\0", b"abcdefg", b"abcdefgh", b"abcdefgha", b"aabcdefgh"];
        for a in labels {
            for b in labels {
                let same = Mark::new(a.len() as u64, a) == Mark::new(b.len() as u64, b);
                assert_eq!(same, a == b);
            }
        }
    }
}
