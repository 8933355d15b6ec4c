//! Rows of four bytes where items are labels: the number of a user, of whom there are not many, above the code of an
//! item, of which no partition has many.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ahead::in_turn;
use crate::counts::AllFound;
use crate::crew;
use crate::error::Result;
use crate::group::Group;
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::label_log::LabelLog;
use crate::lines::ShortRows;
use crate::pairs::{Hashed, Pair};
use crate::seen::{Extent, Seen};
use crate::share::{Rows, with_store};
use crate::users::Users;

/// The bits of an item's code.
const BITS: u32 = u32::BITS - Users::BITS;
/// No code is the largest of these, so that a row has room for one more and none is zero.
const CODES: usize = (1 << BITS) - 1;
/// After so many rows there are too many users where hardly one has come back.
const LOOK: usize = 1 << 14;
const EXTENT: Extent = Extent { low: BITS, largest: u32::MAX >> BITS };

#[inline]
fn pack(user: u32, code: u32) -> u32 {
    debug_assert!(code < CODES as u32, "a row has no room for its item");
    (user << BITS | code).wrapping_add(1)
}

#[inline]
fn unpack(row: u32) -> (u32, usize) {
    let row = row.wrapping_sub(1);
    (row >> BITS, row as usize & CODES)
}

/// One thread's rows while they come.
pub(crate) struct Numberer {
    users: Arc<Users>,
    rows: ShortRows,
    numbers: Vec<u32>,
    /// How many users have been met, with repetitions, and how many of them were new.
    met: usize,
    new: usize,
}

impl Numberer {
    pub fn new(users: Arc<Users>) -> Self {
        Self { users, rows: ShortRows::default(), numbers: Vec::new(), met: 0, new: 0 }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many bytes of memory they hold, and would while they are unpacked.
    pub fn held_unpacking(&self) -> usize {
        self.rows.held_beside(size_of::<Hashed>())
    }

    /// Adds rows, if all fit; says whether they do.
    pub fn extend(
        &mut self,
        users: impl Iterator<Item = u128> + Clone,
        groups: &[Group],
        keys: &HashKeys,
    ) -> bool {
        let most = groups.iter().fold(0, |most, group| group.key.max(most));
        let new = self.users.numbers(users, keys, &mut self.numbers);
        self.met += groups.len();
        self.new += new.unwrap_or(0);
        let some_return = self.met < LOOK || self.new < self.met / 16 * 15;
        let fits = most < CODES as u64 && new.is_some() && some_return;
        if fits {
            let rows = groups.iter().zip(&self.numbers);
            let rows = rows.filter(|(group, _)| group.partition != Group::DROPPED);
            self.rows.extend(
                rows.map(|(group, &user)| (group.partition as usize, pack(user, group.key as u32))),
            );
        }
        fits
    }

    /// Deduplicates every partition if a sample of them says that it pays.
    pub fn compact(&mut self, keys: &HashKeys) {
        self.rows.compact(EXTENT, keys);
    }

    /// All rows.
    pub fn finish(self) -> Numbered {
        Numbered { users: self.users, rows: self.rows }
    }
}

/// One thread's rows.
pub(crate) struct Numbered {
    users: Arc<Users>,
    rows: ShortRows,
}

impl Numbered {
    /// The rows with the users' own keys, of the form of `none`.
    pub fn unpack(self, mut none: Rows) -> Rows {
        let rows = |partition| self.rows.pieces(partition).flatten().map(|&row| unpack(row));
        let all = || (0..PARTITIONS).flat_map(rows);
        if matches!(none, Rows::Narrow(_)) {
            none.make_room(all().fold(0, |bits, (user, _)| bits | self.users.key(user)));
        }
        with_store!(&mut none, store => for partition in 0..PARTITIONS {
            for (user, code) in rows(partition) {
                store.push(partition, Pair::new(code as u64, self.users.key(user)));
            }
        });
        none
    }
}

/// The rows of all threads, each thread's beside its labels, to be counted.
pub(crate) struct AllNumbered<'a>(Vec<(&'a Numbered, &'a LabelLog)>);

impl<'a> AllNumbered<'a> {
    /// Nothing where there are no rows.
    pub fn of(shares: Vec<(&'a Numbered, &'a LabelLog)>) -> Option<Self> {
        (!shares.is_empty()).then_some(Self(shares))
    }

