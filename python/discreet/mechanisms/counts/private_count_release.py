"""`PrivateCountRelease`: counts to a relative error, for users with any number of items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.parameters import LINF_LIMIT, require_rho
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_flag, require_number, require_whole
from discreet.release.facts import all_close
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2024
from discreet.wording import counted

__all__ = ["PrivateCountRelease"]

_SIGMA_RANGE = (1e-3, 1e9)
_CALLS = 100_000
"""The fewest calls that delta allows by default."""


@dataclass(frozen=True, kw_only=True)
class PrivateCountRelease(FromRhoAndDelta, HistogramMechanism):
    """A mechanism that releases items with counts to about `relative_error`, without a bound on a user's items.

    A call selects an item with the unknown-domain Gumbel mechanism among the k_bar largest counts. The mechanism
    publishes the count of the item with Gaussian noise, removes the item and repeats. After a call that selects no
    item, the mechanism multiplies epsilon by sqrt(2). The guarantee is delta-approximate rho-zCDP per user, added or
    removed. A larger rho allows more calls, and so releases more items. It does not change the noise at an epsilon.

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1.
        epsilon_star: Advanced: epsilon of the first call.
        delta_star: Advanced: the delta of each call, so that at most floor(delta/delta_star) calls are made. By default
            1e-11, or less if delta would otherwise allow fewer than 100,000 calls.
        k_bar: Consider only the k_bar most common items in each call: from 1 to 2^30. Choose it without the data.
        relative_error: The error to aim for, as a fraction of a count: above 0 and below 1. The noise is chosen for a
            count that is just large enough to be selected, so most counts have smaller errors.
        meet_relative_error: If True, a count gets the noise for `relative_error`, even if the count costs more than
            its call. If False, the scale of the noise is at least 2/epsilon. The error of an item that is just selected
            is then at least about 3/log(k_bar/delta_star).
        linf: The most that one user adds to one count: from 1 to 2^30.

    Raises:
        ParameterError: A parameter is out of range, or rho is too small for one call.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.PrivateCountRelease(rho=1, delta=1e-6)
        >>> print(mechanism.guarantee)
        1e-06-approximate 1-zCDP per user (added or removed)
        >>> table = dp.Histogram.from_counts(["a", "b"], [90000, 80000], l0=None, linf=1, complete=True)
        >>> sorted(mechanism.release(table).items)
        ['a', 'b']

    Source:
        Rogers (2024), Algorithm 2 and Theorem 6.
    """

    _costs_by_step = True
    items_compete = True

    rho: float
    delta: float
    epsilon_star: float = 0.0005
    delta_star: float = None  # type: ignore[assignment]  # __post_init__ sets it
    k_bar: int = 10_000
    relative_error: float = 0.1
    meet_relative_error: bool = False
    linf: int = 1

    def __post_init__(self) -> None:
        if self.delta_star is None:
            share = require_number("delta", self.delta, 0, 1, open_high=True) / _CALLS
            self._set(delta_star=min(1e-11, share))
        self._set(
            rho=require_rho(self.rho),
            delta=require_number("delta", self.delta, 0, 1, open_high=True),
            epsilon_star=require_number("epsilon_star", self.epsilon_star, 1e-300, 100, open_low=False),
            delta_star=require_number("delta_star", self.delta_star, 0, 1),
            k_bar=require_whole("k_bar", self.k_bar, 1, 2**30),
            relative_error=require_number("relative_error", self.relative_error, 0, 1, open_high=True),
            linf=require_whole("linf", self.linf, 1, LINF_LIMIT),
        )
        if self.delta_star > self.delta:
            raise ParameterError(
                f"delta ({self.delta:g}) must be at least delta_star ({self.delta_star:g}), the delta of one call; "
                "raise delta or lower delta_star"
            )
        require_flag("meet_relative_error", self.meet_relative_error)
        if not self.levels:
            raise ParameterError(
                f"rho ({self.rho:g}) is too small for one call at epsilon_star ({self.epsilon_star:g}); "
                "raise rho or lower epsilon_star"
            )
        low, high = _SIGMA_RANGE
        if not all(low <= level.sigma <= high for level in self.levels):
            raise ParameterError(
                "epsilon_star, relative_error and linf need noise of a scale outside 0.001 to 1e9; give a larger "
                "epsilon_star, or another relative_error or linf"
            )

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: any number of items per user, each count changed by at most linf."""
        return Sensitivity(l0=None, linf=self.linf)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP (Rogers 2024, Theorem 6, an adaptive filter)."""
        return Guarantee(self.rho, self.delta)

    @cached_property
    def levels(self) -> list[rogers2024.Level]:
        """Return the price list: scales and costs of the calls at every affordable level of epsilon."""
        return rogers2024.price_list(
            self.rho,
            epsilon_star=self.epsilon_star,
            delta_star=self.delta_star,
            k_bar=self.k_bar,
            relative_error=self.relative_error,
            meet_relative_error=self.meet_relative_error,
            linf=self.linf,
        )

    @property
    def rows_needed(self) -> int:
        """Return the most rows of a histogram that this can use: k_bar + 1, and one for each possible release."""
        calls = rogers2024.most_calls(self.delta, self.delta_star)
        return self.k_bar + 1 + rogers2024.most_releases(self.rho, self.levels, calls)

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is selected at some level, if there is no other candidate."""
        missed = sum(
            -math.log1p(math.exp(min(level.gamma * users - level.offset, 700.0)))
            for level in self.levels[: rogers2024.most_calls(self.delta, self.delta_star)]
        )
        return -math.expm1(missed)

    def deviation_of(self, users: int) -> float | None:
        """Return the standard deviation of an item's count, at the first level that probably selects the item.

        A larger count has more noise.

        Args:
            users: The number of users of the item.

        Returns:
            A number of users, or None if no level selects the item with a probability of at least one half.
        """
        levels = self.levels[: rogers2024.most_calls(self.delta, self.delta_star)]
        return next((level.sigma for level in levels if level.gamma * users >= level.offset), None)

    def affordable(self, users: int) -> int:
        """Return about how many items with the same number of users rho and delta can release.

        A call finds such items from the first level on that selects one with a probability of at least one half. Every
        cheaper level costs one call that selects no item. More than k_bar items of one count have no lead over the next
        count and are not released. No item may have more users.

        Args:
            users: The number of users of each item.

        Returns:
            A number of items.
        """
        left, calls = rogers2024.budget_units(self.rho), rogers2024.most_calls(self.delta, self.delta_star)
        for missed, level in enumerate(self.levels):
            if level.gamma * users >= level.offset and left >= level.dearest:
                items = (left - level.dearest) // (level.call_price + level.count_price) + 1
                return max(0, min(items, calls - missed, self.k_bar))
            left -= level.call_price
        return 0

    def forecast(self, largest: int, exponent: float = 1.0) -> tuple[int, int]:
        """Forecast the number of released items and the smallest of their counts, if counts follow Zipf's law.

        The i-th largest count is largest/i^exponent. Each level releases the items that it selects with a probability
        of at least one half, and ends with a call that selects no item. The lead of an item is its count minus the
        (k_bar+1)-th count.

        Args:
            largest: The largest count, in users.
            exponent: The exponent of Zipf's law.

        Returns:
            The number of items and the smallest of their counts, both approximate.
        """
        left, calls = rogers2024.budget_units(self.rho), rogers2024.most_calls(self.delta, self.delta_star)
        last, named = largest / (self.k_bar + 1) ** exponent, 0
        for level in self.levels:
            least = level.offset / level.gamma + last
            found = min(self.k_bar, math.floor((largest / least) ** (1 / exponent))) if least <= largest else 0
            each = level.call_price + level.count_price
            paid = max(0, left - level.dearest) // each + 1 if left >= level.dearest else 0
            more = max(0, min(found - named, paid, calls))
            named, left, calls = named + more, left - more * each - level.call_price, calls - more - 1
            if more == paid or min(left, calls) <= 0:
                break
        return named, math.floor(largest / named**exponent) if named else 0

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        return all_close(rows["sigmas"], np.array([level.sigma for level in self.levels]))

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        rows, noisy, levels, calls, spent, stopped_early = _core.private_count_release(
            histogram._counts(),
            histogram._limit,
            self.levels,
            rogers2024.budget_units(self.rho),
            rogers2024.most_calls(self.delta, self.delta_star),
            self.k_bar,
            rng,
        )
        sigmas = np.array([level.sigma for level in self.levels])[levels]
        return self._published(
            histogram,
            rows,
            rng,
            noisy=noisy,
            sigmas=sigmas,
            spent=Guarantee(min(self.rho, rogers2024.units_rho(spent)), rogers2024.call_delta(calls, self.delta_star)),
            calls=calls,
            stopped_early=stopped_early,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        """Return the notes of a release, which depend on the parameters alone."""
        notes = []
        worst = max(self.relative_error, *(self._error_at_threshold(level) for level in self.levels))
        if worst > self.relative_error * 1.001:
            notes.append(
                f"the relative error of an item that is just released may reach {worst:.2g} instead of "
                f"{self.relative_error:g}: the scale of the noise is at least 2/epsilon; "
                "meet_relative_error=True allows a smaller error, and releases fewer items"
            )
        calls = rogers2024.most_calls(self.delta, self.delta_star)
        if calls < 10 * len(self.levels):
            paid = f"{counted(calls, 'selection')} of delta_star ({self.delta_star:g}) each"
            notes.append(
                f"delta ({self.delta:g}) allows {paid}, and "
                f"up to {len(self.levels):,} may select no item: a smaller delta_star allows more"
            )
        return tuple(notes)

    @staticmethod
    def _error_at_threshold(level: rogers2024.Level) -> float:
        """Return the relative error of an item that is just selected: 1.5 sigma over the stop element's lead."""
        return 1.5 * level.sigma * level.gamma / level.offset
