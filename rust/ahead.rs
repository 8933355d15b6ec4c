//! Memory that is read soon is asked for ahead, so that nobody waits for what a table has beyond the nearer caches.

use prefetch_index::prefetch_index;

/// How far ahead.
const AHEAD: usize = 32;

/// Asks for the place in a table of whoever comes so much later than number `n` of `all`, if anybody does.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a part of inner loops of counting")]
pub(crate) fn ask<T, K: Copy>(table: &[T], all: &[K], n: usize, place: impl Fn(K) -> usize) {
    if let Some(&later) = all.get(n + AHEAD) {
        prefetch_index(table, place(later));
    }
}
