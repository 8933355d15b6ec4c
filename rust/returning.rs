//! Whether labels come back, told from a few of them: those of some hashes, which show what comes back within some 100,000
//! others, and those of some rows, which show the few that have many rows.

/// One label in so many is looked at, by its hash; and one row in so many of each chunk, at least one.
const OF: u64 = 1 << 6;
/// How many labels each part remembers.
const PLACES: usize = 1 << 11;
/// After so many rows it is known how many labels come back.
const WINDOW: usize = 1 << 15;
/// Many come back where it is one look in so many, of at least so many, and some where it is one row in so many.
const MANY: usize = 8;
const ENOUGH: usize = 1 << 7;
const SOME: usize = 64;

/// How many labels come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Return {
    /// Hardly one.
    Hardly,
    /// A few that have many rows.
    Some,
    /// So many that it is worth while to remember all.
    Many,
}

/// What a few labels tell of all.
pub(crate) struct Returning {
    by_hash: Part,
    by_row: Part,
    /// What says which rows.
    chance: u64,
    /// How many rows have been looked at since it was last told how many labels come back, and what was told.
    rows: usize,
    told: Return,
}

impl Default for Returning {
    fn default() -> Self {
        let (by_hash, by_row) = Default::default();
        Self { by_hash, by_row, chance: 0, rows: 0, told: Return::Hardly }
    }
}

impl Returning {
    /// Looks at the hashes of the next rows' labels, those of NULL left out; says how many come back.
    pub fn look(&mut self, hashes: &[u64], null: &[bool]) -> Return {
        let labels = || hashes.iter().zip(null);
        for (&hash, null) in labels() {
            if (hash >> 32).is_multiple_of(OF) && !null {
                self.by_hash.look_once(hash);
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
        self.rows += hashes.len();
        if self.rows >= WINDOW {
            self.told = self.tell();
            self.rows = 0;
            self.by_hash.begin();
            self.by_row.begin();
        }
        self.told
    }

    fn tell(&self) -> Return {
        let many = |part: &Part| part.looks >= ENOUGH && part.found >= part.looks / MANY;
        if many(&self.by_hash) || many(&self.by_row) {
            Return::Many
        } else if self.by_row.found > self.by_row.looks / SOME {
            Return::Some
        } else {
            Return::Hardly
        }
    }
}

/// Some labels, by their hashes.
struct Part {
    /// With each the last window in which it was found.
    met: Vec<(u64, usize)>,
    window: usize,
    /// In this window.
    looks: usize,
    found: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self { met: vec![(0, 0); PLACES], window: 1, looks: 0, found: 0 }
    }
}

impl Part {
    /// Begins another window.
    fn begin(&mut self) {
        self.window += 1;
        (self.looks, self.found) = (0, 0);
    }

    fn look(&mut self, hash: u64) {
        self.looks += 1;
        let place = &mut self.met[hash as usize % PLACES];
        if place.0 == hash {
            self.found += 1;
            place.1 = self.window;
        } else {
            *place = (hash, 0);
        }
    }

    /// Looks at a label unless it was found in this window: a few that have many rows are not to seem many.
    fn look_once(&mut self, hash: u64) {
        if self.met[hash as usize % PLACES] != (hash, self.window) {
            self.look(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told at last of 2,000 chunks of 512 rows.
    fn told(label: impl Fn(u64) -> Option<u64>) -> Return {
        let mut returning = Returning::default();
        for chunk in 0..2000 {
            let labels: Vec<_> = (chunk * 512..(chunk + 1) * 512).map(&label).collect();
            let hash = |n: u64| (n + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32);
            let hashes: Vec<_> = labels.iter().map(|n| n.map_or(0, hash)).collect();
            let null: Vec<_> = labels.iter().map(Option::is_none).collect();
            returning.look(&hashes, &null);
        }
        returning.told
    }

    #[test]
    fn what_comes_back_is_told_and_what_does_not_is_not() {
        let anywhere = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        assert_eq!(told(Some), Return::Hardly);
        assert_eq!(told(|n| Some(anywhere(n) % 10_000_000)), Return::Hardly);
        for labels in [1, 10, 1000, 10_000, 100_000] {
            assert_eq!(told(|n| Some(anywhere(n) % labels)), Return::Many, "of {labels}");
        }
        assert_eq!(told(|n| Some(n / 2)), Return::Many);
    }

    #[test]
    fn a_few_that_have_many_rows_are_told() {
        let anywhere = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let of = |rows: u64| {
            move |n| Some(if anywhere(n).is_multiple_of(rows) { anywhere(n) % 30 } else { 99 + n })
        };
        assert_eq!(told(of(4)), Return::Many);
        assert_eq!(told(of(17)), Return::Some);
        assert_eq!(told(of(1000)), Return::Hardly);
    }

    #[test]
    fn rows_without_a_label_are_no_label_that_comes_back() {
        assert_eq!(told(|n| (n % 7 == 3).then_some(n)), Return::Hardly);
        assert_eq!(told(|n| (n % 512 >= 8).then_some(n)), Return::Hardly);
        assert_eq!(told(|_| None), Return::Hardly);
    }

    #[test]
    fn what_comes_back_is_told_in_chunks_of_a_few_rows() {
        let mut returning = Returning::default();
        let told = (0..10_000).map(|_| returning.look(&[1 << 33 | 7; 5], &[false; 5])).last();
        assert_eq!(told, Some(Return::Many));
    }
}
