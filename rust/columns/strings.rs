//! String columns of any Arrow layout. Offsets and views are validated before use.
//!
//! A view is Arrow's 16-byte reference to a string. A short string is in the view itself (inline), and a longer
//! string is in one of several blocks of bytes. A cell is the place of one string: a buffer and a range in this
//! buffer.

use std::ops::Range;

use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::columns::integers::{BROKEN, buffer, typed};
use crate::error::Result;
use crate::memory::prefetch::{AHEAD, prefetch_at, prefetch_beyond, prefetch_next};
use crate::string_prefix::{PrefixedString, StringPrefix};

/// The buffers of a string column.
pub(crate) enum StringCells {
    Small { offsets: ScalarBuffer<i32>, bytes: Buffer },
    Large { offsets: ScalarBuffer<i64>, bytes: Buffer },
    Views { views: ScalarBuffer<u128>, inline: Buffer, blocks: Vec<Buffer> },
    Fixed { width: usize, bytes: Buffer },
}

/// A buffer and a range in the buffer.
type Cell<'a> = (&'a [u8], Range<usize>);

/// The most bytes that a view holds inline.
const INLINE: u32 = 12;
/// A cell without bytes.
const EMPTY: Cell<'_> = (&[], 0..0);

impl StringCells {
    /// Reads the layout of an array of text or of bytes.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) for another type, or if a buffer is missing or too short.
    pub fn new(data: &ArrayData) -> Result<Self> {
        let (offset, len) = (data.offset(), data.len());
        Ok(match data.data_type() {
            DataType::Utf8 | DataType::Binary if len > 0 => {
                Self::Small { offsets: typed(data, 0, offset, len + 1)?, bytes: buffer(data, 1)? }
            }
            DataType::LargeUtf8 | DataType::LargeBinary if len > 0 => {
                Self::Large { offsets: typed(data, 0, offset, len + 1)?, bytes: buffer(data, 1)? }
            }
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => {
                Self::Small { offsets: vec![0].into(), bytes: Buffer::from(&[] as &[u8]) }
            }
            DataType::Utf8View | DataType::BinaryView => {
                let inline = buffer(data, 0)?;
                let end = (offset + len) * 16;
                if inline.len() < end {
                    return Err(BROKEN);
                }
                Self::Views {
                    views: typed(data, 0, offset, len)?,
                    inline: inline.slice_with_length(offset * 16, len * 16),
                    blocks: data.buffers()[1..].to_vec(),
                }
            }
            DataType::FixedSizeBinary(width) => {
                let width = usize::try_from(*width).map_err(|_| BROKEN)?;
                let bytes = buffer(data, 0)?;
                if bytes.len() < (offset + len) * width {
                    return Err(BROKEN);
                }
                Self::Fixed { width, bytes: bytes.slice(offset * width) }
            }
            _ => return Err(BROKEN),
        })
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        match self {
            Self::Small { offsets, .. } => offsets.len() - 1,
            Self::Large { offsets, .. } => offsets.len() - 1,
            Self::Views { views, .. } => views.len(),
            Self::Fixed { width, bytes } => bytes.len().checked_div(*width).unwrap_or(usize::MAX),
        }
    }

    /// Returns the string of one row, which must not be NULL.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if the bytes of the cell are out of range.
    pub fn get(&self, row: usize) -> Result<&[u8]> {
        let (buffer, cell): Cell<'_> = match self {
            Self::Small { offsets, bytes } => {
                (bytes, offsets[row] as usize..offsets[row + 1] as usize)
            }
            Self::Large { offsets, bytes } => {
                (bytes, offsets[row] as usize..offsets[row + 1] as usize)
            }
            Self::Views { views, inline, blocks } => {
                cell_of_view(views[row], row, inline, blocks).ok_or(BROKEN)?
            }
            Self::Fixed { width, bytes } => (bytes, row * width..(row + 1) * width),
        };
        buffer.get(cell).ok_or(BROKEN)
    }

    /// Returns the strings of `rows`; NULL cells are empty.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) if the bytes of a cell are out of range.
    pub fn read(&self, rows: Range<usize>, null: &[bool]) -> Result<Vec<PrefixedString<'_>>> {
        match self {
            Self::Small { offsets, bytes } => {
                prefetch_next(offsets, &rows);
                let ends = (&offsets[rows.start..rows.end], &offsets[rows.start + 1..=rows.end]);
                between(ends, |&end| end as usize, bytes, null)
            }
            Self::Large { offsets, bytes } => {
                prefetch_next(offsets, &rows);
                let ends = (&offsets[rows.start..rows.end], &offsets[rows.start + 1..=rows.end]);
                between(ends, |&end| end as usize, bytes, null)
            }
            Self::Views { views, inline, blocks } => {
                prefetch_next(views, &rows);
                of_views(views, rows, inline, blocks, null)
            }
            Self::Fixed { width, bytes } => {
                let ends = (rows.clone(), rows.start + 1..rows.end + 1);
                between(ends, |row| row * width, bytes, null)
            }
        }
    }
}

