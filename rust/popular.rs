//! Items of so many rows that the partition of one would not stay in cache, where users and items are numbers: such an
//! item has partitions of its own, among which its rows, users alone, are shared out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::block::BLOCK;
use crate::column::Column;
use crate::counts::Counts;
use crate::error::Result;
use crate::hash::{HashKeys, PARTITIONS};
use crate::interner::Interner;
use crate::labels::LabelType;
use crate::merge::{Tally, each_partition};
use crate::pairs::{Lone, Pair};
use crate::share::Share;
use crate::sieve::Items;
use crate::store::Store;

/// How many rows of a batch are looked at.
const LOOKS: usize = 1 << 13;
/// How many of them are side by side, where rows of one item may be, too.
const RUN: usize = OFTEN / 2;
/// How often an item is met among them that is popular: a partition of usual items has no more rows.
const OFTEN: usize = LOOKS / PARTITIONS;
/// How many items there may be; of those that belong in one place, the most popular is here.
const PLACES: usize = 1 << 8;

/// The most rows that are told apart at a time.
pub(crate) const ROWS: usize = 1 << 9;

/// The popular items of a table.
pub(crate) struct Popular {
    /// By their hash. A place that is free holds an item that belongs elsewhere.
    items: [u64; PLACES],
    /// The first of each item's partitions, and how many it has.
    partitions: [(u16, u16); PLACES],
}

impl Popular {
    /// Those of a batch, if there are any; others of the table should be like it.
    pub fn of(items: &Column, keys: &HashKeys) -> Option<Arc<Self>> {
        if items.len() < LOOKS {
            return None;
        }
        let (mut met, mut cells) = (Vec::with_capacity(LOOKS), Vec::new());
        let step = items.len() / (LOOKS / RUN);
        for look in 0..LOOKS / RUN {
            // Anywhere in its part: rows may repeat themselves at some distance.
            let start = look * step + keys.integer(look as u64) as usize % (step - RUN + 1);
            let mut null = [false; RUN];
            items.keys(start..start + RUN, &mut null, &mut cells).ok()?;
            met.extend(cells.iter().zip(null).filter(|(_, null)| !null).map(|(&cell, _)| cell));
        }
        met.sort_unstable();
        let mut popular: Vec<(usize, u64)> = met
            .chunk_by(|a, b| a == b)
            .filter(|alike| alike.len() >= OFTEN)
            .map(|alike| (alike.len(), alike[0]))
            .collect();
        popular.sort_unstable();
        let &(_, most) = popular.last()?;
        let mut all = Self { items: [most; PLACES], partitions: [(0, 0); PLACES] };
        let mut first = 0;
        for (times, item) in popular {
            let place = Self::place(item, keys);
            all.items[place] = item;
            all.partitions[place] = (first, (times / OFTEN) as u16);
            first += (times / OFTEN) as u16;
        }
        Some(Arc::new(all))
    }

    #[inline]
    fn place(item: u64, keys: &HashKeys) -> usize {
        (keys.integer(item) >> 32) as usize % PLACES
    }

    /// The partition of a user's row with the item of a place.
    #[inline]
    fn partition(&self, place: usize, user: u64, keys: &HashKeys) -> usize {
        let (first, partitions) = self.partitions[place];
        let part = ((keys.integer(user) >> 32) * u64::from(partitions)) >> 32;
        usize::from(first) + part as usize
    }

    /// How many distinct users, up to `enough`, each of these items has, whose rows are those of all threads.
    pub fn count(
        &self,
        fans: Vec<Share<Store<Lone>>>,
        item_type: LabelType,
        enough: Option<i64>,
        (crew, keys): ((usize, usize), &HashKeys),
        tick: impl FnMut() -> Result<()>,
    ) -> Result<Counts> {
        let new = || Users(vec![0; PARTITIONS]);
        let tallies = each_partition(&fans, keys, crew, tick, new)?;
        drop(fans);
        let enough = enough.unwrap_or(i64::MAX);
        let mut counts = Counts::new(item_type);
        for (&item, &(first, partitions)) in self.items.iter().zip(&self.partitions) {
            let own = usize::from(first)..usize::from(first + partitions);
            let users: i64 = tallies.iter().flat_map(|Users(users)| &users[own.clone()]).sum();
            if users > 0 {
                counts.labels.push_integer(item);
                counts.counts.push(users.min(enough));
            }
        }
        Ok(counts)
    }
}

