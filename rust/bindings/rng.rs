//! `Rng`: a random stream for Python, with methods that draw from the stream.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rand::Rng;
use rand_distr::Distribution;

use super::forks::{Process, process};
use super::noise::PyNoise;
use crate::error::{Error, Result};
use crate::noise::{BoundedBeta, DiscreteGaussian, Dyadic, Fixed, Sampler, bernoulli_exp};
use crate::random::rng::SecureRng;
use crate::release::gumbel::Candidates;
use crate::release::scores::{Choice, Scores};

/// A stream of random bits. A stream cannot be copied or pickled, and a forked process cannot use its parent's stream.
#[pyclass(name = "Rng", module = "discreet._core")]
pub struct PyRng {
    stream: SecureRng,
    process: Process,
}

impl PyRng {
    fn new(stream: SecureRng) -> Self {
        Self { stream, process: process() }
    }

    /// Return the stream. Return an error in a forked process, whose copy of the stream would repeat the parent's
    /// noise.
    pub fn stream(&mut self) -> Result<&mut SecureRng> {
        if self.process == process() {
            Ok(&mut self.stream)
        } else {
            Err(Error::Resource(
                "this random stream was opened in another process; open a new one after a fork",
            ))
        }
    }

    fn draw<'py>(
        &mut self,
        py: Python<'py>,
        noise: &Sampler,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        let stream = self.stream()?;
        let mut draws = zeros(size)?;
        py.detach(|| noise.fill(stream, &mut draws));
        Ok(draws.into_pyarray(py))
    }
}

/// Return the stream that Python passed. If Python passed none, open a stream, store it in `fresh` and return it.
pub fn given_or_fresh<'a>(
    rng: Option<&'a mut PyRng>,
    fresh: &'a mut Option<SecureRng>,
) -> Result<&'a mut SecureRng> {
    match rng {
        Some(rng) => rng.stream(),
        None => Ok(fresh.insert(SecureRng::from_os()?)),
    }
}

/// Allocate `size` zeros, or return an error if memory does not suffice.
fn zeros<T: Clone + Default>(size: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let reserved = values.try_reserve_exact(size);
    reserved.map_err(|_| {
        Error::Resource("not enough memory for this many draws; draw fewer at a time")
    })?;
    values.resize(size, T::default());
    Ok(values)
}

#[pymethods]
impl PyRng {
    /// Open a stream with a fresh key from the operating system.
    #[new]
    fn from_os() -> Result<Self> {
        Ok(Self::new(SecureRng::from_os()?))
    }

    /// Open a repeatable stream, only for tests.
    #[staticmethod]
    fn seeded(seed: u64) -> Self {
        Self::new(SecureRng::seeded(seed))
    }

    /// Open a repeatable stream that begins with up to 1,024 chosen 32-bit words, only for tests.
    #[staticmethod]
    fn scripted(words: Vec<u32>) -> Result<Self> {
        if words.len() > 1024 {
            return Err(Error::Parameter("a script has at most 1,024 words"));
        }
        Ok(Self::new(SecureRng::scripted(&words)))
    }

    /// Return a new stream, whose key is the next 256 bits of this stream.
    fn split(&mut self) -> Result<Self> {
        Ok(Self::new(self.stream()?.split()))
    }

    /// Whether the stream is repeatable, so that its draws give no privacy.
    #[getter]
    fn is_seeded(&self) -> bool {
        self.stream.is_seeded()
    }

    /// Draw 32 random bits.
    fn bits32(&mut self) -> Result<u32> {
        Ok(self.stream()?.next_u32())
    }

    /// Draw 64 random bits, which are two 32-bit words. The first word is the low half.
    fn bits64(&mut self) -> Result<u64> {
        Ok(self.stream()?.next_u64())
    }

    /// Draw `size` 32-bit words.
    fn words<'py>(&mut self, py: Python<'py>, size: usize) -> Result<Bound<'py, PyArray1<u32>>> {
        let stream = self.stream()?;
        let mut words: Vec<u32> = zeros(size)?;
        py.detach(|| words.iter_mut().for_each(|word| *word = stream.next_u32()));
        Ok(words.into_pyarray(py))
    }

    /// Return true with probability exactly `exp(-x)`.
    fn bernoulli_exp(&mut self, x: f64) -> Result<bool> {
        if !(0.0..=1e9).contains(&x) {
            return Err(Error::Parameter("x must lie between 0 and 1e9"));
        }
        let x = Dyadic::from_f64(x);
        let rest = Fixed::from(&x);
        Ok(bernoulli_exp(self.stream()?, rest, || (x, 0)))
    }

    /// Draw integer noise.
    fn sample<'py>(
        &mut self,
        py: Python<'py>,
        noise: &PyNoise,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, noise.sampler(), size)
    }

    /// Draw from the discrete Gaussian of scale `sigma`.
    fn discrete_gaussian<'py>(
        &mut self,
        py: Python<'py>,
        sigma: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, &DiscreteGaussian::new(sigma)?.into(), size)
    }

    /// Draw from `P[x] ∝ (reach² - x²)^power` on `|x| < reach`.
    fn bounded_beta<'py>(
        &mut self,
        py: Python<'py>,
        reach: u64,
        power: u32,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        let noise = BoundedBeta::new(reach, power)?;
        let stream = self.stream()?;
        let mut draws = zeros(size)?;
        py.detach(|| draws.iter_mut().for_each(|draw| *draw = noise.sample(stream)));
        Ok(draws.into_pyarray(py))
    }

    /// Return the slot that the exponential mechanism selects, or `len(counts)` for the stop element.
    fn select(
        &mut self,
        py: Python<'_>,
        counts: Counts<'_>,
        reference: i64,
        gamma: f64,
        bottom: i64,
        offset: f64,
    ) -> Result<usize> {
        let counts = counts.into_vec();
        let scores = Scores::new(&counts, reference, gamma, bottom, offset)?;
        let stream = self.stream()?;
        let choice = py.detach(|| Candidates::new(scores).select(stream));
        Ok(slot(choice, counts.len()))
    }

    /// Return up to `k` slots that the exponential mechanism selects without replacement, and whether the stop
    /// element ended the selection.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parameters of a selection, passed by name in Python"
    )]
    fn peel(
        &mut self,
        py: Python<'_>,
        counts: Counts<'_>,
        reference: i64,
        gamma: f64,
        bottom: i64,
        offset: f64,
        k: usize,
    ) -> Result<(Vec<usize>, bool)> {
        let counts = counts.into_vec();
        let scores = Scores::new(&counts, reference, gamma, bottom, offset)?;
        let stream = self.stream()?;
        py.detach(|| Candidates::new(scores).peel(k, stream))
    }
}

/// Counts as an array or a list.
#[derive(FromPyObject)]
enum Counts<'py> {
    Array(PyReadonlyArray1<'py, i64>),
    List(Vec<i64>),
}

impl Counts<'_> {
    fn into_vec(self) -> Vec<i64> {
        match self {
            Self::Array(counts) => counts.as_array().to_vec(),
            Self::List(counts) => counts,
        }
    }
}

fn slot(choice: Choice, bottom: usize) -> usize {
    match choice {
        Choice::Slot(slot) => slot,
        Choice::Bottom => bottom,
    }
}
