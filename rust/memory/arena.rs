//! Large blocks of memory straight from the system, in its large pages where it has them at hand: to touch fresh memory
//! in small ones costs a fifth of the counting that is done in it, and even in large ones a tenth. So some that have
//! served are kept for the next that are needed.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use memmap2::MmapMut;

/// The bytes of a block: two large pages of most systems.
pub const BLOCK: usize = 1 << 22;

/// How many blocks are kept at most.
const KEPT: usize = 64;
/// How often a lock that is taken is tried again. It is held for moments alone, but a fork of the process may have it
/// held for ever, and does without.
const TRIES: usize = 100;

/// Blocks that have served and may serve again.
struct Kept(Mutex<Vec<MmapMut>>);

static ALL: Kept = Kept(Mutex::new(Vec::new()));

impl Kept {
    fn lock(&self) -> Option<MutexGuard<'_, Vec<MmapMut>>> {
        (0..TRIES).find_map(|_| match self.0.try_lock() {
            Err(TryLockError::WouldBlock) => {
                std::thread::yield_now();
                None
            }
            Err(TryLockError::Poisoned(maps)) => Some(maps.into_inner()),
            Ok(maps) => Some(maps),
        })
    }

    fn take(&self) -> Option<MmapMut> {
        self.lock()?.pop()
    }

    /// Keeps a block, where there are not enough.
    fn put(&self, map: MmapMut) {
        if let Some(mut maps) = self.lock()
            && maps.len() < KEPT
        {
            maps.push(map);
        }
    }

    /// Gives those back to the system that are more than so many, those that have been here the longest.
    fn release_memory(&self, beyond: usize) {
        let Some(mut maps) = self.lock() else { return };
        let more = maps.len().saturating_sub(beyond);
        let given: Vec<MmapMut> = maps.drain(..more).collect();
        // Without the lock, since it takes long.
        drop(maps);
        drop(given);
    }
}

/// Gives kept blocks back to the system, as far as they are more than so many bytes.
pub fn release_memory(beyond: usize) {
    ALL.release_memory(beyond / BLOCK);
}

/// So many zeros that have been written. Fresh memory that is read first is the system's page of zeros, and the first
/// write to each page of it interrupts all other processors.
#[allow(clippy::slow_vector_initialization, reason = "`vec![0; len]` leaves it to the first write")]
pub(crate) fn zeros<T: Pod>(len: usize) -> Vec<T> {
    let mut zeros = Vec::new();
    zeros.resize(len, T::zeroed());
    zeros
}

/// Whether large pages are at hand. The host of a virtual machine may have taken back those that are free and leave
/// small ones: to have them again takes several times as long as to clear small pages.
struct LargePages {
    /// How many blocks do without, before one tries again.
    without: AtomicUsize,
}

static LARGE_PAGES: LargePages = LargePages { without: AtomicUsize::new(0) };

impl LargePages {
    /// A large page takes a few tenths of this to be cleared, and a few times as long where the host is waited for; or the
    /// processor, after which small pages cost little.
    const PATIENCE: Duration = Duration::from_micros(1500);
    /// How many blocks do without when one has taken longer, and never have any then.
    const WITHOUT: usize = 64;

