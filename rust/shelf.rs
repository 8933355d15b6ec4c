//! Strings wait on shelves, one a partition, until there are enough to look up together; then the one
//! thread that owns the partition does so. No label is known to two threads, and none waits for a lock.

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
    const ROWS: usize = 512;
    const BYTES: usize = 1 << 14;

    /// An empty shelf that will not grow often.
    fn with_room() -> Self {
        Self {
            heads: Vec::with_capacity(Self::ROWS),
            users: Vec::with_capacity(Self::ROWS),
            bytes: Vec::with_capacity(Self::BYTES / 2),
        }
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
    fn is_full(&self) -> bool {
        self.heads.len() >= Self::ROWS || self.bytes.len() >= Self::BYTES
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
    me: usize,
    /// Where to send what belongs to each thread.
    outboxes: Vec<Sender<(usize, Shelf)>>,
    inbox: Receiver<(usize, Shelf)>,
}

impl Post {
    /// The posts of `threads` threads, the partitions dealt out among them.
    #[must_use]
    pub fn offices(threads: usize) -> Vec<Self> {
        let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
        let office = |(me, inbox)| Self {
            shelves: (0..PARTITIONS).map(|_| Shelf::default()).collect(),
            me,
            outboxes: outboxes.clone(),
            inbox,
        };
        inboxes.into_iter().enumerate().map(office).collect()
    }

    /// Puts a string and its user on a shelf; returns the shelf where it is full and this thread's own.
    #[inline]
    pub fn push(&mut self, partition: usize, hash: u32, bytes: &[u8], user: u128) -> Option<Shelf> {
        let open = &mut self.shelves[partition];
        open.push(hash, bytes, user);
        if open.is_full() { self.hand_over(partition) } else { None }
    }

    /// Sends a shelf to its owner, or returns it where that is this thread.
    fn hand_over(&mut self, partition: usize) -> Option<Shelf> {
        let full = std::mem::replace(&mut self.shelves[partition], Shelf::with_room());
        let owner = partition % self.outboxes.len();
        if owner == self.me {
            return Some(full);
        }
        // An owner that is gone has failed, and all that is counted is thrown away.
        let _ = self.outboxes[owner].send((partition, full));
        None
    }

    /// The shelves that others have sent by now.
    pub fn received(&mut self) -> Shelves {
        self.inbox.try_iter().collect()
    }

    /// The last shelves: this thread's own, and what the others send until they have closed too.
    #[must_use]
    pub fn close(mut self) -> Shelves {
        let mine: Vec<_> = (0..PARTITIONS)
            .filter(|&partition| !self.shelves[partition].heads.is_empty())
            .collect::<Vec<_>>()
            .into_iter()
            .filter_map(|partition| self.hand_over(partition).map(|shelf| (partition, shelf)))
            .collect();
        let Self { outboxes, inbox, .. } = self;
        drop(outboxes);
        mine.into_iter().chain(inbox).collect()
    }
}
