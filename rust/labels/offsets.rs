//! The ends of concatenated strings. An end takes four bytes, also if the total length exceeds 4 GiB.

use std::collections::TryReserveError;
use std::ops::Range;

/// The ends of strings by row: the lowest `BITS` bits of each end, and the rows from which the upper
/// bits are larger. `BITS` is 32, but smaller in tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offsets<const BITS: u32 = 32> {
    /// The lowest `BITS` bits of each end.
    low: Vec<u32>,
    /// For each multiple of 4 GiB, the first row whose end is not below the multiple.
    carries: Vec<usize>,
}

impl<const BITS: u32> Offsets<BITS> {
    /// The mask of the lowest bits.
    const LOW: usize = usize::MAX >> (usize::BITS - BITS);

    /// Returns the bits of an end above the lowest `BITS` bits.
    #[inline]
    fn above(end: usize) -> usize {
        end.checked_shr(BITS).unwrap_or(0)
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Adds the end of a string that comes after all others.
    #[inline]
    pub fn push(&mut self, end: usize) {
        while Self::above(end) > self.carries.len() {
            self.carries.push(self.low.len());
        }
        self.low.push((end & Self::LOW) as u32);
    }

    /// Adds the ends of strings that come after all present strings.
    pub fn append(&mut self, others: &Self) {
        let start = self.last();
        if Self::above(start + others.last()) == Self::above(start) {
            self.low.extend(others.low.iter().map(|end| (start & Self::LOW) as u32 + end));
        } else {
            (0..others.len()).for_each(|row| self.push(start + others.end(row)));
        }
    }

    /// Returns the range of the string of a row.
    #[inline]
    pub fn cell(&self, row: usize) -> Range<usize> {
        let start = if row == 0 { 0 } else { self.end(row - 1) };
        start..self.end(row)
    }

    /// Returns the end of the string of a row.
    #[inline]
    pub fn end(&self, row: usize) -> usize {
        let low = self.low[row] as usize;
        if self.carries.is_empty() {
            return low;
        }
        self.carries.partition_point(|&first| first <= row) << BITS | low
    }

    /// Returns the end of the last string.
    fn last(&self) -> usize {
        self.len().checked_sub(1).map_or(0, |last| self.end(last))
    }

    /// Removes all ends.
    pub fn clear(&mut self) {
        self.low.clear();
        self.carries.clear();
    }

    /// Makes room for `more` ends.
    ///
    /// # Errors
    /// [`TryReserveError`] if there is not enough memory.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.low.try_reserve(more)
    }

    /// Returns the bytes of memory that the ends hold.
    pub fn bytes_used(&self) -> usize {
        self.low.capacity() * size_of::<u32>() + self.carries.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ends of strings of these lengths, and the range of each.
    fn laid(lens: &[usize]) -> (Offsets<4>, Vec<Range<usize>>) {
        let (mut ends, mut cells, mut start) = (Offsets::default(), Vec::new(), 0);
        for len in lens {
            cells.push(start..start + len);
            start += len;
            ends.push(start);
        }
        (ends, cells)
    }

    fn cells(ends: &Offsets<4>) -> Vec<Range<usize>> {
        (0..ends.len()).map(|row| ends.cell(row)).collect()
    }

    #[test]
    fn ends_are_correct_beyond_the_range_of_the_lower_bits() {
        for step in 1..40 {
            let lens: Vec<usize> = (0..200).map(|n| n * step % 41).collect();
            let (mut ends, expected) = laid(&lens);
            assert_eq!(cells(&ends), expected);
            ends.clear();
            assert_eq!((ends.len(), &ends), (0, &Offsets::default()));
        }
    }

    #[test]
    fn appended_ends_equal_the_ends_of_all_strings_together() {
        for split in 0..60 {
            let lens: Vec<usize> = (0..60).map(|n| n * 7 % (split % 9 + 1)).collect();
            let (expected, laid_out) = laid(&lens);
            let (mut ends, _) = laid(&lens[..split]);
            ends.append(&laid(&lens[split..]).0);
            assert_eq!((cells(&ends), ends), (laid_out, expected));
        }
    }
}
