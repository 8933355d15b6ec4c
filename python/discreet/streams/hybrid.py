"""The hybrid mechanism: continual counting without a horizon, by a binary tree for each epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.streams.endless import EndlessMechanism
from discreet.streams.release_rule import ReleaseRule
from discreet.theorems import chan_shi_song2011, rogers2023
from discreet.theorems.tails import sub_gaussian

__all__ = ["HybridMechanism"]


@dataclass(frozen=True, kw_only=True)
class HybridMechanism(EndlessMechanism):
    """A continual mechanism for any number of rounds, with little memory for an item.

    The rounds are divided into epochs: epoch m has 2^m rounds. Each epoch has a binary tree, whose noise scale grows
    with sqrt(m + 1), and a share of delta. The whole epoch is one of the tree's nodes. An event is in one epoch only,
    so the guarantee is delta-approximate rho-zCDP per event. There is no guarantee per user, since a user has events in
    several epochs. The variance tends to 3/2 of the variance of the binary mechanism with a known horizon.

    Args:
        rho: The privacy cost of all rounds together, in zCDP.
        delta: The chance that the guarantee fails, between 0 and 1.
        l0: The most items that one event contributes.
        linf: Always 1, since an event has an item once.
        unit: Always "event".

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.streams.HybridMechanism(rho=0.5, delta=1e-6, l0=1)
        >>> print(mechanism.guarantee)
        1e-06-approximate 0.5-zCDP per event (added or removed)
        >>> mechanism.last_round is None
        True

    Source:
        Chan, Shi and Song (2011), the hybrid mechanism, with integer noise.
    """

    def deviation(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round."""
        return math.sqrt(math.fsum(sigma**2 for _, sigma in self._tree_nodes(number)))

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from the sub-Gaussian tail of its noise."""
        epoch, _ = chan_shi_song2011.epoch_of(number)
        chance = rogers2023.novel_chance(chan_shi_song2011.round_chance(self.delta, epoch, 2**epoch), self.l0)
        deviation = self.deviation(number)
        return ReleaseRule.least(lambda m: sub_gaussian(m, deviation), self.linf, chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return one node for each earlier epoch, and the nodes of the prefix in this epoch, with their scales."""
        return self._tree_nodes(number)
