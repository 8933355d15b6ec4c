//! Turns panics of the engine into Python exceptions, and hides their texts, which may contain user data.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use pyo3::prelude::*;

use crate::error::Error;

/// Run `work` on data; a panic becomes `Error::Internal`.
///
/// A panic drops everything that `work` created, so no half-finished value is used again.
pub fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::Internal.into()))
}

/// Print only the location of a panic: its text may contain numbers of the data.
pub fn hide_panics() {
    set_hook(Box::new(|panic| {
        let (file, line) = panic.location().map_or(("", 0), |at| (at.file(), at.line()));
        eprintln!("discreet: internal error at {file}:{line}");
    }));
}
