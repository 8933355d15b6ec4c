//! Exact distinct users per item, on all cores, with the GIL nowhere near.
//!
//! Workers take morsels of rows, group them (see [`crate::group`]) and append each row to its partition.
//! All rows of an item share a partition, so that in the end each partition is merged over the workers,
//! deduplicated and counted on its own, in cache. Where duplicates pile up, partitions are deduplicated
//! on the way: memory stays a small multiple of the distinct pairs. A worker that holds more than its part of the
//! memory puts its rows and labels away (see [`crate::chapters`]), and the merge reads them back partition by partition.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use crate::bound::{Bounded, Contribution};
use crate::coded;
use crate::column::Batch;
use crate::counts::Found;
use crate::crew;
use crate::error::{Error, Result};
use crate::hash::HashKeys;
use crate::interner::Interner;
use crate::labels::LabelType;
use crate::merge::{Tally, each_partition};
use crate::packed::Layout;
use crate::pairs::Pair;
use crate::share::{Rows, Share};
use crate::short::{self, Form, Short};
use crate::sieve::Items;
use crate::store::Store;
use crate::users::Users;
use crate::worker::{Morsel, Worker};

pub use crate::counts::Counts;

/// How many rows a worker takes at a time.
const MORSEL: usize = 1 << 15;

/// How a table is to be counted.
pub struct Terms<'a> {
    /// Which of a user's items count: all where there is none.
    pub bound: Option<&'a Contribution>,
    /// How many of the largest counts are wanted: all where there is none.
    pub limit: Option<usize>,
    /// Where counts stop: those of more users are as large.
    pub enough: Option<i64>,
    /// How many threads there may be.
    pub threads: usize,
    /// How many bytes of memory may be held beside the batches and the counts themselves.
    pub memory: Option<usize>,
}

/// The parts of the memory: three quarters for the rows and labels of all threads, a quarter for the merge.
struct Parts {
    threads: usize,
    rows: usize,
    merge: usize,
}

impl Parts {
    /// Below this a thread would do nothing but put away.
    const THREAD: usize = 1 << 25;

    fn of(terms: &Terms<'_>) -> Self {
        let threads = terms.threads.clamp(1, 64);
        let Some(memory) = terms.memory else {
            return Self { threads, rows: usize::MAX, merge: usize::MAX };
        };
        let threads = threads.min((memory / Self::THREAD).max(1));
        Self { threads, rows: memory / 4 * 3 / threads, merge: memory / 4 / threads }
    }
}

/// Counts the distinct users of each item over all batches. `tick` is called between morsels and while threads
/// are waited for, and may stop the work with an error.
///
/// # Errors
/// The first error of the batches, of `tick` or of a worker; [`Error::Resource`] where the folder for temporary
/// files is needed and full.
pub fn count_distinct(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    terms: &Terms<'_>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let keys = Arc::new(HashKeys::from_os()?);
    let mut batches = batches.fuse();
    let mut first = batches.next().transpose()?;
    let second = batches.next();
    // What bounds a contribution looks at labels, and many dictionaries differ.
    let is_coded =
        second.is_none() && terms.bound.is_none() && first.as_ref().is_some_and(coded::is_worth_it);
    let Some(batch) = first.take_if(|_| is_coded) else {
        let batches = first.map(Ok).into_iter().chain(second).chain(batches);
        return count_batches(batches, types, terms, &keys, tick);
    };
    let (batch, names) = coded::number(batch, terms.threads, &keys, &mut tick)?;
    let types = (batch.users.label_type(), batch.items.label_type());
    // Ties at the limit are broken by label.
    let all = Terms { limit: None, ..*terms };
    let mut counts = count_batches([Ok(batch)].into_iter(), types, &all, &keys, tick)?;
    counts.labels = names.of(counts.labels);
    terms.limit.into_iter().for_each(|limit| counts.keep(limit));
    Ok(counts)
}

