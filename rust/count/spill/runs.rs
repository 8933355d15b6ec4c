//! One thread's spilled runs in one file (see [`crate::count::spill`]).
//!
//! A run is everything that the thread had in memory at one spill: labels and rows, by partition.
//! The items of its rows are codes, which number the run's labels of the partition from zero. Without
//! labels, the items are integer keys.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::count::label_log::LabelLog;
use crate::count::pairs::Pair;
use crate::count::spill::{PIECE, Spill};
use crate::count::store::Store;
use crate::count::threads::STOPPED;
use crate::error::Result;
use crate::hash::PARTITIONS;
use crate::labels::interner::Interner;
use crate::string_prefix::PrefixedString;

/// All spilled runs of a thread.
#[derive(Default)]
pub struct SpilledRuns {
    file: Option<Spill>,
    runs: Vec<Vec<Extent>>,
}

/// The place of one partition of one run in the file. The file holds a head for every label, then
/// the bytes of all labels, then the rows.
struct Extent {
    /// The position of the first head.
    at: u64,
    /// The number of labels.
    labels: usize,
    /// The number of bytes of all labels.
    bytes: usize,
    /// The number of rows.
    rows: usize,
}

/// Bytes of a label's head: four bytes for its length, and four bytes of its hash.
const HEAD: usize = 8;
/// Rows passed on at a time.
const READ: usize = 1 << 10;

impl SpilledRuns {
    /// Returns whether nothing was spilled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of runs.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns the number of rows of a partition.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        self.runs.iter().map(|extents| extents[partition].rows).sum()
    }

    /// Spills labels and rows as one run.
    ///
    /// # Errors
    /// [`STOPPED`] if `stop` is set. [`Error::Resource`](crate::error::Error::Resource) if the file
    /// cannot be created or written. [`Error::Entropy`](crate::error::Error::Entropy) if there is no
    /// randomness for the file's key.
    pub fn add<P: Pair>(
        &mut self,
        log: Option<&LabelLog>,
        rows: &Store<P>,
        stop: &AtomicBool,
    ) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Spill::new()?),
        };
        let mut extents = Vec::with_capacity(PARTITIONS);
        let mut row_bytes = Vec::new();
        for partition in 0..PARTITIONS {
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED);
            }
            let at = file.end();
            let (mut labels, mut bytes) = (0, 0);
            if let Some(log) = log {
                log.visit(partition, |hash, label| {
                    labels += 1;
                    bytes += label.bytes.len();
                    file.push(&(u64::from(hash) << 32 | label.bytes.len() as u64).to_le_bytes())
                })?;
                log.visit(partition, |_, label| file.push(label.bytes))?;
            }
            for piece in rows.pieces(partition) {
                piece.for_each(|row| row.write(&mut row_bytes));
                file.push(&row_bytes)?;
                row_bytes.clear();
            }
            let rows = rows.partition_len(partition);
            extents.push(Extent { at, labels, bytes, rows });
        }
        self.runs.push(extents);
        file.flush()
    }

    /// Adds the labels of a partition to `interner`. Returns a list for each run: the number in `interner`
    /// of each of the run's codes.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if the file cannot be read, or `interner` is
    /// full.
    pub fn intern_labels(
        &self,
        partition: usize,
        interner: &mut Interner,
    ) -> Result<Vec<Vec<u32>>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut text = Vec::new();
        let of_run = |extents: &Vec<Extent>| {
            let extent = &extents[partition];
            text.resize(extent.labels * HEAD + extent.bytes, 0);
            file.read(extent.at, &mut text)?;
            let (heads, mut bytes) = text.split_at(extent.labels * HEAD);
            let label = |head: &[u8; HEAD]| {
                let head = u64::from_le_bytes(*head);
                let (label, rest) = bytes.split_at(head as u32 as usize);
                bytes = rest;
                interner.intern((head >> 32) as u32, PrefixedString::new(label))
            };
            heads.as_chunks().0.iter().map(label).collect()
        };
        self.runs.iter().map(of_run).collect()
    }

    /// Calls `visit` with the rows of a partition in slices. `codes` is the result of
    /// [`Self::intern_labels`], by which the items of the rows are replaced. If `codes` is empty, the
    /// items stay as they are.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) if the file cannot be read.
    pub fn visit<P: Pair>(
        &self,
        partition: usize,
        codes: &[Vec<u32>],
        mut visit: impl FnMut(&[P]),
    ) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (mut piece, mut rows_read) = (Vec::new(), Vec::new());
        for (number, extents) in self.runs.iter().enumerate() {
            let Extent { labels, bytes, rows, .. } = extents[partition];
            let width = size_of::<P>();
            let codes = codes.get(number);
            let end = extents[partition].at + (labels * HEAD + bytes + rows * width) as u64;
            let mut at = end - (rows * width) as u64;
            while at < end {
                piece.resize((end - at).min(PIECE as u64) as usize, 0);
                file.read(at, &mut piece)?;
                at += piece.len() as u64;
                rows_read.clear();
                rows_read.extend(piece.chunks_exact(width).map(|row| {
                    let row = P::read(row);
                    codes.map_or(row, |codes| row.with_item(codes[row.item() as usize].into()))
                }));
                rows_read.chunks(READ).for_each(&mut visit);
            }
        }
        Ok(())
    }
}
