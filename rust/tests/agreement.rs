//! Tests that counts do not depend on the form and order of rows, or on batches, threads and
//! memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, DictionaryArray, Int32Array, Int64Array, StringArray};
use rand::rand_core::TryRng;

use crate::columns::{Batch, Column};
use crate::count::bound::Contribution;
use crate::count::{CountOptions, Counts, count_distinct};
use crate::error::Result;
use crate::hash::FIXED;
use crate::labels::LabelType;
use crate::random::rng::SecureRng;
use crate::tests::tables::{self, Row, batches, label_type, number, shuffle};

fn counts_by_number(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    options: &CountOptions<'_>,
) -> BTreeMap<i64, i64> {
    let Counts { labels, counts, .. } = count_distinct(batches, types, options, || Ok(())).unwrap();
    let all: BTreeMap<i64, i64> =
        counts.iter().enumerate().map(|(row, &count)| (number(&labels, row), count)).collect();
    assert_eq!(all.len(), counts.len());
    all
}

/// Counts rows in batches of `size`, with users and items as integers or as text.
fn counted(
    rows: &[Row],
    as_text: (bool, bool),
    size: usize,
    options: &CountOptions<'_>,
) -> BTreeMap<i64, i64> {
    let types = (label_type(as_text.0), label_type(as_text.1));
    counts_by_number(batches(rows, as_text, size), types, options)
}

fn counted_one_by_one(rows: &[Row]) -> BTreeMap<i64, i64> {
    let pairs: BTreeSet<_> = rows.iter().filter_map(|&(user, item)| user.zip(item)).collect();
    let mut counts = BTreeMap::new();
    for (_, item) in pairs {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

fn options(
    bound: Option<&Contribution>,
    threads: usize,
    memory: Option<usize>,
) -> CountOptions<'_> {
    CountOptions { bound, limit: None, cap: None, users: false, secret: None, threads, memory }
}

#[test]
fn counts_ignore_row_order_threads_batches_and_memory() {
    let mut rng = SecureRng::seeded(1);
    FIXED.set(Some(std::array::from_fn(|_| rng.try_next_u64().unwrap())));
    // Rows of 60 items stay by user, unless there is no memory.
    for items in [60, 400] {
        let mut rows = tables::rows(&mut rng, 30_000, 900, items);
        for as_text in [false, true] {
            for l0 in [None, Some(1), Some(7)] {
                let bound = Contribution::new(l0, None, label_type(as_text)).unwrap();
                let counted = |rows: &[Row], size, threads, memory| {
                    let options = options(bound.as_ref(), threads, memory);
                    counted(rows, (as_text, as_text), size, &options)
                };
                let expected = counted(&rows, 30_000, 1, None);
                assert!(l0.is_some() || expected.len() == items as usize);
                for (threads, size, memory) in
                    [(3, 999, None), (1, 20_000, Some(0)), (4, 5000, Some(1 << 27))]
                {
                    shuffle(&mut rng, &mut rows);
                    assert_eq!(counted(&rows, size, threads, memory), expected);
                }
            }
        }
    }
    FIXED.set(None);
}

#[test]
fn many_items_after_few_ones_count_alike_even_if_spilled() {
    let mut rng = SecureRng::seeded(11);
    FIXED.set(Some(std::array::from_fn(|_| rng.try_next_u64().unwrap())));
    let few = tables::rows(&mut rng, 40_000, 900, 60);
    let rows: Vec<Row> = few.into_iter().chain(tables::rows(&mut rng, 9000, 900, 400)).collect();
    for as_text in [(false, false), (true, true), (false, true), (true, false)] {
        let bound = Contribution::new(Some(5), None, label_type(as_text.1)).unwrap();
        let mut expected = None;
        for threads in 1..4 {
            for memory in [None, Some(0), Some(1 << 17), Some(1 << 20)] {
                let found =
                    counted(&rows, as_text, 7000, &options(bound.as_ref(), threads, memory));
                assert_eq!(found, *expected.get_or_insert_with(|| found.clone()));
            }
        }
    }
    FIXED.set(None);
}

#[test]
fn dictionaries_count_like_their_values_even_if_spilled() {
    let mut rng = SecureRng::seeded(7);
    FIXED.set(Some(std::array::from_fn(|_| rng.try_next_u64().unwrap())));
    let rows = tables::rows(&mut rng, 20_000, 900, 400);
    let column = |cells: Vec<Option<i64>>, is_dictionary| {
        let text = |cell: Option<i64>| cell.map(|n| format!("a name of {n}"));
        let text: StringArray = cells.into_iter().map(text).collect();
        Column::new(if is_dictionary {
            text.iter().collect::<DictionaryArray<Int32Type>>().into_data()
        } else {
            text.into_data()
        })
    };
    let counted = |is_dictionary, options: &CountOptions<'_>| {
        let batch = |rows: &[Row]| {
            let (users, items) = rows.iter().copied().unzip();
            let users = column(users, is_dictionary)?;
            Ok(Batch { users, items: column(items, is_dictionary)?, values: None })
        };
        // More than one batch, because the dictionaries of a single batch would be numbered.
        let batches = rows.chunks(11_000).map(batch);
        counts_by_number(batches, (LabelType::Text, LabelType::Text), options)
    };
    for l0 in [None, Some(1), Some(7)] {
        let bound = Contribution::new(l0, None, LabelType::Text).unwrap();
        let expected = counted(false, &options(bound.as_ref(), 1, None));
        for (threads, memory) in [(1, None), (1, Some(0)), (3, Some(1 << 22))] {
            assert_eq!(counted(true, &options(bound.as_ref(), threads, memory)), expected);
        }
    }
    FIXED.set(None);
}

