//! Converts panics of the engine to Python exceptions. The text of a panic is never printed, because it may contain
//! user data.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use pyo3::prelude::*;

use crate::error::Error;

/// Run `work` and return its result. If `work` panics, return `Error::Internal`.
///
/// A panic drops all values that `work` created, so none of these values is used half-finished.
pub fn catch_panics<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::Internal.into()))
}

/// Set a hook that prints the place of a panic in the source code, but not the text of the panic.
pub fn hide_panics() {
    set_hook(Box::new(|panic| {
        let (file, line) = panic.location().map_or(("", 0), |at| (at.file(), at.line()));
        eprintln!("discreet: internal error at {file}:{line}");
    }));
}
