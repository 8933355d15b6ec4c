"""The items of users with many items each: weights that a user cannot raise by more than one in all, and a
threshold."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.engines.engine import Weighting
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening, opened
from discreet.mechanisms.parameters import require_delta, require_rho
from discreet.mechanisms.published import published
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity, resolve_rho
from discreet.privacy.validation import require_flag, require_number
from discreet.release.release import Release
from discreet.tables.user_items import UserItems
from discreet.theorems.balle_wang2018 import LatticeGaussian
from discreet.theorems.union_noise import (
    EXACT_EPSILON,
    SCALE_LIMIT,
    SHARES,
    alpha_of,
    bits_of,
    is_gaussian,
    least_scale,
    least_threshold,
    moved,
    pair_of,
    require_l0,
    sensitivity_of,
    split,
)

__all__ = ["METHODS", "SetUnion", "UnionMechanism"]

METHODS = {
    "weighted_gaussian": "even_squares",
    "weighted_laplace": "even",
    "policy_gaussian": "step",
    "policy_laplace": "water",
    "greedy": "greedy",
    "adaptive_gaussian": "adaptive",
}
"""The kernel's weighting of each method."""


class UnionMechanism(Mechanism[UserItems, Release]):
    """A mechanism that names items of `UserItems`, without counts."""

    __slots__ = ()

    reads = UserItems

    @property
    def protects(self) -> Sensitivity:
        """Any items of a user: their weights are bounded here."""
        return Sensitivity(l0=None, linf=1)

    @abstractmethod
    def release_chance(self, users: int) -> float:
        """The chance that an item is named that so many users have among l0 or more each, where no other matters."""

    @property
    @abstractmethod
    def _rounds(self) -> tuple[SetUnion, ...]:
        """The set unions that are made of it, one after the other."""

    def release(self, data: UserItems, *, rng: _core.Rng | Opening | None = None) -> Release:
        """Names what can be named.

        `rng` is for tests (`discreet.testing.seeded_rng`). Raises ParameterError for anything but UserItems, and for
        a method that cannot be done where their rows are; EntropyError where the system gives no randomness; and
        what counting raises where the rows are elsewhere.
        """
        if not isinstance(data, UserItems):
            raise ParameterError("release takes UserItems: make them by UserItems.from_table or from_pairs")
        weighing = data._lists.weighing(*(union.weighting for union in self._rounds))
        stream = opened(rng)
        found = 0
        for union in self._rounds:
            weights = weighing.weights(union.weighting, stream)
            rows = union.threshold.release(weights, stream)[0]
            weighing.name(rows)
            found += len(rows)
        return published(self, weighing.named, np.arange(found), stream)