#[test]
fn packed_counts_equal_unpacked_when_large_numbers_appear() {
    let mut rng = SecureRng::seeded(3);
    let mut small = tables::rows(&mut rng, 40_000, 900, 400);
    // These equal the lower bits of some of the large integers.
    small.extend([(Some(0), Some(3)), (Some(5), Some(0)), (Some(6), Some(0))]);
    let large = [
        (Some(1 << 31), Some(1)),
        (Some(u32::MAX.into()), Some(2)),
        (Some(1 << 40), Some(3)),
        (Some(-1), Some(4)),
        (Some(5), Some(1 << 20)),
        (Some(6), Some(i64::MIN)),
        (None, Some(1 << 50)),
        (Some(1 << 50), None),
    ];
    for place in [0, 17_001, 40_000] {
        for few in (0..=large.len()).map(|few| &large[..few]) {
            let mut rows = small.clone();
            rows.splice(place..place, few.iter().chain(few).copied());
            let mut expected = counted_one_by_one(&rows);
            for (threads, size, memory) in [
                (1, 50_000, None),
                (3, 7000, None),
                (2, 900, Some(1 << 28)),
                (2, 9000, Some(1 << 25)),
            ] {
                let options = options(None, threads, memory);
                assert_eq!(counted(&rows, (false, false), size, &options), expected);
            }
            let mut options = CountOptions { cap: Some(30), ..options(None, 2, None) };
            for count in expected.values_mut() {
                *count = 30.min(*count);
            }
            assert_eq!(counted(&rows, (false, false), 9000, &options), expected);
            options = CountOptions { cap: None, limit: Some(10), ..options };
            let largest = counted(&rows, (false, false), 9000, &options);
            let unpacked = CountOptions { memory: Some(0), ..options };
            assert_eq!(largest, counted(&rows, (false, false), 9000, &unpacked));
            assert_eq!(largest.len(), 10);
        }
    }
}

#[test]
fn text_and_integers_mix_even_if_few_users_or_labels_repeat() {
    let mut rng = SecureRng::seeded(5);
    let few = tables::rows(&mut rng, 60_000, 900, 400);
    // So many new labels that lookups in the label cache stop.
    let many = |first: i64| (first..first + 300_000).map(|n| (Some(n % 7), Some(n)));
    let users = (0..280_000).map(|n| (Some(n), Some(n % 7)));
    let rows = many(1000).chain(few.clone()).chain(many(400_000)).chain(few).chain(users);
    let rows: Vec<Row> = rows.collect();
    let expected = counted_one_by_one(&rows);
    for as_text in [(true, true), (false, true), (true, false)] {
        for (threads, memory) in [(1, None), (2, None), (1, Some(1 << 26))] {
            assert_eq!(counted(&rows, as_text, 50_000, &options(None, threads, memory)), expected);
        }
    }
}

