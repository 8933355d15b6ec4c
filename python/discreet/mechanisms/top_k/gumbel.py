"""`GumbelTopK`: the k most common items in order, by Gumbel noise, for users with any number of items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.noises import GumbelNoise
from discreet.mechanisms.parameters import LINF_LIMIT, require_delta, require_rho
from discreet.mechanisms.top_k.base import K_BAR_LIMIT, RankedMechanism, largest
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity, require_pair, resolve_rho
from discreet.privacy.validation import require_flag, require_number, require_whole
from discreet.release.facts import RANKS
from discreet.theorems import rogers2023

if TYPE_CHECKING:
    from discreet import _core
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["GumbelTopK"]


@dataclass(frozen=True, kw_only=True)
class GumbelTopK(GumbelNoise, RankedMechanism):
    """A mechanism that releases the k most common items in order, without counts.

    It draws one item after the other. The exponential mechanism chooses among the items of the k_bar largest counts and
    a stop element. The count of the stop element is the (k_bar+1)-th count plus `threshold`. The stop element ends the
    list, so fewer than k items are released if the others are not safe to name. With epsilon = linf/scale the guarantee
    is delta-approximate (k epsilon^2/8)-zCDP and (k epsilon, delta)-DP per user, added or removed.

    Args:
        k: The most items to release: from 1 to k_bar.
        scale: The scale of the Gumbel noise: above 0.001 and at most 1e12 users.
        delta: The probability that the guarantee fails: above 0 and below 1.
        k_bar: Consider only the k_bar most common items: from 1 to 2^30. Choose it without the data.
        l0: The most items that one user contributes, or None for any number. A bound lowers the stop element.
        linf: The most that one user adds to one count: from 1 to 2^30.
        tight: If True, use the exact rho of a bounded range instead of epsilon^2/8.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.GumbelTopK.from_rho(k=2, rho=1, delta=1e-6)
        >>> print(mechanism.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed), and (4, 1e-06)-DP
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=None, linf=1, complete=True)
        >>> mechanism.release(table).items
        ['a', 'b']

    Source:
        Rogers (2023), Algorithm 3 and Theorem 9.
    """

    _columns = (RANKS,)
    _costs_by_step = True
    items_compete = True
    doubled = ("linf",)

    k: int
    scale: float
    delta: float
    k_bar: int = 1_000
    l0: int | None = None
    linf: int = 1
    tight: bool = False

    def __post_init__(self) -> None:
        self._set(
            k=require_whole("k", self.k, 1, K_BAR_LIMIT),
            scale=require_number("scale", self.scale, 1e-3, 1e12),
            delta=require_delta(self.delta),
            k_bar=require_whole("k_bar", self.k_bar, 1, K_BAR_LIMIT),
            linf=require_whole("linf", self.linf, 1, LINF_LIMIT),
            l0=None if self.l0 is None else require_whole("l0", self.l0, 1),
            tight=require_flag("tight", self.tight),
        )
        if self.k > self.k_bar:
            raise ParameterError.about(
                "{k} ({}) must be at most {k_bar} ({}): raise {k_bar} or lower {k}", self.k, self.k_bar
            )
        _ = self.guarantee

    @classmethod
    def from_rho(
        cls, *, k: int, rho: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP, with epsilon = sqrt(8 rho/k)."""
        linf = require_whole("linf", linf, 1, LINF_LIMIT)
        scale = rogers2023.gumbel_scale(require_rho(rho), require_whole("k", k, 1), linf)
        return cls(k=k, scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(
        cls, *, k: int, epsilon: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        It takes the one with less noise of two: epsilon split over the k selections, with all of delta for the stop
        element; and a conversion from a rho, with half of delta.
        """
        epsilon, delta = require_pair(epsilon, delta)
        rho, own = resolve_rho(None, epsilon, delta)
        scale = round_up(require_whole("k", k, 1) * require_whole("linf", linf, 1, LINF_LIMIT) / epsilon, 64)
        shared = cls(k=k, scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)
        converted = cls.from_rho(k=k, rho=rho, delta=own, k_bar=k_bar, l0=l0, linf=linf)
        return min(shared, converted, key=lambda mechanism: mechanism.threshold)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: l0 items per user or any number, each count changed by at most linf."""
        return Sensitivity(l0=self.l0, linf=self.linf)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate (k epsilon^2/8)-zCDP and (k epsilon, delta)-DP.

        Source:
            Rogers (2023), Theorem 9.
        """
        return self._price(self.k)

    def _price(self, outcomes: int) -> Guarantee:
        """Return the cost of `outcomes` selections, the stop element included (Rogers 2023, Theorem 10)."""
        rho = rogers2023.gumbel_rho(self.epsilon, outcomes, tight=self.tight)
        return Guarantee(rho, self.delta, dp=(round_up(outcomes * self.epsilon, 1), self.delta))

    @property
    def offset(self) -> float:
        """Return the stop element's lead over the (k_bar+1)-th count, in units of the scale."""
        return rogers2023.gumbel_offset(self.epsilon, self.delta, rogers2023.differing_items(self.l0, self.k_bar))

    @property
    def threshold(self) -> float:
        """Return the stop element's lead in users: linf + scale log(min(l0, k_bar)/delta)."""
        return self.offset / self.gamma

    def release_chance(self, users: int) -> float:
        """Return the probability that the item is drawn before the stop element, if there is no other candidate."""
        return 1 / (1 + math.exp(min(self.offset - self.gamma * users, 700.0)))

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        counts, bottom = largest(histogram, self.k_bar)
        reference = max(bottom, int(counts[0]) if len(counts) else 0)
        rows, stopped = rng.peel(counts, reference, self.gamma, bottom, self.offset, self.k)
        outcomes = len(rows) + stopped
        return self._published(
            histogram, np.array(rows, np.int64), rng, ranked=True, spent=self._price(outcomes), calls=outcomes
        )
