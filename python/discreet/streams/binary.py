"""The binary mechanism over an unknown domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Self

from discreet.errors import ParameterError
from discreet.privacy.validation import require_flag
from discreet.streams.base import prefix
from discreet.streams.horizon import HorizonMechanism
from discreet.streams.release_rule import ReleaseRule
from discreet.theorems.tails import gaussian_sum_bound

__all__ = ["BinaryMechanism"]


@dataclass(frozen=True, kw_only=True)
class BinaryMechanism(HorizonMechanism):
    """Running counts after every round, of the items whose estimates exceed the round's threshold.

    Rogers (2023), Section 4.3 and Theorem 11, after Dwork et al. (2010) and Chan, Shi and Song (2011), with
    integer noise. A round l is made of as many nodes of a binary tree as l has binary ones, so an estimate
    has so many noises; one event is in at most floor(log2 horizon) + 1 nodes. delta-approximate
    (sqrt(l0 (floor(log2 horizon) + 1) linf^2 / (2 sigma^2)) + sqrt(-log(1 - delta)))^2-zCDP per event, or
    per user where the rows of a user over the whole stream are at most l0 items, linf of each: that is the
    caller's word. `sigma`: the scale of a node's noise. `l0`: the most items of an event. `horizon`: the number
    of rounds, fixed before the data is seen. `restarts`: begin anew after every `horizon` rounds, without end.
    Raises ParameterError where a parameter is out of range.
    """

    sigma: float
    delta: float
    l0: int
    horizon: int
    linf: int = 1
    unit: Literal["event", "user"] = "event"
    restarts: bool = False

    def __post_init__(self) -> None:
        self._check()
        require_flag("restarts", self.restarts)
        if self.restarts and self.unit == "user":
            raise ParameterError("a stream that restarts promises nothing about users, who have events in all periods")

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        l0: int,
        horizon: int,
        linf: int = 1,
        unit: Literal["event", "user"] = "event",
        restarts: bool = False,
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        made = super().from_rho(rho=rho, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit)
        return replace(made, restarts=restarts)

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        l0: int,
        horizon: int,
        linf: int = 1,
        unit: Literal["event", "user"] = "event",
        restarts: bool = False,
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        made = super().from_epsilon(epsilon=epsilon, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit)
        return replace(made, restarts=restarts)

    @property
    def last_round(self) -> int | None:
        """The horizon, or None where the stream restarts."""
        return None if self.restarts else self.horizon

    @property
    def widest(self) -> int:
        """A round of the widest noise, in the first period."""
        ones = (1 << self.horizon.bit_length()) - 1
        return ones if ones <= self.horizon else max(ones >> 1, 1)

    def deviation(self, number: int) -> float:
        """sigma times the square root of the binary ones of the round."""
        return self.sigma * math.sqrt(self._place(number).bit_count())

    def rule(self, number: int) -> ReleaseRule:
        """Return the rule that a new count of linf passes with the round's share of delta at most."""
        return self._rule(self._place(number).bit_count())

    @lru_cache(maxsize=64)  # noqa: B019 - a few integers for each of a few mechanisms
    def _rule(self, nodes: int) -> ReleaseRule:
        return ReleaseRule.least(gaussian_sum_bound(self.sigma, nodes), self.linf, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """A node for each binary one of the round, named by the round that completes it: in no two periods the same."""
        place = self._place(number)
        before = number - place
        return [(before + end, self.sigma) for end in prefix(place)]

    def starts_over(self, first: int, last: int) -> bool:
        """Whether one of these rounds is the first of a period."""
        return self.restarts and (last - 1) // self.horizon * self.horizon + 1 >= first

    def _place(self, number: int) -> int:
        """The round's place in its period."""
        return (number - 1) % self.horizon + 1 if self.restarts else number
