//! Splits a file that arrives in blocks into lines, in limited memory.

/// The most bytes of a line, without its LF. The reader holds one line, and `serde_json` at most as much again.
pub const LONGEST_LINE: usize = 1 << 23;

/// Splits a file that arrives in blocks of any lengths.
#[derive(Debug, Default)]
pub struct Lines {
    /// The bytes of the line that has not ended; empty if it is too long.
    open: Vec<u8>,
    /// Whether the line that has not ended is too long.
    is_long: bool,
    /// The number of lines that have ended.
    ended: u64,
}

impl Lines {
    /// Reads a block up to the end of the first line in it, and returns the number of bytes read. Calls `sink` with the
    /// number of the line, from one, and its bytes; `None` if there are more than [`LONGEST_LINE`].
    pub fn push(&mut self, block: &[u8], mut sink: impl FnMut(u64, Option<&[u8]>)) -> usize {
        let Some(end) = block.iter().position(|&byte| byte == b'\n') else {
            self.hold(block);
            return block.len();
        };
        if self.open.is_empty() && !self.is_long {
            self.ended += 1;
            let line = &block[..end];
            sink(self.ended, Some(line).filter(|line| line.len() <= LONGEST_LINE));
        } else {
            self.hold(&block[..end]);
            self.end(sink);
        }
        end + 1
    }

    /// Ends the file, and with it an open line.
    pub fn finish(&mut self, sink: impl FnMut(u64, Option<&[u8]>)) {
        if self.is_long || !self.open.is_empty() {
            self.end(sink);
        }
    }

    /// Returns the number of bytes that are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.open.capacity()
    }

    fn hold(&mut self, piece: &[u8]) {
        if self.is_long {
            return;
        }
        if self.open.len() + piece.len() > LONGEST_LINE {
            (self.open, self.is_long) = (Vec::new(), true);
            return;
        }
        self.open.extend_from_slice(piece);
    }

    fn end(&mut self, mut sink: impl FnMut(u64, Option<&[u8]>)) {
        self.ended += 1;
        let is_long = std::mem::take(&mut self.is_long);
        sink(self.ended, (!is_long).then_some(&self.open));
        self.open.clear();
    }
}
