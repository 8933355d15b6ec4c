//! Reads and decompresses a file in blocks of bytes on its own thread. So a caller who waits for data
//! can be interrupted.

use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read, Result as IoResult, Seek, stdin};
use std::mem::{replace, take};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use super::encoding::Encoding;
use super::gzip::Gzip;
use crate::error::{Error, Result};

/// The default number of bytes of a block. Such a block fits into the cache of one core.
pub const BLOCK: usize = 1 << 18;
/// The largest number of blocks that wait for the caller.
const AHEAD: usize = 4;
/// The longest time a caller waits before it checks for an interrupt.
const PATIENCE: Duration = Duration::from_millis(50);

const CLOSED: Error =
    Error::Input("the file does not exist or cannot be opened; check its path and permissions");
const BROKEN: Error = Error::Input(
    "the data is truncated or damaged, was cut while it was read, or its suffix does not match its format",
);
const REFUSED: Error = Error::Resource(
    "the operating system refused to start a thread to read a file; close other programs, or raise the limit on threads",
);

/// The source of the bytes.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file. It is decompressed if its name ends in `.gz`.
    File(PathBuf),
    /// These first bytes and then standard input. All bytes are decompressed if they begin like gzip.
    Input(Vec<u8>),
}

impl Source {
    fn open(self, encoding: Encoding) -> Result<Box<dyn Read + Send>> {
        let (is_gzip, bytes): (bool, Box<dyn Read + Send>) = match self {
            Self::File(path) => {
                let is_gzip = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz"));
                (is_gzip, Box::new(Whole::new(File::open(path).map_err(|_| CLOSED)?)?))
            }
            Self::Input(head) => {
                (head.starts_with(b"\x1f\x8b"), Box::new(Cursor::new(head).chain(input()?)))
            }
        };
        if is_gzip {
            let bytes = BufReader::with_capacity(BLOCK, bytes);
            return Ok(encoding.decoded(Box::new(Gzip::new(bytes)), BLOCK));
        }
        Ok(encoding.decoded(bytes, BLOCK))
    }
}

#[cfg(unix)]
fn input() -> Result<impl Read + Send> {
    use std::os::fd::AsFd;

    let file = stdin().as_fd().try_clone_to_owned().map_err(|_| CLOSED)?;
    Whole::new(File::from(file))
}

#[cfg(not(unix))]
fn input() -> Result<impl Read + Send> {
    Ok(stdin())
}

/// A file whose end is an error before it has given the bytes that it had when it was opened: somebody cut it.
struct Whole {
    file: File,
    left: u64,
}

impl Whole {
    fn new(mut file: File) -> Result<Self> {
        let status = file.metadata().map_err(|_| CLOSED)?;
        // A pipe has no length and no position.
        let len = if status.is_file() { status.len() } else { 0 };
        let left = len.saturating_sub(file.stream_position().unwrap_or(len));
        Ok(Self { file, left })
    }
}

impl Read for Whole {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let read = self.file.read(into)?;
        if read == 0 && !into.is_empty() && self.left > 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// The result of waiting for bytes of a file.
pub(crate) enum Next {
    /// There are bytes that were not read.
    Ready,
    /// There is no data yet. The caller may check for an interrupt and ask again.
    Wait,
    /// All bytes of the file were read.
    End,
}

/// The bytes of a file in order, without a byte order mark of UTF-8.
pub(crate) struct Blocks {
    full: Receiver<Result<Option<Vec<u8>>>>,
    /// Used blocks that can be filled again.
    used: Sender<Vec<u8>>,
    /// The current block, and the number of bytes that were read from it.
    block: (Vec<u8>, usize),
    /// Whether no block has arrived yet.
    is_first: bool,
}

impl Blocks {
    /// Starts a thread that reads blocks of `size` bytes, but of at least four bytes. The thread ends at
    /// the end of the file, or after this value is dropped. A thread that waits for standard input ends
    /// only when it receives data or standard input ends.
    pub fn open(source: Source, size: usize, encoding: Encoding) -> Result<Self> {
        let (ready, full) = sync_channel(AHEAD);
        let (used, free) = channel();
        let work = move || read(source, size.max(4), encoding, &ready, &free);
        Builder::new().name("discreet-file".into()).spawn(work).map_err(|_| REFUSED)?;
        Ok(Self { full, used, block: (Vec::new(), 0), is_first: true })
    }

    /// Waits for a moment, unless there are bytes that were not read.
    pub fn next(&mut self) -> Result<Next> {
        while self.rest().is_empty() {
            let next = match self.full.recv_timeout(PATIENCE) {
                Ok(Ok(Some(block))) => block,
                Ok(Ok(None)) => return Ok(Next::End),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Wait),
                Err(RecvTimeoutError::Disconnected) => return Err(BROKEN),
            };
            let is_marked = take(&mut self.is_first) && next.starts_with(b"\xef\xbb\xbf");
            let (used, _) = replace(&mut self.block, (next, if is_marked { 3 } else { 0 }));
            // If the thread has ended, the block is dropped.
            self.used.send(used).unwrap_or_default();
        }
        Ok(Next::Ready)
    }

    /// Returns the bytes of the current block that were not read.
    pub fn rest(&self) -> &[u8] {
        &self.block.0[self.block.1..]
    }

    /// Marks some bytes of `rest` as read.
    pub fn skip(&mut self, bytes: usize) {
        self.block.1 += bytes;
    }
}

/// Sends all blocks. Then sends `None`, or the error that stopped the reading.
fn read(
    source: Source,
    size: usize,
    encoding: Encoding,
    ready: &SyncSender<Result<Option<Vec<u8>>>>,
    free: &Receiver<Vec<u8>>,
) {
    let end = source.open(encoding).and_then(|mut bytes| {
        loop {
            let mut block = free.try_recv().unwrap_or_default();
            block.resize(size, 0);
            let held = fill(&mut bytes, &mut block)?;
            block.truncate(held);
            let is_last = held < size;
            if (held > 0 && ready.send(Ok(Some(block))).is_err()) || is_last {
                return Ok(None);
            }
        }
    });
    // If the receiver was dropped, nobody needs the result.
    ready.send(end).unwrap_or_default();
}

/// Reads until the block is full or the source ends. Returns the number of bytes read.
fn fill(bytes: &mut impl Read, block: &mut [u8]) -> Result<usize> {
    let mut held = 0;
    while held < block.len() {
        match bytes.read(&mut block[held..]) {
            Ok(0) => break,
            Ok(read) => held += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(BROKEN),
        }
    }
    Ok(held)
}
