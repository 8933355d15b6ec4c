"""A numpy generator with the two methods of `_core.Rng` that `reference.price_list` calls. Not for private data.

Its floating-point noise gives no privacy. It uses rounded Gaussian noise, whose distribution differs slightly from
discrete Gaussian noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["NumpyRng"]


class NumpyRng:
    """A generator that selects with numpy's Gumbel noise and measures with rounded Gaussian noise."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def select(self, counts: NDArray[np.int64], reference: int, gamma: float, bottom: int, offset: float) -> int:
        """Return the index of the largest score after Gumbel noise is added; `len(counts)` means "stop".

        Args:
            counts: The candidates' counts. A candidate with a count of zero is never selected.
            reference: A number that is subtracted from all counts. It does not change the distribution.
            gamma: The factor from counts to scores.
            bottom: The count of "stop", without its offset.
            offset: A number that is added to the score of "stop".
        """
        scores = np.where(counts > 0, gamma * (counts - reference), -np.inf)
        scores = np.append(scores, gamma * (bottom - reference) + offset)
        return int(np.argmax(scores + self._generator.gumbel(size=len(scores))))

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Return `size` numbers of Gaussian noise with standard deviation `sigma`, rounded to whole numbers."""
        return np.rint(self._generator.normal(0.0, sigma, size)).astype(np.int64)
