//! Tests of lines, rows and batches for any division of a file into blocks.

use std::io::Write;

use arrow_array::Array;
use arrow_array::cast::AsArray;

use super::{Batches, Fault, Field, Found, LONGEST_LINE, Lines, Loss, Reason, Rows};
use crate::error::{Error, Result};
use crate::files::Source;
use crate::files::temp_file::TempFile;
use crate::labels::LONGEST;
use crate::random::entropy;

fn fields(keys: &[&str]) -> Vec<Field> {
    keys.iter().map(|&key| Field { key: key.into(), is_value: false }).collect()
}

fn batches(files: &[&TempFile], block: usize) -> Batches {
    let sources = files.iter().map(|file| Source::File(file.0.clone())).collect::<Vec<_>>();
    Batches::new(sources, fields(&["a", "b"]), block).unwrap()
}

type Pairs = Vec<(String, String)>;

fn read(files: &[&TempFile], block: usize) -> Result<Pairs> {
    let mut found = Vec::new();
    for batch in batches(files, block) {
        let batch = batch.map_err(|_| Error::Input("a batch failed"))?;
        let [a, b] = [0, 1].map(|column| batch.column(column).as_string::<i32>());
        assert_eq!(a.null_count() + b.null_count(), 0);
        let cells = |row| (a.value(row).to_owned(), b.value(row).to_owned());
        found.extend((0..batch.num_rows()).map(cells));
    }
    Ok(found)
}

fn drained(content: &[u8], block: usize) -> Found {
    let file = TempFile::new("drained.jsonl", content);
    batches(&[&file], block).drain(|| Ok(())).unwrap()
}

