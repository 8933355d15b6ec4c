//! One thread's rows that are not short, in memory and put away: rows of any keys, and apart from them those of popular
//! items.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::chapters::Chapters;
use crate::error::Result;
use crate::group::Group;
use crate::hash::HashKeys;
use crate::label_log::LabelLog;
use crate::lines::deduplicate;
use crate::pairs::{Lone, Pair};
use crate::popular::{Fans, Popular};
use crate::share::{Rows, Share, with_store};
use crate::short::Short;
use crate::sieve::Sieve;
use crate::store::Store;

/// Rows that are not short.
pub(crate) struct LongRows {
    rows: Rows,
    chapters: Chapters,
    /// Those of popular items, where there are any.
    fans: Option<Fans>,
}

impl LongRows {
    /// No rows; `hashed` where hashes stand for users.
    pub fn new(hashed: bool, popular: Option<Arc<Popular>>) -> Self {
        let chapters = Chapters::default();
        Self { rows: Rows::new(hashed), chapters, fans: popular.map(Fans::new) }
    }

    /// How many rows are in memory.
    pub fn len(&self) -> usize {
        let fans = self.fans.as_ref().map_or(0, Fans::len);
        fans + with_store!(&self.rows, store => store.len())
    }

    /// How many bytes of memory they hold.
    pub fn held(&self) -> usize {
        let fans = self.fans.as_ref().map_or(0, Fans::held);
        fans + with_store!(&self.rows, store => store.held())
    }

    /// Whether rows of some items, which must be numbers, are kept without them.
    pub fn has_fans(&self) -> bool {
        self.fans.is_some()
    }

    /// Adds all rows that were short, before any other.
    pub fn unpack(&mut self, short: Short, keys: &HashKeys) {
        self.rows = short.unpack(self.rows.take(), keys);
    }

    /// Adds rows of numbers.
    pub fn extend_keys(&mut self, items: &[u64], users: &[u64], keys: &HashKeys) {
        let (items, users) = match &mut self.fans {
            Some(fans) => fans.take(items, users, keys),
            None => (items, users),
        };
        let bits = users.iter().chain(items).fold(0, |all, key| all | key);
        self.rows.make_room(bits.into());
        with_store!(&mut self.rows, store => {
            let rows = items.iter().zip(users);
            store.extend(rows.map(|(&item, &user)| (keys.partition(item), Pair::new(item, user.into()))));
        });
    }

    /// Adds rows that have been grouped.
    pub fn extend(&mut self, groups: &[Group], users: impl Iterator<Item = u128> + Clone) {
        if matches!(self.rows, Rows::Narrow(_)) {
            let keys = groups.iter().fold(0, |all, group| all | group.key);
            self.rows.make_room(users.clone().fold(keys.into(), |all, user| all | user));
        }
        with_store!(&mut self.rows, store => extend(store, groups, users));
    }

    /// Deduplicates every partition if a sample of them says that it pays.
    pub fn compact(&mut self, keys: &HashKeys) {
        with_store!(&mut self.rows, store => compact(store, keys));
        if let Some(fans) = &mut self.fans {
            compact(&mut fans.share.rows, keys);
        }
    }

    /// Puts all rows away, and the labels of their items.
    pub fn put_away(&mut self, labels: Option<LabelLog>, stop: &AtomicBool) -> Result<()> {
        let rows = self.rows.take();
        with_store!(&rows, store => self.chapters.add(labels.as_ref(), store, stop))?;
        drop((rows, labels));
        self.fans.as_mut().map_or(Ok(()), |fans| fans.put_away(stop))
    }

    /// Whether anything has been put away.
    pub fn has_chapters(&self) -> bool {
        !self.chapters.is_empty()
    }

    /// All rows and the labels of their items, and the rows of popular items.
    pub fn finish(self, labels: Option<LabelLog>) -> (Share<Rows>, Option<Share<Store<Lone>>>) {
        let Self { rows, chapters, fans } = self;
        (Share { labels, rows, chapters }, fans.map(|fans| fans.share))
    }
}

fn extend<P: Pair>(store: &mut Store<P>, groups: &[Group], users: impl Iterator<Item = u128>) {
    let rows = groups.iter().zip(users).filter(|(group, _)| group.partition != Group::DROPPED);
    store.extend(rows.map(|(group, user)| (group.partition as usize, P::new(group.key, user))));
}

fn compact<P: Pair>(store: &mut Store<P>, keys: &HashKeys) {
    let mut sieve = Sieve::default();
    deduplicate(|partition| {
        let before = store.partition_len(partition);
        sieve.reset(before);
        for rows in store.pieces(partition) {
            let most = rows.len();
            sieve.extend(rows, most, keys);
        }
        store.clear(partition);
        let rows = sieve.distinct(keys);
        for &row in rows {
            store.push(partition, row);
        }
        (before, rows.len())
    });
}
