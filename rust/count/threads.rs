//! Runs jobs on threads while the calling thread coordinates them and checks for interrupts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use crate::error::{Error, Result};

/// The longest time between two checks for an interrupt.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Returned by a thread that stopped because another thread failed. Callers report the other
/// thread's error.
pub(crate) const STOPPED: Error = Error::Resource("interrupted");

/// Reported if the system refuses every thread. If the system refuses some threads, the other threads
/// do all the work.
const REFUSED: Error = Error::Resource(
    "the operating system refused to start a thread; close other programs, or raise the limit on threads or memory",
);

/// The number of threads, and how many bytes each thread may hold.
pub(crate) struct Limits {
    pub threads: usize,
    /// The bytes for the rows and labels of a thread: three quarters of the thread's memory.
    pub rows: usize,
    /// The bytes for a thread of the merge: one quarter of the thread's memory.
    pub merge: usize,
}

impl Limits {
    /// The least memory of a thread in bytes, unless there is only one thread. A thread with less
    /// memory would spend most of its time on spilling.
    const THREAD: usize = 1 << 25;

    /// Divides `memory` bytes, if there is a limit.
    pub fn within(threads: usize, memory: Option<usize>) -> Self {
        let threads = threads.clamp(1, 64);
        let Some(memory) = memory else {
            return Self { threads, rows: usize::MAX, merge: usize::MAX };
        };
        let threads = threads.min((memory / Self::THREAD).max(1));
        Self { threads, rows: memory / 4 * 3 / threads, merge: memory / 4 / threads }
    }
}

/// Runs each job on its own thread and `lead` on the calling thread, and returns the results of the
/// jobs. Jobs must check `stop`, which is set if a job, `tick` or `lead` fails. If the system refuses
/// a thread, its job is dropped. So any job must be able to do the work of all jobs.
///
/// # Errors
/// [`Error::Resource`] if the system refuses every thread, and any error of a job, `tick` or
/// `lead`.
pub(crate) fn run<S: Send, T: FnMut() -> Result<()>>(
    jobs: impl Iterator<Item = impl FnOnce() -> Result<S> + Send>,
    stop: &AtomicBool,
    mut tick: T,
    lead: impl FnOnce(&mut T) -> Result<()>,
) -> Result<Vec<S>> {
    let (led, done) = std::thread::scope(|scope| {
        let (alive, dead) = channel::<()>();
        let handles: Vec<_> = jobs
            .filter_map(|job| {
                let alive = alive.clone();
                let work = move || {
                    let done = job();
                    stop.fetch_or(done.is_err(), Ordering::Relaxed);
                    drop(alive);
                    done
                };
                Builder::new().spawn_scoped(scope, work).ok()
            })
            .collect();
        drop(alive);
        if handles.is_empty() {
            return (Err(REFUSED), Vec::new());
        }
        let mut led = lead(&mut tick);
        while led.is_ok() && dead.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            led = tick();
        }
        stop.fetch_or(led.is_err(), Ordering::Relaxed);
        let crashed = Error::Resource(
            "a counting thread crashed; nothing was released. Please report the call that caused it",
        );
        let done: Vec<Result<S>> =
            handles.into_iter().map(|h| h.join().unwrap_or(Err(crashed.clone()))).collect();
        (led, done)
    });
    led?;
    let reason = done.iter().find_map(|done| done.as_ref().err().filter(|&e| *e != STOPPED));
    match reason {
        Some(error) => Err(error.clone()),
        None => done.into_iter().collect(),
    }
}

/// Runs `work` for numbered jobs of these sizes, and returns the state of each thread. A thread's
/// state begins as `new()`. The largest jobs run first, so that no thread ends up with a large job at
/// the end. `work` gets the state, the job's number, the job's size, and a flag that is set when all
/// threads must stop.
pub(crate) fn run_jobs<S: Send>(
    threads: usize,
    sizes: impl Iterator<Item = usize>,
    tick: impl FnMut() -> Result<()>,
    new: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize, usize, &AtomicBool) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let mut jobs: Vec<(usize, usize)> = sizes.enumerate().collect();
    jobs.sort_by_key(|&(_, size)| std::cmp::Reverse(size));
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let job = || {
        let mut made = new();
        while let Some(&(number, size)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED);
            }
            work(&mut made, number, size, &stop)?;
        }
        Ok(made)
    };
    run((0..threads).map(|_| &job), &stop, tick, |_| Ok(()))
}
