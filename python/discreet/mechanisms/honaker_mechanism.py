"""The binary mechanism with all nodes of the tree in every estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet import _core
from discreet.mechanisms.binary_mechanism import TreeMechanism
from discreet.mechanisms.stream_mechanism import NodeSums, gaussian
from discreet.theorems import honaker2015

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HonakerMechanism"]


@dataclass(frozen=True, kw_only=True)
class HonakerMechanism(TreeMechanism):
    """Running counts with the noise of the binary mechanism, and about half of its variance.

    Honaker (2015): every complete node's count is estimated from its own noisy count and those of the nodes in
    it, which one event touches no more of. The noise of an estimate is rounded to a whole number, which
    is that of the estimate since counts are whole. Guarantee and parameters are those of `BinaryMechanism`; an
    item that first comes in round l costs 2 l noises.
    """

    sigma: float
    delta: float
    l0: int
    horizon: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()

    def deviation(self, number: int) -> float:
        """The standard deviation of the estimates of a round."""
        return self.sigma * math.sqrt(honaker2015.prefix_variance(number))

    def threshold(self, number: int) -> int:
        """The same by the sub-Gaussian tail of a weighted sum of discrete Gaussians, e^(-t^2 / (2 variance))."""
        reach = self.deviation(number) * math.sqrt(-2 * math.log(self.novel_chance))
        return self.linf + math.ceil(reach * (1 + 1e-12) - 0.5)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """The nodes of the prefix."""
        ends = (number >> j << j for j in reversed(range(number.bit_length())) if number >> j & 1)
        return [(end, self.sigma) for end in ends]

    def sums(self) -> NodeSums:
        """The noise of all items, from round to round."""
        return _Estimates(self)


class _Estimates(NodeSums):
    """For every item the noises of the estimates of the nodes of a prefix, by their levels."""

    def __init__(self, mechanism: HonakerMechanism) -> None:
        self._noise = gaussian(mechanism.sigma)
        self._levels: dict[int, NDArray[np.float64]] = {}
        self._round = 0
        self._items = 0

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """The noise of every item in a round."""
        if len(noise) > self._items:
            late: dict[int, NDArray[np.float64]] = {}
            for before in range(1, self._round + 1):
                self._close(late, before, lambda node: noise.draw_from(self._items, node, self._noise))
            empty = np.zeros(self._items)
            self._levels = {j: np.concatenate([self._levels.get(j, empty), late[j]]) for j in late}
            self._items = len(noise)
        while self._round < number:
            self._round += 1
            self._close(self._levels, self._round, lambda node: noise.draw(node, self._noise))
        total = sum(self._levels.values(), np.zeros(self._items))
        return np.rint(total).astype(np.int64)

    @staticmethod
    def _close(levels: dict[int, NDArray[np.float64]], number: int, draw: object) -> None:
        """Closes the nodes that a round completes, each made of two that were complete."""
        assert callable(draw)
        estimate = draw(64 * number).astype(np.float64)
        level = 0
        while number >> level & 1 == 0:
            halves = levels.pop(level) + estimate
            level += 1
            weight = honaker2015.own_weight(level)
            estimate = weight * draw(64 * number + level) + (1 - weight) * halves
        levels[level] = estimate
