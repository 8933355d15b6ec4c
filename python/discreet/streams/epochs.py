"""The epoch mechanism: continual counting without a horizon, by matrix square roots and then by trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from discreet.errors import ParameterError
from discreet.privacy.guarantee import resolve_rho
from discreet.privacy.validation import require_whole
from discreet.streams.base import ITEM_BYTES, NodeSums, gaussian
from discreet.streams.endless import EndlessMechanism
from discreet.streams.release_rule import ReleaseRule
from discreet.streams.square_root import (
    LONGEST_HORIZON,
    WIDEST_SCALE,
    SquareRootMechanism,
    WeightedSums,
    column_of,
    norms_of,
    unit_of,
    weighted_bytes,
)
from discreet.theorems import chan_shi_song2011, fichtenberger2023, rogers2023
from discreet.theorems.tails import sub_gaussian

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet import _core

__all__ = ["EpochMechanism"]


@dataclass(frozen=True, kw_only=True)
class EpochMechanism(EndlessMechanism):
    """A continual mechanism for any number of rounds, with about the noise of `SquareRootMechanism` in the first epoch.

    The rounds are divided into epochs. Each of the first eight has `epoch` rounds and the weighted sums of
    `SquareRootMechanism`. Later epochs have 2^m rounds for a growing m, and binary trees as in `HybridMechanism`. An
    estimate adds the noise of its own epoch and the last noise of each earlier epoch. The weighted noise is rounded
    once, as in `SquareRootMechanism`.

    A stream that is opened again, and an item that occurs for the first time, draw the noise of all earlier rounds of
    the first eight epochs: about 0.1 ms for an item in round 8,193, where `HybridMechanism` needs a microsecond.

    An event is in one epoch only, and the noise of an epoch is rho-zCDP for it. So the guarantee is delta-approximate
    rho-zCDP per event. Epoch m has a share of delta of 1/((m + 1)(m + 2)), divided equally among its rounds.

    Args:
        rho: The privacy cost of all rounds together, in zCDP.
        delta: The chance that the guarantee fails, between 0 and 1.
        l0: The most items that one event contributes.
        linf: Always 1, since an event has an item once.
        unit: Always "event".
        epoch: The rounds of each of the first eight epochs, from 1 to 8,192. An item takes 4 bytes for each of them.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.streams.EpochMechanism(rho=0.5, delta=1e-6, l0=1)
        >>> hybrid = dp.streams.HybridMechanism(rho=0.5, delta=1e-6, l0=1)
        >>> [f"{each.deviation(1000):.2f}" for each in (mechanism, hybrid)]
        ['3.29', '10.26']

    Source:
        Chan, Shi and Song (2011) for epochs, Fichtenberger, Henzinger and Upadhyay (2023) for square roots.
    """

    epoch: int = 1024

    squares: ClassVar[int] = 8
    """The number of epochs of square roots. Later, the widest noise so far is just below that of trees alone."""

    def __post_init__(self) -> None:
        self._set(epoch=require_whole("epoch", self.epoch, 1, LONGEST_HORIZON))
        super().__post_init__()
        if self._scale > WIDEST_SCALE:
            raise ParameterError(
                f"rho is too small for epochs of {self.epoch:,} rounds; give shorter epochs, or use HybridMechanism"
            )

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, epoch: int = 1024) -> Self:
        """Return the mechanism whose guarantee for all rounds is delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0, epoch=epoch)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, epoch: int = 1024) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0, epoch=epoch)

    @property
    def column(self) -> tuple[int, ...]:
        """The weights of a count in the sum of its own round, of the next round and so on, in units of 1/column[0]."""
        return column_of(self.epoch)

    @property
    def _scale(self) -> float:
        """The scale of the noise of a weighted sum, in units of 1/Q."""
        moved = SquareRootMechanism.moved(self.epoch)
        return unit_of(self.epoch) * rogers2023.gaussian_sigma(self._own, self.l0 * moved, self.linf)

    @property
    def _first_tree(self) -> int:
        """The exponent of the rounds of the first epoch with a tree."""
        return (self.squares * self.epoch - 1).bit_length()

    def place(self, number: int) -> tuple[int, int, int]:
        """Return the epoch of a round, counted from 0, the round's place in it from 1, and the rounds of the epoch.

        Args:
            number: The round, from 1.
        """
        if number <= self.squares * self.epoch:
            epoch, before = divmod(number - 1, self.epoch)
            return epoch, before + 1, self.epoch
        first = self._first_tree
        tree, place = chan_shi_song2011.epoch_of(self._in_trees(number))
        return self.squares + tree - first, place, 1 << tree

    def _in_trees(self, number: int) -> int:
        """Return the number of a round as `_tree_nodes` counts it."""
        return number - self.squares * self.epoch + (1 << self._first_tree) - 1

    def _trees(self, number: int) -> list[tuple[int, float]]:
        """Return the tree nodes of a round, with numbers that no weighted sum has, and their scales."""
        if number <= self.squares * self.epoch:
            return []
        first = 8 * (self.squares + 1) * (self.epoch // 8 + 1)
        return [(first + node, sigma) for node, sigma in self._tree_nodes(self._in_trees(number), self._first_tree)]

    def _weights(self, number: int) -> tuple[float, float]:
        """Return the sums of the absolute values and of the squares of the weights of a round's noise."""
        epoch, place, _ = self.place(number)
        # The last noise of an epoch has as many weights as the epoch has rounds.
        rounds = [self.epoch] * min(epoch, self.squares) + [place] * (epoch < self.squares)
        total, square = (math.fsum(norm[n - 1] for n in rounds) for norm in norms_of(self.epoch))
        return total, square

    def deviation(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round."""
        sigma = self._scale / unit_of(self.epoch)
        _, square = self._weights(number)
        return math.sqrt(math.fsum((sigma**2 * square, 1 / 12, *(scale**2 for _, scale in self._trees(number)))))

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from the tail of its weighted sum of discrete Gaussians."""
        epoch, _, rounds = self.place(number)
        chance = rogers2023.novel_chance(chan_shi_song2011.round_chance(self.delta, epoch, rounds), self.l0)
        unit, scale = unit_of(self.epoch), self._scale
        total, square = (norm * (1 + 1e-11) for norm in self._weights(number))
        trees = math.fsum(sigma**2 for _, sigma in self._trees(number))
        deviation = math.sqrt((scale / unit) ** 2 * square + trees) * (1 + 1e-11)

        # The noise of weighted sums has 1/2 and 1/(3 Q) added, and is rounded down. The noise of trees is whole.
        def tail(m: int) -> float:
            reach = m - 0.5 - 0.34 / unit
            if trees:
                return sub_gaussian(reach, deviation)
            return fichtenberger2023.weighted_tail(scale, total, square, reach * unit)

        return ReleaseRule.least(tail, self.linf, chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return all rounds so far in epochs of square roots, then the nodes of trees, with their scales."""
        epoch, place, _ = self.place(number)
        length = 8 * (self.epoch // 8 + 1)
        seen = [self.epoch] * min(epoch, self.squares) + [place] * (epoch < self.squares)
        sums = [(e * length + n, self._scale) for e, rounds in enumerate(seen) for n in range(1, rounds + 1)]
        return sums + self._trees(number)

    @property
    def item_bytes(self) -> int:
        """The most bytes that a stream holds for one item, without its label, up to round 2^20."""
        # The weighted sums of trees hold one block of eight rounds.
        return max(weighted_bytes(self.epoch), super().item_bytes + weighted_bytes(1) - ITEM_BYTES)

    def sums(self) -> NodeSums:
        """Return a new object that computes the noise of all items, round after round."""
        return _Estimates(self, WeightedSums(gaussian(self._scale), self.column), NodeSums(self._trees))


class _Estimates(NodeSums):
    """The noise of every item: weighted sums over the epochs of square roots, then the nodes of trees as well."""

    def __init__(self, mechanism: EpochMechanism, weighted: WeightedSums, trees: NodeSums) -> None:
        self._mechanism = mechanism
        self._weighted = weighted
        self._trees = trees

    def advance(self, noise: _core.NodeNoise, number: int) -> NDArray[np.int64]:
        """Return the noise of every item in a round. Rounds must not decrease from call to call."""
        epoch, place, _ = self._mechanism.place(number)
        squares = self._mechanism.squares
        if epoch < squares:
            return self._weighted.in_epoch(noise, epoch, place)
        return self._weighted.in_epoch(noise, squares, 0) + self._trees.advance(noise, number)