    fn partition_len(&self, partition: usize) -> usize {
        self.0.iter().map(|(share, _)| share.rows.partition_len(partition)).sum()
    }

    /// The most bytes of memory that a thread takes for it beside the labels.
    pub fn held(&self) -> usize {
        let most = (0..PARTITIONS).map(|partition| self.partition_len(partition)).max();
        Seen::held(most.unwrap_or(0), EXTENT)
    }

    /// Finds how many distinct users each item has; says whether the labels of every partition are few enough for its
    /// rows.
    pub fn count(
        &self,
        threads: usize,
        keys: &HashKeys,
        tick: impl FnMut() -> Result<()>,
        all: &AllFound,
    ) -> Result<bool> {
        let too_many = AtomicBool::new(false);
        let begin = || (Scratch::default(), all.begin());
        let sizes = (0..PARTITIONS).map(|partition| self.partition_len(partition));
        let done = crew::share_out(threads, sizes, tick, begin, |state, partition, len, _| {
            let (scratch, found) = state;
            if len > 0 && !too_many.load(Ordering::Relaxed) {
                let fits = self.count_partition(scratch, partition, len, keys)?;
                too_many.fetch_or(!fits, Ordering::Relaxed);
                let counts = scratch.counts.iter().map(|&count| count.into());
                found.add(counts, |labels| labels.append_strings(scratch.known.labels()))?;
            }
            Ok(())
        })?;
        for (_, found) in done {
            found.finish()?;
        }
        Ok(!too_many.into_inner())
    }

