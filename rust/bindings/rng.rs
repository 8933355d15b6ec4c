//! `Rng`: a random stream that Python can hold, and the exact draws that the kernels make from it.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rand::Rng;
use rand_distr::Distribution;

use super::forks::{Process, process};
use super::noise::PyNoise;
use crate::error::{Error, Result};
use crate::noise::{
    BoundedBeta, Continuous, DiscreteGaussian, DiscreteLaplace, Dyadic, Fixed, Geometric, Sampler,
    TruncatedGeometric, bernoulli, bernoulli_exp, bernoulli_exp_ratio,
};
use crate::random::rng::SecureRng;
use crate::release::gumbel::Candidates;
use crate::release::permute_and_flip::permute_and_flip;
use crate::release::scores::{Choice, Scores};

/// One stream of random bits for one release. It cannot be copied, pickled or used after a fork.
#[pyclass(name = "Rng", module = "discreet._core")]
pub struct PyRng {
    stream: SecureRng,
    process: Process,
}

impl PyRng {
    fn new(stream: SecureRng) -> Self {
        Self { stream, process: process() }
    }

    /// The stream, where this is still the process that opened it: a forked copy would repeat noise.
    pub fn stream(&mut self) -> Result<&mut SecureRng> {
        if self.process == process() {
            Ok(&mut self.stream)
        } else {
            Err(Error::Resource("this random stream belongs to another process; open a new one"))
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

    fn draw_float<'py>(
        &mut self,
        py: Python<'py>,
        noise: impl Fn(f64) -> Continuous + Sync,
        scale: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::Parameter("scale must be a number above zero"));
        }
        let stream = self.stream()?;
        let mut draws: Vec<f64> = zeros(size)?;
        let noise = noise(scale);
        py.detach(|| noise.fill(stream, &mut draws));
        Ok(draws.into_pyarray(py))
    }
}

/// The stream that Python gave, or a fresh one kept in `fresh`.
pub fn given_or_fresh<'a>(
    rng: Option<&'a mut PyRng>,
    fresh: &'a mut Option<SecureRng>,
) -> Result<&'a mut SecureRng> {
    match rng {
        Some(rng) => rng.stream(),
        None => Ok(fresh.insert(SecureRng::from_os()?)),
    }
}

/// So many zeros, where there is memory for them.
fn zeros<T: Clone + Default>(size: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let reserved = values.try_reserve_exact(size);
    reserved.map_err(|_| {
        Error::Resource("there is no memory for so many draws; ask for fewer at a time")
    })?;
    values.resize(size, T::default());
    Ok(values)
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

    /// A repeatable stream that begins with up to 1,024 chosen words of 32 bits, for tests alone.
    #[staticmethod]
    fn scripted(words: Vec<u32>) -> Result<Self> {
        if words.len() > 1024 {
            return Err(Error::Parameter("a script has at most 1,024 words"));
        }
        Ok(Self::new(SecureRng::scripted(&words)))
    }

    /// A new stream, keyed by 256 bits of this one.
    fn split(&mut self) -> Result<Self> {
        Ok(Self::new(self.stream()?.split()))
    }

    /// Whether the stream is repeatable, so that its draws give no privacy.
    #[getter]
    fn is_seeded(&self) -> bool {
        self.stream.is_seeded()
    }

    /// 32 random bits.
    fn bits32(&mut self) -> Result<u32> {
        Ok(self.stream()?.next_u32())
    }

    /// 64 random bits: two words of 32, the lower half first.
    fn bits64(&mut self) -> Result<u64> {
        Ok(self.stream()?.next_u64())
    }

    /// The next words of 32 random bits.
    fn words<'py>(&mut self, py: Python<'py>, size: usize) -> Result<Bound<'py, PyArray1<u32>>> {
        let stream = self.stream()?;
        let mut words: Vec<u32> = zeros(size)?;
        py.detach(|| words.iter_mut().for_each(|word| *word = stream.next_u32()));
        Ok(words.into_pyarray(py))
    }

    /// True with probability exactly `p`.
    fn bernoulli(&mut self, p: f64) -> Result<bool> {
        bernoulli(self.stream()?, p)
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

    /// True with probability exactly `exp(-numerator / denominator)`.
    fn bernoulli_exp_ratio(&mut self, numerator: u64, denominator: u64) -> Result<bool> {
        bernoulli_exp_ratio(self.stream()?, numerator, denominator)
    }

    /// Draws of integer noise.
    fn sample<'py>(
        &mut self,
        py: Python<'py>,
        noise: &PyNoise,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, noise.sampler(), size)
    }

    /// Draws from the discrete Gaussian of scale `sigma`.
    fn discrete_gaussian<'py>(
        &mut self,
        py: Python<'py>,
        sigma: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, &DiscreteGaussian::new(sigma)?.into(), size)
    }

    /// Draws from the discrete Laplace law of a scale.
    fn discrete_laplace<'py>(
        &mut self,
        py: Python<'py>,
        scale: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, &DiscreteLaplace::new(scale)?.into(), size)
    }

    /// Draws from the discrete Laplace law of a scale within a bound.
    fn truncated_geometric<'py>(
        &mut self,
        py: Python<'py>,
        scale: f64,
        bound: i64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, &TruncatedGeometric::new(scale, bound)?.into(), size)
    }

    /// Draws from the geometric law of a scale.
    fn geometric<'py>(
        &mut self,
        py: Python<'py>,
        scale: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<i64>>> {
        self.draw(py, &Geometric::new(scale)?.into(), size)
    }

    /// Draws from `P[x] ∝ (reach² - x²)^power` on `|x| < reach`.
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

    /// Floating-point draws from the Gaussian law; not for published counts.
    fn float_gaussian<'py>(
        &mut self,
        py: Python<'py>,
        scale: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        self.draw_float(py, Continuous::Gaussian, scale, size)
    }

    /// Floating-point draws from the Laplace law; not for published counts.
    fn float_laplace<'py>(
        &mut self,
        py: Python<'py>,
        scale: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        self.draw_float(py, Continuous::Laplace, scale, size)
    }

    /// Floating-point draws from the Gumbel law; not for published counts.
    fn float_gumbel<'py>(
        &mut self,
        py: Python<'py>,
        scale: f64,
        size: usize,
    ) -> Result<Bound<'py, PyArray1<f64>>> {
        self.draw_float(py, Continuous::Gumbel, scale, size)
    }

    /// The slot that the exponential mechanism selects, or `len(counts)` for the stop element.
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

    /// Up to `k` slots that the exponential mechanism selects one after the other, without replacement, and
    /// whether the stop element ended them.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parameters of a selection, by name in Python"
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

    /// The slot that permute-and-flip selects, or `len(counts)` for the stop element.
    fn permute_and_flip(
        &mut self,
        py: Python<'_>,
        counts: Counts<'_>,
        gamma: f64,
        bottom: i64,
        offset: f64,
    ) -> Result<usize> {
        let counts = counts.into_vec();
        let reference = counts.iter().copied().max().unwrap_or(0).max(0);
        let scores = Scores::new(&counts, reference, gamma, bottom, offset)?;
        let stream = self.stream()?;
        let choice = py.detach(|| permute_and_flip(&scores, stream));
        Ok(slot(choice, counts.len()))
    }
}

/// Counts as an array or as a list.
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
