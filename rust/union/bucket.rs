//! A bucket, which holds one thread's rows of some users. A row is a pair of a user's number in the bucket and an
//! item's number in the thread.

/// A user, an item of the user, and the number of rows with this pair.
pub(crate) type Entry = (u32, u32, u32);

/// The rows of some users.
#[derive(Default, Clone)]
pub(crate) struct Bucket {
    /// The keys of the users, by number.
    pub users: Vec<u128>,
    /// Rows, with the user in the high and the item in the low 32 bits.
    fresh: Vec<u64>,
    /// The distinct pairs of deduplicated rows, sorted by user and item.
    kept: Vec<Entry>,
}

impl Bucket {
    /// Add a row.
    #[inline]
    pub fn push(&mut self, user: u32, item: u32) {
        self.fresh.push(u64::from(user) << 32 | u64::from(item));
    }

    /// Return the number of rows plus kept pairs.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.kept.len()
    }

    /// Return the bytes of memory in use.
    pub fn bytes_used(&self) -> usize {
        self.users.capacity() * 16
            + self.fresh.capacity() * 8
            + self.kept.capacity() * size_of::<Entry>()
    }

    /// Return all entries; a row is an entry of its own.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let row = |&row: &u64| ((row >> 32) as u32, row as u32, 1);
        self.fresh.iter().map(row).chain(self.kept.iter().copied())
    }

    /// Replace each item's number. The new numbers must have the same order as the old ones.
    pub fn renumber(&mut self, numbers: &[u32]) {
        self.kept.iter_mut().for_each(|(_, item, _)| *item = numbers[*item as usize]);
    }

    /// Deduplicate the rows. If there is a limit `l0`, keep only the first `l0` items of each user, in the order of
    /// `priority`, which gets a user's key and an item's number.
    pub fn settle(&mut self, l0: Option<usize>, priority: impl Fn(u128, u32) -> u64) {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_unstable();
        let entry = |same: &[u64]| {
            ((same[0] >> 32) as u32, same[0] as u32, u32::try_from(same.len()).unwrap_or(u32::MAX))
        };
        self.kept.extend(fresh.chunk_by(u64::eq).map(entry));
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
            self.keep_first(l0, priority);
        }
        self.kept.shrink_to_fit();
    }

    /// Keep the `l0` pairs of each user with the smallest `priority`.
    fn keep_first(&mut self, l0: usize, priority: impl Fn(u128, u32) -> u64) {
        let (mut start, mut end) = (0, 0);
        while let Some(&(user, _, _)) = self.kept.get(start) {
            let len = self.kept[start..].partition_point(|entry| entry.0 == user);
            let key = self.users[user as usize];
            let own = &mut self.kept[start..start + len];
            let kept = first(own, l0, |&(_, item, _)| priority(key, item));
            own[..kept].sort_unstable();
            self.kept.copy_within(start..start + kept, end);
            (start, end) = (start + len, end + kept);
        }
        self.kept.truncate(end);
    }
}

/// Move the `l0` values with the smallest `priority` to the front, in any order. Return the number of kept values.
pub(crate) fn first<T: Copy + Ord>(
    values: &mut [T],
    l0: usize,
    priority: impl Fn(&T) -> u64,
) -> usize {
    if values.len() <= l0 {
        return values.len();
    }
    let mut placed: Vec<(u64, T)> = values.iter().map(|value| (priority(value), *value)).collect();
    placed.select_nth_unstable(l0 - 1);
    values.iter_mut().zip(&placed[..l0]).for_each(|(to, &(_, value))| *to = value);
    l0
}
