//! Splits a CSV file into cells and records, following the quotes byte by byte. The grammar is in
//! [`crate::csv`].

use std::ops::Range;

use super::marks::{Marks, SPAN};

/// Receives the cells of records in order.
pub trait Sink {
    /// Receives the next bytes of the current cell: the range `at` of `block`. A cell may come in any
    /// number of pieces, including zero.
    fn piece(&mut self, column: usize, block: &[u8], at: Range<usize>);
    /// Ends the current cell. `quoted` says whether the cell began with a quote.
    fn end_cell(&mut self, column: usize, quoted: bool);
    /// Ends a record, which had `cells` cells. Returns whether the splitter should continue with the
    /// next record.
    fn end_record(&mut self, cells: usize) -> bool;
}

/// The state inside a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Before the first byte of the cell.
    Start,
    /// Outside quotes, where a quote is an ordinary byte.
    Plain,
    /// Inside quotes.
    Quoted,
    /// After a quote that closes the quoted part, unless another quote follows.
    Closed,
}

/// The bytes that end a record. The header decides this, because no user writes the header. Some
/// programs quote only the line ends that they use, so a cell may hold other line ends unquoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The header has not ended yet. LF or CR will end it.
    Unknown,
    /// The header ended with CR; the next byte decides whether it was CR LF.
    Undecided,
    /// LF, or CR LF.
    Lf,
    /// CR.
    Cr,
}

/// Splits a file that arrives in blocks of any lengths.
#[derive(Debug)]
pub struct Splitter {
    delimiter: u8,
    end: End,
    /// Whether the last block ended with a CR that may belong to CR LF.
    holds_cr: bool,
    mode: Mode,
    column: usize,
    quoted: bool,
}

impl Splitter {
    /// Creates a splitter at the beginning of a file.
    #[must_use]
    pub fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            end: End::Unknown,
            holds_cr: false,
            mode: Mode::Start,
            column: 0,
            quoted: false,
        }
    }

    /// Creates a splitter at the beginning of a file without a header, whose records end with LF or CR LF.
    #[must_use]
    pub fn headless(delimiter: u8) -> Self {
        Self { end: End::Lf, ..Self::new(delimiter) }
    }

    /// Returns whether a quote that opens a cell has not been closed.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.mode == Mode::Quoted
    }

    /// Returns whether records end with CR only.
    #[must_use]
    pub fn ends_with_cr(&self) -> bool {
        self.end == End::Cr
    }

    /// Splits a block up to its end, the end of the header, or the end of the first record after
    /// which the sink stops. Returns the number of bytes read.
    pub fn push(&mut self, block: &[u8], sink: &mut impl Sink) -> usize {
        let Some(&first) = block.first() else { return 0 };
        let mut from = 0;
        if self.end == End::Undecided {
            (self.end, from) = if first == b'\n' { (End::Lf, 1) } else { (End::Cr, 0) };
        }
        if std::mem::take(&mut self.holds_cr) && first != b'\n' {
            self.piece(b"\r", 0..1, sink);
        }
        let ends = match self.end {
            End::Unknown | End::Undecided => [b'\n', b'\r'],
            End::Lf => [b'\n'; 2],
            End::Cr => [b'\r'; 2],
        };
        let (spans, rest) = block.as_chunks::<SPAN>();
        for (number, span) in spans.iter().enumerate() {
            let marks = Marks::of(span, [self.delimiter, ends[0], ends[1]]);
            if let Some(end) = self.span(marks, number * SPAN, block, &mut from, sink) {
                return end;
            }
        }
        if !rest.is_empty() {
            // Zeros match nothing.
            let mut span = [0; SPAN];
            span[..rest.len()].copy_from_slice(rest);
            let marks = Marks::of(&span, [self.delimiter, ends[0], ends[1]]);
            if let Some(end) = self.span(marks, spans.len() * SPAN, block, &mut from, sink) {
                return end;
            }
        }
        let mut end = block.len();
        if self.end == End::Lf && self.mode != Mode::Quoted && from < end && block[end - 1] == b'\r'
        {
            self.holds_cr = true;
            end -= 1;
        }
        if from < end {
            self.piece(block, from..end, sink);
        }
        block.len()
    }

    /// Ends the file, and with it an open record.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        if self.mode != Mode::Start || self.column > 0 {
            self.end_cell(sink);
            self.end_record(sink);
        }
    }

    /// Sends a part of an open cell.
    fn piece(&mut self, block: &[u8], at: Range<usize>, sink: &mut impl Sink) {
        if self.mode != Mode::Quoted {
            self.mode = Mode::Plain;
        }
        sink.piece(self.column, block, at);
    }

    /// Processes the marked bytes of a span that begins at `base`. Returns the position at which to
    /// stop, at the end of the header or if the sink stops.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the loop over bytes")]
    fn span(
        &mut self,
        marks: Marks,
        base: usize,
        block: &[u8],
        from: &mut usize,
        sink: &mut impl Sink,
    ) -> Option<usize> {
        // The LF of a CR LF may be the first byte of a block.
        let mut left = if base < *from { marks.all & !1 } else { marks.all };
        while left != 0 {
            if self.mode == Mode::Quoted {
                left &= marks.quotes;
                if left == 0 {
                    return None;
                }
            }
            let bit = left.trailing_zeros();
            left &= left - 1;
            let at = base + bit as usize;
            let byte = block[at];
            if byte == b'"' {
                self.quote(at, block, from, sink);
                // The mode has changed, so take all marks behind this byte again.
                left = marks.all & (u64::MAX << bit << 1);
                continue;
            }
            let is_end = byte != self.delimiter;
            let mut end = at;
            if is_end && self.end == End::Lf && *from < at && block[at - 1] == b'\r' {
                end -= 1;
            }
            if is_end && self.mode == Mode::Start && self.column == 0 && *from == end {
                // An empty line.
                *from = at + 1;
                continue;
            }
            sink.piece(self.column, block, *from..end);
            self.end_cell(sink);
            *from = at + 1;
            if is_end {
                let goes_on = self.end_record(sink);
                let is_header = self.end == End::Unknown;
                if is_header {
                    self.end = if byte == b'\n' { End::Lf } else { End::Undecided };
                }
                if is_header || !goes_on {
                    return Some(at + 1);
                }
            }
        }
        None
    }

    fn quote(&mut self, at: usize, block: &[u8], from: &mut usize, sink: &mut impl Sink) {
        match self.mode {
            Mode::Start if at == *from => {
                (self.mode, self.quoted, *from) = (Mode::Quoted, true, at + 1);
            }
            // Two quotes stand for one quote, and the second of them begins the next piece.
            Mode::Closed if at == *from => self.mode = Mode::Quoted,
            Mode::Quoted => {
                sink.piece(self.column, block, *from..at);
                (self.mode, *from) = (Mode::Closed, at + 1);
            }
            Mode::Start | Mode::Closed | Mode::Plain => self.mode = Mode::Plain,
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop")]
    fn end_cell(&mut self, sink: &mut impl Sink) {
        sink.end_cell(self.column, self.quoted);
        self.column += 1;
        (self.mode, self.quoted) = (Mode::Start, false);
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "an inner loop")]
    fn end_record(&mut self, sink: &mut impl Sink) -> bool {
        let cells = std::mem::take(&mut self.column);
        sink.end_record(cells)
    }
}
