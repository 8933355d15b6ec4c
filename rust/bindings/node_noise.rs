//! Noise that is tied to items and nodes, and sums of it.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::noise::PyNoise;
use crate::error::{Error, Result};
use crate::stream::node_noise::NodeNoise;
use crate::stream::weighted_noise::WeightedNoise;

/// Noise that is the same whenever it is asked for, of the items of a stream at its nodes.
#[pyclass(name = "NodeNoise", module = "discreet._core")]
#[derive(Default)]
pub struct PyNodeNoise(NodeNoise);

#[pymethods]
impl PyNodeNoise {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds items by their keys of 32 bytes each.
    fn extend(&mut self, keys: &[u8]) -> Result<()> {
        let (items, rest) = keys.as_chunks();
        if !rest.is_empty() {
            return Err(Error::Parameter("a key has 32 bytes"));
        }
        self.0.extend(items);
        Ok(())
    }

    /// The noise of every item at a node.
    fn draw<'py>(
        &mut self,
        py: Python<'py>,
        node: u64,
        noise: &PyNoise,
    ) -> Bound<'py, PyArray1<i64>> {
        py.detach(|| self.0.draw(node, noise.sampler())).into_pyarray(py)
    }

    /// The noise at a node of the items from the `first` on.
    fn draw_from<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        node: u64,
        noise: &PyNoise,
    ) -> Bound<'py, PyArray1<i64>> {
        py.detach(|| self.0.draw_from(first, node, noise.sampler())).into_pyarray(py)
    }

    /// How many items there are: private, as the items are.
    fn items(&self) -> usize {
        self.0.items()
    }
}

/// Sums of the noises of all rounds so far, each weighted by how long ago it was, rounded to whole numbers.
#[pyclass(name = "WeightedNoise", module = "discreet._core")]
pub struct PyWeightedNoise(WeightedNoise);

#[pymethods]
impl PyWeightedNoise {
    #[new]
    fn new(column: PyReadonlyArray1<'_, i64>) -> Result<Self> {
        Ok(Self(WeightedNoise::new(&column.as_array().to_vec())?))
    }

    /// The weights that undo the column, in units of `2^-62`, each at most two units off.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.weights().to_vec().into_pyarray(py)
    }

    /// The rounded sum of every item in a round, and the items whose sums 62 bits leave open.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        noise: PyRef<'py, PyNodeNoise>,
        round: usize,
        law: &PyNoise,
    ) -> Result<(Bound<'py, PyArray1<i64>>, Vec<usize>)> {
        let noise = &noise.0;
        let (sums, open) = py.detach(|| self.0.advance(noise, round, law.sampler()))?;
        Ok((sums.into_pyarray(py), open))
    }

    /// The noises of an item, from the first round on to a little beyond the last.
    fn history(&self, item: usize) -> Vec<i64> {
        self.0.history(item)
    }
}
