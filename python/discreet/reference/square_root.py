"""Running counts by the matrix square root: exact noise in rational numbers, and item by item with noise from numpy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["SquareRootTable", "square_root_noise"]


def square_root_noise(column: Sequence[int], *epochs: Sequence[int]) -> int:
    """Return the weighted sum of the noises of all epochs, divided by column[0] and rounded to an integer.

    The weights w solve sum_k w_k column[n - k] = column[0] for all n. The last noise of an epoch has the first weight.
    Rounding is floor(sum + 1/2 + 1/(3 column[0])).
    """
    weights: list[Fraction] = []
    for n in range(max(map(len, epochs))):
        known = (weights[k] * Fraction(column[n - k], column[0]) for k in range(n))
        weights.append(1 - sum(known, Fraction(0)))
    terms = (weight * z for noises in epochs for weight, z in zip(weights, reversed(noises), strict=False))
    total = sum(terms, Fraction(0)) / column[0]
    return math.floor(total + Fraction(1, 2) + Fraction(1, 3 * column[0]))


class SquareRootTable:
    """For each item, a running count and the noises of all rounds."""

    def __init__(self, factor: Sequence[float], sigma: float, seed: int) -> None:
        self._factor = np.array(factor)
        self._sigma = sigma
        self._random = np.random.default_rng(seed)
        self._items: dict[Hashable, tuple[list[int], NDArray[np.float64]]] = {}
        self._round = 0

    def step(self, number: int, events: Iterable[Iterable[Hashable]], threshold: float) -> list[tuple[Hashable, float]]:
        """Return the items whose estimates exceed the threshold after the events of this round."""
        for _, noises in self._items.values():
            noises[self._round : number] = self._random.normal(0, self._sigma, number - self._round)
        self._round = number
        for event in events:
            for item in set(event):
                if item not in self._items:
                    noises = np.zeros(len(self._factor))
                    noises[:number] = self._random.normal(0, self._sigma, number)
                    self._items[item] = ([0], noises)
                self._items[item][0][0] += 1
        weights = self._factor[:number][::-1]
        released = []
        for item, (count, noises) in self._items.items():
            estimate = count[0] + float(weights @ noises[:number])
            if estimate > threshold:
                released.append((item, estimate))
        return released
