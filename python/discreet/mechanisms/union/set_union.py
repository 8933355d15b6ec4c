"""`SetUnion`: weights that one user changes by at most one in total, noise, and a threshold."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.engines.engine import Label, Weighting
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening, opened_rng
from discreet.mechanisms.parameters import require_delta, require_rho
from discreet.mechanisms.published import of_rows, published
from discreet.mechanisms.union.methods import UNION_METHODS
from discreet.privacy.conversion import pure_rho, round_down, round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity, require_pair, resolve_rho
from discreet.privacy.validation import require_choice, require_flag, require_number
from discreet.release.facts import Facts, Summed
from discreet.release.release import Release
from discreet.tables.user_items import UserItems, read_items
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

__all__ = ["SetUnion", "UnionMechanism"]


class UnionMechanism(Mechanism[UserItems, Release]):
    """A mechanism that releases items of `UserItems`, without counts."""

    __slots__ = ()

    reads = UserItems
    _columns = ((),)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any items, because the mechanism bounds their total weight."""
        return Sensitivity(l0=None, linf=1)

    @abstractmethod
    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released, if no other item matters.

        Args:
            users: The number of users of the item, each with l0 items or more.

        Returns:
            A probability from 0 to 1.
        """

    def _of_table(self, table: Table, only: tuple[Label, ...] | None) -> UserItems:
        return read_items(table, l0=getattr(self, "l0", None))

    @property
    @abstractmethod
    def _unions(self) -> tuple[SetUnion, ...]:
        """Return the set unions to run, in order."""

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), is_keyed=True)

    def release(
        self, data: UserItems, *, rng: _core.Rng | Opening | None = None, user: None = None, item: None = None
    ) -> Release:
        """Release the items that are safe to name.

        Args:
            data: The users' items, as `UserItems`.
            rng: For tests (`discreet.testing.seeded_rng`). By default every release draws from a fresh stream with a
                key from the operating system.
            user: Not taken: the names of columns belong to `UserItems.from_table`.
            item: Not taken, for the same reason.

        Returns:
            A Release of items, in the order of the items.

        Raises:
            ParameterError: The data is not UserItems, or the method cannot run where the rows are.
            EntropyError: The operating system provides no randomness.
            InputError: Counting failed on the cluster or in the warehouse that holds the rows.
            ResourceError: The session with the cluster is gone.

        Example:
            >>> import discreet as dp
            >>> items = dp.tables.UserItems.from_pairs([*range(5000)] * 2, ["home"] * 5000 + ["help"] * 5000)
            >>> dp.mechanisms.SetUnion.from_rho(rho=1, delta=1e-6, l0=2, alpha=9).release(items).items
            ['help', 'home']
        """
        if user is not None or item is not None:
            raise ParameterError(
                "release takes UserItems and no names of columns: give UserItems.from_table(data, user=..., item=...)"
            )
        if not isinstance(data, UserItems):
            raise ParameterError("release takes UserItems: make them with UserItems.from_table or from_pairs")
        weighing = data._lists.weighing(*(union.weighting for union in self._unions))
        stream = opened_rng(rng)
        found = 0
        for union in self._unions:
            weights = weighing.weights(union.weighting, stream)
            rows = union.threshold.release(weights, stream)[0]
            weighing.name(rows)
            found += len(rows)
        return of_rows(published(self, weighing.named, np.arange(found), stream), data._every, data.unit)


@dataclass(frozen=True, kw_only=True)
class SetUnion(UnionMechanism):
    """A mechanism that releases the items whose noisy weights exceed a threshold, without counts.

    Each user has a weight of one for at most `l0` items, chosen uniformly. The method decides how the user splits it:

    "weighted_gaussian" and "weighted_laplace": evenly.

    "policy_gaussian" and "policy_laplace": one user after the other, only to items below the target. The target lies
    `alpha` deviations (for Laplace noise: scales) above the threshold.

    Weights and noise are whole numbers in units of 2^-bits. An item that no user has is never released.

    Args:
        method: One of the names above.
        scale: The scale of the noise, over the most that one user changes: above 0.01 and at most 10,000.
        delta: The probability that a threshold fails: above 0 and below 1.
        l0: The most items that one user contributes: from 1 to 4096.
        alpha: How far the target of a policy method lies above the threshold, in deviations: from 0 to 20. The default
            is 5 for "policy_gaussian" and 13.2 for "policy_laplace". An item at its target is then missed with a
            probability below 1e-6; with 3 and Laplace noise it would be 2.5 %.
        epsilon: If given, the guarantee also states (epsilon, delta')-DP. For Laplace noise delta' is delta; for
            Gaussian noise the exact analysis on a fine lattice gives it. Above 0 and at most 100.
        shared_order: If True, users with more than l0 items choose by one random order of all items. Each user's choice
            is still uniform. By default each user has a separate random order.

    Raises:
        ParameterError: A parameter is out of range, or the method cannot use it.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.SetUnion.from_rho(rho=1, delta=1e-6, l0=2, alpha=9)
        >>> print(mechanism.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed)
        >>> items = dp.tables.UserItems.from_pairs([*range(5000)] * 2, ["home"] * 5000 + ["help"] * 5000)
        >>> mechanism.release(items).items
        ['help', 'home']

    Source:
        Gopi et al. (2020) for the methods; Balle and Wang (2018) for the exact delta'.
    """

    method: str
    scale: float
    delta: float
    l0: int
    alpha: float | None = None
    epsilon: float | None = None
    shared_order: bool = False

    def __post_init__(self) -> None:
        require_choice("method", self.method, UNION_METHODS)
        self._set(
            scale=require_number("scale", self.scale, 1e-2, SCALE_LIMIT),
            delta=require_delta(self.delta),
            l0=require_l0(self.l0),
            alpha=require_number("alpha", alpha_of(self.method, self.alpha), 0, 20, open_low=False),
        )
        require_flag("shared_order", self.shared_order)
        if self.epsilon is not None:
            self._set(epsilon=require_number("epsilon", self.epsilon, 0, 100))
            if not is_gaussian(self.method) and round_up(1 / self.scale) > self.epsilon:
                raise ParameterError("the scale is too small for that epsilon; use from_epsilon")
        far = self.target >= 1 << (self.bits + 10)
        if self.method == "policy_gaussian":
            far = far or (self.target >> self.bits) ** 2 * self.l0 >= 1 << 26
        if far and not self.method.startswith("weighted"):
            raise ParameterError("the threshold is too high for this method; use a weighted method")

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
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        rho, method, made = (
            require_rho(rho),
            require_choice("method", method, UNION_METHODS),
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
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        With Gaussian noise it tries several fractions of delta for the threshold and takes the lowest threshold.
        """
        epsilon, delta = require_pair(epsilon, delta)
        rho, own = resolve_rho(None, epsilon, delta)
        require_choice("method", method, UNION_METHODS)
        made = partial(cls, method=method, l0=l0, alpha=alpha, epsilon=epsilon, shared_order=shared_order)
        if not is_gaussian(method):
            return made(scale=round_up(1 / epsilon, 8), delta=delta)
        if epsilon > EXACT_EPSILON:
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
        """Return the binary places of weights and noise: as many as the sampler allows, at most 28."""
        return bits_of(self.scale)

    @property
    def sensitivity(self) -> float:
        """Return the most that one user changes in the weights: one, or more for "policy_gaussian", which rounds."""
        return sensitivity_of(self.method, self.scale, self.l0)

    @property
    def lattice(self) -> LatticeGaussian:
        """Return the noise on the lattice, with the change of one user."""
        return moved(self.method, self.scale, self.l0)

    @cached_property
    def noise(self) -> _core.Noise:
        """Return the distribution of the noise, in units of 2^-bits."""
        law = _core.Noise.discrete_gaussian if is_gaussian(self.method) else _core.Noise.discrete_laplace
        return law(self.lattice.sigma)

    @cached_property
    def threshold(self) -> _core.Threshold:
        """Return the release rule, in units of 2^-bits.

        For every t up to l0, any of t novel items of one user pass it with a total probability of at most delta.
        """
        return _core.Threshold(self.noise, least_threshold(self.method, self.noise, self.scale, self.delta, self.l0))

    @property
    def target(self) -> int:
        """Return the weight at which an item needs no more, in units of 2^-bits."""
        return self.threshold.value + math.ceil(alpha_of(self.method, self.alpha) * self.scale * (1 << self.bits))

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate (1/(2 scale^2))-zCDP.

        It also states (epsilon, delta')-DP if epsilon is given, and always for Laplace noise.
        """
        if not is_gaussian(self.method):
            epsilon = self.epsilon or round_up(1 / self.scale)
            return Guarantee(pure_rho(round_up(1 / self.scale), tight=True), self.delta, dp=(epsilon, self.delta))
        pair = None if self.epsilon is None else pair_of(self.epsilon, self.delta, [self.lattice])
        return Guarantee(round_up(1 / self.scale**2 / 2), self.delta, dp=pair)

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released, in the worst case.

        In the worst case its users share no other item.
        """
        unit = 1 << self.bits
        if self.method == "policy_gaussian":
            # A step gives the item gap / (sqrt(l0) target) at least, because no other gap is larger than the target.
            reached = -math.expm1(users * math.log1p(-min(unit / (math.sqrt(self.l0) * self.target), 1 - 1e-16)))
            return self.threshold.chance(math.floor(self.target * reached))
        share = math.isqrt(unit**2 // self.l0) if is_gaussian(self.method) else unit // self.l0
        most = self.target if self.method == "policy_laplace" else 2**59
        return self.threshold.chance(min(users * share, most))

    @property
    def weighting(self) -> Weighting:
        """Return the weighting for the engine that reads the rows."""
        return Weighting(
            method=UNION_METHODS[self.method],
            bits=self.bits,
            l0=self.l0,
            target=self.target,
            shared_order=self.shared_order,
        )

    @property
    def _unions(self) -> tuple[SetUnion, ...]:
        return (self,)
