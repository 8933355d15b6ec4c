//! Which process this is: a fork has the memory of another, and may have its number.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How many forks lie between the first process that loaded the engine and this one. A process of another namespace may
/// have the number of the process that forked it.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// A process: its number, and its forks.
pub type Process = (u32, u64);

/// This process.
pub fn process() -> Process {
    (std::process::id(), FORKS.load(Ordering::Relaxed))
}

/// The number of this process, and how many forks lie between the first process that loaded the engine and it.
#[pyfunction(name = "process")]
fn this_process() -> Process {
    process()
}

/// Counts a fork, in the child.
#[pyfunction]
fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Adds `process`, and has Python count the forks that it makes.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(this_process, module)?)?;
    let os = module.py().import("os")?;
    if os.hasattr("register_at_fork")? {
        let told = PyDict::new(module.py());
        told.set_item("after_in_child", wrap_pyfunction!(count_fork, module)?)?;
        os.call_method("register_at_fork", (), Some(&told))?;
    }
    Ok(())
}
