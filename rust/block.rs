//! Large blocks of memory straight from the system, in its large pages where it has them at hand: to touch fresh memory
//! in small ones costs a fifth of the counting that is done in it, and even in large ones a tenth. So some that have
//! served are kept for the next that are needed.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, TryLockError};

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
    fn give_back(&self, beyond: usize) {
        let Some(mut maps) = self.lock() else { return };
        let more = maps.len().saturating_sub(beyond);
        let given: Vec<MmapMut> = maps.drain(..more).collect();
        // Without the lock, since it takes long.
        drop(maps);
        drop(given);
    }
}

/// Gives kept blocks back to the system, as far as they are more than so many bytes.
pub fn give_back(beyond: usize) {
    ALL.give_back(beyond / BLOCK);
}

/// So many zeros that have been written. Fresh memory that is read first is the system's page of zeros, and the first
/// write to each page of it interrupts all other processors.
#[allow(clippy::slow_vector_initialization, reason = "`vec![0; len]` leaves it to the first write")]
pub(crate) fn zeros<T: Pod>(len: usize) -> Vec<T> {
    let mut zeros = Vec::new();
    zeros.resize(len, T::zeroed());
    zeros
}

/// Maps a block and asks the system for huge pages.
fn map() -> std::io::Result<MmapMut> {
    let map = MmapMut::map_anon(BLOCK)?;
    // A system without huge pages gives small ones.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Ok(map)
}

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
        let memory = match ALL.take().map_or_else(map, Ok) {
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
        kept.give_back(KEPT);
        assert_eq!(kept.take().unwrap()[1000], KEPT as u8 - 1);
        kept.give_back(2);
        let left: Vec<u8> = std::iter::from_fn(|| kept.take()).map(|map| map[1000]).collect();
        assert_eq!(left, [KEPT as u8 - 2, KEPT as u8 - 3]);
    }

    #[test]
    fn nobody_waits_for_a_lock_that_nobody_gives_back() {
        let kept = Kept(Mutex::new(vec![MmapMut::map_anon(BLOCK).unwrap()]));
        let held = kept.0.lock();
        kept.give_back(0);
        kept.put(MmapMut::map_anon(BLOCK).unwrap());
        assert!(kept.take().is_none());
        drop(held);
        assert!(kept.take().is_some() && kept.take().is_none());
    }
}