/// How many distinct users each partition has.
struct Users(Vec<i64>);

impl Tally<Lone> for Users {
    fn add(
        &mut self,
        partition: usize,
        rows: &[Lone],
        _: &mut Items,
        _: Option<&Interner>,
        _: &HashKeys,
    ) -> Result<()> {
        self.0[partition] += rows.len() as i64;
        Ok(())
    }

    fn close(&mut self, _: &Items, _: Option<&Interner>) -> Result<()> {
        Ok(())
    }
}

/// One thread's rows of popular items.
pub(crate) struct Fans {
    popular: Arc<Popular>,
    pub share: Share<Store<Lone>>,
    apart: Box<Apart>,
}

/// Of some rows, the places and the users of those that are taken, and the items and the users of all others.
struct Apart {
    places: [u8; ROWS],
    fans: [u64; ROWS],
    items: [u64; ROWS],
    users: [u64; ROWS],
}

impl Fans {
    pub fn new(popular: Arc<Popular>) -> Self {
        let none = [0; ROWS];
        let apart = Apart { places: [0; ROWS], fans: none, items: none, users: none };
        Self { popular, share: Share::default(), apart: Box::new(apart) }
    }

    /// Takes the rows of popular items, of at most `ROWS`; returns the items and the users of all others.
    pub fn take(&mut self, items: &[u64], users: &[u64], keys: &HashKeys) -> (&[u64], &[u64]) {
        const { assert!(PLACES <= 1 << u8::BITS, "a byte holds a place") };
        assert!(items.len() <= ROWS, "more rows than there is room for");
        let apart = &mut *self.apart;
        let (mut fan, mut other) = (0, 0);
        for (&item, &user) in items.iter().zip(users) {
            let place = Popular::place(item, keys);
            let is_taken = self.popular.items[place] == item;
            // Whether a row is taken is hard to foresee, so that both ways share one without a jump. No place is beyond
            // the last: its remainder is itself and needs no look at bounds.
            (apart.places[fan % ROWS], apart.fans[fan % ROWS]) = (place as u8, user);
            (apart.items[other % ROWS], apart.users[other % ROWS]) = (item, user);
            fan += usize::from(is_taken);
            other += usize::from(!is_taken);
        }
        let rows = apart.places[..fan].iter().zip(&apart.fans);
        self.share.rows.extend(rows.map(|(&place, &user)| {
            (self.popular.partition(place.into(), user, keys), Lone::new(0, user.into()))
        }));
        (&apart.items[..other], &apart.users[..other])
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.share.rows.len()
    }

    /// How many bytes of memory they hold, where the last block is not full.
    pub fn held(&self) -> usize {
        self.share.rows.held() + BLOCK
    }

