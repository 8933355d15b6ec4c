//! Large blocks of memory from the system, in huge pages if huge pages are available.
//!
//! The first writes to fresh memory take a fifth as long as the counting in this memory. With huge
//! pages they take a tenth as long. So used blocks go into a pool, and are used again.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes of a block: two huge pages of most systems.
pub const BLOCK: usize = 1 << 22;

/// The most blocks in the pool.
const MAX_POOLED: usize = 64;
/// How often a thread tries to lock the pool. Threads hold the lock only for moments. A forked process
/// may inherit a lock that is never released. Such a process does not use the pool.
const TRIES: usize = 100;

/// Used blocks that can be used again.
struct Pool(Mutex<Vec<MmapMut>>);

static POOL: Pool = Pool(Mutex::new(Vec::new()));

impl Pool {
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

    /// Adds a block, unless the pool is full.
    fn put(&self, map: MmapMut) {
        if let Some(mut maps) = self.lock()
            && maps.len() < MAX_POOLED
        {
            maps.push(map);
        }
    }

    /// Returns all but `beyond` blocks to the system, the oldest first.
    fn release_memory(&self, beyond: usize) {
        let Some(mut maps) = self.lock() else { return };
        let more = maps.len().saturating_sub(beyond);
        let released: Vec<MmapMut> = maps.drain(..more).collect();
        // Release the lock first, since unmapping takes long.
        drop(maps);
        drop(released);
    }
}

/// Returns pooled memory beyond `beyond` bytes to the system.
pub fn release_memory(beyond: usize) {
    POOL.release_memory(beyond / BLOCK);
}

/// Returns a zeroed vector whose pages are already written. Reading a fresh page first maps the
/// system's shared zero page. The later write then interrupts all other processors (a TLB
/// shootdown).
#[allow(clippy::slow_vector_initialization, reason = "`vec![0; len]` leaves pages unwritten")]
pub(crate) fn zeros<T: Pod>(len: usize) -> Vec<T> {
    let mut zeros = Vec::new();
    zeros.resize(len, T::zeroed());
    zeros
}

/// Decides whether blocks use huge pages. The host of a virtual machine may have reclaimed free huge
/// pages. To get a reclaimed page back takes several times as long as to clear small pages.
struct HugePages {
    /// The number of blocks that will use small pages before huge pages are tried again.
    skip: AtomicUsize,
}

static HUGE_PAGES: HugePages = HugePages { skip: AtomicUsize::new(0) };

impl HugePages {
    /// The longest time that the first write to a huge page should take. To clear the page takes a few
    /// tenths of this time. To wait for the host takes a few times as long as this time. If the thread
    /// only waits for the processor, the change to small pages is a mistake with little effect.
    const PATIENCE: Duration = Duration::from_micros(1500);
    /// The number of blocks that use small pages after a slow huge page. These blocks keep their small
    /// pages.
    const SKIPPED: usize = 64;

    /// Returns whether the next block should use huge pages, and counts this block.
    fn are_available(&self) -> bool {
        let less = |skip: usize| skip.checked_sub(1);
        self.skip.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Records the time of the first write to a huge page.
    fn record(&self, time: Duration) {
        if time > Self::PATIENCE {
            self.skip.store(Self::SKIPPED, Ordering::Relaxed);
        }
    }

    /// Maps a block in huge pages if they are available, otherwise in small pages.
    fn map(&self) -> std::io::Result<MmapMut> {
        let mut map = MmapMut::map_anon(BLOCK)?;
        if !self.are_available() {
            request_small(&map);
        } else if request_huge(&map) {
            let start = Instant::now();
            // The middle of a block is in a huge page, wherever the block begins.
            map[BLOCK / 2] = 0;
            self.record(start.elapsed());
        }
        Ok(map)
    }
}

/// Requests huge pages; returns whether the system supports them.
#[cfg(target_os = "linux")]
fn request_huge(map: &MmapMut) -> bool {
    map.advise(memmap2::Advice::HugePage).is_ok()
}

/// Requests small pages, in case the system uses huge pages by default.
#[cfg(target_os = "linux")]
fn request_small(map: &MmapMut) {
    let _ = map.advise(memmap2::Advice::NoHugePage);
}

#[cfg(not(target_os = "linux"))]
fn request_huge(_: &MmapMut) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn request_small(_: &MmapMut) {}

/// A block of values.
pub struct Block<T> {
    memory: Memory,
    values: PhantomData<T>,
}

enum Memory {
    Mapped(MmapMut),
    /// Words with an alignment that suits all values.
    Plain(Vec<u128>),
}

impl<T> Drop for Block<T> {
    /// Puts mapped memory into the pool, for a later call of [`Self::any`].
    fn drop(&mut self) {
        if let Memory::Mapped(map) = std::mem::replace(&mut self.memory, Memory::Plain(Vec::new()))
        {
            POOL.put(map);
        }
    }
}

impl<T: Pod> Block<T> {
    /// Returns a block of arbitrary values, such as the content of a used block.
    #[must_use]
    pub fn any() -> Self {
        let memory = match POOL.take().map_or_else(|| HUGE_PAGES.map(), Ok) {
            Ok(map) => Memory::Mapped(map),
            Err(_) => Memory::Plain(vec![0; BLOCK / size_of::<u128>()]),
        };
        Self { memory, values: PhantomData }
    }

    /// Bytes of the values that fit.
    const BYTES: usize = BLOCK / size_of::<T>() * size_of::<T>();

    /// Returns the values.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[T] {
        let bytes = match &self.memory {
            Memory::Mapped(map) => &map[..],
            Memory::Plain(words) => bytemuck::cast_slice(words),
        };
        bytemuck::cast_slice(&bytes[..Self::BYTES])
    }

    /// Returns the values for writing.
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
    fn the_pool_is_bounded_and_releases_the_oldest_blocks() {
        let pool = Pool(Mutex::new(Vec::new()));
        assert!(pool.take().is_none());
        for n in 0..MAX_POOLED + 2 {
            let mut map = MmapMut::map_anon(BLOCK).unwrap();
            map[1000] = n as u8;
            pool.put(map);
        }
        pool.release_memory(MAX_POOLED);
        assert_eq!(pool.take().unwrap()[1000], MAX_POOLED as u8 - 1);
        pool.release_memory(2);
        let left: Vec<u8> = std::iter::from_fn(|| pool.take()).map(|map| map[1000]).collect();
        assert_eq!(left, [MAX_POOLED as u8 - 2, MAX_POOLED as u8 - 3]);
    }

    #[test]
    fn a_slow_huge_page_suspends_huge_pages_for_64_blocks() {
        let pages = HugePages { skip: AtomicUsize::new(0) };
        pages.record(HugePages::PATIENCE);
        assert!(pages.are_available() && pages.are_available());
        pages.record(2 * HugePages::PATIENCE);
        assert!((0..HugePages::SKIPPED).all(|_| !pages.are_available()));
        assert!(pages.are_available());
    }

    #[test]
    fn a_pool_whose_lock_is_never_released_is_not_used() {
        let pool = Pool(Mutex::new(vec![MmapMut::map_anon(BLOCK).unwrap()]));
        let held = pool.0.lock();
        pool.release_memory(0);
        pool.put(MmapMut::map_anon(BLOCK).unwrap());
        assert!(pool.take().is_none());
        drop(held);
        assert!(pool.take().is_some() && pool.take().is_none());
    }
}
