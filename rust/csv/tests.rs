//! Tests of records, rows and batches for any division of a file into blocks.

use std::io::Write;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};

use super::table::LONG_HEADER;
use super::{Batches, Dialect, Dropped, Found, Reason, Rows, Splitter, Table, records};
use crate::error::{Error, Result};
use crate::files::Source;
use crate::files::temp_file::TempFile;
use crate::labels::LONGEST;
use crate::random::entropy;

fn open(file: &TempFile, block: usize) -> Result<Table> {
    Table::open(Source::File(file.0.clone()), Dialect::new(b','), block, || Ok(()))
}

fn pairs(batches: &[RecordBatch]) -> Vec<(Option<String>, Option<String>)> {
    let mut found = Vec::new();
    for batch in batches {
        let [a, b] = [0, 1].map(|column| batch.column(column).as_string::<i32>());
        let cell = |cells: &arrow_array::StringArray, row: usize| {
            cells.is_valid(row).then(|| cells.value(row).to_owned())
        };
        found.extend((0..batch.num_rows()).map(|row| (cell(a, row), cell(b, row))));
    }
    found
}

fn read(file: &TempFile, block: usize) -> Result<Vec<(Option<String>, Option<String>)>> {
    let batches: std::result::Result<Vec<_>, _> =
        Batches::new(open(file, block)?, [], &[0, 1], None, block)?.collect();
    batches.map(|batches| pairs(&batches)).map_err(|_| Error::Input("a batch failed"))
}

fn some(cells: &[(&str, &str)]) -> Vec<(Option<String>, Option<String>)> {
    cells.iter().map(|(a, b)| (Some((*a).to_owned()), Some((*b).to_owned()))).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut made = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    made.write_all(content).unwrap();
    made.finish().unwrap()
}

const ODD: &[u8] =
    b"a,b\r\n\"1,\n\",\"x\"\"y\"\r\n\r\n3,\n4,\"\"\n5\n6,7,8\n\"9\"z\",q\"q\n\n\"10\",\"open\n11,b";

#[test]
fn records_do_not_depend_on_block_boundaries() {
    let whole = records([ODD], b',');
    let texts: Vec<Vec<&str>> = whole
        .iter()
        .map(|record| record.iter().map(|cell| std::str::from_utf8(cell).unwrap()).collect())
        .collect();
    let expected: [&[&str]; 8] = [
        &["a", "b"],
        &["1,\n", "x\"y"],
        &["3", ""],
        &["4", ""],
        &["5"],
        &["6", "7", "8"],
        &["9z\"", "q\"q"],
        &["10", "open\n11,b"],
    ];
    assert_eq!(texts, expected);
    for size in 1..=ODD.len() {
        assert_eq!(records(ODD.chunks(size), b','), whole, "blocks of {size}");
    }
    for first in 0..ODD.len() {
        assert_eq!(records([&ODD[..first], &ODD[first..]], b','), whole, "cut at {first}");
    }
}

#[test]
fn records_of_random_bytes_do_not_depend_on_block_length() {
    let letters = b",\"\"\"\n\ra\x00\xff";
    for _ in 0..2000 {
        let words: [u64; 32] = entropy::words().unwrap();
        let bytes: Vec<u8> = words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .map(|byte| letters[byte as usize % letters.len()])
            .collect();
        let whole = records([&*bytes], b',');
        for size in [1, 2, 63, 64, 65] {
            assert_eq!(records(bytes.chunks(size), b','), whole, "{bytes:?} in blocks of {size}");
        }
    }
}

#[test]
fn records_end_with_the_same_bytes_as_the_header() {
    let cells = |text: &str| -> Vec<Vec<String>> {
        let whole = records([text.as_bytes()], b',');
        for size in 1..9 {
            assert_eq!(records(text.as_bytes().chunks(size), b','), whole, "blocks of {size}");
        }
        let text = |cell: Vec<u8>| String::from_utf8(cell).unwrap();
        whole.into_iter().skip(1).map(|record| record.into_iter().map(text).collect()).collect()
    };
    assert_eq!(
        cells("a,b\n1,x\ry\n2\r,\r\n\r\n\r3,\"z\"\r\n4,w\r"),
        [["1", "x\ry"], ["2\r", ""], ["\r3", "z"], ["4", "w"]]
    );
    assert_eq!(cells("a,b\r\n1,x\ry\r\n2,z\n"), [["1", "x\ry"], ["2", "z"]]);
    assert_eq!(cells("a,b\r1,x\ny\r\r2,z"), [["1", "x\ny"], ["2", "z"]]);
}

