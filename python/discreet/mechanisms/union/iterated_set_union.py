"""Set union in rounds."""

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
from discreet.privacy.guarantee import Guarantee, resolve_rho
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
    """Rounds of weighted Gaussian set union, each on a fresh choice of the items not yet found (DP-SIPS).

    Swanberg, Desfontaines and Haney (2023). Rounds compose by the sum of their guarantees; what one found is
    public for the next. `epsilon`: where the guarantee shall also state (epsilon, delta')-DP, by the exact analysis of
    all rounds' noise as one.
    """

    rounds: tuple[SetUnion, ...]
    epsilon: float | None = None

    def __post_init__(self) -> None:
        made = isinstance(self.rounds, tuple) and all(isinstance(union, SetUnion) for union in self.rounds)
        if not made or not self.rounds:
            raise ParameterError("rounds must be a tuple of one SetUnion or more; from_rho makes them")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 0, EXACT_EPSILON))
            if not all(is_gaussian(mechanism.method) for mechanism in self.rounds):
                raise ParameterError("an epsilon of all rounds needs Gaussian noise in each")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, rounds: int = 3, shared_order: bool = False) -> Self:
        """The rounds that together promise delta-approximate rho-zCDP, each with three times as much as the last
        one."""
        rho, delta = round_down(require_rho(rho), 64), round_down(require_delta(delta), 64)
        shares = gopi2020.round_shares(require_whole("rounds", rounds, 1, 20))
        made = partial(SetUnion.from_rho, method="weighted_gaussian", l0=l0, shared_order=shared_order)
        return cls(rounds=tuple(made(rho=share * rho, delta=share * delta) for share in shares))

    @classmethod
    def from_epsilon(
        cls, *, epsilon: float, delta: float, l0: int, rounds: int = 3, shared_order: bool = False
    ) -> Self:
        """The rounds whose total promise is (epsilon, delta)-DP, with the lowest last threshold among a few shares of
        delta."""
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
        """The sum of the rounds' guarantees."""
        total = self.rounds[0].guarantee
        for mechanism in self.rounds[1:]:
            total = total + mechanism.guarantee
        if self.epsilon is None:
            return total
        return replace(total, dp=pair_of(self.epsilon, total.delta, [mechanism._moved for mechanism in self.rounds]))

    def release_chance(self, users: int) -> float:
        """The chance that one of the rounds names it."""
        return 1 - math.prod(1 - mechanism.release_chance(users) for mechanism in self.rounds)

    @property
    def _rounds(self) -> tuple[SetUnion, ...]:
        return self.rounds
