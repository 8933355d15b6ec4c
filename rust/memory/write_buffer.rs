//! Values by partition, which wait side by side for their chains: many that are written at once wait for memory once.

use bytemuck::Pod;

use crate::count::dense::seen::{Extent, Seen};
use crate::hash::{HashKeys, PARTITIONS};
use crate::memory::chunk_list::Chains;

/// Values by partition, of which up to `LINE` wait: about 512 bytes are best.
pub(crate) struct Lines<T, const LINE: usize> {
    waiting: Vec<[T; LINE]>,
    /// How many values of each line are there.
    filled: Vec<u8>,
    full: Chains<T, LINE>,
}

/// Rows of four bytes by partition, none of them zero.
pub(crate) type ShortRows = Lines<u32, 128>;

impl<T: Pod, const LINE: usize> Default for Lines<T, LINE>
where
    [T; LINE]: Pod,
{
    fn default() -> Self {
        let waiting = bytemuck::zeroed_vec(PARTITIONS);
        Self { waiting, filled: vec![0; PARTITIONS], full: Chains::default() }
    }
}

impl<T: Pod, const LINE: usize> Lines<T, LINE> {
    /// Adds values to partitions.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop of counting")]
    pub fn extend(&mut self, values: impl Iterator<Item = (usize, T)>) {
        const { assert!(LINE < 1 << u8::BITS, "a byte counts the values of a line") };
        let (waiting, filled) = (&mut self.waiting[..PARTITIONS], &mut self.filled[..PARTITIONS]);
        for (partition, value) in values {
            let (partition, mut len) = (partition % PARTITIONS, filled[partition % PARTITIONS]);
            let line = &mut waiting[partition];
            // Not as soon as it is full: what has just been written is slow to read.
            if usize::from(len) == LINE {
                self.full.append(partition, line);
                len = 0;
            }
            line[usize::from(len) % LINE] = value;
            filled[partition] = len + 1;
        }
    }

    /// Adds a value to a partition.
    #[inline]
    pub fn push(&mut self, partition: usize, value: T) {
        self.extend(std::iter::once((partition, value)));
    }

    /// How many values there are in all.
    pub fn len(&self) -> usize {
        let waiting: usize = self.filled.iter().map(|&filled| usize::from(filled)).sum();
        self.full.len() + waiting
    }

    /// How many values a partition has.
    pub fn partition_len(&self, partition: usize) -> usize {
        self.full.partition_len(partition) + usize::from(self.filled[partition])
    }

    /// How many bytes of memory they hold beside the lines, which are always there.
    pub fn held(&self) -> usize {
        self.full.held()
    }

    /// The values of a partition, piece by piece.
    pub fn pieces(&self, partition: usize) -> impl Iterator<Item = &[T]> + Clone {
        let line = &self.waiting[partition][..usize::from(self.filled[partition])];
        self.full.pieces(partition).chain([line])
    }

    /// Forgets the values of a partition.
    pub fn clear(&mut self, partition: usize) {
        self.full.clear(partition);
        self.filled[partition] = 0;
    }
}

impl ShortRows {
    /// How many bytes of memory they hold, and would while they are copied into rows of so many bytes.
    pub fn held_beside(&self, bytes: usize) -> usize {
        self.held() * (size_of::<u32>() + bytes) / size_of::<u32>()
    }

    /// Deduplicates every partition if a sample of them says that it pays.
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

/// Deduplicates partition after partition, unless it pays for few of a sample of them: of all rows in a sample, most
/// may be those of one item. `one` does so with one, and returns how many rows there were and how many are left.
pub(crate) fn deduplicate(mut one: impl FnMut(usize) -> (usize, usize)) {
    const SAMPLE: usize = PARTITIONS / 64;
    let (mut tried, mut in_vain) = (0, 0);
    // From everywhere: those side by side may be of one item, too, or of none.
    for partition in (0..PARTITIONS).map(|number| number * 389 % PARTITIONS) {
        if tried == SAMPLE && 2 * in_vain > SAMPLE {
            break;
        }
        let (before, after) = one(partition);
        tried += usize::from(before > 0);
        in_vain += usize::from(4 * after > 3 * before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come_back_in_order<T: Pod + PartialEq + std::fmt::Debug, const LINE: usize>(
        mut lines: Lines<T, LINE>,
        value: impl Fn(usize) -> T,
    ) {
        for n in 0..20_000 {
            lines.push(n % 3 * 500, value(n));
        }
        let all = |lines: &Lines<T, LINE>| lines.pieces(500).flatten().copied().collect::<Vec<T>>();
        let expected: Vec<T> = (0..20_000).filter(|n| n % 3 == 1).map(value).collect();
        assert_eq!(all(&lines), expected);
        assert_eq!((lines.len(), lines.partition_len(500)), (20_000, expected.len()));
        assert!(lines.held() >= (20_000 - 3 * LINE) * size_of::<T>());
        lines.clear(500);
        assert_eq!((lines.len(), lines.partition_len(500)), (20_000 - expected.len(), 0));
        assert!(all(&lines).is_empty());
        expected[..5].iter().for_each(|&value| lines.push(500, value));
        assert_eq!(all(&lines), expected[..5]);
    }

    #[test]
    fn values_come_back_in_order_whether_they_wait_or_not() {
        come_back_in_order(ShortRows::default(), |n| n as u32);
        come_back_in_order(Lines::<_, 128>::default(), |n| n as u64);
        come_back_in_order(Lines::<_, 32>::default(), |n| [n as u64; 2]);
        come_back_in_order(Lines::<_, 1>::default(), |n| n as u128);
    }

    #[test]
    fn duplicates_are_looked_for_as_far_as_it_pays_among_partitions_that_have_rows() {
        let tried = |of: fn(usize) -> (usize, usize)| {
            let mut tried = [0; PARTITIONS];
            deduplicate(|partition| {
                tried[partition] += 1;
                of(partition)
            });
            assert!(tried.iter().all(|&times| times < 2));
            (0..PARTITIONS).filter(|&partition| tried[partition] > 0 && of(partition).0 > 0).count()
        };
        assert_eq!(tried(|_| (10, 5)), PARTITIONS);
        assert_eq!(tried(|_| (10, 10)), PARTITIONS / 64);
        // The last have none, as those of popular items, or have another item than most.
        assert_eq!(tried(|n| if n < 700 { (10, 10) } else { (0, 0) }), PARTITIONS / 64);
        assert_eq!(tried(|n| if n < 900 { (10, 1) } else { (10, 10) }), PARTITIONS);
    }
}
