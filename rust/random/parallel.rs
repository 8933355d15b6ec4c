//! Parallel work on chunks of rows. The results do not depend on the number of cores. A part is a chunk and its first
//! row.

use std::iter;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::random::rng::SecureRng;

/// Rows of a chunk that has its own random stream.
const ROWS: usize = 1 << 16;
/// Rows of a chunk if every row has its own stream, or if no row needs a stream.
pub(crate) const FEW_ROWS: usize = 1 << 14;

/// The first row of a chunk, its counts, and the stream of its noise.
pub(crate) type Part<'a> = (usize, &'a [i64], SecureRng);

/// Run `work` on every chunk of counts, each with its own stream. Return the results in order.
pub(crate) fn of_parts<T: Send>(
    counts: &[i64],
    rng: &mut SecureRng,
    work: impl Fn(Part<'_>) -> T + Sync,
) -> Vec<T> {
    let split = |(i, counts)| (i * ROWS, counts, rng.split());
    on_all_cores(counts.chunks(ROWS).enumerate().map(split).collect(), work)
}

/// Run `work` on each of these parts.
pub(crate) fn over_parts<P: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) + Sync) {
    on_all_cores(parts.collect(), work);
}

/// Run `work` on each of these parts. Return the results in order.
pub(crate) fn on_all_cores<P: Send, T: Send>(
    parts: Vec<P>,
    work: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let parts = Mutex::new(parts.into_iter().enumerate());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || iter::from_fn(next).map(|(number, part)| (number, work(part))).collect();
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        // If the system refuses a thread, the other threads take its parts.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut done: Vec<_> = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, made)| made).collect()
}