fn count_batches(
    batches: impl Iterator<Item = Result<Batch>>,
    types: (LabelType, LabelType),
    terms: &Terms<'_>,
    keys: &Arc<HashKeys>,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let parts = Parts::of(terms);
    let mut batches = batches.peekable();
    let hashed = !types.0.is_integer();
    let short = match batches.peek() {
        // What bounds a contribution looks at users and items, which short rows have not.
        Some(Ok(batch)) if terms.bound.is_none() => {
            if hashed || !types.1.is_integer() {
                Some(Form::Numbered(Arc::new(Users::new(hashed, keys))))
            } else {
                Layout::of(batch, keys).map(Form::Packed)
            }
        }
        _ => None,
    };
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel::<Morsel>();
    let (ticket, tickets) = channel();
    (0..4 * parts.threads).for_each(|_| ticket.send(()).unwrap_or_default());
    let receiver = Arc::new(Mutex::new(receiver));
    let jobs = (0..parts.threads).map(|_| {
        let (receiver, ticket, stop) = (Arc::clone(&receiver), ticket.clone(), &stop);
        let worker = Worker::new(Arc::clone(keys), types, short.clone(), parts.rows);
        move || worker.run(&receiver, &ticket, stop)
    });
    let jobs: Vec<_> = jobs.collect();
    drop((receiver, ticket));
    let shares = crew::run(jobs.into_iter(), &stop, &mut tick, |tick| {
        for (number, batch) in batches.enumerate() {
            let batch = Arc::new(batch?);
            if batch.users.len() != batch.items.len() {
                return Err(Error::Input("the columns are not equally long"));
            }
            let len = batch.users.len();
            for start in (0..len).step_by(MORSEL) {
                let end = len.min(start + MORSEL);
                let morsel =
                    Morsel { batch: Arc::clone(&batch), number: number as u64, start, end };
                while let Err(silence) = tickets.recv_timeout(crew::PATIENCE) {
                    if silence == RecvTimeoutError::Disconnected {
                        return Ok(());
                    }
                    tick()?;
                }
                if sender.send(morsel).is_err() {
                    return Ok(());
                }
                tick()?;
            }
        }
        drop(sender);
        Ok(())
    })?;
    finish(shares, types.1, terms, keys, &parts, tick)
}

/// Brings the rows of all workers into one form and counts them.
fn finish(
    shares: Vec<(Option<Short>, Share<Rows>)>,
    item_type: LabelType,
    terms: &Terms<'_>,
    keys: &HashKeys,
    parts: &Parts,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    if let Some(count) = short::Count::of(&shares).filter(|count| count.held() <= parts.merge) {
        let new = || Found::new(item_type, terms.limit, terms.enough);
        if let Some(found) = count.count(parts.threads, keys, &mut tick, new)? {
            return Ok(Found::all(found, new));
        }
    }
    let unpacked = |(short, mut share): (Option<Short>, Share<Rows>)| {
        if let Some(rows) = short {
            share.rows = rows.unpack(share.rows.take(), keys);
        }
        share
    };
    let shares: Vec<Share<Rows>> = shares.into_iter().map(unpacked).collect();
    let any_wide = shares.iter().any(|share| matches!(share.rows, Rows::Wide(_)));
    let (mut narrow, mut wide, mut hashed) = (Vec::new(), Vec::new(), Vec::new());
    for Share { labels, rows, chapters } in shares {
        match rows {
            Rows::Narrow(rows) if any_wide => {
                wide.push(Share { labels, rows: Rows::widen(&rows), chapters });
            }
            Rows::Narrow(rows) => narrow.push(Share { labels, rows, chapters }),
            Rows::Wide(rows) => wide.push(Share { labels, rows, chapters }),
            Rows::Hashed(rows) => hashed.push(Share { labels, rows, chapters }),
        }
    }
    if !hashed.is_empty() {
        count_shares(hashed, item_type, terms, keys, parts, tick)
    } else if !wide.is_empty() {
        count_shares(wide, item_type, terms, keys, parts, tick)
    } else {
        count_shares(narrow, item_type, terms, keys, parts, tick)
    }
}

