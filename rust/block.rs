//! Large blocks of memory straight from the system, in its large pages where it has them: to touch fresh memory in
//! small ones costs as much as the counting that is done in it.

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

/// The bytes of a block: two large pages of most systems.
pub const BLOCK: usize = 1 << 22;

/// A block of values, all zero at first.
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
    /// A block of zeros.
    #[must_use]
    pub fn new() -> Self {
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
    const USED: usize = BLOCK / size_of::<T>() * size_of::<T>();

    /// The values.
    #[inline]
    #[must_use]
    pub fn values(&self) -> &[T] {
        let bytes = match &self.memory {
            Memory::Mapped(map) => &map[..],
            Memory::Plain(words) => bytemuck::cast_slice(words),
        };
        bytemuck::cast_slice(&bytes[..Self::USED])
    }

    /// The values, to write.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        let bytes = match &mut self.memory {
            Memory::Mapped(map) => &mut map[..],
            Memory::Plain(words) => bytemuck::cast_slice_mut(words),
        };
        bytemuck::cast_slice_mut(&mut bytes[..Self::USED])
    }
}

impl<T: Pod> Default for Block<T> {
    fn default() -> Self {
        Self::new()
    }
}
