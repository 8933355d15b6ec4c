//! Strings wait on shelves, one a partition, until there are enough to look up together; then the one
//! thread that owns the partition does so. No label is known to two threads, and none waits for a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::error::Result;
use crate::hash::PARTITIONS;
use crate::interner::Interner;

/// Rows of one partition whose labels have not been looked up yet.
#[derive(Default)]
pub struct Shelf {
    heads: Vec<(u32, u32)>,
    users: Vec<u128>,
    bytes: Vec<u8>,
}

impl Shelf {
    /// Bytes of a row that is not long: its head, its user, and sixteen of text.
    const ROW: usize = 40;

    /// An empty shelf that will not grow often.
    fn with_room(rows: usize) -> Self {
        Self {
            heads: Vec::with_capacity(rows),
            users: Vec::with_capacity(rows),
            bytes: Vec::with_capacity(16 * rows),
        }
    }

    /// How many bytes of memory it holds.
    fn held(&self) -> usize {
        self.heads.capacity() * 8 + self.users.capacity() * 16 + self.bytes.capacity()
    }

    #[inline]
    fn push(&mut self, hash: u32, bytes: &[u8], user: u128) {
        self.bytes.extend_from_slice(bytes);
        self.heads.push((hash, bytes.len() as u32));
        self.users.push(user);
    }

    /// All bits that any of its users has.
    #[must_use]
    pub fn user_bits(&self) -> u128 {
        self.users.iter().fold(0, |all, user| all | user)
    }

    #[inline]
    fn is_full(&self, rows: usize) -> bool {
        self.heads.len() >= rows || self.bytes.len() >= 32 * rows
    }

    /// Looks up the labels and hands each row's key and user on; text that is not UTF-8 is dropped.
    ///
    /// # Errors
    /// [`crate::error::Error::Resource`] beyond 2^32 items.
    pub fn empty(
        self,
        interner: &mut Interner,
        is_text: bool,
        mut emit: impl FnMut(u64, u128),
    ) -> Result<()> {
        interner.prefetch(self.heads.iter().map(|head| head.0));
        let mut start = 0;
        for (&(hash, len), &user) in self.heads.iter().zip(&self.users) {
            let bytes = &self.bytes[start..start + len as usize];
            start += len as usize;
            if let Some(key) = interner.intern_valid(hash, bytes, is_text)? {
                emit(key.into(), user);
            }
        }
        Ok(())
    }
}

/// Shelves and their partitions.
pub type Shelves = Vec<(usize, Shelf)>;

/// One thread's shelves, and its post to and from the owners of partitions.
pub struct Post {
    shelves: Vec<Shelf>,
    /// How many rows fill a shelf.
    rows: usize,
    me: usize,
    /// Where to send what belongs to each thread.
    outboxes: Vec<Sender<(usize, Shelf)>>,
    inbox: Receiver<(usize, Shelf)>,
    /// How many bytes are under way between all threads, and how many may be.
    sent: Arc<AtomicUsize>,
    room: usize,
}

impl Post {
    /// The posts of `threads` threads, the partitions dealt out among them. What lies on their shelves holds no more
    /// than about `room` bytes of memory, and what is under way as many.
    #[must_use]
    pub fn offices(threads: usize, room: usize) -> Vec<Self> {
        let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
        let sent = Arc::new(AtomicUsize::new(0));
        let rows = (room / (threads * PARTITIONS * Shelf::ROW)).clamp(8, 512);
        let office = |(me, inbox)| Self {
            shelves: (0..PARTITIONS).map(|_| Shelf::default()).collect(),
            rows,
            me,
            outboxes: outboxes.clone(),
            inbox,
            sent: Arc::clone(&sent),
            room,
        };
        inboxes.into_iter().enumerate().map(office).collect()
    }

    /// Whether more is under way than there is room for.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.sent.load(Ordering::Relaxed) > self.room
    }

    /// Puts a string and its user on a shelf; returns the shelf where it is full and this thread's own.
    #[inline]
    pub fn push(&mut self, partition: usize, hash: u32, bytes: &[u8], user: u128) -> Option<Shelf> {
        let open = &mut self.shelves[partition];
        open.push(hash, bytes, user);
        if open.is_full(self.rows) {
            self.hand_over(partition, Shelf::with_room(self.rows))
        } else {
            None
        }
    }

    /// Sends a shelf to its owner, or returns it where that is this thread.
    fn hand_over(&mut self, partition: usize, next: Shelf) -> Option<Shelf> {
        let full = std::mem::replace(&mut self.shelves[partition], next);
        let owner = partition % self.outboxes.len();
        if owner == self.me {
            return Some(full);
        }
        self.sent.fetch_add(full.held(), Ordering::Relaxed);
        // An owner that is gone has failed, and all that is counted is thrown away.
        let _ = self.outboxes[owner].send((partition, full));
        None
    }

    /// The shelves that others have sent by now.
    pub fn received(&mut self) -> Shelves {
        let received: Shelves = self.inbox.try_iter().collect();
        let held = received.iter().map(|(_, shelf)| shelf.held()).sum();
        self.sent.fetch_sub(held, Ordering::Relaxed);
        received
    }

    /// The last shelves: this thread's own, and what the others send until they have closed too.
    #[must_use]
    pub fn close(mut self) -> Shelves {
        let mut mine = Vec::new();
        for partition in 0..PARTITIONS {
            if !self.shelves[partition].heads.is_empty() {
                let shelf = self.hand_over(partition, Shelf::default());
                mine.extend(shelf.map(|shelf| (partition, shelf)));
            }
        }
        let Self { outboxes, inbox, sent, .. } = self;
        drop(outboxes);
        let arrived = |(_, shelf): &(usize, Shelf)| {
            sent.fetch_sub(shelf.held(), Ordering::Relaxed);
        };
        mine.into_iter().chain(inbox.into_iter().inspect(arrived)).collect()
    }
}
