//! Tests of sums and of numbers of listed items, in memory and spilled.

use std::collections::BTreeMap;

use arrow_array::types::Int32Type;
use arrow_array::{Array, DictionaryArray, Float64Array, Int64Array, StringArray};

use super::*;
use crate::columns::Column;
use crate::columns::values::{Step, Values};
use crate::count::by_user::measured::{Measure, Measured, Pairs, Reading, Room, Total};
use crate::labels::Strings;
use crate::labels::{LabelType, Labels};

/// A user, an item, and a value.
type Case = (i64, i64, f64);

fn step(size: f64) -> Step {
    Step::new(size).unwrap()
}

fn rows(seed: u64, len: usize, users: u64, items: u64) -> Vec<Case> {
    let mut state = seed;
    let mut below = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % bound) as i64
    };
    let mut row = || (below(users) - 2, below(items), (below(41) - 20) as f64 / 2.0);
    (0..len).map(|_| row()).collect()
}

fn batch(rows: &[Case], is_text: bool) -> Batch {
    let values = Float64Array::from_iter_values(rows.iter().map(|row| row.2)).into_data();
    let column = |cells: Vec<i64>, is_dictionary: bool| {
        let text = cells.iter().map(i64::to_string);
        Column::new(match (is_text, is_dictionary) {
            (false, _) => Int64Array::from(cells).into_data(),
            (_, false) => StringArray::from_iter_values(text).into_data(),
            _ => {
                let text: Vec<String> = text.collect();
                text.iter().map(String::as_str).collect::<DictionaryArray<Int32Type>>().into_data()
            }
        })
        .unwrap()
    };
    let is_dictionary = rows.len().is_multiple_of(2);
    let (users, items) = rows.iter().map(|row| (row.0, row.1)).unzip();
    Batch {
        users: column(users, is_dictionary),
        items: column(items, !is_dictionary),
        values: Some(Values::new(values).unwrap()),
    }
}

fn labels(items: &[i64], is_text: bool) -> (LabelType, Labels) {
    if !is_text {
        return (LabelType::Signed, Labels::Signed(items.to_vec()));
    }
    let mut strings = Strings::default();
    for item in items {
        strings.push(item.to_string().as_bytes());
    }
    (LabelType::Text, Labels::Text(strings))
}

fn batches(rows: &[Case], is_text: bool) -> impl Iterator<Item = Result<Batch>> {
    rows.chunks(501).map(move |rows| Ok(batch(rows, is_text)))
}

/// Returns each user's sums of listed items, in halves.
fn own(rows: &[Case], items: &[i64]) -> BTreeMap<i64, BTreeMap<i64, i64>> {
    let mut own: BTreeMap<i64, BTreeMap<i64, i64>> = BTreeMap::new();
    for &(user, item, value) in rows.iter().filter(|row| items.contains(&row.1)) {
        *own.entry(user).or_default().entry(item).or_default() += (2.0 * value) as i64;
    }
    own
}

#[test]
fn sums_and_sizes_are_exact_in_memory_and_spilled() {
    let items = [3, 900, 5, 1, 0];
    for is_text in [false, true] {
        for (memory, threads) in [(None, 2), (Some(4096), 1), (Some(1 << 17), 3)] {
            let rows = rows(1, 20_000, 300, 9);
            let (item_type, listed) = labels(&items, is_text);
            let room = Room { threads, memory };
            let reading = Reading { only: Some(&listed), step: step(0.5), valued: true };
            let pairs =
                Pairs::read(batches(&rows, is_text), item_type, reading, None, room, || Ok(()))
                    .unwrap();
            let found = pairs.measured(&listed, 5, &[Measure::Sum(-30, 50, 0)], || Ok(())).unwrap();
            let own = own(&rows, &items);
            let sum = |item| {
                own.values()
                    .filter_map(|sums| sums.get(item))
                    .map(|&sum| sum.clamp(-30, 50))
                    .sum::<i64>()
            };
            assert_eq!(found, items.iter().map(sum).collect::<Vec<_>>());
            let mut sizes = pairs.sizes(|| Ok(())).unwrap();
            sizes.sort_unstable();
            let mut expected: Vec<_> = own.values().map(|sums| sums.len() as i64).collect();
            expected.sort_unstable();
            assert_eq!(sizes, expected);
        }
    }
}

