//! Python bindings: thin wrappers of the engine, which release the GIL during long work.
#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod check;
mod confirmed_counts;
mod convolution;
mod count;
mod csv;
mod foreign;
mod forks;
mod import;
mod item_table;
mod json;
mod known;
mod node_noise;
mod noise;
mod pairs;
mod panics;
mod private_count_release;
mod rng;
mod rows;
mod sources;
mod sparse_vector;
mod stream;
mod table;
mod threshold;
mod union;
mod values;
mod wanted;

use std::panic::{catch_unwind, set_hook};

use numpy::PyArray1;
use pyo3::exceptions::{PyImportError, PyKeyboardInterrupt};
use pyo3::prelude::*;

use crate::error::Error;
use crate::random::entropy;

/// The Rust engine of `discreet`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // PyO3 creates classes with hash tables of the standard library, which panic without randomness. So first return an
    // error if there is no randomness.
    let [_] = entropy::words()?;
    load_numpy(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<noise::PyNoise>()?;
    module.add_class::<threshold::PyThreshold>()?;
    module.add_class::<item_table::PyItemTable>()?;
    module.add_class::<known::PyKnownLabels>()?;
    module.add_class::<node_noise::PyNodeNoise>()?;
    module.add_class::<node_noise::PyNodeSums>()?;
    module.add_class::<node_noise::PyWeightedNoise>()?;
    module.add_function(wrap_pyfunction!(threshold::chance_table, module)?)?;
    module.add_function(wrap_pyfunction!(threshold::partition_selection, module)?)?;
    module.add_function(wrap_pyfunction!(convolution::compose, module)?)?;
    module.add_class::<pairs::PyPairs>()?;
    module.add_class::<pairs::PyWeightedPairs>()?;
    module.add_class::<union::PyLists>()?;
    check::register(module)?;
    wanted::register(module)?;
    count::register(module)?;
    csv::register(module)?;
    json::register(module)?;
    confirmed_counts::register(module)?;
    private_count_release::register(module)?;
    sparse_vector::register(module)?;
    table::register(module)?;
    rows::register(module)?;
    forks::register(module)?;
    module.add_class::<rng::PyRng>()?;
    Ok(())
}

/// Load numpy's C interface, and then set the hook for panics. Its first use panics if Python raises there, so it
/// happens here, where an interrupt can be returned as one. An interface that does not fit panics a second time.
fn load_numpy(py: Python<'_>) -> PyResult<()> {
    // This raises all errors of numpy itself.
    py.import("numpy.lib")?;
    set_hook(Box::new(|_| {}));
    let is_loaded = || catch_unwind(|| drop(PyArray1::<i64>::zeros(py, 0, false))).is_ok();
    let mut result = Ok(());
    if !is_loaded() {
        let misfit =
            "this version of numpy does not fit discreet: pip install --upgrade numpy discreet";
        result = Err(match PyErr::take(py) {
            Some(error) => error,
            None if is_loaded() => PyKeyboardInterrupt::new_err(()),
            None => PyImportError::new_err(misfit),
        });
    }
    panics::hide_panics();
    result
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let class = match error {
            Error::Parameter(_) => "ParameterError",
            Error::Schema(_) => "SchemaError",
            Error::ItemType(_) => "ItemTypeError",
            Error::Input(_) => "InputError",
            Error::Entropy => "EntropyError",
            Error::Resource(_) => "ResourceError",
            Error::Internal => "DiscreetError",
        };
        let text = error.to_string();
        Python::attach(|py| {
            let made = py
                .import("discreet.errors")
                .and_then(|module| module.getattr(class))
                .and_then(|class| class.call1((text,)));
            match made {
                Ok(value) => PyErr::from_value(value),
                Err(error) => error,
            }
        })
    }
}
