"""The items of users with many items each: weights that a user cannot raise by more than one in all, and a
threshold."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import _core
from discreet.conversion import cdp_rho, pure_rho, round_down, round_up
from discreet.errors import ParameterError
from discreet.mechanisms.mechanism import Opening, opened
from discreet.mechanisms.tails import least
from discreet.mechanisms.thresholds import require_delta, require_rho
from discreet.privacy import Guarantee, require_number, require_whole, resolve_rho
from discreet.release import Release
from discreet.theorems import gopi2020
from discreet.theorems.balle_wang2018 import LatticeGaussian, lattice_delta
from discreet.user_items import UserItems

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["METHODS", "IteratedSetUnion", "SetUnion", "UnionMechanism"]

METHODS = {
    "weighted_gaussian": "even_squares",
    "weighted_laplace": "even",
    "policy_gaussian": "step",
    "policy_laplace": "water",
    "greedy": "greedy",
    "adaptive_gaussian": "adaptive",
}
"""The kernel's weighting of each method."""
_ROUNDED = ("policy_gaussian", "adaptive_gaussian")
_ALPHA, _ALPHAS = 3.0, {"policy_gaussian": 5.0}
"""How far above the threshold items are filled: what names most on public tables."""
_L0_LIMIT = 1 << 12
_SCALE_LIMIT = 1e4
_ITEM_LIMIT = 1 << 32
_EXACT_EPSILON = 100.0
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Shares of delta for the threshold that are tried."""


class UnionMechanism(ABC):
    """A frozen value that names items of `UserItems`; its guarantee is a function of its parameters alone."""

    __slots__ = ()

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What every release of this mechanism promises."""

    @abstractmethod
    def release_chance(self, users: int) -> float:
        """The chance that an item is named that so many users have among l0 or more each, where no other matters."""

    @abstractmethod
    def _found(self, items: UserItems, rng: _core.Rng) -> NDArray[np.int64]:
        """The numbers of the items that are named."""

    def release(self, items: UserItems, rng: _core.Rng | Opening | None = None) -> Release:
        """Names what can be named.

        `rng` is for tests (`discreet.testing.seeded_rng`). Raises ParameterError for anything but UserItems,
        EntropyError where the system gives no randomness.
        """
        if not isinstance(items, UserItems):
            raise ParameterError("release takes UserItems: make them by UserItems.from_table or from_pairs")
        stream = opened(rng)
        rows = self._found(items, stream)
        labels = items._labels.select(rows)
        order = _core.top(labels, np.zeros(len(rows), np.int64), len(rows))
        return Release(
            items=labels.take(order),
            guarantee=self.guarantee,
            spent=self.guarantee,
            made_by=repr(self),
            private=not stream.is_seeded,
            item_type=labels.type_name,
        )


