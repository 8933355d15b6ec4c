//! Packed rows: rows of four bytes, for users and items that are small integers or dictionary codes.
//!
//! An item is multiplied by a secret odd factor. The product's upper bits choose the partition. A row
//! holds the product's lower bits, and above these bits the user plus one. So packing needs no hash
//! table, and no keys are stored.

mod layout;
pub(crate) mod seen;

use crate::count::dedup::deduplicate;
use crate::count::dense::seen::{Extent, Seen};
use crate::count::pairs::{Pair, Wide};
use crate::count::result::SharedCounts;
use crate::count::store::Store;
use crate::count::threads;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::memory::prefetch::prefetched;
use crate::memory::write_buffer::WriteBuffer;

pub(crate) use crate::count::dense::layout::{Layout, most_items};

/// Nonzero rows of four bytes by partition.
type ShortRows = WriteBuffer<u32, 128>;

impl ShortRows {
    /// Returns the bytes of memory that the rows and a copy of the rows hold. A row of the copy takes
    /// `bytes` bytes.
    pub fn bytes_with_copy(&self, bytes: usize) -> usize {
        self.bytes_used() * (size_of::<u32>() + bytes) / size_of::<u32>()
    }

    /// Deduplicates every partition. Stops after a sample of partitions that has few duplicates.
    pub fn compact(&mut self, extent: Extent, keys: &HashKeys) {
        let (mut seen, mut distinct) = (Seen::new(extent), Vec::new());
        deduplicate(|partition| {
            let len = self.partition_len(partition);
            seen.reset(len);
            for rows in self.pieces(partition) {
                let mut at = distinct.len();
                distinct.resize(at + rows.len(), 0);
                seen.extend(rows, keys, |row, is_new| {
                    distinct[at] = row;
                    at += usize::from(is_new);
                });
                distinct.truncate(at);
            }
            self.clear(partition);
            let left = distinct.len();
            distinct.drain(..).for_each(|row| self.push(partition, row));
            (len, left)
        });
    }
}

/// One thread's packed rows.
pub(crate) struct Packed {
    layout: Layout,
    /// Whether rows are partitioned by user. Then users and items have changed places.
    by_user: bool,
    rows: ShortRows,
    /// The bitwise OR of all rows.
    bits: u32,
}

impl Packed {
    pub fn new(layout: Layout) -> Self {
        Self { layout, by_user: false, rows: ShortRows::default(), bits: 0 }
    }

    /// Creates an empty set of rows by user, for a layout by user.
    pub fn by_user(layout: Layout) -> Self {
        Self { by_user: true, ..Self::new(layout) }
    }

    /// Returns a bound on the items of rows by user: each item is below it.
    pub fn items(&self) -> u64 {
        u64::from(self.bits >> self.layout.local)
    }