/// Returns strings that are contiguous in a buffer.
#[inline(always)]
#[allow(clippy::inline_always, reason = "an inner loop of counting, one for each layout")]
fn between<'a, I: IntoIterator>(
    (starts, ends): (I, I),
    place: impl Fn(I::Item) -> usize,
    buffer: &'a [u8],
    null: &[bool],
) -> Result<Vec<PrefixedString<'a>>> {
    let cells = starts.into_iter().zip(ends).zip(null);
    strings_of(cells.map(|((start, end), null)| {
        let cell = place(start)..place(end);
        prefetch_beyond(buffer, cell.start);
        Some((buffer, if *null { 0..0 } else { cell }))
    }))
}

/// Returns the strings of views, with prefetching suited to the order of the views.
fn of_views<'a>(
    views: &[u128],
    rows: Range<usize>,
    inline: &'a [u8],
    blocks: &'a [Buffer],
    null: &[bool],
) -> Result<Vec<PrefixedString<'a>>> {
    let cell_at = |row| cell_of_view(views[row], row, inline, blocks);
    let empty_or = |null: &bool, cell| if *null { Some(EMPTY) } else { cell };
    let cells = rows.clone().zip(null);
    if are_contiguous(&views[rows]) {
        return strings_of(cells.map(|(row, null)| {
            let cell = cell_at(row);
            if let Some((buffer, cell)) = &cell {
                prefetch_beyond(buffer, cell.start);
            }
            empty_or(null, cell)
        }));
    }
    strings_of(cells.map(|(row, null)| {
        if row + AHEAD < views.len()
            && let Some((buffer, cell)) = cell_at(row + AHEAD)
        {
            prefetch_at(buffer, cell.start);
        }
        empty_or(null, cell_at(row))
    }))
}

/// Returns the strings of some cells.
#[inline(always)]
#[allow(clippy::inline_always, reason = "an inner loop of counting, one for each layout")]
fn strings_of<'a>(
    cells: impl Iterator<Item = Option<Cell<'a>>>,
) -> Result<Vec<PrefixedString<'a>>> {
    // Collect all cells, and check afterwards whether a cell was out of range. The length of an iterator
    // that cannot end early is known, so memory is allocated once.
    let mut is_whole = true;
    let string = |(buffer, cell): Cell<'a>| {
        let bytes = buffer.get(cell.clone())?;
        Some(PrefixedString { mark: StringPrefix::of_cell(buffer, cell), bytes })
    };
    let strings = cells.map(|cell| {
        cell.and_then(string).unwrap_or_else(|| {
            is_whole = false;
            PrefixedString::new(&[])
        })
    });
    let strings = strings.collect();
    if is_whole { Ok(strings) } else { Err(BROKEN) }
}

/// Guesses from the first and the last view that are not inline whether all strings are contiguous.
fn are_contiguous(views: &[u128]) -> bool {
    /// More bytes than most strings have.
    const USUAL: u32 = 256;
    let mut elsewhere = views.iter().filter(|view| **view as u32 > INLINE).map(|&view| place(view));
    let (Some((block, first)), last) = (elsewhere.next(), elsewhere.next_back()) else {
        return true;
    };
    let (last_block, last) = last.unwrap_or((block, first));
    block == last_block && last.wrapping_sub(first) < USUAL.saturating_mul(views.len() as u32)
}

/// Returns the block and the start of the string of a view that is not inline.
fn place(view: u128) -> (u32, u32) {
    ((view >> 64) as u32, (view >> 96) as u32)
}

