"""Counts of public items that share a part of their noise, from the same random bits as `CorrelatedCounts`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["correlated_counts"]


class Draws(Protocol):
    """The draws of a release, as `_core.Rng` makes them."""

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Return discrete Gaussian noise."""

    def words(self, size: int) -> NDArray[np.uint32]:
        """Return uniform words of 32 bits."""


def correlated_counts(
    counts: Sequence[int], users: int, sigmas: tuple[float, float], rng: Draws
) -> tuple[list[int], int]:
    """Return the noisy counts and the noisy number of users.

    The sigmas are those of twice a count less `users`, and of `users`.
    """
    own = rng.discrete_gaussian(sigmas[0], len(counts)).tolist()
    measured = users + int(rng.discrete_gaussian(sigmas[1], 1)[0])
    heads = (rng.words(len(counts)) % 2).tolist()
    estimates = [Fraction(2 * n - users + noise + measured, 2) for n, noise in zip(counts, own, strict=True)]
    return [math.floor(e) + (e % 1 != 0) * head for e, head in zip(estimates, heads, strict=True)], measured
