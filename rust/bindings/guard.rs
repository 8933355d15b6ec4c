//! What keeps a panic of the engine from Python, where it would be no `Exception`, and its text from everybody.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use pyo3::prelude::*;

use crate::error::Error;

/// Does work that meets data; a panic is `Error::Internal`.
///
/// Whatever `work` had begun is dropped: no value that a panic left half done is seen again.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::Internal.into()))
}

/// Says where a panic came from and nothing else: its text may hold numbers of the data.
pub fn hide_panics() {
    set_hook(Box::new(|panic| {
        let (file, line) = panic.location().map_or(("", 0), |at| (at.file(), at.line()));
        eprintln!("discreet: internal error at {file}:{line}");
    }));
}
