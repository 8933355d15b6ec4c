//! Decompresses gzip files of several members, which may end in zeros.

use std::io::{BufRead, Read, Result};

use flate2::bufread::GzDecoder;

/// The decompressed bytes of all members of a gzip file. Zeros after a member are ignored, as by the program gzip:
/// tapes and block devices pad files with them.
pub(super) struct Gzip<R> {
    /// `None` after the end of the file.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { member: Some(GzDecoder::new(bytes)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            if !skip_zeros(member.get_mut())? {
                self.member = None;
            }
            self.member = self.member.take().map(|ended| GzDecoder::new(ended.into_inner()));
        }
        Ok(0)
    }
}

/// Skips zeros. Returns whether other bytes follow.
fn skip_zeros(bytes: &mut impl BufRead) -> Result<bool> {
    loop {
        let held = bytes.fill_buf()?;
        if held.is_empty() {
            return Ok(false);
        }
        let zeros = held.iter().take_while(|&&byte| byte == 0).count();
        let is_over = zeros < held.len();
        bytes.consume(zeros);
        if is_over {
            return Ok(true);
        }
    }
}
