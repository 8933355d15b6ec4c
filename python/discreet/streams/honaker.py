"""The binary mechanism with Honaker's estimates, which use all completed nodes of the tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

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
"""Weights and sums are whole numbers in units of 2^-10."""
_HORIZON_LIMIT = 10**6
"""A late item or a skipped round costs noise for every earlier round, so longer streams would take too long."""


@dataclass(frozen=True, kw_only=True)
class HonakerMechanism(HorizonMechanism):
    """A continual mechanism with the noise and guarantee of `BinaryMechanism`, and about half of its variance.

    A node of the tree is a set of rounds; its two halves are the nodes below it. The count of a node is estimated from
    the noisy counts of the node and of all nodes below it. The binary mechanism has the same noisy counts, so the
    guarantee is the same. Weights and sums are whole numbers in units of 2^-10, rounded down. Rounding commutes with
    adding whole counts, so an estimate depends on noisy counts alone. For an item that first occurs in round l, about
    2 l noise values are drawn.

    Args:
        sigma: The scale of the discrete Gaussian noise at a node, from 1e-3 to 1e9.
        delta: The chance that the guarantee fails, between 0 and 1.
        l0: The most items that one event (or user) contributes.
        horizon: The number of rounds, from 1 to 1,000,000, fixed before the data is seen.
        linf: The most times that a user contributes an item. It is 1 for `unit="event"`.
        unit: The protected unit, "event" or "user". For "user" see `BinaryMechanism`.
        rounds: The most rounds in which the stream counts a user, as for `BinaryMechanism`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.streams.HonakerMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365)
        >>> binary = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365)
        >>> mechanism.deviation(255) < binary.deviation(255)
        True

    Source:
        Honaker (2015), with integer noise; the guarantee is Rogers (2023), Theorem 11.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("horizon", self.horizon, 1, _HORIZON_LIMIT)

    def deviation(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round."""
        return math.sqrt(self._spread(number) ** 2 + 1 / 12)

    def _spread(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round before they are rounded."""
        levels = (level for level in range(number.bit_length()) if number >> level & 1)
        return self.sigma * math.sqrt(sum(map(_variance, levels)))

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from the sub-Gaussian tail of a weighted sum of discrete Gaussians."""
        # The noise is the sum rounded to the nearest whole number, or lower: it reaches m if the sum reaches m - 1/2.
        spread = self._spread(number)
        return ReleaseRule.least(lambda m: sub_gaussian(m - 0.5, spread), self.alone, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return the tree nodes that cover the rounds up to this one, with their scales."""
        return [(end, self.sigma) for end in prefix(number)]

    @property
    def _sum_bytes(self) -> int:
        """Bytes for an item's estimates, one for each node of a prefix."""
        return sum_type(self.sigma * (1 << _BITS)).itemsize * self.widest.bit_length()

    def sums(self) -> NodeSums:
        """Return a new object that computes the noise of all items, round after round."""
        return _Estimates(self)


@lru_cache(maxsize=64)
def _weight(level: int) -> int:
    """Return the weight of a node's own noisy count in its estimate, in units of 2^-10."""
    return round(honaker2015.own_weight(level) * (1 << _BITS))


@lru_cache(maxsize=64)
def _variance(level: int) -> float:
    """Return the variance of a node's estimate with these weights, if each noise has variance 1."""
    if level == 0:
        return 1.0
    own = _weight(level) / (1 << _BITS)
    return own**2 + 2 * (1 - own) ** 2 * _variance(level - 1)


class _Estimates(NodeSums):
    """The noise of every item's estimates at the nodes of a prefix, by tree level, in units of 2^-10."""

    def __init__(self, mechanism: HonakerMechanism) -> None:
        self._noise = gaussian(mechanism.sigma)
        self._levels: dict[int, NDArray[np.signedinteger]] = {}
        self._type = sum_type(mechanism.sigma * (1 << _BITS))
        self._round = 0
        self._items = 0

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """Return the noise of every item in a round. Rounds must not decrease from call to call."""
        if noise.items() > self._items:
            late: dict[int, NDArray[np.signedinteger]] = {}
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

    def _close(
        self, levels: dict[int, NDArray[np.signedinteger]], number: int, draw: Callable[[int], NDArray[np.int64]]
    ) -> None:
        """Complete the nodes that end with a round, each from its two complete halves."""
        estimate = draw(64 * number) << _BITS
        level = 0
        while number >> level & 1 == 0:
            halves = levels.pop(level) + estimate
            level += 1
            weight = _weight(level)
            own = draw(64 * number + level) << _BITS
            estimate = (weight * own + ((1 << _BITS) - weight) * halves) >> _BITS
        levels[level] = estimate.astype(self._type)
