//! Files of tests.

use std::path::PathBuf;

use crate::random::entropy;

/// A file that is removed at the end of a test.
pub(crate) struct TempFile(pub PathBuf);

impl TempFile {
    pub fn new(name: &str, content: &[u8]) -> Self {
        let [word] = entropy::words().unwrap();
        let path = std::env::temp_dir().join(format!("discreet-test-{word:016x}-{name}"));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}
