"""The k most common items in order, by Gumbel noise, for users with any number of items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet.errors import ParameterError
from discreet.mechanisms.parameters import LINF_LIMIT, require_delta, require_rho
from discreet.mechanisms.top_k.base import K_BAR_LIMIT, RankedMechanism, largest
from discreet.privacy.conversion import round_down, round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity, resolve_rho
from discreet.privacy.validation import require_flag, require_number, require_whole
from discreet.theorems import rogers2023

if TYPE_CHECKING:
    from discreet import _core
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["GumbelTopK"]


@dataclass(frozen=True, kw_only=True)
class GumbelTopK(RankedMechanism):
    """The k most common items in order, without counts; fewer where the rest is not safe to name.

    Rogers (2023), Algorithm 3 and Theorem 9: items are drawn one after the other, each by the exponential
    mechanism over the k_bar largest counts and a stop element above the next one, which ends the list.
    With epsilon = linf/scale it is delta-approximate (k epsilon^2/8)-zCDP and (k epsilon, delta)-DP per
    user, added or removed. `scale`: of the Gumbel noise. `k_bar`: how many ranked counts are seen, fixed
    before the data is. `l0`: the most items of a user, None for any number; a bound lowers the stop
    element. `linf`: the most that a user adds to one count. `tight`: charges the exact rho of a
    bounded range instead of epsilon^2/8. Raises ParameterError where a parameter is out of range.
    """

    k: int
    scale: float
    delta: float
    k_bar: int = 1_000
    l0: int | None = None
    linf: int = 1
    tight: bool = False

    def __post_init__(self) -> None:
        checked = {
            "k": require_whole("k", self.k, 1, K_BAR_LIMIT),
            "scale": require_number("scale", self.scale, 1e-3, 1e12),
            "delta": require_delta(self.delta),
            "k_bar": require_whole("k_bar", self.k_bar, 1, K_BAR_LIMIT),
            "linf": require_whole("linf", self.linf, 1, LINF_LIMIT),
            "l0": None if self.l0 is None else require_whole("l0", self.l0, 1),
            "tight": require_flag("tight", self.tight),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.k > self.k_bar:
            raise ParameterError(f"k ({self.k}) must be at most k_bar ({self.k_bar}): raise k_bar")
        _ = self.guarantee

    @classmethod
    def from_rho(
        cls, *, k: int, rho: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP: epsilon = sqrt(8 rho/k)."""
        linf = require_whole("linf", linf, 1, LINF_LIMIT)
        scale = round_up(linf / math.sqrt(8 * require_rho(rho) / require_whole("k", k, 1)), 64)
        return cls(k=k, scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)

    @classmethod
    def from_epsilon(
        cls, *, k: int, epsilon: float, delta: float, k_bar: int = 1_000, l0: int | None = None, linf: int = 1
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP.

        Of two calibrations the one with less noise: epsilon shared out among the k selections, with all of
        delta for the stop element, or a rho by conversion, with half of it.
        """
        rho, own = resolve_rho(None, epsilon, delta)
        scale = round_up(require_whole("k", k, 1) * require_whole("linf", linf, 1, LINF_LIMIT) / epsilon, 64)
        shared = cls(k=k, scale=scale, delta=delta, k_bar=k_bar, l0=l0, linf=linf)
        converted = cls.from_rho(k=k, rho=rho, delta=own, k_bar=k_bar, l0=l0, linf=linf)
        return min(shared, converted, key=lambda mechanism: mechanism.threshold)

    @property
    def gamma(self) -> float:
        """One over the scale, rounded down: what a count is multiplied by."""
        return min(round_down(1 / self.scale, 1), 1000.0)

    @property
    def epsilon(self) -> float:
        """linf gamma: the range of one selection."""
        return round_up(self.linf * self.gamma, 1)

    @property
    def protects(self) -> Sensitivity:
        """Any number of items per user, or l0, each count moved by at most linf."""
        return Sensitivity(l0=self.l0, linf=self.linf)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate (k epsilon^2/8)-zCDP and (k epsilon, delta)-DP (Rogers 2023, Theorem 9)."""
        return self._price(self.k)

    def _price(self, outcomes: int) -> Guarantee:
        """What so many of the k selections cost, the one of the stop element included (Rogers 2023, Theorem 10)."""
        rho = rogers2023.gumbel_rho(self.epsilon, outcomes, tight=self.tight)
        return Guarantee(rho, self.delta, dp=(round_up(outcomes * self.epsilon, 1), self.delta))

    @property
    def offset(self) -> float:
        """By how much the stop element's score exceeds that of the (k_bar+1)-th count, over the scale."""
        return rogers2023.gumbel_offset(self.epsilon, self.delta, rogers2023.differing_items(self.l0, self.k_bar))

    @property
    def threshold(self) -> float:
        """The same in users: linf + scale log(min(l0, k_bar)/delta)."""
        return self.offset / self.gamma

    def release_chance(self, users: int) -> float:
        """The chance of an item of so many users more than the (k_bar+1)-th one against the stop element alone."""
        return 1 / (1 + math.exp(min(self.offset - self.gamma * users, 700.0)))

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        counts, bottom = largest(histogram, self.k_bar)
        reference = max(bottom, int(counts[0]) if len(counts) else 0)
        rows, stopped = rng.peel(counts, reference, self.gamma, bottom, self.offset, self.k)
        outcomes = len(rows) + stopped
        return self._published(
            histogram, np.array(rows, np.int64), rng, ranked=True, spent=self._price(outcomes), calls=outcomes
        )
