"""Probability distributions (laws) as arrays: independent parts, pairs over the same outcomes, and integer noise.

The law of a noisy count lists each value separately, until the remaining tail has a probability of at most _REST. The
tail is one outcome.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.errors import ParameterError

__all__ = [
    "USERS",
    "ChancePair",
    "Chances",
    "Counts",
    "Distribution",
    "NoiseLaw",
    "RoundedMean",
    "aligned",
    "product",
    "require_few",
    "users_of",
]

Counts = Mapping[str, int]
"""A histogram: labels and their counts."""
Distribution = dict[tuple[object, ...], float]
"""Outcomes and their probabilities."""
Chances = NDArray[np.float64]
ChancePair = tuple[Chances, Chances]
"""The probabilities of all outcomes under two histograms, in the same order."""


class _NoItem(str):
    """A label that no item has, not even one of the same text."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


USERS = _NoItem("number of users")
"""The label of the number of users in a table, for mechanisms that read it. It is no item."""
_MOST_OUTCOMES = 20_000_000
_REST = 1e-16


def users_of(counts: Counts) -> int:
    """Return the number of users of a table: the largest count, if the table has no number."""
    return counts.get(USERS, max(counts.values(), default=0))


def require_few(outcomes: float) -> None:
    """Raise ParameterError for more outcomes than can be enumerated."""
    if outcomes > _MOST_OUTCOMES:
        raise ParameterError(
            f"the exact law has more than {_MOST_OUTCOMES:,} outcomes; audit less noise, or fewer items per user"
        )


def product(parts: list[Chances]) -> Chances:
    """Return the joint law of independent parts."""
    require_few(math.prod(map(len, parts)))
    law = np.ones(1)
    for part in parts:
        law = np.multiply.outer(law, part).ravel()
    return law


def aligned(first: Distribution, second: Distribution) -> ChancePair:
    """Return two laws as arrays over the union of their outcomes."""
    outcomes = list({**first, **second})
    p, q = (np.array([law.get(outcome, 0.0) for outcome in outcomes]) for law in (first, second))
    return p, q


@lru_cache(maxsize=64)
def _tails(kind: str) -> Chances:
    """Return P[X >= 0], P[X >= 1], ... until at most _REST.

    `kind` is the repr of a Noise, which names its parameters and serves as the cache key.
    """
    name, _, arguments = kind.removeprefix("Noise.").removesuffix(")").partition("(")
    law = getattr(_core.Noise, name)(*(float(a) if "." in a or "e" in a else int(a) for a in arguments.split(", ")))
    tails = [law.tail(0)]
    while tails[-1] > _REST:
        tails.append(law.tail(len(tails)))
    return np.array(tails)


class NoiseLaw:
    """The probabilities of symmetric integer noise, as differences of the tails that thresholds are computed from."""

    def __init__(self, noise: _core.Noise) -> None:
        self._tails = _tails(repr(noise))
        self.reach = len(self._tails) - 1

    def at_least(self, m: NDArray[np.int64]) -> Chances:
        """Return P[X >= m]."""
        upper = self._tails[np.clip(np.abs(m), 0, self.reach)]
        mirrored = self._tails[np.clip(1 - m, 0, self.reach)]
        return np.where(m > 0, upper, 1 - mirrored)

    def of(self, x: NDArray[np.int64]) -> Chances:
        """Return P[X = x]."""
        far = np.abs(x)
        near = np.clip(far, 1, self.reach)
        beyond = np.where(far < self.reach, self._tails[np.minimum(near + 1, self.reach)], 0.0)
        sided = self._tails[near] - beyond
        return np.where(far == 0, 1 - 2 * self._tails[1], np.where(far > self.reach, 0.0, sided))

    def around(self, first: int, second: int) -> ChancePair:
        """Return the laws of a noisy count for two exact counts."""
        values = np.arange(min(first, second) - self.reach, max(first, second) + self.reach + 1)
        return self.of(values - first), self.of(values - second)


class RoundedMean:
    """The probabilities of half the sum of two independent noises. A fair coin rounds halves."""

    def __init__(self, first: NoiseLaw, second: NoiseLaw) -> None:
        values = [np.arange(-law.reach, law.reach + 1) for law in (first, second)]
        sums = np.convolve(first.of(values[0]), second.of(values[1]))
        self._half = len(sums) // 2
        self._tails = np.append(np.cumsum(sums[::-1])[::-1], 0.0)
        self.reach = (self._half + 1) // 2 + 1

    def at_least(self, m: NDArray[np.int64]) -> Chances:
        """Return P[X >= m]: the sum is at least 2m, or 2m - 1 with heads."""
        first, second = (np.clip(2 * m + self._half - less, 0, len(self._tails) - 1) for less in (0, 1))
        chances: Chances = (self._tails[first] + self._tails[second]) / 2
        return chances