@dataclass(frozen=True, kw_only=True)
class SetUnion(UnionMechanism):
    """The items whose weight and noise exceed a threshold, without counts; at most `l0` items of each user, chosen
    uniformly.

    "weighted_gaussian" and "weighted_laplace": a user's one is shared evenly; "policy_gaussian" and "policy_laplace":
    users, one after the other, only raise items that are not yet `alpha` deviations (scales) above the threshold
    (Gopi et al. 2020); "greedy": a user fills their most frequent items first (Carvalho et al. 2022),
    what is left when all are full is dealt out evenly among them, so that an item of everybody is never missing, and
    every item that somebody has weighs one unit at least, since whether others leave it any depends on them;
    "adaptive_gaussian": what lies above the threshold flows back to those who gave it. The default of `alpha` is 5 for
    "policy_gaussian", 3 for "adaptive_gaussian" and 13.2 with Laplace noise: an item that has reached its target is then
    missed with a chance below 1e-6 (with 3, by 2.5 %). `shared_order`: users with more than l0 items choose them by one random order
    of all items, each user uniformly still, instead of by an order of their own. Weights are whole numbers in units of
    2^-bits, and so is the noise; an item without weight is not in the domain.

    `scale`: of the noise, over the most that a user changes. `delta`: what the threshold uses. `epsilon`: where the
    guarantee shall also state an (epsilon, delta')-DP; Laplace noise has it with delta itself, Gaussian noise by the
    exact analysis on a fine lattice (`theorems.balle_wang2018`). Raises ParameterError where a parameter is out of
    range.
    """

    method: str
    scale: float
    delta: float
    l0: int
    alpha: float | None = None
    epsilon: float | None = None
    shared_order: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"there is no method {self.method!r}: use {', '.join(METHODS)}")
        checked = {
            "scale": require_number("scale", self.scale, 1e-2, SCALE_LIMIT),
            "delta": require_delta(self.delta),
            "l0": require_l0(self.l0),
            "alpha": require_number("alpha", alpha_of(self.method, self.alpha), 0, 20, open_low=False),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        require_flag("shared_order", self.shared_order)
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 0, 100))
            if not is_gaussian(self.method) and round_up(1 / self.scale) > self.epsilon:
                raise ParameterError("this much noise does not keep that epsilon; use from_epsilon")
        if self.method in ("greedy", "adaptive_gaussian") and self.target < 1 << self.bits:
            raise ParameterError("delta is too large for this method; give a smaller one, or a larger alpha")
        far = self.target >= 1 << (self.bits + 10)
        if self.method == "policy_gaussian":
            far = far or (self.target >> self.bits) ** 2 * self.l0 >= 1 << 26
        if far and not self.method.startswith("weighted"):
            raise ParameterError("the threshold is too high for this method; use a weighted one")

    @classmethod
    def from_rho(
        cls,
        *,
        method: str = "policy_gaussian",
        rho: float,
        delta: float,
        l0: int,
        alpha: float | None = None,
        shared_order: bool = False,
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        rho, made = (
            require_rho(rho),
            partial(cls, method=method, delta=delta, l0=l0, alpha=alpha, shared_order=shared_order),
        )
        if is_gaussian(method):
            return made(scale=round_up(1 / math.sqrt(2 * rho), 16))
        epsilon = max(math.sqrt(2 * rho), rho)
        low, high = epsilon, epsilon + 2.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if pure_rho(middle, tight=True) <= rho else (low, middle)
        return made(scale=round_up(1 / round_down(low, 64), 8))

    @classmethod
    def from_epsilon(
        cls,
        *,
        method: str = "policy_gaussian",
        epsilon: float,
        delta: float,
        l0: int,
        alpha: float | None = None,
        shared_order: bool = False,
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, with the lowest threshold among a few shares of
        delta."""
        resolve_rho(None, epsilon, delta)
        made = partial(cls, method=method, l0=l0, alpha=alpha, epsilon=epsilon, shared_order=shared_order)
        if not is_gaussian(method):
            return made(scale=round_up(1 / epsilon, 8), delta=delta)
        if epsilon > EXACT_EPSILON:
            rho, own = resolve_rho(None, epsilon, delta)
            rho = min(rho, 5000.0)
            return cls.from_rho(method=method, rho=rho, delta=own, l0=l0, alpha=alpha, shared_order=shared_order)
        l0, found = require_l0(l0), []
        for share in SHARES:
            own, rest = split(delta, share)
            scale = least_scale(lambda scale: [moved(method, scale, l0)], epsilon, rest)
            found.append(made(scale=scale, delta=own))
        return min(found, key=lambda mechanism: mechanism.threshold.value / (1 << mechanism.bits))

    @property
    def bits(self) -> int:
        """Binary places of weights and noise: as many as the sampler has room for, up to 28."""
        return bits_of(self.scale)

    @property
    def sensitivity(self) -> float:
        """What one user changes in the weights, over one: more where rounding is covered."""
        return sensitivity_of(self.method, self.scale, self.l0)

    @property
    def _moved(self) -> LatticeGaussian:
        return moved(self.method, self.scale, self.l0)

    @cached_property
    def noise(self) -> _core.Noise:
        """The law of the noise, in units of 2^-bits."""
        law = _core.Noise.discrete_gaussian if is_gaussian(self.method) else _core.Noise.discrete_laplace
        return law(self._moved.sigma)

    @cached_property
    def threshold(self) -> _core.Threshold:
        """The rule, in units of 2^-bits: no t novel items of one user pass it with a chance above delta, for any t up
        to l0."""
        return _core.Threshold(self.noise, least_threshold(self.method, self.noise, self.scale, self.delta, self.l0))

    @property
    def target(self) -> int:
        """Above which weight an item needs no more, in units of 2^-bits."""
        return self.threshold.value + math.ceil(alpha_of(self.method, self.alpha) * self.scale * (1 << self.bits))

    @cached_property
    def guarantee(self) -> Guarantee:
        """delta-approximate (1/(2 scale^2))-zCDP, and (epsilon, delta')-DP where that was asked for."""
        if not is_gaussian(self.method):
            epsilon = self.epsilon or round_up(1 / self.scale)
            return Guarantee(pure_rho(round_up(1 / self.scale), tight=True), self.delta, dp=(epsilon, self.delta))
        pair = None if self.epsilon is None else pair_of(self.epsilon, self.delta, [self._moved])
        return Guarantee(round_up(1 / self.scale**2 / 2), self.delta, dp=pair)

    def release_chance(self, users: int) -> float:
        """The chance by the weight that so many users with l0 items each, or more, share out evenly."""
        unit = 1 << self.bits
        share = math.isqrt(unit**2 // self.l0) if is_gaussian(self.method) else unit // self.l0
        return self.threshold.chance(min(users * share, 2**59))

    @property
    def weighting(self) -> Weighting:
        """How users weigh their items."""
        return Weighting(
            method=METHODS[self.method], bits=self.bits, l0=self.l0, target=self.target, shared_order=self.shared_order
        )

    @property
    def _rounds(self) -> tuple[SetUnion, ...]:
        return (self,)
