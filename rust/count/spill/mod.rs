//! An encrypted temporary file for data over the memory limit.
//!
//! On Unix, only the file's owner may open the file, and the file is unlinked before the first
//! write. On Windows, no other process can open the file, and the system deletes the file when this
//! process closes it. So the system frees the disk space however the process ends. The encryption
//! key is never written to a file.

pub(crate) mod runs;

use std::fs::{File, OpenOptions};
use std::io::Write;

use chacha20::ChaCha20Legacy;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::random::entropy;

const FULL: Error = Error::Resource(if cfg!(windows) {
    "the folder for temporary files is full or cannot be written; set TMP to another folder, or allow more memory"
} else {
    "the folder for temporary files is full or cannot be written; set TMPDIR to another folder, or allow more memory"
});

const UNREADABLE: Error = Error::Resource(if cfg!(windows) {
    "a temporary file cannot be read back; check the disk, or set TMP to another folder"
} else {
    "a temporary file cannot be read back; check the disk, or set TMPDIR to another folder"
});

/// The number of buffered bytes that triggers a write, and the most bytes read at a time.
pub const PIECE: usize = 1 << 20;

/// An encrypted file of one thread. This thread appends all bytes. After that, any thread can read
/// at any position.
pub struct Spill {
    file: File,
    key: Zeroizing<[u8; 32]>,
    /// The number of bytes in the file.
    written: u64,
    /// The appended bytes that are not in the file yet.
    open: Vec<u8>,
    /// Whether a write has failed. Such a file is never written again: a second write at the same
    /// position of the keystream would reveal what the first one wrote.
    failed: bool,
}

impl Spill {
    /// Creates an empty file in the system's folder for temporary files.
    ///
    /// # Errors
    /// [`Error::Resource`] if the file cannot be created, [`Error::Entropy`] if there is no
    /// randomness for the key.
    pub fn new() -> Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).map_err(|_| Error::Entropy)?;
        let [name] = entropy::words()?;
        let path = std::env::temp_dir().join(format!("discreet-{name:016x}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        private(&mut options);
        let file = options.open(&path).map_err(|_| FULL)?;
        if cfg!(unix) {
            std::fs::remove_file(&path).map_err(|_| FULL)?;
        }
        Ok(Self { file, key, written: 0, open: Vec::new(), failed: false })
    }

    /// Returns the position at which the next byte is appended.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.written + self.open.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Resource`] if the file cannot be written, for example because the disk is full.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.open.extend_from_slice(bytes);
        if self.open.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    /// Writes all appended bytes to the file. Bytes must be in the file before they can be read.
    ///
    /// # Errors
    /// [`Error::Resource`] if the file cannot be written, for example because the disk is full.
    pub fn flush(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.failed, true) {
            return Err(FULL);
        }
        self.cipher(self.written)?.apply_keystream(&mut self.open);
        self.file.write_all(&self.open).map_err(|_| FULL)?;
        self.failed = false;
        self.written += self.open.len() as u64;
        self.open.clear();
        Ok(())
    }

    /// Fills `into` with the bytes from position `at` on.
    ///
    /// # Errors
    /// [`Error::Resource`] if the file ends before `into` is full, or cannot be read.
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        read_at(&self.file, at, into).map_err(|_| UNREADABLE)?;
        self.cipher(at)?.apply_keystream(into);
        Ok(())
    }

    /// Returns the cipher at a position of the keystream. Each position of the file is written only
    /// once, so no part of the keystream encrypts two texts.
    fn cipher(&self, at: u64) -> Result<ChaCha20Legacy> {
        let mut cipher = ChaCha20Legacy::new((&*self.key).into(), &[0; 8].into());
        cipher.try_seek(at).map_err(|_| FULL)?;
        Ok(cipher)
    }
}

/// Lets only the owner read and write the file.
#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

/// Refuses all other handles of the file, and sets `FILE_FLAG_DELETE_ON_CLOSE`.
#[cfg(windows)]
fn private(options: &mut OpenOptions) {
    use std::os::windows::fs::OpenOptionsExt;
    options.share_mode(0).custom_flags(0x0400_0000);
}

#[cfg(unix)]
fn read_at(file: &File, at: u64, into: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut at: u64, mut into: &mut [u8]) -> std::io::Result<()> {
    while !into.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, into, at)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        (into, at) = (&mut into[read..], at + read as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_encrypted_differently_in_two_files() {
        let mut raw = [[0; 64]; 2];
        for raw in &mut raw {
            let mut spill = Spill::new().unwrap();
            spill.push(&[7; 64]).unwrap();
            spill.flush().unwrap();
            read_at(&spill.file, 0, raw).unwrap();
        }
        assert!(raw[0].iter().zip(&raw[1]).filter(|(a, b)| a == b).count() < 16);
    }

    #[test]
    fn bytes_are_read_back_and_are_encrypted_in_the_file() {
        let mut spill = Spill::new().unwrap();
        let text: Vec<u8> = (0..3 * PIECE).map(|n| (n % 251) as u8).collect();
        for part in text.chunks(1000) {
            spill.push(part).unwrap();
        }
        assert_eq!(spill.end(), text.len() as u64);
        spill.flush().unwrap();
        for (at, len) in [(0, 10), (77, 1), (PIECE - 3, 100), (text.len() - 5, 5)] {
            let mut part = vec![0; len];
            spill.read(at as u64, &mut part).unwrap();
            assert_eq!(part, text[at..at + len]);
        }
        let mut raw = vec![0; 251];
        read_at(&spill.file, 0, &mut raw).unwrap();
        let same = raw.iter().zip(&text).filter(|(a, b)| a == b).count();
        assert!(same < 20, "{same} of 251 bytes are unchanged");
        assert!(spill.read(text.len() as u64, &mut [0]).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_is_never_written_again_after_a_failed_write() {
        let mut spill = Spill::new().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut spill.file, full);
        spill.push(b"secret").unwrap();
        spill.flush().unwrap_err();
        spill.file = file;
        spill.flush().unwrap_err();
        assert_eq!(spill.file.metadata().unwrap().len(), 0);
    }
}
