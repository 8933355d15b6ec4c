"""numpy's generator with the interface of `_core.Rng`: the same laws in floating point. Not for private data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["NumpyRng"]


class NumpyRng:
    """A generator that samples by plain numpy: Gumbel noise and an argmax, and rounded Gaussian noise."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def select(self, counts: NDArray[np.int64], reference: int, gamma: float, bottom: int, offset: float) -> int:
        """Return the argmax of scores with Gumbel noise. Empty slots have no score."""
        scores = np.where(counts > 0, gamma * (counts - reference), -np.inf)
        scores = np.append(scores, gamma * (bottom - reference) + offset)
        return int(np.argmax(scores + self._generator.gumbel(size=len(scores))))

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Return rounded Gaussian noise."""
        return np.rint(self._generator.normal(0.0, sigma, size)).astype(np.int64)