    /// Puts the rows away.
    pub fn put_away(&mut self, stop: &AtomicBool) -> Result<()> {
        let rows = std::mem::take(&mut self.share.rows);
        self.share.chapters.add(None, &rows, stop)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow_array::{Array, Int64Array};

    use super::*;

    fn popular(cell: impl Fn(i64) -> Option<i64>, rows: i64) -> Option<Arc<Popular>> {
        let column = Column::new((0..rows).map(cell).collect::<Int64Array>().into_data()).unwrap();
        Popular::of(&column, &HashKeys::from_os().unwrap())
    }

    #[test]
    fn popular_is_what_is_met_often_among_many() {
        assert!(popular(|_| Some(3), LOOKS as i64 - 1).is_none());
        assert!(popular(Some, 100_000).is_none());
        assert!(popular(|_| None, 100_000).is_none());
        let of_three = |n: i64| Some(if n % 10 < 7 { n % 10 / 4 } else { n });
        let found = popular(of_three, 100_000).unwrap();
        let items: BTreeSet<u64> = found.items.into_iter().collect();
        // Of two with one place, the more popular has it.
        assert!(items == [0, 1].into() || items == [0].into());
        assert!(popular(|n| Some(n % 300), 100_000).is_some());
    }

    #[test]
    fn of_two_with_one_place_the_more_popular_has_it_and_repeated_rows_do_not_hide_others() {
        let keys = HashKeys::from_os().unwrap();
        let place = |item| Popular::place(item, &keys);
        let other = (1..u64::MAX).find(|&item| place(item) == place(0)).unwrap();
        for (more, fewer) in [(0, other), (other, 0)] {
            // What comes back at the distance at which rows are looked at is not all that there is.
            let cell = |n: i64| {
                if n % 32 < 4 { -1 } else { (if n % 5 < 3 { more } else { fewer }) as i64 }
            };
            let column = (0..8 * LOOKS as i64).map(cell).collect::<Int64Array>().into_data();
            let found = Popular::of(&Column::new(column).unwrap(), &keys).unwrap();
            assert_eq!(found.items[place(more)], more);
            let partitions = usize::from(found.partitions[place(more)].1);
            assert!(
                partitions.abs_diff(PARTITIONS * 7 / 8 * 3 / 5) < PARTITIONS / 8,
                "{partitions}"
            );
        }
    }

    #[test]
    fn partitions_have_rows_of_one_item_alone_and_those_of_a_user_together() {
        let keys = HashKeys::from_os().unwrap();
        let cells = (0..100_000).map(|n| Some(if n % 2 == 0 { 0 } else { n % 300 }));
        let column = Column::new(cells.collect::<Int64Array>().into_data()).unwrap();
        let found = Popular::of(&column, &keys).unwrap();
        let mut taken = BTreeSet::new();
        let mut most = 0;
        for (place, &item) in found.items.iter().enumerate() {
            if Popular::place(item, &keys) == place {
                let own = |user: u64| found.partition(place, user << 32, &keys);
                let own: BTreeSet<usize> = (0..20_000).map(own).collect();
                assert!(
                    own.iter().all(|&partition| partition < PARTITIONS && taken.insert(partition))
                );
                most = most.max(own.len());
            }
        }
        // Half of the rows have half of the partitions.
        assert!(most.abs_diff(PARTITIONS / 2) < PARTITIONS / 16, "{most}");
    }

    #[test]
    fn every_row_is_taken_or_returned() {
        let keys = HashKeys::from_os().unwrap();
        let cells: Vec<i64> = (0..50_000).map(|n| if n % 3 == 0 { -1 } else { n }).collect();
        let column = Column::new(Int64Array::from(cells.clone()).into_data()).unwrap();
        let mut fans = Fans::new(Popular::of(&column, &keys).unwrap());
        let (mut usual, mut met) = (BTreeSet::new(), 0);
        for start in (0..cells.len()).step_by(500) {
            let items: Vec<u64> =
                cells[start..start + 500].iter().map(|&cell| cell as u64).collect();
            let rows: Vec<u64> = (start as u64..).take(500).collect();
            let (items, users) = fans.take(&items, &rows, &keys);
            assert!(items.iter().zip(users).all(|(&item, &user)| item == user));
            met += users.len();
            usual.extend(users.iter().copied());
        }
        let store = &fans.share.rows;
        let taken = (0..PARTITIONS).flat_map(|partition| store.pieces(partition)).flatten();
        let taken: BTreeSet<u64> = taken.map(|row| row.user() as u64).collect();
        assert_eq!((met, store.len()), (usual.len(), taken.len()));
        assert!(taken.iter().all(|user| user % 3 == 0) && usual.iter().all(|user| user % 3 > 0));
        assert_eq!(taken.len() + usual.len(), cells.len());
    }
}