/// Returns a column of integers, plain or as a dictionary.
fn numbers(cells: Vec<Option<i64>>, is_dictionary: bool) -> Result<Column> {
    let indices = Int32Array::from_iter_values(0..cells.len() as i32);
    let values = Int64Array::from(cells);
    Column::new(if is_dictionary {
        DictionaryArray::<Int32Type>::new(indices, Arc::new(values)).into_data()
    } else {
        values.into_data()
    })
}

#[test]
fn integers_count_in_any_column_layout_with_users_of_any_type() {
    let mut rng = SecureRng::seeded(8);
    // Half of the rows belong to 300 items; no integer is small.
    let mut rows = tables::rows(&mut rng, 80_000, 3000, 9000);
    for (place, (user, item)) in rows.iter_mut().enumerate() {
        let popular = |n| if place % 2 == 0 { n % 300 } else { n };
        *user = user.map(|n| (n + 1) << 40);
        *item = item.map(|n| (popular(n) + 1) << 40);
    }
    let counted = |has_text: bool, size: usize, options: &CountOptions<'_>| {
        let batch = |(number, rows): (usize, &[Row])| {
            let (users, items) = rows.iter().copied().unzip();
            let users = if has_text {
                tables::column(users, true)?
            } else {
                numbers(users, number % 2 == 1)?
            };
            Ok(Batch { users, items: numbers(items, number % 4 >= 2)?, values: None })
        };
        let batches = rows.chunks(size).enumerate().map(batch);
        counts_by_number(batches, (label_type(has_text), LabelType::Signed), options)
    };
    let expected = counted_one_by_one(&rows);
    let capped = expected.iter().map(|(&item, &count)| (item, count.min(30))).collect();
    let mut order: Vec<(i64, i64)> = expected.iter().map(|(&i, &count)| (-count, i)).collect();
    order.sort_unstable();
    let largest = order[..500].iter().map(|&(count, item)| (item, -count)).collect();
    for has_text in [false, true] {
        for (threads, size, memory) in
            [(1, 80_000, None), (3, 11_000, None), (2, 9000, Some(0)), (2, 20_000, Some(1 << 26))]
        {
            let all = options(None, threads, memory);
            for (options, expected) in [
                (CountOptions { cap: Some(30), ..all }, &capped),
                (CountOptions { limit: Some(500), ..all }, &largest),
                (all, &expected),
            ] {
                assert_eq!(counted(has_text, size, &options), *expected);
            }
        }
    }
}

#[test]
fn items_of_many_users_count_for_any_key() {
    let odd = |n: i64| [0, -1, i64::MIN, i64::MAX].get(n as usize).copied().unwrap_or(n << 40);
    let mut rng = SecureRng::seeded(9);
    let item = |n| [-1, i64::MIN, 0].get(n as usize % 6).copied().unwrap_or(n);
    let mut rows: Vec<Row> = tables::rows(&mut rng, 9000, 40, 500);
    for (user, item_of) in &mut rows {
        (*user, *item_of) = (user.map(odd), item_of.map(item));
    }
    // One item has 1 row in 100, and then so many that its partition takes several passes.
    rows.iter_mut().step_by(100).for_each(|row| row.1 = Some(77));
    rows.extend((0..80_000).map(|n| (Some(odd(n)), Some(77))));
    let expected = counted_one_by_one(&rows);
    for (threads, size, memory) in [(1, 9000, Some(0)), (2, 9000, None), (2, 89_000, Some(1 << 25))]
    {
        assert_eq!(counted(&rows, (false, false), size, &options(None, threads, memory)), expected);
    }
}