#[test]
fn a_bound_keeps_sums_of_l0_items_of_each_user() {
    let items: Vec<i64> = (0..6).collect();
    let (item_type, listed) = labels(&items, true);
    for (memory, l0) in [(None, 1), (None, 4), (Some(4096), 2)] {
        // Each user has one row of each of four items, whose value tells the user.
        let rows: Vec<Case> = (0..3000).map(|n| (n / 4, n % 4, (n / 4 + 1) as f64)).collect();
        let reading = Reading { only: Some(&listed), step: step(1.0), valued: true };
        let room = Room { threads: 2, memory };
        let pairs = Pairs::read(batches(&rows, true), item_type, reading, None, room, || Ok(()));
        let (pairs, measure) = (pairs.unwrap(), [Measure::Sum(0, 1 << 20, 0)]);
        let mut extents = pairs.extents(|| Ok(())).unwrap();
        extents.sort_unstable();
        assert_eq!(extents, (1..=750).collect::<Vec<_>>());
        let found = pairs.measured(&listed, l0, &measure, || Ok(())).unwrap();
        let all: i64 = (1..=750).sum();
        assert_eq!(found.iter().sum::<i64>(), l0 as i64 * all);
        assert_eq!(found[4..], [0, 0]);
        // The standard deviation of a sum is at most sqrt(750^3 / 12) = 5,900.
        let share = l0 as i64 * all / 4;
        assert!(found[..4].iter().all(|&sum| (sum - share).abs() < 7 * 5_900), "{found:?}");
    }
}

const MEASURES: [Measure; 3] =
    [Measure::Rows(3), Measure::Sum(-30, 50, 0), Measure::Mean(-4, 9, 2, 7, 0)];

/// Returns what one pair adds to the sums of [`MEASURES`], from its values in halves; NaN is a row without a value. The
/// third sum is rounded down, and the fifth is 1 if the kernel may return one more.
fn added(values: &[f64]) -> [i64; 5] {
    let own: Vec<i64> =
        values.iter().filter(|value| value.is_finite()).map(|value| (2.0 * value) as i64).collect();
    let (sum, len) = (own.iter().sum::<i64>(), own.len() as i64);
    let rows = (values.len() as i64).min(3);
    if own.is_empty() {
        return [rows, 0, 0, 0, 0];
    }
    // The centre of the bounds is 2.
    let parts = (sum.clamp(-4 * len, 9 * len) - 2 * len) * len.min(2) * 7;
    let is_between = i64::from(parts % len != 0);
    [rows, sum.clamp(-30, 50), parts.div_euclid(len), len.min(2), is_between]
}

#[test]
fn measures_are_exact_in_memory_and_spilled() {
    let all = rows(4, 20_000, 300, 40);
    let holed: Vec<Case> = all
        .iter()
        .enumerate()
        .map(|(row, &(user, item, value))| {
            (user, item, if row % 5 == 0 { f64::NAN } else { value })
        })
        .collect();
    let mut own: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
    for &(user, item, value) in &holed {
        own.entry((user, item)).or_default().push(value);
    }
    let chosen = [3, 900, 5, 1, 0];
    for is_text in [false, true] {
        for (memory, threads) in [(None, 2), (Some(4096), 1), (Some(1 << 17), 3)] {
            let (item_type, listed) = labels(&chosen, is_text);
            let room = Room { threads, memory };
            let reading = |only| Reading { only, step: step(0.5), valued: false };
            let read = |keys: Option<&Arc<HashKeys>>| {
                Pairs::read(batches(&holed, is_text), item_type, reading(None), keys, room, || {
                    Ok(())
                })
                .unwrap()
            };
            let pairs = read(None);
            let found = pairs.measured(&listed, 1000, &MEASURES, || Ok(())).unwrap();
            let expected = chosen.map(|item| {
                let mine = own.iter().filter(|((_, other), _)| *other == item);
                mine.fold([0; 5], |all: [i64; 5], (_, values)| {
                    let more = added(values);
                    std::array::from_fn(|place| all[place] + more[place])
                })
            });
            let check = |found: &[i64]| {
                for (own, [rows, sum, parts, weight, between]) in found.chunks(4).zip(expected) {
                    assert_eq!([own[0], own[1], own[3]], [rows, sum, weight]);
                    assert!((0..=between).contains(&(own[2] - parts)), "{own:?} {parts} {between}");
                }
                assert_eq!(found.len(), 4 * expected.len());
            };
            check(&found);
            let among = reading(Some(&listed));
            let few =
                Pairs::read(batches(&holed, is_text), item_type, among, None, room, || Ok(()))
                    .unwrap();
            check(&few.measured(&listed, 5, &MEASURES, || Ok(())).unwrap());
            let counts = pairs.counts(1000, || Ok(())).unwrap();
            assert_eq!(counts.counts.iter().sum::<i64>(), own.len() as i64);
            let sizes = pairs.sizes(|| Ok(())).unwrap();
            assert_eq!(sizes.iter().sum::<i64>(), own.len() as i64);
            // With a bound, each user keeps the same items in every sum, also of other pairs with the same keys.
            let again = read(Some(pairs.keys()));
            let all: Vec<i64> = (0..40).collect();
            let (_, every) = labels(&all, is_text);
            let users = pairs.counts(7, || Ok(())).unwrap();
            let one = again.measured(&every, 7, &[Measure::Rows(1)], || Ok(())).unwrap();
            let mut found: Vec<i64> = one.into_iter().filter(|&count| count > 0).collect();
            let mut counted = users.counts.clone();
            found.sort_unstable();
            counted.sort_unstable();
            assert_eq!(found, counted);
            assert_eq!(counted.iter().sum::<i64>(), {
                let mut sizes = BTreeMap::new();
                for (user, _) in own.keys() {
                    *sizes.entry(user).or_insert(0) += 1;
                }
                sizes.into_values().map(|size: i64| size.min(7)).sum::<i64>()
            });
        }
    }
}

