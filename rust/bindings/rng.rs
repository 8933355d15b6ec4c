//! `Rng`: a random stream that Python can hold, and the exact draws that the kernels make from it.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use rand::Rng;
use rand_distr::Distribution;

use crate::error::{Error, Result};
use crate::gumbel::{Candidates, Choice};
use crate::noise::{DiscreteGaussian, Dyadic, Fixed, bernoulli_exp};
use crate::rng::SecureRng;

/// One stream of random bits for one release. It cannot be copied, pickled or used after a fork.
#[pyclass(name = "Rng", module = "discreet._core")]
pub struct PyRng {
    stream: SecureRng,
    process: u32,
}

impl PyRng {
    fn new(stream: SecureRng) -> Self {
        Self { stream, process: std::process::id() }
    }

    /// The stream, where this is still the process that opened it: a forked copy would repeat noise.
    pub fn stream(&mut self) -> Result<&mut SecureRng> {
        if self.process == std::process::id() {
            Ok(&mut self.stream)
        } else {
            Err(Error::Resource("this random stream belongs to another process; open a new one"))
        }
    }
}

#[pymethods]
impl PyRng {
    /// A stream with a fresh key from the operating system.
    #[new]
    fn from_os() -> Result<Self> {
        Ok(Self::new(SecureRng::from_os()?))
    }

    /// A repeatable stream, for tests alone.
    #[staticmethod]
    fn seeded(seed: u64) -> Self {
        Self::new(SecureRng::seeded(seed))
    }

    /// Whether the stream is repeatable, so that its draws give no privacy.
    #[getter]
    fn is_seeded(&self) -> bool {
        self.stream.is_seeded()
    }

    /// 64 random bits.
    fn bits64(&mut self) -> Result<u64> {
        Ok(self.stream()?.next_u64())
    }

    /// True with probability exactly `exp(-x)`.
    fn bernoulli_exp(&mut self, x: f64) -> Result<bool> {
        if !(0.0..=1e9).contains(&x) {
            return Err(Error::Parameter("x must lie between 0 and 1e9"));
        }
        let x = Dyadic::from_f64(x);
        let rest = Fixed::from(&x);
        Ok(bernoulli_exp(self.stream()?, rest, || (x, 0)))
    }

    /// Draws from the discrete Gaussian of scale `sigma`.
    fn discrete_gaussian<'py>(
        &mut self,
        py: Python<'py>,
        sigma: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        let noise = DiscreteGaussian::new(sigma)?;
        let stream = self.stream()?;
        let draws: Vec<i64> = py.detach(|| (0..size).map(|_| noise.sample(stream)).collect());
        Ok(draws.into_pyarray(py))
    }

    /// The slot that the exponential mechanism selects, or `len(counts)` for the stop element.
    fn select(
        &mut self,
        counts: Vec<i64>,
        reference: i64,
        gamma: f64,
        bottom: i64,
        offset: f64,
    ) -> Result<usize> {
        let candidates = Candidates::new(&counts, reference, gamma, bottom, offset)?;
        Ok(match candidates.select(self.stream()?) {
            Choice::Slot(slot) => slot,
            Choice::Bottom => counts.len(),
        })
    }
}
