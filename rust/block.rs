//! Large blocks of memory straight from the system, in its large pages where it has them: to touch fresh memory in
//! small ones costs as much as the counting that is done in it, and even in large ones a tenth. So some that have served
//! are kept for the next that are needed.

use std::marker::PhantomData;
use std::sync::Mutex;

use bytemuck::Pod;
use memmap2::MmapMut;

/// The bytes of a block: two large pages of most systems.
pub const BLOCK: usize = 1 << 22;

/// How many blocks are kept at most.
const KEPT: usize = 64;

/// Blocks that have served. Who finds the lock taken does without, so that nobody waits, and no fork of the process does
/// for a thread that it has not.
static USED: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());

/// Gives blocks that have served back to the system, as far as they are more than so many bytes.
pub fn give_back(beyond: usize) {
    if let Ok(mut used) = USED.try_lock() {
        used.truncate(beyond / BLOCK);
        used.shrink_to(KEPT);
    }
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

impl<T: Pod> Block<T> {
    /// A block of any values, such as those of one that has served.
    #[must_use]
    pub fn any() -> Self {
        match USED.try_lock().ok().and_then(|mut used| used.pop()) {
            Some(map) => Self { memory: Memory::Mapped(map), values: PhantomData },
            None => Self::zeroed(),
        }
    }

    /// A block of zeros.
    #[must_use]
    pub fn zeroed() -> Self {
        let memory = match MmapMut::map_anon(BLOCK) {
            Ok(map) => {
                // A system without them has small pages.
                #[cfg(target_os = "linux")]
                let _ = map.advise(memmap2::Advice::HugePage);
                Memory::Mapped(map)
            }
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

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if let Memory::Mapped(map) = std::mem::replace(&mut self.memory, Memory::Plain(Vec::new()))
            && let Ok(mut used) = USED.try_lock()
            && used.len() < KEPT
        {
            used.push(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_serve_again_and_zeros_are_zeros() {
        let many = || (0..2 * KEPT).map(|_| Block::<u64>::any()).collect::<Vec<_>>();
        for mut block in many() {
            block.values_mut().fill(7);
        }
        // Other tests need blocks too.
        let served = many().iter().filter(|block| block.values()[1000] == 7).count();
        assert!((1..=KEPT).contains(&served), "{served}");
        assert!(Block::<u64>::zeroed().values().iter().all(|&value| value == 0));
        give_back(0);
        let served = many().iter().filter(|block| block.values()[1000] == 7).count();
        assert!(served < KEPT, "{served}");
    }
}
