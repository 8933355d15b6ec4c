"""Laws as numbers: products of independent parts, two laws in one order, integer noise.

Of a count with noise all values are told apart up to where the rest has a chance of REST, which is an outcome
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.errors import ParameterError

__all__ = ["Chances", "Counts", "Law", "NoiseLaw", "Pair", "aligned", "product", "require_few"]

Counts = Mapping[str, int]
"""A histogram: labels and their counts."""
Law = dict[tuple[object, ...], float]
"""Outcomes and their chances."""
Chances = NDArray[np.float64]
Pair = tuple[Chances, Chances]
"""The chances of every outcome under two histograms, in one order."""

_MOST_OUTCOMES = 20_000_000
_REST = 1e-16


def require_few(outcomes: float) -> None:
    """Raises ParameterError for more outcomes than can be enumerated."""
    if outcomes > _MOST_OUTCOMES:
        raise ParameterError("this law has too many outcomes to enumerate: audit less noise, or fewer items a user")


def product(parts: list[Chances]) -> Chances:
    """The law of independent parts together."""
    require_few(math.prod(map(len, parts)))
    law = np.ones(1)
    for part in parts:
        law = np.multiply.outer(law, part).ravel()
    return law


def aligned(first: Law, second: Law) -> Pair:
    """Two laws over the outcomes of both."""
    outcomes = list({**first, **second})
    return tuple(np.array([law.get(outcome, 0.0) for outcome in outcomes]) for law in (first, second))  # type: ignore[return-value]


@lru_cache(maxsize=64)
def _tails(kind: str) -> Chances:
    """P[X >= 0], P[X >= 1], ... down to the rest; the key is the law's own text, which names its parameters."""
    name, _, arguments = kind.removeprefix("Noise.").removesuffix(")").partition("(")
    law = getattr(_core.Noise, name)(*(float(a) if "." in a or "e" in a else int(a) for a in arguments.split(", ")))
    tails = [law.tail(0)]
    while tails[-1] > _REST:
        tails.append(law.tail(len(tails)))
    return np.array(tails)


class NoiseLaw:
    """The chances of symmetric integer noise, as differences of the tails that thresholds are made from."""

    def __init__(self, noise: _core.Noise) -> None:
        self._tails = _tails(repr(noise))
        self.reach = len(self._tails) - 1

    def at_least(self, m: NDArray[np.int64]) -> Chances:
        """P[X >= m]."""
        upper = self._tails[np.clip(np.abs(m), 0, self.reach)]
        mirrored = self._tails[np.clip(1 - m, 0, self.reach)]
        return np.where(m > 0, upper, 1 - mirrored)

    def of(self, x: NDArray[np.int64]) -> Chances:
        """P[X = x]."""
        far = np.abs(x)
        near = np.clip(far, 1, self.reach)
        beyond = np.where(far < self.reach, self._tails[np.minimum(near + 1, self.reach)], 0.0)
        sided = self._tails[near] - beyond
        return np.where(far == 0, 1 - 2 * self._tails[1], np.where(far > self.reach, 0.0, sided))

    def around(self, first: int, second: int) -> Pair:
        """The law of a noisy count under two counts."""
        values = np.arange(min(first, second) - self.reach, max(first, second) + self.reach + 1)
        return self.of(values - first), self.of(values - second)