/// Returns the cell of a view: inline or in one of the blocks.
fn cell_of_view<'a>(
    view: u128,
    row: usize,
    inline: &'a [u8],
    blocks: &'a [Buffer],
) -> Option<Cell<'a>> {
    let len = (view as u32) as usize;
    let inline_start = size_of::<u128>() * row + size_of::<u32>();
    if len <= INLINE as usize {
        return Some((inline, inline_start..inline_start + len));
    }
    let (block, start) = place(view);
    Some((blocks.get(block as usize)?, start as usize..start as usize + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(offsets: Vec<i32>) -> StringCells {
        StringCells::Small { offsets: offsets.into(), bytes: Buffer::from(b"abcdef") }
    }

    fn bytes(cells: &StringCells, null: &[bool]) -> Option<Vec<Vec<u8>>> {
        let strings = cells.read(0..null.len(), null).ok()?;
        assert!(strings.iter().all(|string| string.mark == StringPrefix::new(string.bytes)));
        Some(strings.iter().map(|string| string.bytes.to_vec()).collect())
    }

    #[test]
    fn invalid_offsets_are_refused_unless_the_cell_is_null() {
        for invalid in [vec![0, -1, 6], vec![0, 7, 7], vec![4, 2, 6], vec![0, i32::MIN, i32::MAX]] {
            let large = invalid.iter().map(|&offset| i64::from(offset) << 20).collect::<Vec<_>>();
            let large = StringCells::Large { offsets: large.into(), bytes: Buffer::from(b"abc") };
            for cells in [small(invalid), large] {
                assert_eq!(bytes(&cells, &[false, false]), None);
                assert_eq!(bytes(&cells, &[true, true]), Some(vec![vec![], vec![]]));
            }
        }
        let valid = bytes(&small(vec![1, 1, 6]), &[false, false]);
        assert_eq!(valid, Some(vec![vec![], b"bcdef".to_vec()]));
    }

    #[test]
    fn invalid_views_are_refused_unless_the_cell_is_null() {
        let block = Buffer::from(b"abcdefghijklmnopqrst");
        let view = |len: u128, block: u128, start: u128| start << 96 | block << 64 | len;
        for (invalid, is_invalid) in [
            (view(13, 0, 7), false),
            (view(13, 0, 8), true),
            (view(20, 0, 0), false),
            (view(13, 1, 0), true),
            (view(u32::MAX.into(), 0, u32::MAX.into()), true),
        ] {
            let inline = Buffer::from(invalid.to_le_bytes());
            let views = ScalarBuffer::new(inline.clone(), 0, 1);
            let cells = StringCells::Views { views, inline, blocks: vec![block.clone()] };
            assert_eq!(bytes(&cells, &[false]).is_none(), is_invalid, "{invalid:x}");
            assert_eq!(bytes(&cells, &[true]), Some(vec![vec![]]));
        }
    }

    #[test]
    fn views_are_read_in_any_order() {
        let strings: Vec<String> =
            (0..300_usize).map(|n| "x".repeat(n * 7 % 23) + &n.to_string()).collect();
        let mut block = Vec::new();
        let views: Vec<u128> = strings
            .iter()
            .map(|string| {
                let (start, len) = (block.len() as u128, string.len() as u128);
                if len <= INLINE.into() {
                    let bytes =
                        string.bytes().rev().fold(0, |all, byte| all << 8 | u128::from(byte));
                    return bytes << 32 | len;
                }
                block.extend(string.bytes());
                start << 96 | len
            })
            .collect();
        for (step, in_order) in [(1, true), (299, false)] {
            let order: Vec<usize> = (0..300).map(|n| n * step % 300).collect();
            let mut views: Vec<u128> = order.iter().map(|&row| views[row]).collect();
            assert_eq!(are_contiguous(&views), in_order);
            // The view of a NULL cell is invalid. Prefetching reads this view too.
            views[250] = 0x7 << 64 | 0x20;
            let null: Vec<bool> = (0..300).map(|row| row == 250).collect();
            let inline = Buffer::from_vec(views.clone());
            let blocks = vec![Buffer::from_vec(block.clone())];
            let cells = StringCells::Views { views: views.into(), inline, blocks };
            assert_eq!(bytes(&cells, &[false; 300]), None);
            let expected = order
                .iter()
                .zip(&null)
                .map(|(&row, &null)| if null { vec![] } else { strings[row].clone().into_bytes() });
            assert_eq!(bytes(&cells, &null), Some(expected.collect()));
        }
    }

    #[test]
    fn views_far_apart_or_of_two_blocks_are_not_contiguous() {
        let view = |block: u128, start: u128| start << 96 | block << 64 | 0x14;
        for in_order in
            [vec![], vec![3, 12], vec![3, view(1, 9), 12], vec![view(1, 9), view(1, 500)]]
        {
            assert!(are_contiguous(&in_order));
        }
        for any in [[view(1, 9), view(2, 9)], [view(1, 9), view(1, 8)], [view(1, 9), view(1, 9000)]]
        {
            assert!(!are_contiguous(&any));
        }
    }
}
