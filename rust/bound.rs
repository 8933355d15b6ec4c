//! At most `l0` items of each user: a uniform choice among the distinct ones, by keyed hashes of the user and
//! the item, so that it depends on neither the order of the rows nor on anyone else. Where only some items
//! count, the choice is among these.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use crate::crew;
use crate::error::Result;
use crate::hash::HashKeys;
use crate::interner::Interner;
use crate::labels::LabelType;
use crate::labels::Labels;
use crate::mark::Marked;
use crate::merge::Tally;
use crate::pairs::Pair;
use crate::sieve::Items;
use crate::spill::Spill;

/// About how many pairs users are dealt out by, into at least so many buckets, and at most.
const BUCKET: usize = 1 << 16;
const BUCKETS: (usize, usize) = (128, 4096);

/// A distinct pair: its user, its place in the order of that user's items, and its item's number.
type Choice = (u128, u64, usize);

/// Bytes of a choice in a file, and how many are read at a time.
const CHOICE: usize = 32;
const CHOICES: usize = 1 << 15;

/// What bounds a user's contribution.
#[derive(Debug)]
pub struct Contribution {
    l0: usize,
    /// The items that count, by their bytes, an integer's being those of its key, the lowest first.
    only: Option<HashSet<Vec<u8>>>,
}

impl Contribution {
    /// At most `l0` items of each user, of these alone; nothing where neither is given.
    #[must_use]
    pub fn new(l0: Option<usize>, only: Option<&Labels>) -> Option<Self> {
        let only = only.map(|labels| match labels {
            Labels::Signed(keys) => keys.iter().map(|key| key.to_le_bytes().to_vec()).collect(),
            Labels::Unsigned(keys) => keys.iter().map(|key| key.to_le_bytes().to_vec()).collect(),
            Labels::Text(strings) | Labels::Binary(strings) => {
                (0..strings.len()).map(|row| strings.get(row).to_vec()).collect()
            }
        });
        (l0.is_some() || only.is_some()).then(|| Self { l0: l0.unwrap_or(usize::MAX), only })
    }

    fn counts(&self, bytes: &[u8]) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(bytes))
    }
}

/// One thread's items, and its distinct pairs dealt out by their users. What a user cannot keep of the pairs seen so
/// far, they cannot keep of all.
pub(crate) struct Bounded<'a> {
    bound: &'a Contribution,
    labels: Labels,
    buckets: Vec<Vec<Choice>>,
    /// How many pairs the buckets have, and may have.
    len: usize,
    room: usize,
    /// What did not fit, and where each bucket's is: the place and how many.
    file: Option<Spill>,
    extents: Vec<Vec<(u64, usize)>>,
    /// The items of the current partition: the hash of each that counts.
    hashes: Vec<Option<u64>>,
}

impl<'a> Bounded<'a> {
    /// Of about so many `rows` in all, holding at most about so many bytes.
    pub fn new(item_type: LabelType, bound: &'a Contribution, rows: usize, held: usize) -> Self {
        let buckets = (rows / BUCKET).next_power_of_two().clamp(BUCKETS.0, BUCKETS.1);
        Self {
            bound,
            labels: Labels::new(item_type),
            buckets: vec![Vec::new(); buckets],
            len: 0,
            room: held / size_of::<Choice>(),
            file: None,
            extents: vec![Vec::new(); buckets],
            hashes: Vec::new(),
        }
    }

