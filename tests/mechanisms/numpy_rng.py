"""A numpy generator with the methods of `_core.Rng` that Private Count Release calls. Its noise gives no privacy."""

import numpy as np


class NumpyRng:
    """A generator that selects with numpy's Gumbel noise and measures with rounded Gaussian noise."""

    def __init__(self, seed):
        self._generator = np.random.default_rng(seed)

    def select(self, counts, reference, gamma, bottom, offset):
        scores = np.where(counts > 0, gamma * (counts - reference), -np.inf)
        scores = np.append(scores, gamma * (bottom - reference) + offset)
        return int(np.argmax(scores + self._generator.gumbel(size=len(scores))))

    def discrete_gaussian(self, sigma, size):
        return np.rint(self._generator.normal(0.0, sigma, size)).astype(np.int64)