@dataclass(frozen=True, kw_only=True)
class SetUnion(UnionMechanism):
    """The items whose weight and noise exceed a threshold, without counts; at most `l0` items of each user, chosen
    uniformly.

    "weighted_gaussian" and "weighted_laplace": a user's one is shared evenly; "policy_gaussian" and "policy_laplace":
    users, one after the other, only raise items that are not yet `alpha` deviations (scales) above the threshold
    (Gopi et al. 2020); "greedy": a user fills their most frequent items first (Carvalho et al. 2022), and
    every item that somebody has weighs one unit at least, since whether others leave it any depends on them;
    "adaptive_gaussian": what lies above the threshold flows back to those who gave it. Where `alpha` is not given it
    is 5 for "policy_gaussian" and else 3. Weights are whole numbers in units of 2^-bits, and so is the noise; an item
    without weight is not in the domain.

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

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"there is no method {self.method!r}: use {', '.join(METHODS)}")
        checked = {
            "scale": require_number("scale", self.scale, 1e-2, _SCALE_LIMIT),
            "delta": require_delta(self.delta),
            "l0": require_whole("l0", self.l0, 1, _L0_LIMIT),
            "alpha": require_number("alpha", _alpha(self.method, self.alpha), 0, 20, open_low=False),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 0, 100))
            if not _is_gaussian(self.method) and round_up(1 / self.scale) > self.epsilon:
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
        cls, *, method: str = "policy_gaussian", rho: float, delta: float, l0: int, alpha: float | None = None
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        rho = require_rho(rho)
        if _is_gaussian(method):
            return cls(method=method, scale=round_up(1 / math.sqrt(2 * rho), 16), delta=delta, l0=l0, alpha=alpha)
        epsilon = max(math.sqrt(2 * rho), rho)
        low, high = epsilon, epsilon + 2.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if pure_rho(middle, tight=True) <= rho else (low, middle)
        return cls(method=method, scale=round_up(1 / round_down(low, 64), 8), delta=delta, l0=l0, alpha=alpha)

    @classmethod
    def from_epsilon(
        cls, *, method: str = "policy_gaussian", epsilon: float, delta: float, l0: int, alpha: float | None = None
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, with the lowest threshold among a few shares of
        delta."""
        resolve_rho(None, epsilon, delta)
        if not _is_gaussian(method):
            scale = round_up(1 / epsilon, 8)
            return cls(method=method, scale=scale, delta=delta, l0=l0, alpha=alpha, epsilon=epsilon)
        if epsilon > _EXACT_EPSILON:
            rho, own = resolve_rho(None, epsilon, delta)
            return cls.from_rho(method=method, rho=min(rho, 5000.0), delta=own, l0=l0, alpha=alpha)
        l0, made = require_whole("l0", l0, 1, _L0_LIMIT), []
        for share in _SHARES:
            own, rest = _split(delta, share)
            scale = _least_scale(lambda scale: [_moved(method, scale, l0)], epsilon, rest)
            made.append(cls(method=method, scale=scale, delta=own, l0=l0, alpha=alpha, epsilon=epsilon))
        return min(made, key=lambda mechanism: mechanism.threshold.value / (1 << mechanism.bits))

    @property
    def bits(self) -> int:
        """Binary places of weights and noise: as many as the sampler has room for, up to 28."""
        return _bits(self.scale)

    @property
    def sensitivity(self) -> float:
        """What one user changes in the weights, over one.

        One exactly, but for the two methods that round on the way: three units of 2^-50 for each of up to l0 items of
        up to 2^30 users, and one unit of 2^-bits for each of up to 2^32 items.
        """
        return _sensitivity(self.method, self.scale, self.l0)

    @cached_property
    def noise(self) -> _core.Noise:
        """The law of the noise, in units of 2^-bits."""
        law = _core.Noise.discrete_gaussian if _is_gaussian(self.method) else _core.Noise.discrete_laplace
        return law(_moved(self.method, self.scale, self.l0).sigma)

    @cached_property
    def threshold(self) -> _core.Threshold:
        """The rule, in units of 2^-bits: no t novel items of one user pass it with a chance above delta, for any t up
        to l0."""
        return _core.Threshold(self.noise, _threshold(self))

    @property
    def target(self) -> int:
        """Above which weight an item needs no more, in units of 2^-bits."""
        return self.threshold.value + math.ceil(_alpha(self.method, self.alpha) * self.scale * (1 << self.bits))

    @cached_property
    def guarantee(self) -> Guarantee:
        """delta-approximate (1/(2 scale^2))-zCDP, and (epsilon, delta')-DP where that was asked for."""
        if not _is_gaussian(self.method):
            epsilon = self.epsilon or round_up(1 / self.scale)
            return Guarantee(pure_rho(round_up(1 / self.scale), tight=True), self.delta, dp=(epsilon, self.delta))
        pair = None if self.epsilon is None else _pair(self.epsilon, self.delta, [self])
        return Guarantee(round_up(1 / self.scale**2 / 2), self.delta, dp=pair)

    def release_chance(self, users: int) -> float:
        """The chance by the weight that so many users with l0 items each, or more, share out evenly."""
        unit = 1 << self.bits
        share = math.isqrt(unit**2 // self.l0) if _is_gaussian(self.method) else unit // self.l0
        return self.threshold.chance(min(users * share, 2**59))

    def _found(self, items: UserItems, rng: _core.Rng) -> NDArray[np.int64]:
        return self._rows(items, np.array([], np.int64), rng)

    def _rows(self, items: UserItems, found: NDArray[np.int64], rng: _core.Rng) -> NDArray[np.int64]:
        """The numbers of the items that are named, of those not yet found."""
        bounded = items._lists.bounded(self.l0, found, rng.words(8).view(np.uint64).tolist())
        weights = bounded.weights(METHODS[self.method], self.bits, target=self.target, few=self.l0)
        return self.threshold.release(weights, rng)[0]


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
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", require_number("epsilon", self.epsilon, 0, _EXACT_EPSILON))
            if not all(_is_gaussian(mechanism.method) for mechanism in self.rounds):
                raise ParameterError("an epsilon of all rounds needs Gaussian noise in each")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, l0: int, rounds: int = 3) -> Self:
        """The rounds that together promise delta-approximate rho-zCDP, each with three times as much as the last
        one."""
        rho, delta = round_down(require_rho(rho), 64), round_down(require_delta(delta), 64)
        shares = gopi2020.round_shares(require_whole("rounds", rounds, 1, 20))
        return cls(
            rounds=tuple(
                SetUnion.from_rho(method="weighted_gaussian", rho=s * rho, delta=s * delta, l0=l0) for s in shares
            )
        )

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, l0: int, rounds: int = 3) -> Self:
        """The rounds whose total promise is (epsilon, delta)-DP, with the lowest last threshold among a few shares of
        delta."""
        rho, own = resolve_rho(None, epsilon, delta)
        if epsilon > _EXACT_EPSILON:
            return cls.from_rho(rho=min(rho, 5000.0), delta=own, l0=l0, rounds=rounds)
        l0 = require_whole("l0", l0, 1, _L0_LIMIT)
        scales = [1 / math.sqrt(s) for s in gopi2020.round_shares(require_whole("rounds", rounds, 1, 20))]
        made = []
        for share in _SHARES:
            own, rest = _split(delta, share)
            scale = _least_scale(
                lambda scale: [_moved("weighted_gaussian", scale * more, l0) for more in scales], epsilon, rest
            )
            found = cls.from_rho(rho=round_down(1 / scale**2 / 2, 64), delta=own, l0=l0, rounds=rounds)
            made.append(replace(found, epsilon=epsilon))
        return min(made, key=lambda found: found.rounds[-1].threshold.value / (1 << found.rounds[-1].bits))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The sum of the rounds' guarantees."""
        total = self.rounds[0].guarantee
        for mechanism in self.rounds[1:]:
            total = total + mechanism.guarantee
        return total if self.epsilon is None else replace(total, dp=_pair(self.epsilon, total.delta, self.rounds))

    def release_chance(self, users: int) -> float:
        """The chance that one of the rounds names it."""
        return 1 - math.prod(1 - mechanism.release_chance(users) for mechanism in self.rounds)

    def _found(self, items: UserItems, rng: _core.Rng) -> NDArray[np.int64]:
        found = np.array([], np.int64)
        for mechanism in self.rounds:
            found = np.concatenate([found, mechanism._rows(items, found, rng)])
        return found


