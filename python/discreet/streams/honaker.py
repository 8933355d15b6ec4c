"""The binary mechanism with all nodes of the tree in every estimate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet import _core
from discreet.privacy.validation import require_whole
from discreet.streams.base import NodeSums, gaussian, prefix, sum_type
from discreet.streams.horizon import HorizonMechanism
from discreet.streams.release_rule import ReleaseRule
from discreet.theorems import honaker2015
from discreet.theorems.tails import sub_gaussian

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HonakerMechanism"]

_BITS = 10
_HORIZON_LIMIT = 10**6
"""Late items and skipped rounds cost noises for every round, so that longer streams would stand still."""


@dataclass(frozen=True, kw_only=True)
class HonakerMechanism(HorizonMechanism):
    """Running counts with the noise of the binary mechanism, and about half of its variance.

    Honaker (2015): every complete node's count is estimated from its own noisy count and those of the nodes in
    it, which one event touches no more of. Weights and sums are whole numbers in units of 2^-10, rounded
    down: since that commutes with whole counts, an estimate is a function of noisy counts alone. Guarantee and
    parameters are those of `BinaryMechanism`; an item that first comes in round l costs 2 l noises.
    """

    sigma: float
    delta: float
    l0: int
    horizon: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()
        require_whole("horizon", self.horizon, 1, _HORIZON_LIMIT)

    def deviation(self, number: int) -> float:
        """The standard deviation of the estimates of a round."""
        return math.sqrt(self._spread(number) ** 2 + 1 / 12)

    def _spread(self, number: int) -> float:
        """The same before the estimates are rounded."""
        levels = (level for level in range(number.bit_length()) if number >> level & 1)
        return self.sigma * math.sqrt(sum(map(_variance, levels)))

    def rule(self, number: int) -> ReleaseRule:
        """Return the same rule, by the sub-Gaussian tail of a weighted sum of discrete Gaussians.

        The noise is the sum rounded to the nearest whole number, or lower: it reaches m where the sum reaches m - 1/2.
        """
        spread = self._spread(number)
        return ReleaseRule.least(lambda m: sub_gaussian(m - 0.5, spread), self.linf, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """The nodes of the prefix."""
        return [(end, self.sigma) for end in prefix(number)]

    @property
    def _sum_bytes(self) -> int:
        """One estimate for each node of a prefix."""
        return sum_type(self.sigma * (1 << _BITS)).itemsize * self.widest.bit_length()

    def sums(self) -> NodeSums:
        """The noise of all items, from round to round."""
        return _Estimates(self)


@lru_cache(maxsize=64)
def _weight(level: int) -> int:
    """How much of a node's estimate is its own noisy count, in units of 2^-10."""
    return round(honaker2015.own_weight(level) * (1 << _BITS))


@lru_cache(maxsize=64)
def _variance(level: int) -> float:
    """The variance of a node's estimate with these weights, where a noise has one."""
    if level == 0:
        return 1.0
    own = _weight(level) / (1 << _BITS)
    return own**2 + 2 * (1 - own) ** 2 * _variance(level - 1)


class _Estimates(NodeSums):
    """For every item the noises of the estimates of the nodes of a prefix, by their levels, in units of 2^-10."""

    def __init__(self, mechanism: HonakerMechanism) -> None:
        self._noise = gaussian(mechanism.sigma)
        self._levels: dict[int, NDArray[Any]] = {}
        self._type = sum_type(mechanism.sigma * (1 << _BITS))
        self._round = 0
        self._items = 0

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """The noise of every item in a round."""
        if noise.items() > self._items:
            late: dict[int, NDArray[Any]] = {}
            for before in range(1, self._round + 1):
                self._close(late, before, lambda node: noise.draw_from(self._items, node, self._noise))
            empty = np.zeros(self._items, self._type)
            self._levels = {j: np.concatenate([self._levels.get(j, empty), late[j]]) for j in late}
            self._items = noise.items()
        while self._round < number:
            self._round += 1
            self._close(self._levels, self._round, lambda node: noise.draw(node, self._noise))
        total = sum(self._levels.values(), np.full(self._items, 1 << (_BITS - 1)))
        return total >> _BITS

    def _close(self, levels: dict[int, NDArray[Any]], number: int, draw: Callable[[int], NDArray[np.int64]]) -> None:
        """Closes the nodes that a round completes, each made of two that were complete."""
        estimate = draw(64 * number) << _BITS
        level = 0
        while number >> level & 1 == 0:
            halves = levels.pop(level) + estimate
            level += 1
            weight = _weight(level)
            own = draw(64 * number + level) << _BITS
            estimate = (weight * own + ((1 << _BITS) - weight) * halves) >> _BITS
        levels[level] = estimate.astype(self._type)