    /// Whether the next block is to have them.
    fn are_at_hand(&self) -> bool {
        let less = |without: usize| without.checked_sub(1);
        self.without.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Learns how long the first write to one has taken.
    fn took(&self, time: Duration) {
        if time > Self::PATIENCE {
            self.without.store(Self::WITHOUT, Ordering::Relaxed);
        }
    }

    /// A block in large pages, if they are at hand and the system has them, or otherwise in small ones.
    fn map(&self) -> std::io::Result<MmapMut> {
        let mut map = MmapMut::map_anon(BLOCK)?;
        if !self.are_at_hand() {
            are_declined(&map);
        } else if are_asked_for(&map) {
            let start = Instant::now();
            // The middle is in a large page wherever the block begins.
            map[BLOCK / 2] = 0;
            self.took(start.elapsed());
        }
        Ok(map)
    }
}

/// Asks for large pages; says whether the system knows them.
#[cfg(target_os = "linux")]
fn are_asked_for(map: &MmapMut) -> bool {
    map.advise(memmap2::Advice::HugePage).is_ok()
}

/// Asks for small pages, where all memory would be in large ones.
#[cfg(target_os = "linux")]
fn are_declined(map: &MmapMut) {
    let _ = map.advise(memmap2::Advice::NoHugePage);
}

#[cfg(not(target_os = "linux"))]
fn are_asked_for(_: &MmapMut) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn are_declined(_: &MmapMut) {}

/// A block of values.
pub struct Block<T> {
    memory: Memory,
    values: PhantomData<T>,
}

enum Memory {
    Mapped(MmapMut),
    /// In words that suit any value.
    Plain(Vec<u128>),
}

impl<T> Drop for Block<T> {
    /// Keeps the memory for whoever asks for [`Self::any`] next.
    fn drop(&mut self) {
        if let Memory::Mapped(map) = std::mem::replace(&mut self.memory, Memory::Plain(Vec::new()))
        {
            ALL.put(map);
        }
    }
}

impl<T: Pod> Block<T> {
    /// A block of any values, such as those of one that has served.
    #[must_use]
    pub fn any() -> Self {
        let memory = match ALL.take().map_or_else(|| LARGE_PAGES.map(), Ok) {
            Ok(map) => Memory::Mapped(map),
            Err(_) => Memory::Plain(vec![0; BLOCK / size_of::<u128>()]),
        };
        Self { memory, values: PhantomData }
    }

    /// The bytes of whole values.
    const BYTES: usize = BLOCK / size_of::<T>() * size_of::<T>();

    /// The values.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[T] {
        let bytes = match &self.memory {
            Memory::Mapped(map) => &map[..],
            Memory::Plain(words) => bytemuck::cast_slice(words),
        };
        bytemuck::cast_slice(&bytes[..Self::BYTES])
    }

    /// The values, to write.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        let bytes = match &mut self.memory {
            Memory::Mapped(map) => &mut map[..],
            Memory::Plain(words) => bytemuck::cast_slice_mut(words),
        };
        bytemuck::cast_slice_mut(&mut bytes[..Self::BYTES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_kept_up_to_so_many_and_given_back_the_oldest_first() {
        let kept = Kept(Mutex::new(Vec::new()));
        assert!(kept.take().is_none());
        for n in 0..KEPT + 2 {
            let mut map = MmapMut::map_anon(BLOCK).unwrap();
            map[1000] = n as u8;
            kept.put(map);
        }
        kept.release_memory(KEPT);
        assert_eq!(kept.take().unwrap()[1000], KEPT as u8 - 1);
        kept.release_memory(2);
        let left: Vec<u8> = std::iter::from_fn(|| kept.take()).map(|map| map[1000]).collect();
        assert_eq!(left, [KEPT as u8 - 2, KEPT as u8 - 3]);
    }

    #[test]
    fn blocks_do_without_large_pages_for_a_while_where_one_took_long() {
        let pages = LargePages { without: AtomicUsize::new(0) };
        pages.took(LargePages::PATIENCE);
        assert!(pages.are_at_hand() && pages.are_at_hand());
        pages.took(2 * LargePages::PATIENCE);
        assert!((0..LargePages::WITHOUT).all(|_| !pages.are_at_hand()));
        assert!(pages.are_at_hand());
    }

    #[test]
    fn nobody_waits_for_a_lock_that_nobody_gives_back() {
        let kept = Kept(Mutex::new(vec![MmapMut::map_anon(BLOCK).unwrap()]));
        let held = kept.0.lock();
        kept.release_memory(0);
        kept.put(MmapMut::map_anon(BLOCK).unwrap());
        assert!(kept.take().is_none());
        drop(held);
        assert!(kept.take().is_some() && kept.take().is_none());
    }
}
