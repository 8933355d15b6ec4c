//! Tests of neighbouring tables: the effect of removing one user under the same hash keys.
//!
//! A table consists of many small worlds that share neither users nor items. One user of each world
//! is removed at once.

use std::collections::BTreeSet;

use rand::rand_core::TryRng;

use crate::count::bound::Contribution;
use crate::count::{CountOptions, count_distinct};
use crate::hash::FIXED;
use crate::labels::LabelType;
use crate::random::rng::SecureRng;
use crate::tests::tables::{Row, batches, cell, draw, label_type, number, shuffle};
use crate::union::reader::{ListOptions, lists};
use crate::union::user_items::Lists;

/// The number of labels reserved for a world.
const ROOM: u64 = 16;

/// Returns the rows of a world: few users and items, so that there are duplicates, and some NULLs.
fn world(rng: &mut SecureRng, number: u64) -> Vec<Row> {
    let (users, items) = (1 + draw(rng, 8), 1 + draw(rng, ROOM - 1));
    let len = 1 + draw(rng, 40);
    let mut own = |end| cell(rng, end).map(|n| (ROOM * number) as i64 + n);
    (0..len).map(|_| (own(users), own(items))).collect()
}

/// The rows of all worlds, the user removed from each, and the number of items that each of these
/// had.
struct Round {
    rows: Vec<Row>,
    removed: BTreeSet<i64>,
    owned: Vec<usize>,
}

impl Round {
    fn new(rng: &mut SecureRng, worlds: usize) -> Self {
        let mut round = Self { rows: Vec::new(), removed: BTreeSet::new(), owned: Vec::new() };
        for place in 0..worlds {
            let rows = world(rng, place as u64);
            let user = rows.iter().find_map(|row| row.0);
            let of_user = |row: &&Row| user.is_some() && row.0 == user;
            let items: BTreeSet<i64> =
                rows.iter().filter(of_user).filter_map(|row| row.1).collect();
            round.removed.extend(user);
            round.owned.push(items.len());
            round.rows.extend(rows);
        }
        shuffle(rng, &mut round.rows);
        round
    }

    fn others(&self, rng: &mut SecureRng) -> Vec<Row> {
        let stays = |row: &&Row| row.0.is_none_or(|user| !self.removed.contains(&user));
        let mut rows: Vec<Row> = self.rows.iter().filter(stays).copied().collect();
        shuffle(rng, &mut rows);
        rows
    }
}

/// Asserts that one user changes exactly the `l0` counts that they can, each by one, in `worlds`
/// worlds.
fn one_user_changes_at_most_l0_counts(worlds: usize, rounds: usize) {
    let mut rng = SecureRng::seeded(5);
    for turn in 0..rounds {
        FIXED.set(Some(std::array::from_fn(|_| rng.try_next_u64().unwrap())));
        // Small integers without a bound are packed.
        let (as_text, l0) = (turn % 2 == 0, (turn % 4 != 1).then_some(1 + turn % 5));
        let label_type = label_type(as_text);
        let bound = Contribution::new(l0, None, label_type).unwrap();
        let counted = |rows: &[Row], threads, size| {
            let memory = (turn % 3 == 0).then_some(0);
            let options = CountOptions {
                bound: bound.as_ref(),
                limit: None,
                cap: None,
                users: false,
                secret: None,
                threads,
                memory,
            };
            let batches = batches(rows, (as_text, as_text), size);
            let found =
                count_distinct(batches, (label_type, label_type), &options, || Ok(())).unwrap();
            let mut counts = vec![0; worlds * ROOM as usize];
            for (row, &count) in found.counts.iter().enumerate() {
                counts[number(&found.labels, row) as usize] += count;
            }
            counts
        };
        let mut round = Round::new(&mut rng, worlds);
        if turn % 8 == 5 {
            let place = draw(&mut rng, round.rows.len() as u64);
            round.rows.insert(place as usize, (Some(1 << 40), Some(0)));
        }
        let all = counted(&round.rows, 1, round.rows.len());
        let without = counted(&round.others(&mut rng), 2, 3000);
        let each = all.chunks(ROOM as usize).zip(without.chunks(ROOM as usize));
        for ((all, without), &owned) in each.zip(&round.owned) {
            let changes: Vec<i64> = all.iter().zip(without).map(|(a, b)| a - b).collect();
            assert!(changes.iter().all(|change| (0..=1).contains(change)), "{changes:?}");
            assert_eq!(changes.iter().sum::<i64>() as usize, owned.min(l0.unwrap_or(usize::MAX)));
        }
    }
    FIXED.set(None);
}

#[test]
fn one_user_changes_l0_counts_each_by_one() {
    one_user_changes_at_most_l0_counts(1000, 20);
    // Few items, whose rows go to their users; and so many that one user decides whether they do.
    one_user_changes_at_most_l0_counts(6, 100);
    one_user_changes_at_most_l0_counts(12, 100);
}

#[test]
#[ignore = "a million worlds take half a minute"]
fn one_user_changes_l0_counts_in_a_million_worlds() {
    one_user_changes_at_most_l0_counts(50_000, 20);
}

/// Asserts that each user's list stays the same when another user is removed: as gathered, and as
/// bounded by `choose`.
fn one_user_changes_no_list(
    l0: Option<usize>,
    any_order: bool,
    choose: impl Fn(Lists, usize) -> Lists,
) {
    let mut rng = SecureRng::seeded(6);
    for turn in 0..10_usize {
        FIXED.set(Some(std::array::from_fn(|_| rng.try_next_u64().unwrap())));
        let l0 = l0.map(|l0| l0 + turn % 5);
        let read = |rows: &[Row], memory| -> Vec<(i64, Vec<i64>)> {
            let options = ListOptions { l0, any_order, memory, threads: 1 + turn % 3 };
            let (labels, found) = lists(
                batches(rows, (false, false), 7000),
                (LabelType::Signed, LabelType::Signed),
                options,
                || Ok(()),
            )
            .unwrap();
            let found = choose(found, 1 + turn % 5);
            let (users, mut all) = (&found.hashes().users, Vec::new());
            let each = |user: usize, items: &[u32]| {
                let items = items.iter().map(|&item| number(&labels, item as usize));
                all.push((users[user] as i64, items.collect()));
            };
            found.each_user(each).unwrap();
            if any_order {
                all.sort();
            }
            all
        };
        let round = Round::new(&mut rng, 1000);
        let mut all = read(&round.rows, None);
        all.retain(|(user, _)| !round.removed.contains(user));
        assert!(all == read(&round.others(&mut rng), Some(1 << 25)), "round {turn}");
    }
    FIXED.set(None);
}

#[test]
fn one_user_does_not_change_the_lists_of_others() {
    one_user_changes_no_list(Some(1), false, |lists, _| lists);
    one_user_changes_no_list(Some(1), true, |lists, _| lists);
}

#[test]
fn one_user_does_not_change_the_choices_of_others() {
    for (together, any_order) in [(false, false), (true, false), (false, true)] {
        one_user_changes_no_list(None, any_order, |lists, l0| {
            lists.bounded(l0, &[], [7; 4], together).unwrap()
        });
    }
}
