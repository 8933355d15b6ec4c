"""Sparse vector: the first noisy value that reaches a noisy threshold, with the same draws as the Rust kernel."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.reference.noise import Bits

__all__ = ["Draws", "corrected", "first_above", "shuffled"]

BLOCK = 1 << 9
IN_PLACE = 12

Noise = TypeVar("Noise", contravariant=True)


class Draws(Bits, Protocol, Generic[Noise]):
    """A stream of random words that also draws noise, as `_core.Rng` does."""

    def sample(self, noise: Noise, size: int) -> NDArray[np.int64]:
        """Return integer noise."""


def first_above(
    values: NDArray[np.int64], threshold: int, of_threshold: Noise, of_query: Noise, rng: Draws[Noise]
) -> int | None:
    """Return the place of the first noisy value that reaches the noisy threshold, or None."""
    return _first_above(values, 0, threshold, of_threshold, of_query, rng)


def _first_above(
    values: NDArray[np.int64], start: int, threshold: int, of_threshold: Noise, of_query: Noise, rng: Draws[Noise]
) -> int | None:
    bar = threshold + int(rng.sample(of_threshold, 1)[0])
    for first, last in ((start, len(values)), (0, start)):
        for begin in range(first, last, BLOCK):
            block = values[begin : min(begin + BLOCK, last)]
            hits = np.flatnonzero(block + rng.sample(of_query, len(block)) >= bar)
            if len(hits):
                return begin + int(hits[0])
    return None


def corrected(
    values: NDArray[np.int64],
    answers: NDArray[np.int64],
    runs: int,
    threshold: int,
    of_threshold: Noise,
    of_query: Noise,
    again: Noise,
    rng: Draws[Noise],
) -> NDArray[np.int64]:
    """Return the answers after some runs, each of which measures again the answer that it finds.

    A run finds an answer whose distance from its value reaches the threshold. All runs use one random order, and each
    begins at a random place.
    """
    answers, order = answers.copy(), shuffled(len(values), rng)
    for _ in range(runs if len(values) else 0):
        distances = np.abs(values - answers)[order]
        place = _first_above(distances, _below(len(values), rng), threshold, of_threshold, of_query, rng)
        if place is not None:
            row = order[place]
            answers[row] = values[row] + rng.sample(again, 1)[0]
    return answers


def shuffled(size: int, rng: Bits) -> NDArray[np.int64]:
    """Return the numbers below `size` in a uniformly random order.

    Numbers are dealt into random buckets, and each bucket is shuffled (Rao and Sandelius 1961).
    """
    bits = max(0, max(size, 1).bit_length() - 1 - IN_PLACE)
    dealt = [rng.bits32() >> 32 - bits for _ in range(size)] if bits else [0] * size
    order = np.argsort(np.array(dealt, np.int64), kind="stable")
    start = 0
    for length in np.bincount(np.array(dealt, np.int64), minlength=1 << bits).tolist():
        bucket = order[start : start + length]
        for last in range(length - 1, 0, -1):
            other = _below(last + 1, rng)
            bucket[[last, other]] = bucket[[other, last]]
        start += length
    return order


def _below(n: int, rng: Bits) -> int:
    """Return a uniform number below n (Lemire 2019)."""
    while True:
        product = rng.bits32() * n
        if product % 2**32 >= 2**32 % n:
            return product >> 32
