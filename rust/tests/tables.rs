//! Random tables for tests, as integers or as text.

use arrow_array::{Array, Int64Array, StringArray};
use rand::rand_core::TryRng;

use crate::columns::{Batch, Column};
use crate::error::Result;
use crate::labels::{LabelType, Labels};
use crate::random::rng::SecureRng;

/// A user and an item.
pub(crate) type Row = (Option<i64>, Option<i64>);

/// Returns a number below `end`.
pub(crate) fn draw(rng: &mut SecureRng, end: u64) -> u64 {
    rng.try_next_u64().unwrap() % end
}

/// Returns a number below `end`, or NULL in 1 of 16 cases.
pub(crate) fn cell(rng: &mut SecureRng, end: u64) -> Option<i64> {
    (draw(rng, 16) > 0).then_some(draw(rng, end)).map(|n| n as i64)
}

/// Returns `len` rows with numbers of `users` users and `items` items.
pub(crate) fn rows(rng: &mut SecureRng, len: usize, users: u64, items: u64) -> Vec<Row> {
    (0..len).map(|_| (cell(rng, users), cell(rng, items))).collect()
}

pub(crate) fn shuffle(rng: &mut SecureRng, rows: &mut [Row]) {
    for place in (1..rows.len()).rev() {
        rows.swap(place, draw(rng, place as u64 + 1) as usize);
    }
}

/// Returns a column of text or of integers.
pub(crate) fn column(cells: Vec<Option<i64>>, as_text: bool) -> Result<Column> {
    let text = |cell: Option<i64>| cell.map(|n| format!("the name of {n}"));
    Column::new(if as_text {
        cells.into_iter().map(text).collect::<StringArray>().into_data()
    } else {
        Int64Array::from(cells).into_data()
    })
}

/// Returns the label type of text or of integers.
pub(crate) fn label_type(as_text: bool) -> LabelType {
    if as_text { LabelType::Text } else { LabelType::Signed }
}

/// Returns the rows in batches of `size`, with users and items each as text or as integers.
pub(crate) fn batches(
    rows: &[Row],
    as_text: (bool, bool),
    size: usize,
) -> impl Iterator<Item = Result<Batch>> {
    rows.chunks(size).map(move |rows| {
        let (users, items) = rows.iter().copied().unzip();
        Ok(Batch {
            users: column(users, as_text.0)?,
            items: column(items, as_text.1)?,
            values: None,
        })
    })
}

/// Returns the number in a label.
pub(crate) fn number(labels: &Labels, row: usize) -> i64 {
    match labels {
        Labels::Signed(values) => values[row],
        Labels::Text(strings) => {
            let text = std::str::from_utf8(strings.get(row)).unwrap();
            text.rsplit(' ').next().unwrap().parse().unwrap()
        }
        _ => unreachable!("tables have labels of no other type"),
    }
}
