//! Shares out the rows of batches among threads.
//!
//! A morsel is a range of rows of a batch. The calling thread splits batches into morsels, and the
//! threads take the morsels in order.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::columns::Batch;
use crate::count::threads;
use crate::error::{Error, Result};

/// The smallest number of rows of a morsel; the last morsel of a batch may be smaller.
pub(crate) const MORSEL: usize = 1 << 15;

/// The most rows of a morsel. Morsels are large because the wait for a morsel takes as long as the
/// count of a few thousand rows.
const MAX_MORSEL: usize = 8 * MORSEL;

/// Morsels that wait for each thread at most.
const WAITING: usize = 4;

/// A range of rows of a batch.
pub(crate) struct Morsel {
    pub batch: Arc<Batch>,
    /// The number of the batch.
    pub number: u64,
    pub start: usize,
    pub end: usize,
}

/// The morsels that one thread takes.
pub(crate) struct Morsels {
    morsels: Arc<Mutex<Receiver<Morsel>>>,
    /// A ticket permits the sender to send another morsel.
    tickets: Sender<()>,
}

impl Iterator for Morsels {
    type Item = Morsel;

    fn next(&mut self) -> Option<Morsel> {
        let next = self.morsels.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        // The sender may have ended.
        let _ = self.tickets.send(());
        next
    }
}

/// Runs `job` on each of `threads` threads with the morsels that the thread takes, and returns the
/// results. Calls `tick` between morsels and while it waits for threads. Jobs must check `stop`.
///
/// # Errors
/// An error of the batches, of `tick` or of a job. [`Error::Input`] if the columns of a batch differ
/// in length. [`Error::Resource`] if the system refuses every thread.
pub(crate) fn share<S: Send, J: FnOnce(Morsels) -> Result<S> + Send>(
    batches: impl Iterator<Item = Result<Batch>>,
    threads: usize,
    job: impl Fn() -> J,
    stop: &AtomicBool,
    tick: impl FnMut() -> Result<()>,
) -> Result<Vec<S>> {
    let (sender, morsels) = channel::<Morsel>();
    let (ticket, tickets) = channel();
    (0..WAITING * threads).for_each(|_| ticket.send(()).unwrap_or_default());
    let morsels = Arc::new(Mutex::new(morsels));
    let jobs = (0..threads).map(|_| {
        let own = Morsels { morsels: Arc::clone(&morsels), tickets: ticket.clone() };
        let job = job();
        move || job(own)
    });
    let jobs: Vec<_> = jobs.collect();
    drop((morsels, ticket));
    threads::run(jobs.into_iter(), stop, tick, |tick| {
        for (number, batch) in batches.enumerate() {
            // A source that waits for data sends empty batches, so `tick` can check for Ctrl-C.
            tick()?;
            let batch = Arc::new(batch?);
            let len = batch.users.len();
            let values = batch.values.as_ref();
            if batch.items.len() != len || values.is_some_and(|values| values.len() != len) {
                return Err(Error::Input("the columns are not equally long"));
            }
            let mut start = 0;
            while start < len {
                // Morsels shrink towards the end of a batch, so that all threads finish it
                // together.
                let rows = ((len - start) / (4 * threads)).clamp(MORSEL, MAX_MORSEL);
                let end = len.min(start + rows);
                let morsel =
                    Morsel { batch: Arc::clone(&batch), number: number as u64, start, end };
                while let Err(silence) = tickets.recv_timeout(threads::PATIENCE) {
                    if silence == RecvTimeoutError::Disconnected {
                        return Ok(());
                    }
                    tick()?;
                }
                if sender.send(morsel).is_err() {
                    return Ok(());
                }
                tick()?;
                start = end;
            }
        }
        drop(sender);
        Ok(())
    })
}
