//! Fuzz target for the CSV splitter, with files that arrive in blocks of any length.
//!
//! Records and rows must be the same wherever the blocks end.
#![no_main]

use arbitrary::Arbitrary;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use discreet::csv::{Rows, Splitter, records};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct File {
    delimiter: Delimiter,
    pieces: Vec<Piece>,
    blocks: Vec<u8>,
    wanted: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Delimiter {
    Comma,
    Tab,
}

/// Parts of a file. Purely random bytes would contain few quotes, delimiters and line ends, and only cells shorter
/// than the reader's vectors.
#[derive(Arbitrary, Debug)]
enum Piece {
    Quote,
    Delimiter,
    LineFeed,
    CarriageReturn,
    Bytes(Vec<u8>),
    Long(u8, u8),
}

type Cell = Option<String>;

/// Return the wanted columns of all rows, including the header's. Rows are taken after each block.
fn columns(blocks: &[&[u8]], delimiter: u8, width: usize, wanted: &[usize]) -> Vec<Vec<Cell>> {
    let mut splitter = Splitter::new(delimiter);
    let mut rows = Rows::new(width, wanted, None).expect("different columns of the file");
    let mut found = vec![Vec::new(); wanted.len()];
    for block in blocks {
        let mut rest = *block;
        while !rest.is_empty() {
            let read = splitter.push(rest, &mut rows);
            rows.trim();
            rest = &rest[read..];
        }
        add(&mut found, rows.take().expect("cells that were checked"));
    }
    splitter.finish(&mut rows);
    add(&mut found, rows.take().expect("cells that were checked"));
    assert!(rows.is_empty());
    found
}

fn add(found: &mut [Vec<Cell>], columns: Vec<ArrayRef>) {
    let len = columns.first().map_or(0, |column| column.len());
    for (cells, column) in found.iter_mut().zip(columns) {
        assert_eq!(column.len(), len);
        cells.extend(column.as_string::<i32>().iter().map(|cell| cell.map(str::to_owned)));
    }
}

fuzz_target!(|file: File| {
    let delimiter = if matches!(file.delimiter, Delimiter::Comma) { b',' } else { b'\t' };
    let mut bytes = Vec::new();
    for piece in file.pieces {
        match piece {
            Piece::Quote => bytes.push(b'"'),
            Piece::Delimiter => bytes.push(delimiter),
            Piece::LineFeed => bytes.push(b'\n'),
            Piece::CarriageReturn => bytes.push(b'\r'),
            Piece::Bytes(more) => bytes.extend(more),
            Piece::Long(byte, len) => bytes.extend(std::iter::repeat_n(byte, len.into())),
        }
    }
    let mut rest = &bytes[..];
    let mut blocks = Vec::new();
    for len in file.blocks {
        let (block, more) = rest.split_at(usize::from(len).min(rest.len()));
        blocks.push(block);
        rest = more;
    }
    blocks.push(rest);

    let found = records([&bytes[..]], delimiter);
    assert_eq!(records(blocks.iter().copied(), delimiter), found);

    let width = found.first().map_or(0, Vec::len);
    let wanted: Vec<usize> = file.wanted.into_iter().map(usize::from).collect();
    let mut distinct = wanted.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let are_valid = distinct.len() == wanted.len()
        && distinct.len() < 255
        && wanted.iter().all(|&column| column < width);
    assert_eq!(Rows::new(width, &wanted, None).is_ok(), are_valid);
    distinct.retain(|&column| column < width);
    distinct.truncate(254);
    let whole = columns(&[&bytes], delimiter, width, &distinct);
    assert_eq!(columns(&blocks, delimiter, width, &distinct), whole);

    // Each row is a record with at least as many cells as the header; the wanted cells are valid text.
    let is_row = |record: &&Vec<Vec<u8>>| {
        record.len() >= width
            && distinct.iter().all(|&column| std::str::from_utf8(&record[column]).is_ok())
    };
    let rows: Vec<_> = found.iter().filter(is_row).collect();
    for (cells, &column) in whole.iter().zip(&distinct) {
        let cells = cells.iter().map(|cell| cell.as_deref().unwrap_or_default().as_bytes());
        assert!(cells.eq(rows.iter().map(|record| &record[column][..])));
    }
});
