"""The binary mechanism for continual counting over an unknown domain."""

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
    """A continual mechanism that sums noise over a binary tree of rounds.

    The rounds 1 to l are covered by as many tree nodes as l has binary ones. An estimate sums one noise value for each
    of these nodes. One event is in at most floor(log2 horizon) + 1 nodes. The guarantee is delta-approximate
    (sqrt(l0 (floor(log2 horizon) + 1) linf^2 / (2 sigma^2)) + sqrt(-log(1 - delta)))^2-zCDP per event.

    With `unit="user"` and `rounds` the guarantee holds per user. The stream counts a user in the user's first `rounds`
    rounds only, with at most l0 items in each. At level j of the tree, a node has at most 2^j of the user's rounds. So
    one user changes the sums at the nodes by at most l0 n_j in squared l2 norm, where n_j is the largest sum of squares
    of numbers up to 2^j with the sum `rounds` (`theorems.rogers2023.tree_reach`).

    With `unit="user"` without `rounds` the guarantee holds per user if a user has at most l0 items over the whole
    stream, each at most linf times. You must make sure of that: the stream does not check it.

    Args:
        sigma: The scale of the discrete Gaussian noise at a node, from 1e-3 to 1e9.
        delta: The chance that the guarantee fails, between 0 and 1.
        l0: The most items that one event (or user) contributes.
        horizon: The number of rounds, from 1 to 2^40, fixed before the data is seen.
        linf: The most times that a user contributes an item. It is 1 for `unit="event"`.
        unit: The protected unit, "event" or "user".
        rounds: The most rounds in which the stream counts a user, each with at most l0 items. For `unit="user"` only.
        restarts: Reset the counts after every `horizon` rounds, and go on without end. For `unit="event"` only.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=365)
        >>> print(mechanism.guarantee)
        1e-06-approximate 0.5-zCDP per event (added or removed)
        >>> stream = mechanism.start()
        >>> stream.step([["home"]] * 1000 + [["help"]] * 3).items
        ['home']

    Source:
        Rogers (2023), Section 4.3 and Theorem 11, with integer noise; after Dwork et al. (2010) and Chan, Shi and Song
        (2011).
    """

    restarts: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag("restarts", self.restarts)
        if self.restarts and self.unit == "user":
            raise ParameterError.about(
                "restarts needs {unit:'event'}: a user has events in every period, so no guarantee per user holds"
            )

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
        rounds: int | None = None,
        restarts: bool = False,
    ) -> Self:
        """Return the mechanism whose guarantee for all rounds is delta-approximate rho-zCDP."""
        made = super().from_rho(rho=rho, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit, rounds=rounds)
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
        rounds: int | None = None,
        restarts: bool = False,
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        made = super().from_epsilon(
            epsilon=epsilon, delta=delta, l0=l0, horizon=horizon, linf=linf, unit=unit, rounds=rounds
        )
        return replace(made, restarts=restarts)

    @property
    def last_round(self) -> int | None:
        """The horizon; None if the stream restarts."""
        return None if self.restarts else self.horizon

    @property
    def widest(self) -> int:
        """The round with the widest noise, in the first period."""
        ones = (1 << self.horizon.bit_length()) - 1
        return ones if ones <= self.horizon else max(ones >> 1, 1)

    def deviation(self, number: int) -> float:
        """Return sigma times the square root of the number of binary ones of the round."""
        return self.sigma * math.sqrt(self._place(number).bit_count())

    def rule(self, number: int) -> ReleaseRule:
        """Return the release rule of a round, from an upper bound on the tail of its sum of discrete Gaussians."""
        return self._rule(self._place(number).bit_count())

    @lru_cache(maxsize=64)  # noqa: B019 - a few integers for each of a few mechanisms
    def _rule(self, nodes: int) -> ReleaseRule:
        return ReleaseRule.least(gaussian_sum_bound(self.sigma, nodes), self.alone, self.novel_chance)

    def nodes(self, number: int) -> list[tuple[int, float]]:
        """Return a node for each binary one of the round, named by the round that completes it, with its scale.

        No two periods share a node.
        """
        place = self._place(number)
        before = number - place
        return [(before + end, self.sigma) for end in prefix(place)]

    def starts_over(self, first: int, last: int) -> bool:
        """Return whether one of these rounds is the first of a period."""
        return self.restarts and (last - 1) // self.horizon * self.horizon + 1 >= first

    def _place(self, number: int) -> int:
        """Return the round's position in its period, from 1."""
        return (number - 1) % self.horizon + 1 if self.restarts else number