#[test]
fn empty_text_is_not_null_and_short_rows_are_dropped() {
    let file = TempFile::new("odd.csv", ODD);
    let mut expected =
        some(&[("1,\n", "x\"y"), ("3", ""), ("4", ""), ("6", "7"), ("9z\"", "q\"q")]);
    expected[1].1 = None;
    expected.extend(some(&[("10", "open\n11,b")]));
    for block in [4, 7, 64, 1000] {
        assert_eq!(read(&file, block).unwrap(), expected, "blocks of {block}");
    }
}

#[test]
fn a_row_is_dropped_if_a_character_is_split_between_cells() {
    let file = TempFile::new("halves.csv", b"a,b\n1,\xc3\n2,\xa9\n,x\n3,\xc3\xa9\n");
    let mut expected = some(&[("", "x"), ("3", "\u{e9}")]);
    expected[0].0 = None;
    assert_eq!(read(&file, 64).unwrap(), expected);
}

#[test]
fn a_cell_that_is_too_long_drops_only_its_row() {
    for quote in ["", "\""] {
        let letter = if quote.is_empty() { "x" } else { "\"\"" };
        let (fits, long) = (letter.repeat(LONGEST), letter.repeat(LONGEST + 1));
        let content = format!("a,b\n1,x\n2,{quote}{long}{quote}\n3,{quote}{fits}{quote}\n4,y\n");
        let file = TempFile::new("long.csv", content.as_bytes());
        let found = read(&file, 1 << 16).unwrap();
        let users: Vec<_> = found.iter().map(|row| row.0.clone().unwrap()).collect();
        assert_eq!(users, ["1", "3", "4"]);
        assert_eq!(found[1].1.as_ref().unwrap().len(), LONGEST);
    }
}

#[test]
fn a_cell_that_has_not_ended_takes_limited_memory() {
    let (mut splitter, mut rows) = (Splitter::new(b','), Rows::new(2, &[1], None).unwrap());
    splitter.push(b"a,b\n", &mut Rows::new(2, &[1], None).unwrap());
    splitter.push(b"1,\"", &mut rows);
    for _ in 0..100 {
        splitter.push(&vec![b'x'; 1 << 16], &mut rows);
        rows.trim();
    }
    assert!(rows.open() <= LONGEST + 1, "{} bytes", rows.open());
    splitter.push(b"\"\n2,a\n", &mut rows);
    assert_eq!(rows.take().unwrap()[0].as_string::<i32>().iter().collect::<Vec<_>>(), [Some("a")]);
}

fn drained(content: &[u8], block: usize) -> Found {
    let file = TempFile::new("drained.csv", content);
    let table = open(&file, block).unwrap();
    Batches::new(table, [], &[0, 1], None, block).unwrap().drain(|| Ok(())).unwrap()
}

