"""Running counts without a horizon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, resolve_rho
from discreet.privacy.validation import require_number
from discreet.streams.base import HORIZON_LIMIT, StreamMechanism, prefix
from discreet.streams.release_rule import ReleaseRule
from discreet.theorems import chan_shi_song2011, rogers2023
from discreet.theorems.tails import sub_gaussian

__all__ = ["HybridMechanism"]


@dataclass(frozen=True, kw_only=True)
class HybridMechanism(StreamMechanism):
    """Running counts after every round, for as many rounds as there will be.

    Chan, Shi and Song (2011), the hybrid mechanism: an epoch of 2^m rounds has a binary tree and one noise for
    all of it, at a scale that grows with sqrt(m + 1), and a share of delta. delta-approximate rho-zCDP per
    event, since an event is in one epoch alone; nothing is promised about users, who have events in several. Its
    variance comes to 3/2 of that of the binary mechanism with a known horizon. Raises ParameterError where a
    parameter is out of range.
    """

    rho: float
    delta: float
    l0: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "rho", require_number("rho", self.rho, 0, RHO_LIMIT))
        if self.unit == "user":
            raise ParameterError("a user has events in several epochs: take a BinaryMechanism with a horizon")
        last, _ = chan_shi_song2011.epoch_of(HORIZON_LIMIT)
        if self._sigma(last) > 1e9:
            raise ParameterError("rho is too small for the noise of the last rounds; give a larger one")
        if chan_shi_song2011.round_chance(self.delta, last) / self.l0 < 1e-300:
            raise ParameterError("delta is too small for tails of noise to reach; give a larger one")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate rho-zCDP: one epoch's noises for an event, and shares of delta that sum up to it."""
        return Guarantee(self.rho, self.delta, self.unit)

    @cached_property
    def _own(self) -> float:
        """The rho of the noise, before what its lattice costs."""
        return rogers2023.unconditioned_rho(self.rho, self.delta)

    def _sigma(self, epoch: int) -> float:
        return chan_shi_song2011.epoch_sigma(self._own, epoch, self.l0, self.linf)

    def deviation(self, number: int) -> float:
        """The standard deviation of the estimates of a round."""
        epoch, place = chan_shi_song2011.epoch_of(number)
        return math.sqrt(chan_shi_song2011.hybrid_variance([self._sigma(m) for m in range(epoch + 1)], place))

    def rule(self, number: int) -> ReleaseRule:
        """Return the rule that a new count of linf passes with the round's share of delta at most, by the sub-Gaussian
        tail."""
        epoch, _ = chan_shi_song2011.epoch_of(number)
        chance = rogers2023.novel_chance(chan_shi_song2011.round_chance(self.delta, epoch), self.l0)
        deviation = self.deviation(number)
        return ReleaseRule.least(lambda m: sub_gaussian(m, deviation), self.linf, chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """The noises of the epochs before, and the nodes of the prefix in this one."""
        epoch, place = chan_shi_song2011.epoch_of(number)
        whole = [((2 << m) - 1, self._sigma(m)) for m in range(epoch)]
        before = number - place
        return whole + [(before + end, self._sigma(epoch)) for end in prefix(place)]
