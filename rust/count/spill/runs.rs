//! What one thread has put away when its memory was full: its labels and rows by partition, chapter after chapter, in
//! a file of its own (see [`crate::count::spill`]). Codes are those of the chapter's own labels.

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

/// Everything that a thread has put away.
#[derive(Default)]
pub struct SpilledRuns {
    file: Option<Spill>,
    chapters: Vec<Vec<Extent>>,
}

/// One partition in one chapter: the hash and the length of every label, the labels' bytes, the rows.
struct Extent {
    at: u64,
    labels: usize,
    bytes: usize,
    rows: usize,
}

const HEAD: usize = 8;
/// How many rows are handed on at a time.
const READ: usize = 1 << 10;

impl SpilledRuns {
    /// Whether nothing has been put away.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chapters.is_empty()
    }

    /// How many times something has been put away.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.chapters.len()
    }

    /// How many rows of a partition there are.
    #[must_use]
    pub fn partition_len(&self, partition: usize) -> usize {
        self.chapters.iter().map(|extents| extents[partition].rows).sum()
    }

    /// Puts labels and rows away, unless all work is to `stop`.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) where the disk is full.
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
        self.chapters.push(extents);
        file.flush()
    }

    /// Adds the labels of a partition to those that are `known`; returns the code there of every code, by chapter.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) where the file cannot be read, or beyond 2^32 items.
    pub fn absorb(&self, partition: usize, known: &mut Interner) -> Result<Vec<Vec<u32>>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut text = Vec::new();
        let of_chapter = |extents: &Vec<Extent>| {
            let extent = &extents[partition];
            text.resize(extent.labels * HEAD + extent.bytes, 0);
            file.read(extent.at, &mut text)?;
            let (heads, mut bytes) = text.split_at(extent.labels * HEAD);
            let label = |head: &[u8; HEAD]| {
                let head = u64::from_le_bytes(*head);
                let (label, rest) = bytes.split_at(head as u32 as usize);
                bytes = rest;
                known.intern((head >> 32) as u32, PrefixedString::new(label))
            };
            heads.as_chunks().0.iter().map(label).collect()
        };
        self.chapters.iter().map(of_chapter).collect()
    }

    /// Calls `visit` with the rows of a partition, some at a time, under the codes that [`Self::absorb`] has returned, or the item's
    /// own key where there are none.
    ///
    /// # Errors
    /// [`Error::Resource`](crate::error::Error::Resource) where the file cannot be read.
    pub fn visit<P: Pair>(
        &self,
        partition: usize,
        codes: &[Vec<u32>],
        mut visit: impl FnMut(&[P]),
    ) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (mut piece, mut rows_read) = (Vec::new(), Vec::new());
        for (number, extents) in self.chapters.iter().enumerate() {
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
