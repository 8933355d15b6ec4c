//! Memory that is read soon is asked for ahead, so that what is beyond the nearer caches is seldom waited for. Whatever
//! is asked for need not be there.

use std::ops::Range;

use prefetch_index::prefetch_index;

/// How many rows ahead.
pub(crate) const AHEAD: usize = 32;
/// The same in bytes that are read one after the other: those of some hundreds of strings.
const BYTES_AHEAD: usize = 1 << 13;
/// The bytes that come together, in a line of the cache.
const LINE: usize = 64;
/// How many bytes of a piece are asked for at a time: a processor has few requests for memory under way.
pub(crate) const PIECEMEAL: usize = 8 * LINE;
/// The most rows that are asked for at a time.
const NEXT: usize = 1 << 9;

/// Asks for the place in a table of whoever comes so much later than number `n` of `all`, if anybody does.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a part of inner loops of counting")]
pub(crate) fn ask<T, K: Copy>(table: &[T], all: &[K], n: usize, place: impl Fn(K) -> usize) {
    if let Some(&later) = all.get(n + AHEAD) {
        prefetch_index(table, place(later));
    }
}

/// Asks for a place of a buffer.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a part of inner loops of counting")]
pub(crate) fn ask_at(buffer: &[u8], place: usize) {
    prefetch_index(buffer, place);
}

/// Asks for what is far beyond a place of a buffer that is read from its beginning to its end.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a part of inner loops of counting")]
pub(crate) fn ask_beyond(buffer: &[u8], place: usize) {
    ask_at(buffer, place.wrapping_add(BYTES_AHEAD));
}

/// Asks for the values of as many rows again, those behind `rows`, up to some hundreds.
#[inline]
pub(crate) fn ask_next<T>(values: &[T], rows: &Range<usize>) {
    ask_all(values, rows.end..rows.end + rows.len().min(NEXT));
}

/// The values of some pieces, a few at a time, while those as far into the next piece are asked for: nobody else can
/// foresee where that is.
#[inline]
pub(crate) fn in_turn<'a, T: 'a>(
    pieces: impl Iterator<Item = &'a [T]> + Clone,
) -> impl Iterator<Item = &'a [T]> {
    let few = const { PIECEMEAL / size_of::<T>() };
    let next = pieces.clone().skip(1).chain(std::iter::repeat(&[][..]));
    pieces.zip(next).flat_map(move |(piece, next)| {
        piece.chunks(few).enumerate().map(move |(number, values)| {
            ask_all(next, number * few..(number + 1) * few);
            values
        })
    })
}

/// Asks for the values of these rows, as far as there are any.
#[inline]
fn ask_all<T>(values: &[T], rows: Range<usize>) {
    const { assert!(LINE.is_multiple_of(size_of::<T>()), "values share lines evenly") };
    for row in (rows.start..rows.end.min(values.len())).step_by(LINE / size_of::<T>()) {
        prefetch_index(values, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_whole_and_in_order() {
        let all: Vec<u64> = (0..2000).collect();
        let few = PIECEMEAL / size_of::<u64>();
        for lens in [vec![], vec![0], vec![1], vec![few, 0, 3 * few + 1, 7, few - 1], vec![2000]] {
            let mut rest = &all[..];
            let pieces: Vec<&[u64]> =
                lens.iter().map(|&len| rest.split_off(..len).unwrap()).collect();
            let parts: Vec<&[u64]> = in_turn(pieces.iter().copied()).collect();
            assert!(parts.iter().all(|part| (1..=few).contains(&part.len())));
            assert_eq!(parts.concat(), all[..lens.iter().sum()]);
        }
    }
}