#[test]
fn totals_are_exact_in_any_order_and_end_in_silence() {
    let keys = HashKeys::from_os().unwrap();
    let (mut users, mut kept) = (Users::<Measured>::default(), Vec::new());
    let row = |sum: i128, rows| Measured::new([7, 3], (sum, rows, rows));
    let most = 1_i128 << 95;
    // Sums beyond 64 and, on the way, beyond 128 bits.
    let many = [row(i128::MAX, 2), row(most, 1), row(most, 1), row(i128::MIN, 1)];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let rows = order.map(|place| many[place]);
        users.add_up(rows.chunks(2), &keys, &mut kept);
        users.each(std::iter::once(&*kept), &keys, |_, own| {
            assert_eq!(own[0].1, Total { sum: 2 * most - 1, rows: 5, valued: 5 });
        });
    }
    users.add_up([row(most, u32::MAX); 3].chunks(2), &keys, &mut kept);
    assert_eq!(kept.len(), 3);
    users.each(std::iter::once(&*kept), &keys, |_, own| {
        let total = own[0].1;
        assert_eq!((total.rows, total.valued), (3 * u64::from(u32::MAX), 3 * u64::from(u32::MAX)));
        // More than 2^31 values may add up to more than 128 bits: the pair has none.
        assert_eq!(Measure::Sum(-9, 9, 0).of(&total, 0), [0, 0]);
        assert_eq!(Measure::Mean(-9, 9, 2, 1, 0).of(&total, 0), [0, 0]);
    });
}

#[test]
fn parts_of_many_steps_are_rounded_toward_zero() {
    let total = |sum: i128, rows| Total { sum, rows, valued: rows };
    let most = 1_i128 << 95;
    for (sum, expected) in [(15, 1), (-15, -1), (16, 2), (7, 0), (-7, 0), (most, 5), (-most, -6)] {
        // The bounds are -49 and 43 steps: at most 6 parts of 8 steps each.
        let measure = Measure::Sum(-49, 43, 3);
        assert_eq!(measure.of(&total(sum, 1), 0), [expected, 0]);
        assert_eq!(measure.largest(), Some(6));
    }
    // Two rows of 30 and 34: 32 steps above the centre, twice, in parts of 16 steps.
    let measure = Measure::Mean(-100, 100, 2, 1, 4);
    assert_eq!(measure.of(&total(64, 2), 0), [4, 2]);
    assert_eq!(measure.of(&total(-63, 2), 0), [-3, 2]);
    let widest = Measure::Mean(-most, most, 1 << 30, 1, 94);
    assert_eq!(widest.of(&total(most << 30, 1 << 30), u32::MAX), [1 << 31, 1 << 30]);
    assert_eq!(widest.largest(), Some(1 << 31));
}