    /// Returns the number of rows of a partition.
    pub fn partition_len(&self, partition: usize) -> usize {
        self.rows.partition_len(partition)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the bytes of memory that the packed rows and the unpacked rows hold together.
    pub fn bytes_unpacking(&self) -> usize {
        self.rows.bytes_with_copy(size_of::<Wide>())
    }

    /// Adds rows if all of these rows fit. Returns whether all fit.
    pub fn extend(&mut self, users: &[u64], items: &[u64]) -> bool {
        let layout = self.layout;
        let (users, items) = if self.by_user { (items, users) } else { (users, items) };
        let item_bits = items.iter().fold(0, |all, item| all | item);
        let user_bits = users.iter().fold(0, |all, user| all | user | user.wrapping_add(1));
        let fits = layout.holds_items(item_bits) && layout.holds_users(user_bits);
        if fits {
            self.bits |= (user_bits as u32) << layout.local | layout.mask();
            let rows = users.iter().zip(items);
            self.rows.extend(rows.map(|(&user, &item)| layout.pack(user, item)));
        }
        fits
    }

    /// Deduplicates every partition. Stops after a sample of partitions that has few duplicates.
    pub fn compact(&mut self, keys: &HashKeys) {
        self.rows.compact(self.layout.extent(self.bits), keys);
    }

    /// Converts the rows to rows with full keys.
    pub fn unpack<P: Pair>(self, keys: &HashKeys) -> Store<P> {
        let mut store = Store::default();
        for partition in 0..PARTITIONS {
            for &row in self.rows.pieces(partition).flatten() {
                let item = self.layout.item(partition, row);
                let user = self.layout.user(row);
                let (item, user) = if self.by_user { (user, item) } else { (item, user) };
                store.push(keys.partition(item), P::new(item, user.into()));
            }
        }
        store
    }
}

/// One thread's state while it visits the users of packed rows.
#[derive(Default)]
pub(crate) struct Visit {
    /// For each user of a partition the number of rows, and then the end of the user's cells.
    ends: Vec<usize>,
    cells: Vec<(u32, ())>,
}

impl Visit {
    /// Calls `work` with each user of a partition, and the user's items in ascending order. `parts` have the rows of all
    /// threads.
    pub fn each_user(
        &mut self,
        parts: &[Packed],
        partition: usize,
        mut work: impl FnMut(u128, &mut [(u32, ())]),
    ) {
        let Some(layout) = parts.first().map(|part| part.layout) else { return };
        let rows = || parts.iter().flat_map(|part| part.rows.pieces(partition)).flatten();
        let local = |row: u32| (row & layout.mask()) as usize;
        let Self { ends, cells } = self;
        ends.clear();
        ends.resize(1 << layout.local, 0);
        rows().for_each(|&row| ends[local(row)] += 1);
        let mut end = 0;
        for own in &mut *ends {
            end += std::mem::replace(own, end);
        }
        cells.clear();
        cells.resize(end, (0, ()));
        for &row in rows() {
            let end = &mut ends[local(row)];
            cells[*end] = (layout.user(row) as u32, ());
            *end += 1;
        }
        let mut start = 0;
        for (user, &end) in (0..).zip(&*ends) {
            let own = &mut cells[start..end];
            start = end;
            if own.is_empty() {
                continue;
            }
            own.sort_unstable();
            let mut len = 1;
            for place in 1..own.len() {
                if own[place] != own[len - 1] {
                    own[len] = own[place];
                    len += 1;
                }
            }
            work(layout.item(partition, user).into(), &mut own[..len]);
        }
    }
}

/// The packed rows of all threads.
pub(crate) struct AllPacked<'a> {
    per_thread: Vec<&'a Packed>,
    layout: Layout,
    extent: Extent,
}

impl<'a> AllPacked<'a> {
    /// Combines the rows of all threads; `None` if there are no threads.
    pub fn of(per_thread: Vec<&'a Packed>) -> Option<Self> {
        let bits = per_thread.iter().fold(0, |all, thread| all | thread.bits);
        let layout = per_thread.first()?.layout;
        Some(Self { per_thread, layout, extent: layout.extent(bits) })
    }

    fn partition_len(&self, partition: usize) -> usize {
        self.per_thread.iter().map(|thread| thread.rows.partition_len(partition)).sum()
    }

    /// Returns the most bytes of memory that one thread needs to count.
    pub fn bytes_used(&self) -> usize {
        let most = (0..PARTITIONS).map(|partition| self.partition_len(partition)).max();
        let counts = size_of::<u32>() << self.layout.local;
        Seen::bytes_used(most.unwrap_or(0), self.extent) + counts
    }

