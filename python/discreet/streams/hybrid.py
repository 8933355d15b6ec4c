"""The hybrid mechanism: continual counting without a horizon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_rho
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.streams.base import HORIZON_LIMIT, StreamMechanism, prefix
from discreet.streams.release_rule import ReleaseRule
from discreet.theorems import chan_shi_song2011, rogers2023
from discreet.theorems.tails import sub_gaussian

__all__ = ["HybridMechanism"]


@dataclass(frozen=True, kw_only=True)
class HybridMechanism(StreamMechanism):
    """A continual mechanism for any number of rounds.

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

    rho: float
    delta: float
    l0: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()
        self._set(rho=require_rho(self.rho))
        if self.unit == "user":
            raise ParameterError(
                "HybridMechanism has no guarantee per user, who has events in several epochs; use BinaryMechanism with "
                "a horizon"
            )
        last, _ = chan_shi_song2011.epoch_of(HORIZON_LIMIT)
        if self._sigma(last) > 1e9:
            raise ParameterError("rho is too small for the noise of the last rounds; give a larger one")
        if chan_shi_song2011.round_chance(self.delta, last) / self.l0 < 1e-300:
            raise ParameterError("delta is too small for the tail of the noise in floating point; give a larger one")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int) -> Self:
        """Return the mechanism whose guarantee for all rounds is delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0)

    @property
    def guarantee(self) -> Guarantee:
        """The delta-approximate rho-zCDP of all rounds. An event is in one epoch, and the epochs share delta."""
        return Guarantee(self.rho, self.delta, self.unit)

    @cached_property
    def _own(self) -> float:
        """The rho of the noise. Conditioning lattice noise (Rogers 2023, Theorem 8) raises this rho to `rho`."""
        return rogers2023.unconditioned_rho(self.rho, self.delta)

    def _sigma(self, epoch: int) -> float:
        return chan_shi_song2011.epoch_sigma(self._own, epoch, self.l0, self.linf)

    def deviation(self, number: int) -> float:
        """Return the standard deviation of the estimates of a round."""
        epoch, place = chan_shi_song2011.epoch_of(number)
        return math.sqrt(chan_shi_song2011.hybrid_variance([self._sigma(m) for m in range(epoch + 1)], place))

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from the sub-Gaussian tail of its noise."""
        epoch, _ = chan_shi_song2011.epoch_of(number)
        chance = rogers2023.novel_chance(chan_shi_song2011.round_chance(self.delta, epoch), self.l0)
        deviation = self.deviation(number)
        return ReleaseRule.least(lambda m: sub_gaussian(m, deviation), self.linf, chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return one node for each earlier epoch, and the nodes of the prefix in this epoch, with their scales."""
        epoch, place = chan_shi_song2011.epoch_of(number)
        whole = [((2 << m) - 1, self._sigma(m)) for m in range(epoch)]
        before = number - place
        return whole + [(before + end, self._sigma(epoch)) for end in prefix(place)]
