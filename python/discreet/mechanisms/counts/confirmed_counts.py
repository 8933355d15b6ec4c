"""`ConfirmedCounts`: counts to a relative error, for users with any number of items, at a lower privacy cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.parameters import K_BAR, RELATIVE_ERROR, require_relative_error, require_rho
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import Facts, Summed, all_close
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import confirmed_counts as theorem
from discreet.theorems.rogers2024 import budget_units, units_rho

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Begun", "ConfirmedCounts", "Found"]

_LEAST_DELTA = 1e-100
_LARGEST_SIGMA = 1e9
_ENDINGS = {
    "outside": "the noisy bound on all counts but the k_bar ({k_bar:,}) largest is too high for a further item: more "
    "than k_bar items may be nearly as common as the next one, or it is noise alone. In the first case, a larger "
    "k_bar, chosen without the data, releases more",
    "delta": "no smaller count can be confirmed with delta={delta:g} and relative_error={relative_error:g}; raise "
    "delta or lower relative_error",
    "most": "a release has at most {most:,} items",
}
"""Notes by the reason why a release ended."""

Found = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]", int, int, tuple[int, int, int], str]
"""The result of `_core.confirm`."""


class Begun(NamedTuple):
    """The state before the first item is confirmed."""

    users: int | None
    """The exact number of users; None if it is not known or not used."""
    noisy_users: float
    """The published number of users; 0 without."""
    precision: float
    """1/sigma^2 of the published number; 0 without."""
    spent: int
    """The price of all measurements so far, in units."""
    start: int
    """The first position, in 1/256 octaves."""


@dataclass(frozen=True, kw_only=True)
class ConfirmedCounts(FromRhoAndDelta, HistogramMechanism):
    """A mechanism that releases items with counts to about `relative_error`, without a bound on a user's items.

    A step draws one of exactly k_bar slots with the exponential mechanism. The slots hold the k_bar largest counts that
    were not released yet. The step measures the drawn count with discrete Gaussian noise. It releases the item if the
    noisy count exceeds a bound on the counts outside the slots. The guarantee is delta-approximate rho-zCDP per user,
    added or removed.

    If the histogram knows the number N of users, the step measures twice the count less N instead. One user changes
    that by one, whatever items they have, so a count costs a quarter.

    Items are drawn, not ranked: an item with up to about twice the smallest released count may be missing.

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: from 1e-100 to below 1.
        relative_error: The error to aim for, as a fraction of a count: from 0.005 to below 1. The sigma of a count
            is usually about 0.475 times this fraction of it. Values above 0.17 change nothing: sigma is then usually
            about 8 % of the count. With a delta of at most 1e-6, it is at most about a quarter of the released count.
        k_bar: Consider only the k_bar most common items in each step: from 1 to 2^30. Choose it without the data.

    Raises:
        ParameterError: A parameter is out of range, or rho is too small for one measurement.

    Example:
        >>> import discreet as dp
        >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=None, linf=1, complete=True, users=12000)
        >>> release = dp.ConfirmedCounts(rho=1, delta=1e-6).release(table)
        >>> sorted(release.items)
        ['a', 'b']

    Source:
        The theorem of docs/confirmed-counts.md, a result of this project.
    """

    _costs_by_step = True
    items_compete = True
    counts_users = True
    doubled = ()

    rho: float
    delta: float
    relative_error: float = RELATIVE_ERROR
    k_bar: int = K_BAR

    def __post_init__(self) -> None:
        self._set(
            rho=require_rho(self.rho),
            delta=require_number("delta", self.delta, _LEAST_DELTA, 1, open_low=False, open_high=True),
            relative_error=require_relative_error(self.relative_error),
            k_bar=require_whole("k_bar", self.k_bar, 1, 2**30),
        )
        if self._first.sigma > _LARGEST_SIGMA or self._first.price > budget_units(self.rho):
            error = ParameterError.about("{rho} ({:g}) is too small for one measurement; raise {rho}", self.rho)
            raise error.outside(self.rho, -1)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: any number of items per user, each count changed by at most one."""
        return Sensitivity(l0=None, linf=1)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP (docs/confirmed-counts.md, the theorem)."""
        return Guarantee(self.rho, self.delta)

    @property
    def rows_needed(self) -> int:
        """Return the most rows of a histogram that this can use: k_bar + 1, and one for each possible release."""
        return self.k_bar + 1 + theorem.MOST

    def release_chance(self, users: int) -> float:
        """Return the approximate probability that an item is released, if no other item competes with it.

        The number of users is supposed to be known. Every level that rho can afford is tried once, from the highest
        down, as in a release that has no item yet.
        """
        return self._chance(2 * users, users, self._tries)

    def _chance(self, query: int, users: int, tries: tuple[tuple[float, float, int], ...]) -> float:
        """Return the release probability of an item over all tries, for the value of its query."""
        missed, others = 1.0, math.log(self.k_bar)
        for gamma, sigma, least in tries:
            drawn = 1 / (1 + math.exp(min(others - gamma * users, 700.0)))
            missed *= 1 - drawn * 0.5 * math.erfc((least - query) / (sigma * math.sqrt(2)))
        return 1 - missed

    @cached_property
    def _tries(self) -> tuple[tuple[float, float, int], ...]:
        return self._affordable(self._first.price, factor=2)

    @cached_property
    def _replacing_tries(self) -> tuple[tuple[float, float, int], ...]:
        return self._affordable(0, factor=1, replaced=True)

    def _affordable(self, spent: int, *, factor: int, replaced: bool = False) -> tuple[tuple[float, float, int], ...]:
        """Return gamma, sigma and the least confirming value of each affordable level, from the highest down."""
        left, found = budget_units(self.rho) - spent, []
        for number in range(theorem.HIGHEST, theorem.LOWEST - 1, -theorem.FIRST_FALL):
            level = theorem.level(self.relative_error, number, factor=factor, replaced=replaced)
            confirming = self._confirming(level)
            choice, least = confirming or (0, 0)
            left -= level.steps[choice].price + level.outside.price
            if left < 0:
                break
            if confirming is not None:
                found.append((level.gamma, level.steps[choice].sigma, least))
        return tuple(found)

    def _confirming(self, level: theorem.Level) -> tuple[int, int] | None:
        """Return the first choice of noise that can confirm an item, and the least confirming value.

        The bound is supposed to be that of a table without items outside the slots. Return None if no choice can.
        """
        deltas = theorem.deltas([level.outside.price, *(step.price for step in level.steps)], self.rho, self.delta)
        if deltas[0] >= 0.5:
            return None
        reach = theorem.reach(level.outside.sigma, deltas[0])
        for choice, (step, delta) in enumerate(zip(level.steps, deltas[1:], strict=True)):
            if delta >= 0.5:
                return None
            least = 2 + theorem.margin(step.sigma, delta) + reach
            if least <= level.ceiling:
                return choice, least
        return None

    def deviation_of(self, users: int) -> float:
        """Return the approximate standard deviation of an item's count.

        Args:
            users: The number of users of the item.

        Returns:
            A number of users.
        """
        return theorem.scale(self.relative_error) * users

    def forecast(self, largest: int, exponent: float = 1.0) -> tuple[int, int]:
        """Forecast the number of released items and the smallest of their counts, if counts follow Zipf's law.

        The i-th largest count is largest/i^exponent. At most k_bar items are forecast.

        Args:
            largest: The largest count, in users.
            exponent: The exponent of Zipf's law: above 0.

        Returns:
            The number of items and the smallest of their counts, both approximate.

        Raises:
            ParameterError: A parameter is out of range.
        """
        largest, exponent = require_whole("largest", largest, 1, 2**35), require_number("exponent", exponent, 0, 20)
        for choice in range(theorem.CHOICES):
            items, smallest = theorem.forecast(self.rho, self.relative_error, largest, exponent, choice=choice)
            confirming = self._confirming(self._level_of(smallest, factor=2))
            if confirming is not None and confirming[0] <= choice:
                break
        else:
            # Counts of this size cannot be confirmed at this delta: name only those that can.
            while confirming is None and smallest < largest:
                smallest = math.ceil(smallest * 1.1)
                confirming = self._confirming(self._level_of(smallest, factor=2))
            items = 0 if confirming is None else min(items, math.floor((largest / smallest) ** (1 / exponent)))
        return (items, smallest) if items <= self.k_bar else (self.k_bar, math.floor(largest / self.k_bar**exponent))

    def forecast_on(self, counts: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[float, float]:
        """Forecast the number of released items for public counts.

        Args:
            counts: Numbers of users in descending order, each of them for a group of items.
            sizes: The number of items of each group.

        Returns:
            The number of items, and the standard deviation of a count as a share of the count, both approximate.
        """
        for choice in range(theorem.CHOICES):
            items, smallest = theorem.forecast_on(self.rho, self.relative_error, counts, sizes, choice=choice)
            confirming = self._confirming(self._level_of(smallest, factor=2))
            if confirming is not None and confirming[0] <= choice:
                return min(items, self.k_bar), theorem.scale(self.relative_error) / math.sqrt(2**choice)
        # Counts of this size cannot be confirmed at this delta: name only those that can.
        for smallest in counts[::-1]:
            if smallest > 1 and self._confirming(self._level_of(smallest, factor=2)) is not None:
                break
        else:
            return 0.0, theorem.scale(self.relative_error)
        return min(items, float(sizes[counts >= smallest].sum()), self.k_bar), theorem.scale(self.relative_error)

    def _level_of(self, users: float, *, factor: int, replaced: bool = False) -> theorem.Level:
        """Return the level that looks for items with this number of users."""
        number = min(max(round(16 * math.log2(max(users, 1))), theorem.LOWEST), theorem.HIGHEST)
        return theorem.level(self.relative_error, number, factor=factor, replaced=replaced)

    @cached_property
    def _first(self) -> theorem.Measurement:
        """Return the first measurement of the number of users."""
        sigma = theorem.first_sigma(self.rho)
        return theorem.Measurement(sigma, theorem.variance_price(sigma))

    def replacing_chance(self, users: int) -> float:
        """Return the approximate release probability of an item for a guarantee about replaced users.

        Args:
            users: The number of users of the item.

        Returns:
            A probability from 0 to 1.
        """
        return self._chance(users, users, self._replacing_tries)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        most = theorem.first_sigma(self.rho)
        return replace(super()._facts(l0, summed), users=(0.0, most))

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        factor, common = (1, 0.0) if rows["users"] is None else (2, rows["users"][1] ** 2)
        levels = theorem.levels(self.relative_error, factor=factor, replaced=replaced)
        confirmed = slice(None) if rows["confirmed"] is None else rows["confirmed"]
        own = (factor * rows["sigmas"][confirmed]) ** 2 - common
        return all_close(own, np.array([step.sigma**2 for level in levels for step in level.steps]), common)

    def _run_replaced(self, histogram: Histogram, rng: _core.Rng) -> Release:
        """Return the release for `Replacement`, which validates the histogram and opens the random stream."""
        return self._run(histogram, rng, replaced=True)

    def _run(self, histogram: Histogram, rng: _core.Rng, *, replaced: bool = False) -> Release:
        """Return the release. With `replaced`, the neighbours are datasets in which one user is replaced by another.

        A draw then costs four times as much. A replacement does not change the number of users, so it is not used.
        """
        users, budget = None if replaced else histogram._users, budget_units(self.rho)
        factor = 1 if users is None else 2
        begun = Begun(users, 0.0, 0.0, 0, theorem.LEVELS_TOP)
        if users is not None:
            begun = self._begun(users, rng)
        found = _core.confirm(
            histogram._counts(),
            histogram._limit,
            theorem.priced_levels(self.relative_error, factor, replaced, self.rho, self.delta),
            self._setting(begun, budget - begun.spent),
            rng,
        )
        return self._finished(found, begun, rng, partial(self._published, histogram), replaced=replaced)

    def _begun(self, users: int, rng: _core.Rng) -> Begun:
        """Return the first measurement of the number of users."""
        sigma = self._first.sigma
        noisy = users + int(rng.discrete_gaussian(sigma, 1)[0])
        start = min(theorem.octaves(max(noisy, 4)), theorem.LEVELS_TOP)
        return Begun(users, float(noisy), sigma**-2, self._first.price, start)

    def _setting(self, begun: Begun, budget: int) -> tuple[int, int, int, int, int, int, int, int, int]:
        """Return the setting of `_core.confirm`, with a budget in units."""
        users, noisy, _, _, start = begun
        highest = min(start + theorem.FINE, theorem.LEVELS_TOP)
        factor = 1 if users is None else 2
        return (theorem.LOWEST, budget, self.k_bar, theorem.MOST, factor, users or 0, round(noisy), start, highest)

    def _finished(
        self, found: Found, begun: Begun, rng: _core.Rng, publish: Callable[..., Release], *, replaced: bool = False
    ) -> Release:
        """Return the release of confirmed items, after the last measurement of the number of users.

        `publish` makes the release from rows, the random stream and the fields of a release.
        """
        rows, values, scales, confirming, steps, _, ending = found
        users, noisy_users, precision, paid, start = begun
        spent, factor = paid + confirming, 1 if users is None else 2
        levels = theorem.levels(self.relative_error, factor=factor, replaced=replaced)
        variances = self._variances(scales, levels)
        if users is not None and len(rows):
            in_users = variances / factor**2
            left = budget_units(self.rho) - spent
            wanted = theorem.final_price(left, float((1 / in_users).sum()), float(in_users.min()))
            sigma = theorem.affordable_sigma(wanted)
            if sigma is not None:
                spent += theorem.variance_price(sigma)
                again = users + int(rng.discrete_gaussian(sigma, 1)[0])
                noisy_users = (noisy_users * precision + again * sigma**-2) / (precision + sigma**-2)
                precision += sigma**-2
        common = 1 / precision if precision else 0.0
        counts = np.rint((values + noisy_users) / factor).astype(np.int64)
        if ending == "outside":
            # The next item has fewer users than the ones released so far, or at most as many as there are.
            next_users = counts.min() / 2 if len(rows) else theorem.level_users(start // 16)
            if self._confirming(self._level_of(next_users, factor=factor, replaced=replaced)) is None:
                ending = "delta"
        return publish(
            rows,
            rng,
            noisy=counts,
            sigmas=np.sqrt(variances + common) / factor,
            spent=Guarantee(min(self.rho, units_rho(spent)), theorem.spent_delta(spent, self.rho, self.delta)),
            calls=steps,
            stopped_early=ending == "rows",
            users=None if users is None else (round(noisy_users), math.sqrt(common)),
            notes=self._notes(
                ending,
                noisy_users if users is not None else None,
                math.sqrt(common),
                any_item=bool(len(rows)),
                replaced=replaced,
            ),
        )

    @staticmethod
    def _variances(scales: NDArray[np.int64], levels: tuple[theorem.Level, ...]) -> NDArray[np.float64]:
        """Return the variance of the noise of each row."""
        used = [divmod(scale, theorem.CHOICES) for scale in scales.tolist()]
        return np.array([levels[number].steps[choice].sigma ** 2 for number, choice in used])

    def _notes(
        self, ending: str, users: float | None, deviation: float, *, any_item: bool, replaced: bool
    ) -> tuple[str, ...]:
        """Return the notes of a release, which depend on published values alone."""
        notes = []
        if any_item:
            notes.append(
                "items are drawn, not ranked: an item with up to about twice the smallest released count may be missing"
            )
        if users is not None:
            notes.append(
                f"number of users with at least one item: about {max(0, round(users)):,} (sigma {deviation:.3g}). "
                f"Half of the error of this number (sigma {deviation / 2:.3g}) is in every count, and is part of their "
                "sigma"
            )
        elif not replaced:
            notes.append(
                "the histogram does not know the number of users, so fewer items are released: make it with "
                "count_users=True, or from_counts with users="
            )
        if ending in _ENDINGS:
            notes.append(
                _ENDINGS[ending].format(
                    k_bar=self.k_bar, most=theorem.MOST, delta=self.delta, relative_error=self.relative_error
                )
            )
        return tuple(notes)
