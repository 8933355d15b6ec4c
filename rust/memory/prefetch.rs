//! Software prefetching, which loads memory into cache before the memory is read. A prefetch of an
//! out-of-range address is harmless.

use std::ops::Range;

use prefetch_index::prefetch_index;

/// The prefetch distance in rows of reads in any order.
pub(crate) const AHEAD: usize = 32;
/// The prefetch distance in bytes of sequential reads. These bytes hold a few hundred strings.
const BYTES_AHEAD: usize = 1 << 13;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes of a piece that are prefetched at a time. There are few, because a processor has room for
/// few outstanding requests.
pub(crate) const STRETCH: usize = 8 * LINE;
/// The most rows that are prefetched at a time.
const NEXT: usize = 1 << 9;

/// Prefetches the table entry of the key that is `AHEAD` places after key number `n` in `all`. Does
/// nothing if there is no such key.
#[inline(always)]
#[allow(clippy::inline_always, reason = "an inner loop of counting")]
pub(crate) fn prefetch_ahead<T, K: Copy>(
    table: &[T],
    all: &[K],
    n: usize,
    place: impl Fn(K) -> usize,
) {
    if let Some(&later) = all.get(n + AHEAD) {
        prefetch_index(table, place(later));
    }
}

/// Prefetches a position of a buffer.
#[inline(always)]
#[allow(clippy::inline_always, reason = "an inner loop of counting")]
pub(crate) fn prefetch_at(buffer: &[u8], place: usize) {
    prefetch_index(buffer, place);
}

/// Prefetches the position 8 KiB after `place`, in a buffer that is read from beginning to end.
#[inline(always)]
#[allow(clippy::inline_always, reason = "an inner loop of counting")]
pub(crate) fn prefetch_beyond(buffer: &[u8], place: usize) {
    prefetch_at(buffer, place.wrapping_add(BYTES_AHEAD));
}

/// Prefetches the rows after `rows`: as many rows as `rows` has, but at most 512.
#[inline]
pub(crate) fn prefetch_next<T>(values: &[T], rows: &Range<usize>) {
    prefetch_rows(values, rows.end..rows.end + rows.len().min(NEXT));
}

/// Yields the values of pieces, at most 512 bytes at a time. Before it yields a part of a piece, it
/// prefetches the same part of the next piece, whose address the hardware cannot predict.
#[inline]
pub(crate) fn prefetched<'a, T: 'a>(
    pieces: impl Iterator<Item = &'a [T]> + Clone,
) -> impl Iterator<Item = &'a [T]> {
    let few = const { STRETCH / size_of::<T>() };
    let next = pieces.clone().skip(1).chain(std::iter::repeat(&[][..]));
    pieces.zip(next).flat_map(move |(piece, next)| {
        piece.chunks(few).enumerate().map(move |(number, values)| {
            prefetch_rows(next, number * few..(number + 1) * few);
            values
        })
    })
}

/// Prefetches the values of `rows`. Ignores rows that do not exist.
#[inline]
fn prefetch_rows<T>(values: &[T], rows: Range<usize>) {
    const { assert!(size_of::<T>() <= LINE, "a step must reach every line") };
    for row in (rows.start..rows.end.min(values.len())).step_by(LINE / size_of::<T>()) {
        prefetch_index(values, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_of_the_pieces_are_yielded_in_order() {
        let all: Vec<u64> = (0..2000).collect();
        let few = STRETCH / size_of::<u64>();
        for lens in [vec![], vec![0], vec![1], vec![few, 0, 3 * few + 1, 7, few - 1], vec![2000]] {
            let mut rest = &all[..];
            let pieces: Vec<&[u64]> =
                lens.iter().map(|&len| rest.split_off(..len).unwrap()).collect();
            let parts: Vec<&[u64]> = prefetched(pieces.iter().copied()).collect();
            assert!(parts.iter().all(|part| (1..=few).contains(&part.len())));
            assert_eq!(parts.concat(), all[..lens.iter().sum()]);
        }
    }
}