#[test]
fn dropped_records_are_found_by_their_lines() {
    let long = "x".repeat(LONGEST + 1);
    for end in ["\n", "\r\n", "\r"] {
        let lines = ["", "a,b", "1,2", "", "3", "\"4", "5\",6", "\"7", "8\"", &long, "\"9,"];
        let content = lines.join(end).replace(&long, &format!("{long},1"));
        let found = drained(content.as_bytes(), 16);
        let places =
            found.places.iter().map(|place| (place.reason, place.line)).collect::<Vec<_>>();
        let short = Reason::Short;
        let expected =
            [(short, 5), (short, 8), (Reason::Long, 10), (Reason::Unclosed, 11), (short, 11)];
        assert_eq!(places, expected, "{end:?}");
        assert_eq!(found.dropped, Dropped { short: 3, long: 1, not_text: 0 });
        assert_eq!(found.unclosed, 1);
    }
    let found = drained(b"a,b\n1,2\n1,\xff\n\xc3,\xa9\n", 4096);
    assert_eq!(found.dropped, Dropped { short: 0, long: 0, not_text: 2 });
    assert_eq!(found.places.iter().map(|place| place.line).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn records_are_dropped_alike_whether_lines_are_noted_or_not() {
    let letters = b"\"\",,\r\n\nab\xff\xc3\xa9";
    for _ in 0..1000 {
        let words: [u64; 8] = entropy::words().unwrap();
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let content: Vec<u8> = bytes.map(|byte| letters[byte as usize % letters.len()]).collect();
        let content = [b"a,b\n".as_slice(), &content].concat();
        let file = TempFile::new("alike.csv", &content);
        let mut batches = Batches::new(open(&file, 7).unwrap(), [], &[0, 1], None, 7).unwrap();
        let rows = batches.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
        let found = drained(&content, 5);
        assert_eq!(found.dropped, batches.rows.dropped());
        let Dropped { short, long, not_text } = found.dropped;
        let all = records([content.as_slice()], b',').len() - 1;
        assert_eq!(rows as u64 + short + long + not_text, all as u64);
    }
}

#[test]
fn a_truncated_gzip_file_is_an_error() {
    let content = format!("a,b\n{}", "1,x\n2,y\n".repeat(50_000));
    let whole = gzip(content.as_bytes());
    let file = TempFile::new("whole.csv.gz", &whole);
    assert_eq!(read(&file, 1 << 16).unwrap().len(), 100_000);
    let twice = TempFile::new("twice.csv.gz", &[gzip(b"a,b\n1,x\n"), gzip(b"2,y\n")].concat());
    assert_eq!(read(&twice, 64).unwrap(), some(&[("1", "x"), ("2", "y")]));
    for cut in [whole.len() - 1, whole.len() / 2, 5] {
        let file = TempFile::new("cut.csv.gz", &whole[..cut]);
        assert!(matches!(read(&file, 1 << 16), Err(Error::Input(_))), "cut at {cut}");
    }
}

#[test]
fn files_with_a_different_header_or_none_are_refused() {
    let (one, other) =
        (TempFile::new("1.csv", b"a,b\n1,x"), TempFile::new("2.csv", b"\xef\xbb\xbfa,b\n2,y"));
    let both = |file: &TempFile| {
        let others = [Source::File(file.0.clone())];
        Batches::new(open(&one, 64).unwrap(), others, &[0, 1], None, 64).unwrap()
    };
    let batches: Vec<_> = both(&other).map(|batch| batch.unwrap()).collect();
    assert_eq!(pairs(&batches), some(&[("1", "x"), ("2", "y")]));
    assert!(both(&TempFile::new("3.csv", b"b,a\n2,y")).any(|batch| batch.is_err()));
    assert!(open(&TempFile::new("4.csv", b"\n\r\n"), 64).is_err());
    let missing = Source::File(std::env::temp_dir().join("discreet-missing").join("5.csv"));
    assert!(Table::open(missing, Dialect::new(b','), 64, || Ok(())).is_err());
}

#[test]
fn repeated_unknown_and_too_many_columns_are_refused() {
    let file = TempFile::new("columns.csv", b"a,b\n1,x\n");
    let many: Vec<usize> = (0..255).collect();
    for wanted in [&[0, 0][..], &[1, 0, 1], &[2], &many] {
        let batches = Batches::new(open(&file, 64).unwrap(), [], wanted, None, 64);
        assert!(matches!(batches.err(), Some(Error::Parameter(_))), "{wanted:?}");
    }
    assert!(matches!(Rows::new(255, &many, None), Err(Error::Parameter(_))));
    assert!(Rows::new(255, &many[..254], None).is_ok());
}

#[test]
fn a_panic_while_a_batch_is_read_is_an_error() {
    let file = TempFile::new("panic.csv", b"a,b\n1,x\n2,y\n");
    let mut batches = Batches::new(open(&file, 64).unwrap(), [], &[0, 1], None, 64).unwrap();
    batches.rows = Rows::broken();
    assert!(batches.next().unwrap().is_err());
    assert!(batches.next().is_none());
}

#[test]
fn a_header_longer_than_1_mib_is_refused() {
    let names = "n".repeat((1 << 20) - 3);
    assert!(open(&TempFile::new("fits.csv", format!("a,{names}\n").as_bytes()), 1 << 18).is_ok());
    let long = [format!("a,b{names}\n1,2"), format!("a,b{names}"), ",".repeat(2 << 20)];
    for (content, block) in long.iter().flat_map(|content| [(content, 1 << 18), (content, 4 << 20)])
    {
        let file = TempFile::new("long-header.csv", content.as_bytes());
        assert_eq!(open(&file, block).err(), Some(LONG_HEADER));
    }
}

#[cfg(unix)]
#[test]
fn a_wait_for_the_header_of_a_later_file_can_be_interrupted() {
    use std::os::fd::AsRawFd;

    let file = TempFile::new("first.csv", b"a,b\n1,x\n");
    let (later, mut writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", later.as_raw_fd()));
    let (seen, wait) = std::sync::mpsc::channel();
    let writing = std::thread::spawn(move || {
        // Write after a minute at the latest, so that the test ends even if the reader blocks.
        wait.recv_timeout(std::time::Duration::from_secs(60)).unwrap_or_default();
        writer.write_all(b"a,b\n2,y\n").unwrap();
    });
    let mut batches =
        Batches::new(open(&file, 64).unwrap(), [Source::File(path)], &[0, 1], None, 64).unwrap();
    let mut found = Vec::new();
    while found.is_empty() {
        found.extend(pairs(&[batches.next().unwrap().unwrap()]));
    }
    assert_eq!(batches.next().unwrap().unwrap().num_rows(), 0);
    seen.send(()).unwrap();
    found.extend(batches.flat_map(|batch| pairs(&[batch.unwrap()])));
    writing.join().unwrap();
    assert_eq!(found, some(&[("1", "x"), ("2", "y")]));
}