    /// Counts a partition; says whether its labels are few enough.
    fn count_partition(
        &self,
        scratch: &mut Scratch,
        partition: usize,
        len: usize,
        keys: &HashKeys,
    ) -> Result<bool> {
        let Scratch { seen, known, codes, rows: merged, counts } = scratch;
        seen.reset(len);
        known.reset(self.0.iter().map(|(_, labels)| labels.partition_len(partition)).sum());
        counts.clear();
        for (share, labels) in &self.0 {
            if share.rows.partition_len(partition) == 0 {
                continue;
            }
            // Of each code, how far its label's code among all threads is from it: added to a row, it renames the item.
            codes.clear();
            labels.visit(partition, |hash, label| {
                codes.push(known.intern(hash, label)?.wrapping_sub(codes.len() as u32));
                Ok(())
            })?;
            if known.labels().len() > CODES {
                return Ok(false);
            }
            counts.resize(known.labels().len(), 0);
            codes.resize(CODES + 1, 0);
            for rows in in_turn(share.rows.pieces(partition)) {
                merged.clear();
                merged.extend(rows.iter().map(|&row| row.wrapping_add(codes[unpack(row).1])));
                seen.extend(merged, keys, |row, is_new| {
                    counts[unpack(row).1] += u32::from(is_new);
                });
            }
        }
        Ok(true)
    }
}

/// What a thread counts with.
struct Scratch {
    seen: Seen,
    known: Interner,
    /// What the labels of one thread are called now, and its rows under these names.
    codes: Vec<u32>,
    rows: Vec<u32>,
    counts: Vec<u32>,
}

impl Default for Scratch {
    fn default() -> Self {
        let (codes, rows, counts) = (Vec::new(), Vec::new(), Vec::new());
        Self { seen: Seen::new(EXTENT), known: Interner::default(), codes, rows, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelType;
    use crate::mark::Marked;

    #[test]
    fn rows_hold_users_and_codes_up_to_the_largest() {
        for user in [0, 1, (1 << Users::BITS) - 1] {
            for code in [0, 1, CODES as u32 - 1] {
                let row = pack(user, code);
                assert!(row != 0);
                assert_eq!(unpack(row), (user, code as usize));
            }
        }
    }

    #[test]
    fn labels_of_all_threads_are_counted_up_to_the_last_that_has_a_code() {
        let keys = HashKeys::from_os().unwrap();
        let users = Arc::new(Users::new(false, &keys));
        // The label n, which all three users have in each range that has it.
        let share = |range: std::ops::Range<usize>| {
            let (mut log, mut rows) = (LabelLog::default(), Numberer::new(Arc::clone(&users)));
            for n in range {
                let (label, hash) = (format!("{n}"), 3 << 54 | n as u64);
                let code = log.code(hash, Marked::new(label.as_bytes()), true).unwrap().unwrap();
                let group = Group { partition: 3, key: code.into() };
                assert!(rows.extend([7, 8, 9].into_iter(), &[group; 3], &keys));
            }
            (rows.finish(), log)
        };
        for (last, fits) in [(5000, true), (CODES, true), (CODES + 1, false)] {
            let shares = [share(0..4500), share(4000..last)];
            let shares = shares.iter().map(|(rows, log)| (rows, log)).collect();
            let rows = AllNumbered::of(shares).unwrap();
            let all = AllFound::new(LabelType::Text, None, None);
            assert_eq!(rows.count(2, &keys, || Ok(()), &all), Ok(fits));
            if fits {
                let counts = all.into_counts().unwrap();
                assert_eq!(counts.counts, vec![3; last]);
                let label = |row| counts.labels.with_bytes(row, <[u8]>::to_vec);
                assert!((0..last).all(|n| label(n) == format!("{n}").into_bytes()));
            }
        }
    }

    #[test]
    fn a_label_with_several_codes_is_one_item() {
        let keys = HashKeys::from_os().unwrap();
        let users = Arc::new(Users::new(false, &keys));
        // Each label under its own code and, behind all others, once more: for another user and for one who is known.
        let share = |others: [u128; 2]| {
            let (mut log, mut rows) = (LabelLog::default(), Numberer::new(Arc::clone(&users)));
            for n in (0..20).chain(0..20) {
                let label = format!("{}", n % 10);
                let code = log.add((3 << 54) | (n % 10), Marked::new(label.as_bytes()), true);
                let key = code.unwrap().unwrap().into();
                let both = [if n < 10 { 7 } else { others[0] }, others[1]];
                assert!(rows.extend(both.into_iter(), &[Group { partition: 3, key }; 2], &keys));
            }
            (rows.finish(), log)
        };
        let shares = [share([8, 9]), share([9, 1])];
        let shares = shares.iter().map(|(rows, log)| (rows, log)).collect();
        let all = AllFound::new(LabelType::Text, None, None);
        let rows = AllNumbered::of(shares).unwrap();
        assert_eq!(rows.count(1, &keys, || Ok(()), &all), Ok(true));
        let counts = all.into_counts().unwrap();
        // Users 7, 8, 9 and 1.
        assert_eq!((counts.labels.len(), counts.counts), (10, vec![4; 10]));
    }

    #[test]
    fn what_does_not_fit_is_not_added() {
        let keys = HashKeys::from_os().unwrap();
        let mut rows = Numberer::new(Arc::new(Users::new(true, &keys)));
        let group = |key| Group { partition: 3, key };
        assert!(!rows.extend([1, 2].into_iter(), &[group(0), group(CODES as u64)], &keys));
        assert!(rows.extend([1, 2].into_iter(), &[group(0), group(CODES as u64 - 1)], &keys));
        let dropped = Group { partition: Group::DROPPED, key: 0 };
        assert!(rows.extend([1, 3].into_iter(), &[group(7), dropped], &keys));
        let Rows::Hashed(store) = rows.finish().unpack(Rows::new(true)) else {
            panic!("hashes stand for users")
        };
        let all: Vec<_> = store.pieces(3).flatten().map(|row| (row.item(), row.user())).collect();
        assert_eq!(all, [(0, 1), (CODES as u64 - 1, 2), (7, 1)]);
    }
}
