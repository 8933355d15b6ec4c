//! `ledger_changes`: the plain lines of a ledger, read quickly.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple};

use super::panics::catch_panics;
use crate::error::Error;
use crate::ledger::{Kind, SEAL, read};

type Changes<'py> = (Bound<'py, PyList>, usize, u64, Bound<'py, PyString>);

/// Read plain lines in `content[start:]`, after the event with this number and seal. A plain line is a charge, a
/// reservation or a release as Python writes it, with a valid seal. Return a list of changes, the end of the last plain
/// line, and its event's number and seal. A change has the kind, the name of the dataset as JSON without quotes, the
/// number of the event that reserved the charge, and the units of rho and delta.
#[pyfunction]
fn ledger_changes<'py>(
    py: Python<'py>,
    content: &Bound<'py, PyBytes>,
    start: usize,
    number: u64,
    seal: &str,
) -> PyResult<Changes<'py>> {
    let wrong = Error::Parameter("no place in a ledger, or no seal");
    let seal: [u8; SEAL] = seal.as_bytes().try_into().map_err(|_| wrong.clone())?;
    let bytes = content.as_bytes();
    if start > bytes.len() {
        return Err(wrong.into());
    }
    let found = catch_panics(|| Ok(py.detach(|| read(bytes, start, number.into(), seal))))?;
    let changes = PyList::empty(py);
    let mut dataset = PyBytes::new(py, b"");
    for change in &found.changes {
        let kind = match change.kind {
            Kind::Charged => intern!(py, "charged"),
            Kind::Reserved => intern!(py, "reserved"),
            Kind::Released => intern!(py, "released"),
        };
        let name = &bytes[change.dataset.clone()];
        if dataset.as_bytes() != name {
            dataset = PyBytes::new(py, name);
        }
        let [reserved, rho, delta] = [change.reserved, change.rho, change.delta];
        let numbers = (whole(py, reserved)?, whole(py, rho)?, whole(py, delta)?);
        changes.append(PyTuple::new(
            py,
            [kind.as_any(), dataset.as_any(), &numbers.0, &numbers.1, &numbers.2],
        )?)?;
    }
    let seal = PyString::from_bytes(py, &found.seal)?;
    Ok((changes, found.end, u64::try_from(found.number).map_err(|_| wrong)?, seal))
}

/// Return an int. Numbers of 64 bits are converted faster.
fn whole(py: Python<'_>, number: u128) -> PyResult<Bound<'_, PyAny>> {
    let int: Bound<'_, PyInt> = match u64::try_from(number) {
        Ok(small) => small.into_pyobject(py)?,
        Err(_) => number.into_pyobject(py)?,
    };
    Ok(int.into_any())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ledger_changes, module)?)
}
