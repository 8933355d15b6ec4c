//! Fuzz target for the JSON lines reader, with files that arrive in blocks of any length.
//!
//! Rows must be the same wherever the blocks end, and a line that is added must not change other rows.
#![no_main]

use arbitrary::Arbitrary;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use discreet::json::{Field, Lines, Rows};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct File {
    pieces: Vec<Piece>,
    blocks: Vec<u8>,
    added: Vec<Piece>,
    is_value: bool,
}

/// Parts of a file. Purely random bytes would contain few objects.
#[derive(Arbitrary, Debug)]
enum Piece {
    Word(u8),
    Pair(u8, u8),
    LineFeed,
    Bytes(Vec<u8>),
}

const WORDS: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "true",
    "-0",
    "1e5",
    "\"\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\r",
    " ",
    "\\",
    "\"",
];
const KEYS: [&str; 4] = ["\"a\"", "\"b\"", "\"\\u0061\"", "\"c\""];

fn bytes(pieces: Vec<Piece>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let word = |number: u8| WORDS[usize::from(number) % WORDS.len()].as_bytes();
    for piece in pieces {
        match piece {
            Piece::Word(number) => bytes.extend(word(number)),
            Piece::Pair(key, value) => {
                bytes.extend(KEYS[usize::from(key) % KEYS.len()].as_bytes());
                bytes.push(b':');
                bytes.extend(word(value));
            }
            Piece::LineFeed => bytes.push(b'\n'),
            Piece::Bytes(more) => bytes.extend(more),
        }
    }
    bytes
}

/// Return the cells of all rows. Rows are taken after each block.
fn cells(blocks: &[&[u8]], is_value: bool) -> Vec<(Option<String>, Option<String>)> {
    let field = |key: &str| Field { key: key.into(), is_value };
    let mut rows = Rows::new(vec![field("a"), field("b")]).expect("different keys");
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    let mut take = |rows: &mut Rows| {
        let columns = rows.take();
        let [a, b] = [0, 1].map(|column| columns[column].as_string::<i32>());
        assert!(a.len() == b.len() && (is_value || a.null_count() + b.null_count() == 0));
        let owned = |text: Option<&str>| text.map(str::to_owned);
        found.extend(a.iter().zip(b.iter()).map(|(a, b)| (owned(a), owned(b))));
    };
    for block in blocks {
        let mut rest = *block;
        while !rest.is_empty() {
            rest = &rest[lines.push(rest, |line, bytes| rows.add((0, line), bytes))..];
        }
        take(&mut rows);
    }
    lines.finish(|line, bytes| rows.add((0, line), bytes));
    take(&mut rows);
    found
}

fuzz_target!(|file: File| {
    let (content, mut added) = (bytes(file.pieces), bytes(file.added));
    let mut rest = &content[..];
    let mut blocks = Vec::new();
    for len in file.blocks {
        let (block, more) = rest.split_at(usize::from(len).min(rest.len()));
        blocks.push(block);
        rest = more;
    }
    blocks.push(rest);
    let whole = cells(&[&content], file.is_value);
    assert_eq!(cells(&blocks, file.is_value), whole);

    added.retain(|&byte| byte != b'\n');
    let own = cells(&[&added], file.is_value);
    let mut expected = whole;
    expected.extend(own);
    assert_eq!(cells(&[&content, b"\n", &added, b"\n"], file.is_value), expected);
});
