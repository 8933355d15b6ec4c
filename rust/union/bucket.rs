//! A bucket, which holds the rows of some users. A row is a pair of a user's number and an item's number. The caller
//! deduplicates a bucket when its rows have doubled.

use crate::union::label_numbers::Numbers;

/// The smallest and the largest number of new rows that triggers deduplication.
const FRESH: (usize, usize) = (1 << 12, 1 << 22);

/// A user, an item of the user, and the number of rows with this pair.
pub(crate) type Entry = (u32, u32, u32);

/// The rows of some users.
#[derive(Default, Clone)]
pub(crate) struct Bucket {
    /// New rows, with the user in the high and the item in the low 32 bits.
    fresh: Vec<u64>,
    /// The distinct pairs so far, sorted by user and item.
    pub kept: Vec<Entry>,
}

impl Bucket {
    /// Add a row. Return true if the bucket should be deduplicated.
    pub fn push(&mut self, user: u32, item: u32) -> bool {
        self.fresh.push(u64::from(user) << 32 | u64::from(item));
        self.fresh.len() >= self.kept.len().clamp(FRESH.0, FRESH.1)
    }

    /// Return the number of new rows plus kept pairs.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.kept.len()
    }

    /// Return the bytes of memory in use.
    pub fn bytes_used(&self) -> usize {
        self.fresh.capacity() * 8 + self.kept.capacity() * size_of::<Entry>()
    }

    /// Release unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.fresh.shrink_to_fit();
        self.kept.shrink_to_fit();
    }

    /// Deduplicate the rows. If there is a limit `l0`, keep only the first `l0` items of each user in the user's order.
    pub fn settle(&mut self, l0: Option<usize>, users: &Numbers, items: &Numbers) {
        self.fresh.sort_unstable();
        let entry = |same: &[u64]| {
            ((same[0] >> 32) as u32, same[0] as u32, u32::try_from(same.len()).unwrap_or(u32::MAX))
        };
        self.kept.extend(self.fresh.chunk_by(u64::eq).map(entry));
        self.fresh.clear();
        // A stable sort detects the two sorted runs and merges them.
        self.kept.sort_by_key(|&(user, item, _)| (user, item));
        self.kept.dedup_by(|later, first| {
            let same = (later.0, later.1) == (first.0, first.1);
            if same {
                first.2 = first.2.saturating_add(later.2);
            }
            same
        });
        if let Some(l0) = l0 {
            self.keep_first(l0, |user, item| users.priority(users.rank(user), items.rank(item)));
        }
    }

    /// Keep the `l0` pairs of each user with the smallest `place`.
    fn keep_first(&mut self, l0: usize, place: impl Fn(u32, u32) -> u64) {
        let mut placed: Vec<(u64, Entry)> = Vec::new();
        let (mut start, mut end) = (0, 0);
        while let Some(&(user, _, _)) = self.kept.get(start) {
            let len = self.kept[start..].partition_point(|entry| entry.0 == user);
            let own = start..start + len;
            start = own.end;
            if len <= l0 {
                self.kept.copy_within(own, end);
                end += len;
                continue;
            }
            placed.clear();
            placed.extend(self.kept[own].iter().map(|&entry| (place(user, entry.1), entry)));
            placed.select_nth_unstable(l0 - 1);
            let kept = &mut placed[..l0];
            kept.sort_unstable_by_key(|&(_, entry)| entry);
            for (to, &mut (_, entry)) in self.kept[end..].iter_mut().zip(kept) {
                *to = entry;
            }
            end += l0;
        }
        self.kept.truncate(end);
    }
}
