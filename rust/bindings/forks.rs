//! Identities of processes, which tell a forked child from its parent. A fork copies the parent's memory, and a child
//! in a new PID namespace may have the process id of its parent.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The number of forks between the process that loaded the engine and this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The id of a process, and its number of forks.
pub type Process = (u32, u64);

/// Return the identity of this process.
pub fn process() -> Process {
    (std::process::id(), FORKS.load(Ordering::Relaxed))
}

/// Return the process id, and the number of forks between the process that loaded the engine and this process.
#[pyfunction(name = "process")]
fn this_process() -> Process {
    process()
}

/// Count a fork. Python calls this function in the child.
#[pyfunction]
fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Add `process` to the module, and register the fork counter with Python.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(this_process, module)?)?;
    let os = module.py().import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = PyDict::new(module.py());
        hooks.set_item("after_in_child", wrap_pyfunction!(count_fork, module)?)?;
        os.call_method("register_at_fork", (), Some(&hooks))?;
    }
    Ok(())
}
