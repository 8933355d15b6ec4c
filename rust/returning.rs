//! Whether labels come back within some 100,000 others, told from a few of them: those of some hashes, which show how far
//! apart equal ones are, and those of some rows, which show the few that fill a table and of which none may be among the
//! former.

/// One label in so many is looked at, by its hash, and as many rows of each chunk.
const OF: u64 = 1 << 6;
/// How many labels each part remembers.
const PLACES: usize = 1 << 11;
/// After so many labels it is known whether many come back.
const ENOUGH: usize = 1 << 9;

/// What a few labels tell of all.
#[derive(Default)]
pub(crate) struct Returning {
    by_hash: Part,
    by_row: Part,
    /// What says which rows.
    chance: u64,
}

impl Returning {
    /// Looks at the hashes of the next rows' labels, those of NULL left out; says whether many come back.
    pub fn sees_many(&mut self, hashes: &[u64], null: &[bool]) -> bool {
        let labels = || hashes.iter().zip(null);
        for (&hash, null) in labels() {
            if (hash >> 32).is_multiple_of(OF) && !null {
                self.by_hash.look(hash);
            }
        }
        // The hashes are keyed, so that no order of rows can be made to hide what comes back.
        let first = hashes.first().copied().unwrap_or(0);
        self.chance = (self.chance ^ first).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let rows = hashes.len().div_ceil(OF as usize);
        let start = self.chance as usize % (hashes.len() - rows + 1);
        for (&hash, null) in labels().skip(start).take(rows) {
            if !null {
                self.by_row.look(hash);
            }
        }
        // Both forget what they know of the rows so far.
        self.by_hash.sees_many() | self.by_row.sees_many()
    }
}

/// Some labels, by their hashes.
struct Part {
    met: Vec<u64>,
    looks: usize,
    found: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self { met: vec![0; PLACES], looks: 0, found: 0 }
    }
}

impl Part {
    fn look(&mut self, hash: u64) {
        let place = &mut self.met[hash as usize % PLACES];
        self.found += usize::from(std::mem::replace(place, hash) == hash);
        self.looks += 1;
    }

    /// Whether many of the last labels came back, once there have been enough.
    fn sees_many(&mut self) -> bool {
        let sees_many = self.looks >= ENOUGH && self.found >= self.looks / 8;
        if self.looks >= ENOUGH {
            (self.looks, self.found) = (0, 0);
        }
        sees_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many chunks of 512 rows many are seen to come back, of 2,000 at most.
    fn seen_after(label: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut returning = Returning::default();
        (0..2000).find(|chunk| {
            let labels: Vec<_> = (chunk * 512..(chunk + 1) * 512).map(&label).collect();
            let hash = |n: u64| (n + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32);
            let hashes: Vec<_> = labels.iter().map(|n| n.map_or(0, hash)).collect();
            let null: Vec<_> = labels.iter().map(Option::is_none).collect();
            returning.sees_many(&hashes, &null)
        })
    }

    #[test]
    fn what_comes_back_is_seen_and_what_does_not_is_not() {
        let anywhere = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        assert_eq!(seen_after(Some), None);
        assert_eq!(seen_after(|n| Some(anywhere(n) % 1_000_000)), None);
        for labels in [1, 10, 10_000, 100_000] {
            assert!(seen_after(|n| Some(anywhere(n) % labels)).is_some_and(|after| after < 300));
        }
        // One row in four has one label, which is hardly among those of some hashes.
        assert!(seen_after(|n| Some(if anywhere(n).is_multiple_of(4) { 7 } else { n })).is_some());
        // Rows without a label are no label that comes back, wherever they are.
        assert_eq!(seen_after(|n| anywhere(n).is_multiple_of(4).then_some(n)), None);
        assert_eq!(seen_after(|n| (n % 512 >= 8).then_some(n)), None);
    }

    #[test]
    fn what_comes_back_is_seen_in_chunks_of_a_few_rows() {
        let mut returning = Returning::default();
        assert!((0..1000).any(|_| returning.sees_many(&[1 << 33 | 7; 5], &[false; 5])));
    }
}