    /// The items, in the order of their numbers.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Drops what nobody can keep and, where that is not enough, puts the buckets away.
    fn make_room(&mut self) -> Result<()> {
        for bucket in &mut self.buckets {
            keep_first(bucket, self.bound.l0);
        }
        self.len = self.buckets.iter().map(Vec::len).sum();
        if 2 * self.len <= self.room {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Spill::new()?),
        };
        for (bucket, extents) in self.buckets.iter_mut().zip(&mut self.extents) {
            extents.push((file.end(), bucket.len()));
            for (user, place, item) in std::mem::take(bucket) {
                let mut bytes = [0; CHOICE];
                bytes[..16].copy_from_slice(&user.to_le_bytes());
                bytes[16..24].copy_from_slice(&place.to_le_bytes());
                bytes[24..].copy_from_slice(&(item as u64).to_le_bytes());
                file.push(&bytes)?;
            }
        }
        self.len = 0;
        file.flush()
    }

    /// Appends the pairs of a bucket, with `first` added to the items' numbers. Where there are many, what nobody
    /// can keep is dropped on the way.
    fn read(&self, bucket: usize, first: usize, into: &mut Vec<Choice>) -> Result<()> {
        let moved = |&(user, place, item): &Choice| (user, place, first + item);
        into.extend(self.buckets[bucket].iter().map(moved));
        let Some(file) = &self.file else { return Ok(()) };
        let mut bytes = Vec::new();
        let mut check_at = 2 * CHOICES;
        for &(at, len) in &self.extents[bucket] {
            for start in (0..len).step_by(CHOICES) {
                bytes.resize((len - start).min(CHOICES) * CHOICE, 0);
                file.read(at + (start * CHOICE) as u64, &mut bytes)?;
                into.extend(bytes.as_chunks::<8>().0.as_chunks::<4>().0.iter().map(|words| {
                    let [low, high, place, item] = words.map(u64::from_le_bytes);
                    moved(&(u128::from(high) << 64 | u128::from(low), place, item as usize))
                }));
                if into.len() > check_at {
                    keep_first(into, self.bound.l0);
                    check_at = 2 * into.len().max(CHOICES);
                }
            }
        }
        Ok(())
    }

    /// How many users keep each item, up to `enough`, where each keeps the first few of theirs; the items of one part
    /// follow those of the one before.
    pub fn count(
        parts: &[Self],
        threads: usize,
        enough: Option<i64>,
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Vec<i64>> {
        let Some(one) = parts.first() else { return Ok(Vec::new()) };
        let items = parts.iter().map(|part| part.labels.len()).sum();
        let counts: Vec<AtomicI64> = (0..items).map(|_| AtomicI64::new(0)).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let enough = enough.unwrap_or(i64::MAX);
        let work = || {
            let mut pairs: Vec<Choice> = Vec::new();
            loop {
                let bucket = next.fetch_add(1, Ordering::Relaxed);
                if bucket >= one.buckets.len() {
                    return Ok(());
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(crew::STOPPED);
                }
                pairs.clear();
                let mut first = 0;
                for part in parts {
                    part.read(bucket, first, &mut pairs)?;
                    first += part.labels.len();
                }
                keep_first(&mut pairs, one.bound.l0);
                for &(_, _, item) in &pairs {
                    // Threads need not take turns at a count that is large enough.
                    if counts[item].load(Ordering::Relaxed) < enough {
                        counts[item].fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        crew::run((0..threads).map(|_| &work), &stop, tick, |_| Ok(()))?;
        Ok(counts.into_iter().map(|count| count.into_inner().min(enough)).collect())
    }
}

/// Keeps the first `l0` pairs of each user, and sorts.
fn keep_first(pairs: &mut Vec<Choice>, l0: usize) {
    pairs.sort_unstable();
    let (mut of, mut kept) = (None, 0);
    pairs.retain(|&(user, _, _)| {
        kept = if of == Some(user) { kept + 1 } else { 1 };
        of = Some(user);
        kept <= l0
    });
}

impl<P: Pair> Tally<P> for Bounded<'_> {
    fn add(
        &mut self,
        rows: &[P],
        items: &mut Items,
        labels: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()> {
        let first = self.labels.len();
        let Self { bound, hashes, buckets, .. } = self;
        if let Some(strings) = labels.map(Interner::labels)
            && hashes.is_empty()
        {
            let bytes = (0..strings.len()).map(|code| strings.get(code));
            let hash = |bytes| keys.string(Marked::new(bytes));
            hashes.extend(bytes.map(|bytes| bound.counts(bytes).then(|| hash(bytes))));
        }
        items.reserve(rows.len(), keys);
        for row in rows {
            let (user, item) = (row.user(), row.item());
            let number = items.number(item, keys);
            if number == hashes.len() {
                hashes.push(bound.counts(&item.to_le_bytes()).then(|| keys.integer(item)));
            }
            if let Some(hash) = hashes[number] {
                let bucket = keys.pair(user as u64, (user >> 64) as u64) as usize % buckets.len();
                buckets[bucket].push((user, keys.priority(user, hash), first + number));
            }
        }
        self.len = self.buckets.iter().map(Vec::len).sum();
        if self.len > self.room { self.make_room() } else { Ok(()) }
    }

    fn close(&mut self, items: &Items, labels: Option<&Interner>) {
        match labels {
            Some(interner) => self.labels.append_strings(interner.labels()),
            None => items.keys().iter().for_each(|&item| self.labels.push_integer(item)),
        }
        self.hashes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::Narrow;

    #[test]
    fn everyone_keeps_at_most_so_many_and_all_where_they_have_no_more() {
        let keys = HashKeys::from_os().unwrap();
        let rows = |items: std::ops::Range<u64>| -> Vec<Narrow> {
            let of_user = |user: u64| items.clone().filter(move |item| *item < user % 5);
            (0..1000)
                .flat_map(|user| of_user(user).map(move |i| Narrow::new(i, user.into())))
                .collect()
        };
        let count = |l0, threads, held| {
            let bound = Contribution::new(Some(l0), None).unwrap();
            let mut parts: [Bounded; 2] =
                std::array::from_fn(|_| Bounded::new(LabelType::Signed, &bound, 0, held));
            let mut items = Items::default();
            for (part, rows) in parts.iter_mut().zip([rows(0..3), rows(3..4)]) {
                items.reset(None);
                for rows in rows.chunks(100) {
                    part.add(rows, &mut items, None, &keys).unwrap();
                }
                Tally::<Narrow>::close(part, &items, None);
            }
            assert_eq!(parts[0].file.is_some(), held < usize::MAX);
            Bounded::count(&parts, threads, None, || Ok(())).unwrap()
        };
        assert_eq!(count(9, 2, usize::MAX), [800, 600, 400, 200]);
        let two_each = count(2, 3, usize::MAX);
        assert_eq!(two_each.iter().sum::<i64>(), 200 + 2 * 600);
        assert_eq!(count(2, 1, 1000), two_each);
        assert_eq!(count(9, 1, 1000), [800, 600, 400, 200]);
        // The first item is kept by all who have one or two, by 2/3 of those with three, by half with four.
        assert!(two_each[0].abs_diff(400 + 133 + 100) < 60, "{two_each:?}");
    }
}