def _is_gaussian(method: str) -> bool:
    return method.endswith("gaussian")


def _alpha(method: str, given: float | None) -> float:
    return _ALPHAS.get(method, _ALPHA) if given is None else given


def _bits(scale: float) -> int:
    return min(28, math.floor(math.log2(5e8 / scale)))


def _sensitivity(method: str, scale: float, l0: int) -> float:
    return 1 + l0 * 2.0**-18 + 2.0 ** (16 - _bits(scale)) if method in _ROUNDED else 1.0


def _moved(method: str, scale: float, l0: int) -> LatticeGaussian:
    """The noise on the lattice and what a user moves on it: of plain weights those of their own items alone."""
    unit = 1 << _bits(scale)
    change = _sensitivity(method, scale, l0)
    return LatticeGaussian(
        sigma=round_up(scale * change) * unit,
        change=change * unit,
        entries=_ITEM_LIMIT if method in _ROUNDED else l0,
    )


def _split(delta: float, share: float) -> tuple[float, float]:
    """A share of delta for thresholds, and what it leaves to the noise."""
    own = round_down(share * delta)
    return own, round_down((delta - own) / (1 - own), 16)


def _least_scale(parts: Callable[[float], list[LatticeGaussian]], epsilon: float, delta: float) -> float:
    """The least scale, to a part in 1e9, at which these releases are (epsilon, delta)-DP."""

    def holds(scale: float) -> bool:
        return lattice_delta(epsilon, parts(scale)) <= delta

    high = 1 / math.sqrt(2 * min(max(cdp_rho(epsilon, delta), 1e-8), 5000.0))
    low = high / 4
    while not holds(high):
        low, high = high, 2 * high
        if high > _SCALE_LIMIT:
            raise ParameterError("epsilon and delta are too small for any noise to fit; give larger ones")
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _pair(epsilon: float, own: float, mechanisms: Sequence[SetUnion]) -> tuple[float, float]:
    """(epsilon, delta') of Gaussian releases one after the other, whose thresholds use `own`."""
    parts = [_moved(mechanism.method, mechanism.scale, mechanism.l0) for mechanism in mechanisms]
    return epsilon, min(1.0, round_up(own + (1 - own) * lattice_delta(epsilon, parts)))


def _threshold(mechanism: SetUnion) -> int:
    """The least threshold for every number of novel items; those whose threshold is clearly lower are left out."""
    unit, delta = 1 << mechanism.bits, mechanism.delta
    if mechanism.method == "greedy":
        return _greedy_threshold(mechanism)

    def most(t: int) -> int:
        """The largest weight of each of t novel items of one user."""
        return math.isqrt(unit**2 // t) if _is_gaussian(mechanism.method) else -(-unit // t)

    rule = gopi2020.gaussian_threshold if _is_gaussian(mechanism.method) else gopi2020.laplace_threshold
    rough = {t: rule(mechanism.scale * mechanism.sensitivity, delta, t) for t in range(1, mechanism.l0 + 1)}
    worst = max(rough.values())
    near = worst - abs(worst) * 1e-6 - 1e-6
    return max(
        most(t) - 1 + mechanism.noise.quantile(gopi2020.novel_item_chance(delta, t))
        for t, value in rough.items()
        if value >= near
    )


def _greedy_threshold(mechanism: SetUnion) -> int:
    """The least threshold that a user's novel items pass with a chance of delta at most: one of them may have the
    user's whole budget, the others the one unit that every item of somebody has."""
    unit, tail = 1 << mechanism.bits, mechanism.noise.tail
    kept = math.log1p(-mechanism.delta)

    def holds(threshold: int) -> bool:
        first, others = tail(threshold - unit + 1), tail(threshold)
        return first < 1 and math.log1p(-first) + (mechanism.l0 - 1) * math.log1p(-others) >= kept * (1 - 1e-12)

    return least(holds)
