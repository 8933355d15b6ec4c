"""Confirmed counts: counts to a relative error, for users with any number of items, at a fraction of the price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, Sensitivity, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import confirmed_counts as theorem
from discreet.theorems.rogers2024 import budget_units, units_rho

__all__ = ["ConfirmedCounts"]

_LEAST_DELTA = 1e-100
_LARGEST_SIGMA = 1e9
_ENDINGS = {
    "bound": "more than k_bar ({k_bar:,}) items are nearly as common as the next to be named; a larger k_bar, chosen "
    "before the data is seen, names more",
    "most": "a release names at most {most:,} items",
}


@dataclass(frozen=True, kw_only=True)
class ConfirmedCounts(HistogramMechanism):
    """Items and their counts, each to about `relative_error`, without a bound on a user's items.

    A step draws one of exactly k_bar slots by the exponential mechanism: the k_bar largest counts that were not named
    yet. It measures the count in it with discrete Gaussian noise, and names the item if the noisy count stands above
    what an item outside the slots can have. delta-approximate rho-zCDP per user, added or removed: the theorem of
    docs/confirmed-counts.md. Where the histogram knows how many users there are, N, twice the count less N is measured
    instead of the count. One user moves that by one, whatever items they have, so that a count costs a quarter.

    `rho`, `delta`: the promise. `relative_error`: the share of a count that its noise is aimed at; below 1, and
    above 0.17 it has no further effect. `k_bar`: how many ranked counts are looked at, fixed before the data is seen.

    Items are drawn, not ranked: an item within about 20 % of the smallest one named may be missing.
    Raises ParameterError where a parameter is out of range.

        >>> from discreet import Histogram
        >>> from discreet.mechanisms import ConfirmedCounts
        >>> table = Histogram.from_counts(["a", "b"], [9000, 8000], l0=None, linf=1, complete=True, users=12000)
        >>> release = ConfirmedCounts(rho=1, delta=1e-6).release(table)
        >>> sorted(release.items)
        ['a', 'b']
    """

    rho: float
    delta: float
    relative_error: float = 0.1
    k_bar: int = 2**14

    def __post_init__(self) -> None:
        checked = {
            "rho": require_number("rho", self.rho, 0, RHO_LIMIT),
            "delta": require_number("delta", self.delta, _LEAST_DELTA, 1, open_low=False, open_high=True),
            "relative_error": require_number("relative_error", self.relative_error, 0.005, 100, open_low=False),
            "k_bar": require_whole("k_bar", self.k_bar, 1, 2**30),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.relative_error >= 1:
            raise ParameterError("relative_error must be below 1: it is a share of a count, 0.1 for a tenth")
        if self._first.sigma > _LARGEST_SIGMA or self._first.price > budget_units(self.rho):
            raise ParameterError(f"rho ({self.rho:g}) does not pay for one measurement; raise rho")

    @classmethod
    def from_rho(cls, *, rho: float, delta: float, relative_error: float = 0.1, k_bar: int = 2**14) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, relative_error=relative_error, k_bar=k_bar)

    @classmethod
    def from_epsilon(cls, *, epsilon: float, delta: float, relative_error: float = 0.1, k_bar: int = 2**14) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        rho, own_delta = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own_delta, relative_error=relative_error, k_bar=k_bar)

    @property
    def protects(self) -> Sensitivity:
        """Any number of items per user, each count moved by one."""
        return Sensitivity(l0=None, linf=1)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate rho-zCDP (docs/confirmed-counts.md, the theorem)."""
        return Guarantee(self.rho, self.delta)

    @property
    def rows_needed(self) -> int:
        """How many rows of a truncated histogram this can use: k_bar + 1, and one for each item it may name."""
        return self.k_bar + 1 + theorem.MOST

    def release_chance(self, users: int) -> float:
        """About the chance that an item alone, of so many users, is named, where the number of users is known.

        Every level is tried from the top down, in the steps of a release that has named nothing, while rho pays.
        """
        return self._chance(users, self._levels(2), 2)

    def _chance(self, users: int, levels: tuple[theorem.Level, ...], factor: int) -> float:
        left = budget_units(self.rho) - (self._first.price if factor == 2 else 0)
        missed, others, query = 1.0, math.log(self.k_bar), factor * users
        for number in range(theorem.HIGHEST, theorem.LOWEST - 1, -theorem.FIRST_FALL):
            at = number - theorem.LOWEST
            level = levels[at]
            price = level.bound.price + level.steps[0].price
            if price > left:
                break
            left -= price
            delta = theorem.deltas([level.steps[0].price, level.bound.price], self.rho, self.delta)
            if max(delta) >= 0.5:
                break
            least = 2 + theorem.margin(level.steps[0].sigma, delta[0]) + theorem.reach(level.bound.sigma, delta[1])
            if least > level.ceiling:
                continue
            drawn = 1 / (1 + math.exp(min(others - level.gamma * users, 700.0)))
            confirmed = 0.5 * math.erfc((least - query) / (level.steps[0].sigma * math.sqrt(2)))
            missed *= 1 - drawn * confirmed
        return 1 - missed

    def deviation_of(self, users: int) -> float:
        """About the standard deviation of the count of an item of so many users."""
        return theorem.scale(self.relative_error) * users

    def forecast(self, largest: int, exponent: float = 1.0) -> tuple[int, int]:
        """About how many items are named, and the smallest of their counts, where counts follow a law of Zipf.

        The i-th largest count is largest/i^exponent. Where that ends above the (k_bar+1)-th count, fewer are named.
        """
        items, smallest = theorem.forecast(self.rho, self.relative_error, largest, exponent)
        return (items, smallest) if items <= self.k_bar else (self.k_bar, math.floor(largest / self.k_bar**exponent))

    @cached_property
    def _first(self) -> theorem.Measurement:
        """The first measurement of the number of users."""
        sigma = round_up(1 / math.sqrt(2 * theorem.FIRST_SHARE * self.rho), 8)
        return theorem.Measurement(sigma, theorem.variance_price(sigma))

    def _levels(self, factor: int, *, replaced: bool = False) -> tuple[theorem.Level, ...]:
        return theorem.levels(self.relative_error, factor=factor, replaced=replaced)

    def replacing_chance(self, users: int) -> float:
        """`release_chance` where users are replaced."""
        return self._chance(users, self._levels(1, replaced=True), 1)

    def _run(self, histogram: Histogram, rng: _core.Rng, *, replaced: bool = False) -> Release:
        """The release; `replaced`: for neighbours in which one user is replaced by another (mode "replace").

        A draw then costs four times as much. The number of users does not move, so that it is of no use.
        """
        users, budget = None if replaced else histogram._users, budget_units(self.rho)
        factor = 1 if users is None else 2
        levels = self._levels(factor, replaced=replaced)
        highest = noisy = first = 0
        if users is None:
            start = highest = theorem.LEVELS_TOP
        else:
            first = self._first.price
            noisy = users + int(rng.discrete_gaussian(self._first.sigma, 1)[0])
            start = min(theorem.octaves(max(noisy, 4)), theorem.LEVELS_TOP)
            highest = min(start + theorem.FINE, theorem.LEVELS_TOP)
        rows, values, scales, spent, steps, ending = _core.confirm(
            histogram._counts(),
            histogram._limit,
            levels,
            theorem.deltas([step.price for level in levels for step in level.steps], self.rho, self.delta),
            theorem.deltas([level.bound.price for level in levels], self.rho, self.delta),
            (theorem.LOWEST, budget - first, self.k_bar, theorem.MOST, factor, users or 0, noisy, start, highest),
            rng,
        )
        spent += first
        variances = np.array([step.sigma**2 for level in levels for step in level.steps])[scales]
        known, precision = float(noisy), 0.0
        if users is not None:
            precision = self._first.sigma**-2
            if len(rows):
                in_users = variances / factor**2
                wanted = theorem.final_price(budget - spent, float((1 / in_users).sum()), float(in_users.min()))
                sigma = theorem.affordable_sigma(wanted)
                if sigma is not None:
                    spent += theorem.variance_price(sigma)
                    again = users + int(rng.discrete_gaussian(sigma, 1)[0])
                    known = (noisy * precision + again * sigma**-2) / (precision + sigma**-2)
                    precision += sigma**-2
        common = 1 / precision if precision else 0.0
        return self._published(
            histogram,
            rows,
            rng,
            noisy=np.rint((values + known) / factor).astype(np.int64),
            sigmas=np.sqrt(variances + common) / factor,
            spent=Guarantee(min(self.rho, units_rho(spent)), theorem.spent_delta(spent, self.rho, self.delta)),
            calls=steps,
            stopped_early=ending == "rows",
            users=None if users is None else (round(known), math.sqrt(common)),
            notes=self._notes(ending, known if users is not None else None, math.sqrt(common), replaced=replaced),
        )

    def _notes(self, ending: str, users: float | None, deviation: float, *, replaced: bool) -> tuple[str, ...]:
        notes = ["items are drawn, not ranked: one within about 20 % of the smallest named may be missing"]
        if users is not None:
            notes.append(
                f"about {round(users):,} users have any item, give or take {deviation:.3g}; "
                f"half of that error, {deviation / 2:.3g}, is common to all counts"
            )
        elif not replaced:
            notes.append(
                "the histogram does not know the number of users, so that fewer items are named: make it with "
                "count_users=True, or from_counts with users="
            )
        if ending in _ENDINGS:
            notes.append(_ENDINGS[ending].format(k_bar=self.k_bar, most=theorem.MOST))
        return tuple(notes)
