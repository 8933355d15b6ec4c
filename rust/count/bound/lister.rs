//! Lists the items that each user of one partition keeps, in memory or in a file.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::count::bound::user_choices::{Chooser, Offer};
use crate::count::spill::Spill;
use crate::count::threads::STOPPED;
use crate::error::Result;
use crate::hash::HashKeys;

/// An item of a user: the item's rank, and its number over all threads.
type Cell = (u64, u64);

/// The lists of the users of one partition.
#[derive(Default)]
pub(crate) struct Part {
    pub partition: usize,
    /// The first 64 bits of each user's key, and the number of the user's items. Users are ordered by key.
    pub users: Vec<(u64, u32)>,
    /// The items of all users, by number over all threads.
    pub items: Items,
}

/// Numbers of items, in memory or in an encrypted file.
pub(crate) enum Items {
    Memory(Vec<u32>),
    /// The number of a file, the position in it, and the number of items.
    File(usize, u64, usize),
}

impl Default for Items {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

impl Items {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(items) => items.len(),
            &Self::File(_, _, len) => len,
        }
    }

    /// Returns the items. `files` are all files, by number.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn read(&self, files: &[Spill]) -> Result<Cow<'_, [u32]>> {
        match self {
            Self::Memory(items) => Ok(Cow::Borrowed(items)),
            &Self::File(file, at, len) => {
                let mut items = vec![0; len];
                files[file].read(at, bytemuck::cast_slice_mut(&mut items))?;
                Ok(Cow::Owned(items))
            }
        }
    }
}

/// Keeps the lists that one thread makes. Their items are in memory as long as the lists of all threads take at most
/// `room` bytes, and then in an encrypted file.
pub(crate) struct Keeper<'a> {
    used: &'a AtomicUsize,
    room: usize,
    parts: Vec<Part>,
    file: Option<Spill>,
}

impl<'a> Keeper<'a> {
    /// Creates a keeper. `used` counts the bytes of all threads.
    pub fn new(used: &'a AtomicUsize, room: usize) -> Self {
        Self { used, room, parts: Vec::new(), file: None }
    }

    /// Keeps a part.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn keep(&mut self, mut part: Part) -> Result<()> {
        if let Items::Memory(items) = &part.items {
            // Each user takes 16 bytes here, and 16 again when the parts are joined.
            let users = part.users.len() * 32;
            let before = self.used.fetch_add(users + items.len() * 4, Ordering::Relaxed);
            if before.saturating_add(users + items.len() * 4) > self.room {
                self.used.fetch_sub(items.len() * 4, Ordering::Relaxed);
                let file = match &mut self.file {
                    Some(file) => file,
                    None => self.file.insert(Spill::new()?),
                };
                let at = file.end();
                file.push(bytemuck::cast_slice(items))?;
                part.items = Items::File(0, at, items.len());
            }
        }
        self.parts.push(part);
        Ok(())
    }

    /// Returns the parts of all threads by partition, and their files.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn all(keepers: impl Iterator<Item = Self>) -> Result<(Vec<Part>, Vec<Spill>)> {
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for mut keeper in keepers {
            for part in &mut keeper.parts {
                if let Items::File(file, ..) = &mut part.items {
                    *file = files.len();
                }
            }
            parts.append(&mut keeper.parts);
            if let Some(mut file) = keeper.file {
                file.flush()?;
                files.push(file);
            }
        }
        parts.sort_unstable_by_key(|part| part.partition);
        Ok((parts, files))
    }
}

/// Lists the first `l0` items of each user.
pub(crate) struct Lister {
    l0: usize,
    /// Numbers the users.
    chooser: Chooser,
    /// The start of each user's cells, and the end.
    places: Vec<(usize, usize)>,
    /// The items of all users, grouped by user.
    cells: Vec<Cell>,
    /// The items of one user, with their priorities.
    placed: Vec<(u64, Cell)>,
}

impl Lister {
    pub fn new(l0: usize) -> Self {
        let chooser = Chooser::new(usize::MAX);
        let (places, cells, placed) = (Vec::new(), Vec::new(), Vec::new());
        Self { l0, chooser, places, cells, placed }
    }

    /// Lists the users of `offers`, which must hold all their pairs. A user's items are ordered by rank.
    ///
    /// # Errors
    /// [`STOPPED`] if `stop` is set.
    pub fn list(
        &mut self,
        partition: usize,
        offers: &[Offer<'_>],
        keys: &HashKeys,
        stop: &AtomicBool,
    ) -> Result<Part> {
        let go_on = || if stop.load(Ordering::Relaxed) { Err(STOPPED) } else { Ok(()) };
        self.chooser.number(offers, keys);
        go_on()?;
        self.group(offers);
        let Self { l0, chooser, places, cells, placed } = self;
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|&user| chooser.key(user));
        let mut made = Part { partition, ..Part::default() };
        made.users.reserve_exact(order.len());
        let kept = |&(start, end): &(usize, usize)| (end - start).min(*l0);
        let mut items = Vec::with_capacity(places.iter().map(kept).sum());
        for user in order {
            go_on()?;
            let key = chooser.key(user);
            let (start, end) = places[user];
            let mut own = &mut cells[start..end];
            if own.len() > *l0 {
                let place = |cell: &Cell| (offers[0].items.priority(key, cell.0, keys), *cell);
                placed.clear();
                placed.extend(own.iter().map(place));
                placed.select_nth_unstable(*l0);
                own = &mut own[..*l0];
                own.iter_mut().zip(&*placed).for_each(|(to, &(_, cell))| *to = cell);
            }
            own.sort_unstable();
            made.users.push((key as u64, own.len() as u32));
            items.extend(own.iter().map(|&(_, item)| item as u32));
        }
        made.items = Items::Memory(items);
        Ok(made)
    }

    /// Groups the pairs by user.
    fn group(&mut self, offers: &[Offer<'_>]) {
        let Self { chooser, places, cells, .. } = self;
        let mut end = 0;
        places.clear();
        for user in 0..chooser.users() {
            places.push((end, end));
            end += chooser.len(user);
        }
        cells.clear();
        cells.resize(end, (0, 0));
        let mut numbers = chooser.numbers();
        for offer in offers {
            for (item, user) in offer.items().zip(&mut numbers) {
                let end = &mut places[user].1;
                cells[*end] = (offer.items.rank(item as usize), offer.first + u64::from(item));
                *end += 1;
            }
        }
    }
}