fn some(cells: &[(&str, &str)]) -> Pairs {
    cells.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn lines(blocks: &[&[u8]]) -> Vec<(u64, Option<Vec<u8>>)> {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    let mut add = |number, line: Option<&[u8]>| found.push((number, line.map(<[u8]>::to_vec)));
    for block in blocks {
        let mut rest = *block;
        while !rest.is_empty() {
            rest = &rest[lines.push(rest, &mut add)..];
        }
    }
    lines.finish(&mut add);
    found
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut made = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    made.write_all(content).unwrap();
    made.finish().unwrap()
}

const ODD: &[u8] = b"\xef\xbb\xbf{\"a\": 1, \"b\": \"x\"}\r\n\n \r\n{\"a\":\"1\",\"b\":true,\"c\":[{\"a\":2}]}\n[1]\n\
    {\"a\": \"\\u00e9\", \"b\": -0}\n{\"a\": 1, \"b\": \"\xff\"}\n{\"a\": 1} {\"b\": 2}\n{\"a\":7,\"b\":null,\"b\":8}";

#[test]
fn rows_do_not_depend_on_block_boundaries() {
    let file = TempFile::new("odd.jsonl", ODD);
    let expected = some(&[("1", "x"), ("1", "true"), ("\u{e9}", "-0"), ("7", "8")]);
    for block in 4..=ODD.len() + 1 {
        assert_eq!(read(&[&file], block).unwrap(), expected, "blocks of {block}");
    }
}

#[test]
fn lines_of_random_bytes_do_not_depend_on_block_length() {
    for _ in 0..500 {
        let words: [u64; 8] = entropy::words().unwrap();
        let bytes: Vec<u8> = words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .map(|byte| b"\n\n\ra"[usize::from(byte) % 4])
            .collect();
        let mut parts: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        if parts.last().is_some_and(|last| last.is_empty()) {
            parts.pop();
        }
        let parts = parts.into_iter().map(|line| Some(line.to_vec()));
        let expected: Vec<_> = (1..).zip(parts).collect();
        for size in [1, 2, 3, 64] {
            assert_eq!(lines(&bytes.chunks(size).collect::<Vec<_>>()), expected, "{bytes:?}");
        }
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_in_limited_memory() {
    let row = b"{\"a\":1,\"b\":2}";
    for (extra, is_long) in [(0, false), (1, true)] {
        let padding = " ".repeat(LONGEST_LINE - row.len() + extra);
        let content = [row, padding.as_bytes(), b"\n", row].concat();
        let found = lines(&content.chunks(1 << 16).collect::<Vec<_>>());
        assert_eq!(found.iter().map(|line| line.1.is_none()).collect::<Vec<_>>(), [is_long, false]);
        assert_eq!(lines(&[&content]), found);
    }
    let mut lines = Lines::default();
    for _ in 0..1000 {
        lines.push(&vec![b'x'; 1 << 16], |_, _| panic!("the line has not ended"));
        assert!(lines.held() <= 2 * LONGEST_LINE, "{} bytes", lines.held());
    }
    lines.push(b"\n", |number, line| assert_eq!((number, line), (1, None)));
    lines.push(b"x\n", |number, line| assert_eq!((number, line), (2, Some(&b"x"[..]))));
}

#[test]
fn dropped_lines_are_found_by_their_numbers() {
    let long = format!("{{\"a\":1,\"b\":\"{}\"}}", "x".repeat(LONGEST + 1));
    let escaped = format!("{{\"a\":1,\"b\":\"{}\"}}", "\\u0041".repeat(LONGEST + 1));
    let digits = format!("{{\"a\":1,\"b\":{}}}", "1".repeat(LONGEST + 1));
    let content = [
        "",
        "{\"a\":1,\"b\":2}",
        "[]",
        "{\"a\":1,\"b\":1e2}",
        "{\"a\":null}",
        &long,
        &escaped,
        &digits,
        "{\"a\":1,\"b\":\"\\ud800\"}",
        "{\"a\":[],\"b\":{}}",
        "7",
        "{\"a\":1.0,\"b\":2}",
    ];
    let mut content = content.join("\n").into_bytes();
    content.extend_from_slice(b"\n{\"a\":1,\"b\":2,\"c\":\"\xff\"}");
    let found = drained(&content, 64);
    let loss = |numbers: &[u64]| Loss {
        lines: numbers.len() as u64,
        places: numbers.iter().map(|&number| (0, number)).collect(),
    };
    let expected = [
        (Reason::NotText, loss(&[13])),
        (Reason::NotObject, loss(&[3, 11])),
        (Reason::Value(0, Fault::Null), loss(&[5])),
        (Reason::Value(0, Fault::Type), loss(&[10, 12])),
        (Reason::Value(1, Fault::Missing), loss(&[5])),
        (Reason::Value(1, Fault::Type), loss(&[4, 10])),
        (Reason::Value(1, Fault::NotText), loss(&[9])),
        (Reason::Value(1, Fault::Long), loss(&[6, 7, 8])),
    ];
    assert_eq!(found, Found { dropped: 11, losses: expected.into() });
    let many = drained("x\n".repeat(9).as_bytes(), 4);
    let places = &many.losses[&Reason::NotObject].places;
    assert_eq!((many.dropped, places.len(), places[4]), (9, 5, (0, 5)));
}

#[test]
fn cells_of_the_longest_length_are_kept() {
    for unit in ["x", "\\u0041", "\\\""] {
        let text = format!("{{\"a\":1,\"b\":\"{}\"}}\n", unit.repeat(LONGEST));
        let file = TempFile::new("fits.jsonl", text.as_bytes());
        assert_eq!(read(&[&file], 1 << 16).unwrap()[0].1.len(), LONGEST);
    }
}

#[test]
fn values_are_any_numbers_and_drop_no_line() {
    let field = |key: &str, is_value| Field { key: key.into(), is_value };
    let mut rows = Rows::new(vec![field("a", false), field("b", true)]).unwrap();
    for line in [
        "{\"a\":1,\"b\":1.50}",
        "{\"a\":1,\"b\":-2E3}",
        "{\"a\":1.0,\"b\":1}",
        "{\"a\":1,\"b\":true}",
        "{\"a\":1,\"b\":false}",
        "{\"a\":1}",
        "{\"a\":1,\"b\":null}",
        "{\"a\":1,\"b\":[2]}",
        "{\"a\":1,\"b\":\"\\ud800\"}",
        &format!("{{\"a\":1,\"b\":{}}}", "2".repeat(LONGEST + 1)),
        &format!("{{\"a\":1,\"b\":\"{}\"}}", "2".repeat(LONGEST + 1)),
        "{\"b\":1}",
    ] {
        rows.add((0, 1), Some(line.as_bytes()));
    }
    assert_eq!((rows.len(), rows.held(), rows.is_empty()), (10, 20, false));
    assert_eq!(rows.found().dropped, 2);
    let columns = rows.take();
    let cells = columns[1].as_string::<i32>().iter().collect::<Vec<_>>();
    let (numbers, others) = cells.split_at(4);
    assert_eq!(numbers, ["1.50", "-2E3", "1", "0"].map(Some));
    assert_eq!(others, [None, None, Some(""), Some(""), Some(""), Some("")]);
    assert!(rows.is_empty());
}

#[test]
fn files_are_one_table_and_a_truncated_one_is_an_error() {
    let content = "{\"a\":1,\"b\":2}\n".repeat(50_000);
    let whole = gzip(content.as_bytes());
    let (first, second) =
        (TempFile::new("1.jsonl", b"{\"a\":3,\"b\":4}"), TempFile::new("2.jsonl.gz", &whole));
    let found = read(&[&first, &second], 1 << 16).unwrap();
    assert_eq!((found.len(), &*found[0].0, &*found[1].0), (50_001, "3", "1"));
    for cut in [whole.len() - 1, whole.len() / 2, 5] {
        let file = TempFile::new("cut.jsonl.gz", &whole[..cut]);
        assert!(matches!(read(&[&file], 1 << 16), Err(Error::Input(_))), "cut at {cut}");
    }
}

#[test]
fn repeated_keys_are_refused() {
    assert!(matches!(Rows::new(fields(&["a", "b", "a"])), Err(Error::Parameter(_))));
    assert!(Rows::new(fields(&["a", "A", ""])).is_ok());
}

#[test]
fn a_panic_while_a_batch_is_read_is_an_error() {
    let file = TempFile::new("panic.jsonl", b"{\"a\":1,\"b\":2}\n");
    let mut batches = batches(&[&file, &file], 64);
    batches.rows.break_cells();
    assert!(batches.next().unwrap().is_err());
    assert!(batches.next().is_none());
}