fn count_shares<P: Pair>(
    shares: Vec<Share<Store<P>>>,
    item_type: LabelType,
    terms: &Terms<'_>,
    keys: &HashKeys,
    parts: &Parts,
    mut tick: impl FnMut() -> Result<()>,
) -> Result<Counts> {
    let room = (parts.threads, parts.merge);
    Ok(if let Some(bound) = terms.bound {
        let new = || Bounded::new(item_type, bound, parts.merge);
        let tallies = each_partition(&shares, keys, room, &mut tick, new)?;
        drop(shares);
        let crew = (parts.threads, keys);
        let mut total = Bounded::count(tallies, item_type, terms.enough, crew, tick)?;
        terms.limit.into_iter().for_each(|limit| total.keep(limit));
        total
    } else {
        let found = || Found::new(item_type, terms.limit, terms.enough);
        let new = || Unbounded { found: found(), here: Vec::new() };
        let tallies = each_partition(&shares, keys, room, tick, new)?;
        drop(shares);
        Found::all(tallies.into_iter().map(|tally| tally.found), found)
    })
}

/// The counts of some partitions, of all items of each user.
struct Unbounded {
    found: Found,
    /// Those of the partition that is being counted.
    here: Vec<i64>,
}

impl<P: Pair> Tally<P> for Unbounded {
    fn add(
        &mut self,
        rows: &[P],
        items: &mut Items,
        _: Option<&Interner>,
        keys: &HashKeys,
    ) -> Result<()> {
        let here = &mut self.here;
        if let Some(codes) = items.codes() {
            here.resize(codes, 0);
            for row in rows {
                here[row.item() as usize] += 1;
            }
            return Ok(());
        }
        items.reserve(rows.len(), keys);
        for row in rows {
            let number = items.number(row.item(), keys);
            if number == here.len() {
                here.push(1);
            } else {
                here[number] += 1;
            }
        }
        Ok(())
    }

