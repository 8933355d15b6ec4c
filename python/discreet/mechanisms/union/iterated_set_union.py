"""`IteratedSetUnion`: set union in rounds (DP-SIPS)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_delta, require_rho
from discreet.mechanisms.union.set_union import SetUnion, UnionMechanism
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, require_pair, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.theorems import gopi2020
from discreet.theorems.union_noise import (
    EXACT_EPSILON,
    SHARES,
    is_gaussian,
    least_scale,
    moved,
    pair_of,
    require_l0,
    split,
)

__all__ = ["IteratedSetUnion"]


@dataclass(frozen=True, kw_only=True)
class IteratedSetUnion(UnionMechanism):
    """A mechanism that runs rounds of set union, each on the items not yet found (DP-SIPS).

    Each round chooses users' items again. The items that one round finds are public for the next, so the guarantee is
    the sum of the rounds' guarantees.

    Args:
        rounds: The `SetUnion` of each round, in order; `from_rho` makes weighted Gaussian ones.
        epsilon: If given, the guarantee also states (epsilon, delta')-DP: above 0 and at most 100. The exact analysis
            treats the Gaussian noise of all rounds as one.

    Raises:
        ParameterError: The rounds are not a tuple of SetUnions, or epsilon is out of range or given without Gaussian
            noise in every round.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.IteratedSetUnion.from_rho(rho=1, delta=1e-6, l0=2)
        >>> print(mechanism.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed)
        >>> items = dp.tables.UserItems.from_pairs([*range(5000)] * 2, ["home"] * 5000 + ["help"] * 5000)
        >>> mechanism.release(items).items
        ['help', 'home']

    Source:
        Swanberg, Desfontaines and Haney (2023).
    """

    rounds: tuple[SetUnion, ...]
    epsilon: float | None = None

    def __post_init__(self) -> None:
        made = isinstance(self.rounds, tuple) and all(isinstance(union, SetUnion) for union in self.rounds)
        if not made or not self.rounds:
            raise ParameterError("rounds must be a tuple of at least one SetUnion; use from_rho")
        if self.epsilon is not None:
            self._set(epsilon=require_number("epsilon", self.epsilon, 0, EXACT_EPSILON))
            if not all(is_gaussian(mechanism.method) for mechanism in self.rounds):
                raise ParameterError("epsilon needs Gaussian noise in every round; leave it out")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, rounds: int = 3, shared_order: bool = False) -> Self:
        """Return the rounds, a number from 1 to 20, that together guarantee delta-approximate rho-zCDP.

        Each round gets three times as much of rho and delta as the one before it. l0 and shared_order are those of
        `SetUnion`, with the method "weighted_gaussian".
        """
        rho, delta = round_down(require_rho(rho), 64), round_down(require_delta(delta), 64)
        shares = gopi2020.round_shares(require_whole("rounds", rounds, 1, 20))
        made = partial(SetUnion.from_rho, method="weighted_gaussian", l0=l0, shared_order=shared_order)
        return cls(rounds=tuple(made(rho=share * rho, delta=share * delta) for share in shares))

    @classmethod
    def from_epsilon(
        cls, *, epsilon: float, delta: float, l0: int, rounds: int = 3, shared_order: bool = False
    ) -> Self:
        """Return the rounds whose total guarantee is (epsilon, delta)-DP.

        l0 and shared_order are as in `from_rho`. Up to an epsilon of 100 it tries several fractions of delta for the
        thresholds. It takes the fraction for which the threshold of the last round is lowest.
        """
        epsilon, delta = require_pair(epsilon, delta)
        rho, own = resolve_rho(None, epsilon, delta)
        if epsilon > EXACT_EPSILON:
            return cls.from_rho(rho=min(rho, 5000.0), delta=own, l0=l0, rounds=rounds, shared_order=shared_order)
        l0 = require_l0(l0)
        scales = [1 / math.sqrt(s) for s in gopi2020.round_shares(require_whole("rounds", rounds, 1, 20))]
        made = []
        for share in SHARES:
            own, rest = split(delta, share)
            scale = least_scale(
                lambda scale: [moved("weighted_gaussian", scale * more, l0) for more in scales], epsilon, rest
            )
            rho = round_down(1 / scale**2 / 2, 64)
            found = cls.from_rho(rho=rho, delta=own, l0=l0, rounds=rounds, shared_order=shared_order)
            made.append(replace(found, epsilon=epsilon))
        return min(made, key=lambda found: found.rounds[-1].threshold.value / (1 << found.rounds[-1].bits))

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the sum of the rounds' guarantees."""
        total = self.rounds[0].guarantee
        for mechanism in self.rounds[1:]:
            total = total + mechanism.guarantee
        if self.epsilon is None:
            return total
        return replace(total, dp=pair_of(self.epsilon, total.delta, [mechanism.lattice for mechanism in self.rounds]))

    def release_chance(self, users: int) -> float:
        """Return the probability that one of the rounds finds an item."""
        return 1 - math.prod(1 - mechanism.release_chance(users) for mechanism in self.rounds)

    @property
    def _unions(self) -> tuple[SetUnion, ...]:
        return self.rounds
