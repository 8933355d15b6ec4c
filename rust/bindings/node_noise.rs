//! `NodeNoise`, `NodeSums` and `WeightedNoise`: reproducible noise for the items of a stream, and sums of this noise.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::noise::PyNoise;
use crate::error::{Error, Result};
use crate::stream::node_noise::NodeNoise;
use crate::stream::node_sums::NodeSums;
use crate::stream::weighted_noise::WeightedNoise;

/// Reproducible noise for the items of a stream at numbered nodes. A node stands for a round or for a range of rounds.
#[pyclass(name = "NodeNoise", module = "discreet._core")]
#[derive(Default)]
pub struct PyNodeNoise(NodeNoise);

#[pymethods]
impl PyNodeNoise {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Add items by their keys of 32 bytes each.
    fn extend(&mut self, keys: &[u8]) -> Result<()> {
        let (items, rest) = keys.as_chunks();
        if !rest.is_empty() {
            return Err(Error::Parameter("keys must have 32 bytes each"));
        }
        self.0.extend(items);
        Ok(())
    }

    /// Draw the noise of every item at a node.
    fn draw<'py>(
        &mut self,
        py: Python<'py>,
        node: u64,
        noise: &PyNoise,
    ) -> Bound<'py, PyArray1<i64>> {
        py.detach(|| self.0.draw(node, noise.sampler())).into_pyarray(py)
    }

    /// Draw the noise at a node for the items from index `first` on.
    fn draw_from<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        node: u64,
        noise: &PyNoise,
    ) -> Bound<'py, PyArray1<i64>> {
        py.detach(|| self.0.draw_from(first, node, noise.sampler())).into_pyarray(py)
    }

    /// Return the number of items. This number is as private as the items.
    fn items(&self) -> usize {
        self.0.items()
    }
}

/// The sums of every item's noise over the nodes of a round.
#[pyclass(name = "NodeSums", module = "discreet._core")]
#[derive(Default)]
pub struct PyNodeSums(NodeSums);

#[pymethods]
impl PyNodeSums {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Return the sums of all items over these nodes. A node is a number, the scale of its noise, and this noise.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        mut noise: PyRefMut<'py, PyNodeNoise>,
        nodes: Vec<(u64, f64, PyRef<'py, PyNoise>)>,
    ) -> Bound<'py, PyArray1<i64>> {
        let nodes: Vec<_> =
            nodes.iter().map(|(node, scale, law)| (*node, *scale, law.sampler())).collect();
        let noise = &mut noise.0;
        py.detach(|| self.0.advance(noise, &nodes)).into_pyarray(py)
    }
}

/// Sums of the noise of all rounds so far, weighted by age and rounded to integers.
#[pyclass(name = "WeightedNoise", module = "discreet._core")]
pub struct PyWeightedNoise(WeightedNoise);

#[pymethods]
impl PyWeightedNoise {
    #[new]
    fn new(column: PyReadonlyArray1<'_, i64>) -> Result<Self> {
        Ok(Self(WeightedNoise::new(&column.as_array().to_vec())?))
    }

    /// The weights that invert the column, in units of `2^-62`, each at most two units off.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.weights().to_vec().into_pyarray(py)
    }

    /// Return the rounded sum of every item in a round of an epoch, both counted as `WeightedNoise` does. Also return the
    /// items whose rounding 62 fractional bits do not decide.
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        noise: PyRef<'py, PyNodeNoise>,
        round: (usize, usize),
        law: &PyNoise,
    ) -> Result<(Bound<'py, PyArray1<i64>>, Vec<usize>)> {
        let noise = &noise.0;
        let (sums, open) = py.detach(|| self.0.advance(noise, round, law.sampler()))?;
        Ok((sums.into_pyarray(py), open))
    }

    /// Return the noise of an item by epoch, up to the end of the current block.
    fn history(&self, noise: PyRef<'_, PyNodeNoise>, item: usize, law: &PyNoise) -> Vec<Vec<i64>> {
        self.0.history(&noise.0, item, law.sampler())
    }
}