    fn close(&mut self, items: &Items, labels: Option<&Interner>) {
        self.found.add(self.here.drain(..), |into| match labels {
            Some(interner) => into.append_strings(interner.labels()),
            None => items.keys().iter().for_each(|&item| into.push_integer(item)),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use arrow_array::types::Int32Type;
    use arrow_array::{Array, DictionaryArray, Int64Array, StringArray};
    use rand::rand_core::TryRng;

    use super::*;
    use crate::column::Column;
    use crate::labels::Labels;
    use crate::rng::SecureRng;

    type Rows = Vec<(Option<i64>, Option<i64>)>;

    /// Counts rows under given keys, in batches of `size`, users and items each by number or as text.
    fn counted(
        rows: &Rows,
        as_text: (bool, bool),
        size: usize,
        terms: &Terms<'_>,
        keys: &Arc<HashKeys>,
    ) -> BTreeMap<Vec<u8>, i64> {
        let text = |cell: Option<i64>| cell.map(|n| format!("a name of {n}"));
        let column = |cells: Vec<Option<i64>>, as_text| {
            Column::new(if as_text {
                cells.into_iter().map(text).collect::<StringArray>().into_data()
            } else {
                Int64Array::from(cells).into_data()
            })
        };
        let batch = |rows: &[(Option<i64>, Option<i64>)]| {
            let (users, items) = rows.iter().copied().unzip();
            Ok(Batch { users: column(users, as_text.0)?, items: column(items, as_text.1)? })
        };
        let of = |as_text| if as_text { LabelType::Text } else { LabelType::Signed };
        let found = count_batches(
            rows.chunks(size).map(batch),
            (of(as_text.0), of(as_text.1)),
            terms,
            keys,
            || Ok(()),
        );
        let Counts { labels, counts } = found.unwrap();
        let bytes = |row: usize| match &labels {
            Labels::Signed(values) => values[row].to_be_bytes().to_vec(),
            Labels::Text(strings) => strings.get(row).to_vec(),
            _ => unreachable!("no other type was counted"),
        };
        counts.iter().enumerate().map(|(row, &count)| (bytes(row), count)).collect()
    }

    fn draw(rng: &mut SecureRng) -> u64 {
        rng.try_next_u64().unwrap()
    }

    fn random_rows(rng: &mut SecureRng, len: u64, users: u64, items: u64) -> Rows {
        let mut cell = |most| (draw(rng) & 15 > 0).then_some(draw(rng) % most).map(|n| n as i64);
        (0..len).map(|_| (cell(users), cell(items))).collect()
    }

    #[test]
    fn nothing_changes_with_the_order_of_rows_the_threads_the_batches_or_the_memory() {
        let mut rng = SecureRng::seeded(1);
        let keys = Arc::new(HashKeys::from_os().unwrap());
        let mut rows = random_rows(&mut rng, 30_000, 900, 400);
        for as_text in [false, true] {
            for l0 in [None, Some(1), Some(7)] {
                let item_type = if as_text { LabelType::Text } else { LabelType::Signed };
                let bound = Contribution::new(l0, None, item_type);
                let terms = |threads, memory| Terms {
                    bound: bound.as_ref(),
                    limit: None,
                    enough: None,
                    threads,
                    memory,
                };
                let expected = counted(&rows, (as_text, as_text), 30_000, &terms(1, None), &keys);
                assert!(l0.is_some() || expected.len() == 400);
                for (threads, size, memory) in
                    [(3, 999, None), (1, 20_000, Some(0)), (4, 5000, Some(1 << 27))]
                {
                    for place in (1..rows.len()).rev() {
                        rows.swap(place, draw(&mut rng) as usize % (place + 1));
                    }
                    assert_eq!(
                        counted(&rows, (as_text, as_text), size, &terms(threads, memory), &keys),
                        expected
                    );
                }
            }
        }
    }

    #[test]
    fn dictionaries_are_counted_as_their_values_also_where_these_are_put_away_on_the_way() {
        let keys = Arc::new(HashKeys::from_os().unwrap());
        let rows = random_rows(&mut SecureRng::seeded(7), 20_000, 900, 400);
        let column = |cells: Vec<Option<i64>>, is_dictionary| {
            let text = |cell: Option<i64>| cell.map(|n| format!("a name of {n}"));
            let text: StringArray = cells.into_iter().map(text).collect();
            Column::new(if is_dictionary {
                text.iter().collect::<DictionaryArray<Int32Type>>().into_data()
            } else {
                text.into_data()
            })
        };
        let counted = |is_dictionary, terms: &Terms<'_>| {
            let batch = |rows: &[(Option<i64>, Option<i64>)]| {
                let (users, items) = rows.iter().copied().unzip();
                let users = column(users, is_dictionary)?;
                Ok(Batch { users, items: column(items, is_dictionary)? })
            };
            let types = (LabelType::Text, LabelType::Text);
            let batches = rows.chunks(11_000).map(batch);
            let found = count_batches(batches, types, terms, &keys, || Ok(())).unwrap();
            let label = |row| found.labels.with_bytes(row, <[u8]>::to_vec);
            let counts = found.counts.iter().enumerate();
            counts.map(|(row, &count)| (label(row), count)).collect::<BTreeMap<_, _>>()
        };
        for l0 in [None, Some(1), Some(7)] {
            let bound = Contribution::new(l0, None, LabelType::Text);
            let terms = |threads, memory| Terms {
                bound: bound.as_ref(),
                limit: None,
                enough: None,
                threads,
                memory,
            };
            let expected = counted(false, &terms(1, None));
            for (threads, memory) in [(1, None), (1, Some(0)), (3, Some(1 << 22))] {
                assert_eq!(counted(true, &terms(threads, memory)), expected);
            }
        }
    }

    #[test]
    fn small_numbers_are_counted_as_large_ones_wherever_these_come() {
        let mut rng = SecureRng::seeded(3);
        let keys = Arc::new(HashKeys::from_os().unwrap());
        let mut small = random_rows(&mut rng, 40_000, 900, 400);
        // What some of the large ones have in their lower bits.
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
                let pairs: BTreeSet<_> = rows.iter().filter_map(|&(u, i)| u.zip(i)).collect();
                let mut expected: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
                for (_, item) in pairs {
                    *expected.entry(item.to_be_bytes().to_vec()).or_default() += 1;
                }
                let mut terms =
                    Terms { bound: None, limit: None, enough: None, threads: 3, memory: None };
                for (threads, size, memory) in [
                    (1, 50_000, None),
                    (3, 7000, None),
                    (2, 900, Some(1 << 28)),
                    (2, 9000, Some(1 << 25)),
                ] {
                    terms = Terms { threads, memory, ..terms };
                    assert_eq!(counted(&rows, (false, false), size, &terms, &keys), expected);
                }
                terms.enough = Some(30);
                for count in expected.values_mut() {
                    *count = 30.min(*count);
                }
                assert_eq!(counted(&rows, (false, false), 9000, &terms, &keys), expected);
                terms = Terms { enough: None, limit: Some(10), memory: None, ..terms };
                let largest = counted(&rows, (false, false), 9000, &terms, &keys);
                let unpacked = Terms { memory: Some(0), ..terms };
                assert_eq!(largest, counted(&rows, (false, false), 9000, &unpacked, &keys));
                assert_eq!(largest.len(), 10);
            }
        }
    }

