//! Splits bytes as a CSV file that arrives in blocks of any lengths.
//!
//! The records must be those of a reader that looks at one byte after another, wherever the blocks end.
#![no_main]

use arbitrary::Arbitrary;
use discreet::csv::records;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct File {
    delimiter: Delimiter,
    pieces: Vec<Piece>,
    blocks: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Delimiter {
    Comma,
    Tab,
}

/// Parts of a file. Most bytes of a random file would be no marks, and cells shorter than a vector of the reader.
#[derive(Arbitrary, Debug)]
enum Piece {
    Quote,
    Delimiter,
    LineFeed,
    CarriageReturn,
    Bytes(Vec<u8>),
    Long(u8, u8),
}

/// The grammar of `discreet::csv`, byte by byte.
fn expected(file: &[u8], delimiter: u8) -> Vec<Vec<Vec<u8>>> {
    #[derive(PartialEq)]
    enum At {
        Start,
        Plain,
        Quoted,
        Closed,
    }
    let (mut found, mut record, mut cell, mut at) = (vec![], vec![], vec![], At::Start);
    for &byte in file {
        let is_end = byte == b'\n' || byte == b'\r';
        at = match (at, byte) {
            (At::Quoted, b'"') => At::Closed,
            (At::Quoted, _) => {
                cell.push(byte);
                At::Quoted
            }
            (At::Start, b'"') => At::Quoted,
            (At::Closed, b'"') => {
                cell.push(byte);
                At::Quoted
            }
            (At::Start, _) if is_end && record.is_empty() => At::Start,
            _ if is_end || byte == delimiter => {
                record.push(std::mem::take(&mut cell));
                if is_end {
                    found.push(std::mem::take(&mut record));
                }
                At::Start
            }
            _ => {
                cell.push(byte);
                At::Plain
            }
        };
    }
    if at != At::Start || !record.is_empty() {
        record.push(cell);
        found.push(record);
    }
    found
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
    let expected = expected(&bytes, delimiter);
    assert_eq!(records([&bytes[..]], delimiter), expected);
    let mut rest = &bytes[..];
    let mut blocks = Vec::new();
    for len in file.blocks {
        let (block, more) = rest.split_at(usize::from(len).min(rest.len()));
        blocks.push(block);
        rest = more;
    }
    blocks.push(rest);
    assert_eq!(records(blocks, delimiter), expected);
});