    /// Counts the distinct users of each item.
    pub fn count(
        &self,
        threads: usize,
        keys: &HashKeys,
        tick: impl FnMut() -> Result<()>,
        all: &SharedCounts,
    ) -> Result<()> {
        let layout = self.layout;
        let begin = || (Seen::new(self.extent), vec![0_u32; 1 << layout.local], all.begin());
        let sizes = (0..PARTITIONS).map(|partition| self.partition_len(partition));
        let done = threads::run_jobs(threads, sizes, tick, begin, |state, partition, len, _| {
            let (seen, counts, found) = state;
            if len == 0 {
                return Ok(());
            }
            seen.reset(len);
            let counts = &mut counts[..];
            // This mask equals the layout's mask. The compiler can drop the bounds checks with it.
            let mask = counts.len() - 1;
            for rows in
                prefetched(self.per_thread.iter().flat_map(|thread| thread.rows.pieces(partition)))
            {
                seen.extend(rows, keys, |row, is_new| {
                    counts[row as usize & mask] += u32::from(is_new);
                });
            }
            let met = || (0..).zip(&*counts).filter(|(_, count)| **count > 0);
            found.add(met().map(|(_, &count)| count.into()), |labels| {
                met().for_each(|(local, _)| labels.push_integer(layout.item(partition, local)));
                Ok(())
            })?;
            counts.fill(0);
            Ok(())
        })?;
        for (.., found) in done {
            found.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use arrow_array::{Array, Int64Array};

    use super::*;
    use crate::columns::{Batch, Column};

    pub(super) fn batch(users: &[i64], items: &[i64]) -> Batch {
        let column = |cells: &[i64]| Column::new(Int64Array::from(cells.to_vec()).into_data());
        Batch { users: column(users).unwrap(), items: column(items).unwrap(), values: None }
    }

    #[test]
    fn rows_hold_any_user_and_item_that_fit_and_no_others() {
        let keys = HashKeys::from_os().unwrap();
        for (largest, local) in [(0, 0), (900, 0), (80_000, 7), (930_000, 10)] {
            let layout = Layout::of(&batch(&[7; 9], &[largest; 9]), &keys).unwrap();
            let (users, items) = (1_u64 << (32 - local), 1_u64 << (10 + local));
            assert_eq!(layout.local, local);
            assert!(layout.holds_items(items - 1) && !layout.holds_items(items));
            let mut rows = BTreeSet::new();
            for user in [0, 1, users / 3, users - 2] {
                for item in (0..items - 1).step_by(73).chain([items - 1]) {
                    let (partition, row) = layout.pack(user, item);
                    assert_eq!((layout.user(row), layout.item(partition, row)), (user, item));
                    assert!(row != 0 && rows.insert((partition, row)));
                }
                assert!(Packed::new(layout).extend(&[user], &[items - 1]));
            }
            for (user, item) in [(users - 1, 0), (u64::MAX, 0), (0, items), (0, u64::MAX)] {
                let mut rows = Packed::new(layout);
                assert!(!rows.extend(&[3, user], &[5, item]));
                assert_eq!(rows.len(), 0);
            }
        }
    }

    #[test]
    fn users_of_packed_rows_have_their_distinct_items_in_order() {
        let keys = HashKeys::from_os().unwrap();
        for (users, items) in [(700_u64, 40_u64), (90_000, 3_000), (5, 100_000)] {
            let mut state = 7_u64;
            let mut below = |bound: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % bound
            };
            let largest = batch(&[users as i64; 9], &[items as i64; 9]);
            let Some(layout) = Layout::of_columns(&largest.items, &largest.users, &keys) else {
                panic!("small numbers fit");
            };
            let mut parts = [Packed::by_user(layout), Packed::by_user(layout)];
            let mut expected = BTreeMap::<u128, BTreeSet<u32>>::new();
            for turn in 0..20_000 {
                let (user, item) = (below(users), below(items));
                assert!(parts[turn % 2].extend(&[user], &[item]));
                assert!(parts[turn % 2].items() > item);
                expected.entry(user.into()).or_default().insert(item as u32);
            }
            let (mut visit, mut found) = (Visit::default(), BTreeMap::new());
            for partition in 0..PARTITIONS {
                visit.each_user(&parts, partition, |user, own| {
                    let own: Vec<u32> = own.iter().map(|&(item, ())| item).collect();
                    assert!(own.is_sorted());
                    assert!(found.insert(user, own.into_iter().collect()).is_none());
                });
            }
            assert!(found == expected);
            let [first, _] = parts;
            let store = first.unpack::<Wide>(&keys);
            let pairs = (0..PARTITIONS).flat_map(|partition| store.pieces(partition).flatten());
            let unpacked: Vec<Wide> = pairs.collect();
            assert!(!unpacked.is_empty());
            assert!(
                unpacked.iter().all(|row| expected[&row.user()].contains(&(row.item() as u32)))
            );
        }
    }

    #[test]
    fn compacting_drops_only_duplicates() {
        let keys = HashKeys::from_os().unwrap();
        let layout = Layout::of(&batch(&[50_000], &[3000]), &keys).unwrap();
        let all = |rows: Packed| -> BTreeSet<(u64, u128)> {
            let store = rows.unpack::<Wide>(&keys);
            let pairs = (0..PARTITIONS).flat_map(|partition| store.pieces(partition).flatten());
            pairs.map(|row| (row.item(), row.user())).collect()
        };
        for (times, users) in [(40, 50), (2, 50_000)] {
            let mut rows = Packed::new(layout);
            let mut expected = BTreeSet::new();
            for turn in 0..times {
                for start in (0..100_000).step_by(1000) {
                    let n = start..start + 1000_u64;
                    let (u, i): (Vec<u64>, Vec<u64>) = n.map(|n| (n % users, n % 3000)).unzip();
                    assert!(rows.extend(&u, &i));
                    expected.extend(i.into_iter().zip(u.into_iter().map(u128::from)));
                }
                if turn % 7 == 1 {
                    let before = rows.len();
                    rows.compact(&keys);
                    assert!(rows.len() < before && rows.len() <= expected.len());
                }
            }
            assert_eq!(all(rows), expected);
        }
    }
}