    #[test]
    fn users_by_number_are_counted_as_those_by_key() {
        let mut rng = SecureRng::seeded(4);
        let keys = Arc::new(HashKeys::from_os().unwrap());
        let few = random_rows(&mut rng, 60_000, 900, 400);
        // More than have numbers.
        let many = (0..280_000).map(|n| (Some(n), Some(n % 7)));
        for place in [0, few.len()] {
            let mut rows = few.clone();
            rows.splice(place..place, many.clone());
            let pairs: BTreeSet<_> = rows.iter().filter_map(|&(u, i)| u.zip(i)).collect();
            for as_text in [(true, true), (true, false), (false, true)] {
                let mut expected: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
                for (_, item) in &pairs {
                    let label = if as_text.1 {
                        format!("a name of {item}").into_bytes()
                    } else {
                        item.to_be_bytes().to_vec()
                    };
                    *expected.entry(label).or_default() += 1;
                }
                for (threads, memory) in [(1, None), (3, None), (2, Some(1 << 26))] {
                    let terms = Terms { bound: None, limit: None, enough: None, threads, memory };
                    assert_eq!(counted(&rows, as_text, 9000, &terms, &keys), expected);
                }
            }
        }
    }

    #[test]
    fn one_user_changes_at_most_l0_counts_and_each_by_one() {
        let mut rng = SecureRng::seeded(2);
        for round in 0..120_usize {
            let (as_text, l0) = (round % 2 == 0, (round % 4 < 3).then_some(1 + round % 3));
            let keys = Arc::new(HashKeys::from_os().unwrap());
            let item_type = if as_text { LabelType::Text } else { LabelType::Signed };
            let bound = Contribution::new(l0, None, item_type);
            let memory = (round % 5 == 0).then_some(0);
            let terms = Terms {
                bound: bound.as_ref(),
                limit: None,
                enough: None,
                threads: 1 + round % 2,
                memory,
            };
            let rows = random_rows(&mut rng, 60, 8, 6);
            let all = counted(&rows, (as_text, as_text), 60, &terms, &keys);
            for user in 0..8 {
                let others = rows.iter().copied().filter(|row| row.0 != Some(user)).collect();
                let without = counted(&others, (as_text, as_text), 25, &terms, &keys);
                let changes: Vec<i64> = all
                    .iter()
                    .map(|(item, count)| count - without.get(item).unwrap_or(&0))
                    .filter(|&change| change != 0)
                    .collect();
                assert!(without.keys().all(|item| all.contains_key(item)));
                assert!(
                    changes.len() <= l0.unwrap_or(6) && changes.iter().all(|&change| change == 1)
                );
            }
        }
    }
}
