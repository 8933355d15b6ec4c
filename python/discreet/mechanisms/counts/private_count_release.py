"""Private Count Release: counts to a relative error, for users with any number of items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, Sensitivity, resolve_rho
from discreet.privacy.validation import require_flag, require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2024
from discreet.wording import counted

__all__ = ["PrivateCountRelease"]

_SIGMA_RANGE = (1e-3, 1e9)
_CALLS = 100_000
"""How many calls delta pays for at least where nobody says otherwise."""


@dataclass(frozen=True, kw_only=True)
class PrivateCountRelease(HistogramMechanism):
    """Items and their counts, each to about `relative_error`, without a bound on a user's items.

    Rogers (2024), Algorithm 2 and Theorem 6: select an item by the unknown-domain Gumbel mechanism over
    the k_bar largest counts, publish its count with Gaussian noise, remove it, repeat; after a call that
    selects nothing raise epsilon by sqrt(2). delta-approximate rho-zCDP per user, added or removed.

    `rho`, `delta`: the promise. `epsilon_star`: the first call's epsilon. `delta_star`: each call's share
    of delta, so that at most floor(delta/delta_star) calls are made; where it is not given, 1e-11, and less where
    delta would pay for fewer than 100,000. `k_bar`: how many ranked counts a call may see, fixed before the data is
    seen. `relative_error`: the noise's scale is chosen for a count that is just large enough to be selected, so most
    others are closer; below 1. `meet_relative_error`: keep that scale even where the count then costs more than the
    call; otherwise the scale is at least 2/epsilon, and the error of an item just selected no less than about
    3/log(k_bar/delta_star). `rho` decides how many calls are paid for, and so how many items are named, not the scale
    of the noise at a level.
    Raises ParameterError where a parameter is out of range.
    """

    rho: float
    delta: float
    epsilon_star: float = 0.0005
    delta_star: float = None  # type: ignore[assignment]  # a share of delta
    k_bar: int = 10_000
    relative_error: float = 0.1
    meet_relative_error: bool = False

    def __post_init__(self) -> None:
        if self.delta_star is None:
            share = require_number("delta", self.delta, 0, 1, open_high=True) / _CALLS
            object.__setattr__(self, "delta_star", min(1e-11, share))
        checked = {
            "rho": require_number("rho", self.rho, 0, RHO_LIMIT),
            "delta": require_number("delta", self.delta, 0, 1, open_high=True),
            "epsilon_star": require_number("epsilon_star", self.epsilon_star, 1e-300, 100, open_low=False),
            "delta_star": require_number("delta_star", self.delta_star, 0, 1),
            "k_bar": require_whole("k_bar", self.k_bar, 1, 2**30),
            "relative_error": require_number("relative_error", self.relative_error, 0, 100),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.relative_error >= 1:
            raise ParameterError("relative_error must be below 1: it is a share of a count, 0.1 for a tenth")
        if self.delta_star > self.delta:
            raise ParameterError(
                f"delta ({self.delta:g}) must be at least delta_star ({self.delta_star:g}), the share of one call; "
                "raise delta or lower delta_star"
            )
        require_flag("meet_relative_error", self.meet_relative_error)
        if not self.levels:
            raise ParameterError(
                f"rho ({self.rho:g}) does not pay for one call at epsilon_star ({self.epsilon_star:g}); "
                "raise rho or lower epsilon_star"
            )
        low, high = _SIGMA_RANGE
        if not all(low <= level.sigma <= high for level in self.levels):
            raise ParameterError(
                "epsilon_star or relative_error asks for noise of a scale outside 0.001 to 1e9; change either"
            )

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        epsilon_star: float = 0.0005,
        delta_star: float | None = None,
        k_bar: int = 10_000,
        relative_error: float = 0.1,
        meet_relative_error: bool = False,
    ) -> Self:
        """The mechanism that promises delta-approximate rho-zCDP."""
        return cls(
            rho=rho,
            delta=delta,
            epsilon_star=epsilon_star,
            delta_star=delta_star,  # type: ignore[arg-type]
            k_bar=k_bar,
            relative_error=relative_error,
            meet_relative_error=meet_relative_error,
        )

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        epsilon_star: float = 0.0005,
        delta_star: float | None = None,
        k_bar: int = 10_000,
        relative_error: float = 0.1,
        meet_relative_error: bool = False,
    ) -> Self:
        """The mechanism whose total promise is (epsilon, delta)-DP, half of delta going to the conversion."""
        rho, own_delta = resolve_rho(None, epsilon, delta)
        return cls.from_rho(
            rho=rho,
            delta=own_delta,
            epsilon_star=epsilon_star,
            delta_star=delta_star,
            k_bar=k_bar,
            relative_error=relative_error,
            meet_relative_error=meet_relative_error,
        )

    @property
    def protects(self) -> Sensitivity:
        """Any number of items per user, each count moved by one."""
        return Sensitivity(l0=None, linf=1)

    @property
    def guarantee(self) -> Guarantee:
        """delta-approximate rho-zCDP (Rogers 2024, Theorem 6, an adaptive filter)."""
        return Guarantee(self.rho, self.delta)

    @cached_property
    def levels(self) -> list[rogers2024.Level]:
        """The price list: scales and prices of every call that can be afforded."""
        return rogers2024.price_list(
            self.rho,
            epsilon_star=self.epsilon_star,
            delta_star=self.delta_star,
            k_bar=self.k_bar,
            relative_error=self.relative_error,
            meet_relative_error=self.meet_relative_error,
        )

    @property
    def rows_needed(self) -> int:
        """How many rows of a truncated histogram this can use: k_bar + 1, and one for each possible release."""
        calls = rogers2024.most_calls(self.delta, self.delta_star)
        return self.k_bar + 1 + rogers2024.most_releases(self.rho, self.levels, calls)

    def release_chance(self, users: int) -> float:
        """The chance that an item alone, of so many users more than the (k_bar+1)-th one, is selected at some level."""
        missed = sum(
            -math.log1p(math.exp(min(level.gamma * users - level.offset, 700.0)))
            for level in self.levels[: rogers2024.most_calls(self.delta, self.delta_star)]
        )
        return -math.expm1(missed)

    def deviation_of(self, users: int) -> float | None:
        """Return the standard deviation of the count of an item of so many users, at the first level that is likelier
        than not to find it, or None if no level is. A count of more users has more noise."""
        levels = self.levels[: rogers2024.most_calls(self.delta, self.delta_star)]
        return next((level.sigma for level in levels if level.gamma * users >= level.offset), None)

    def affordable(self, users: int) -> int:
        """Return about how many items of so many users each rho and delta pay for, where no item has more.

        A call finds such items from the first level on at which one is more likely selected than not; every cheaper
        level costs one call that finds nothing. More than k_bar items of one count have no lead and are not named.
        """
        left, calls = rogers2024.budget_units(self.rho), rogers2024.most_calls(self.delta, self.delta_star)
        for missed, level in enumerate(self.levels):
            if level.gamma * users >= level.offset and left >= level.dearest:
                items = (left - level.dearest) // (level.call_price + level.count_price) + 1
                return max(0, min(items, calls - missed, self.k_bar))
            left -= level.call_price
        return 0

    def forecast(self, largest: int, exponent: float = 1.0) -> tuple[int, int]:
        """About how many items are named, and the smallest of their counts, where counts follow a law of Zipf.

        The i-th largest count is largest/i^exponent. Each level names the items that it is likelier than not to find,
        and ends with a call that finds nothing. The (k_bar+1)-th count is taken off the lead of all.
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

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        rows, noisy, levels, calls, spent, stopped_early = _core.price_list(
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
        notes = []
        worst = max(self.relative_error, *(self._error_at_threshold(level) for level in self.levels))
        if worst > self.relative_error * 1.001:
            notes.append(
                f"the relative error of an item that is just released may reach {worst:.2g} instead of "
                f"{self.relative_error:g}: the noise is kept at 2/epsilon or more; "
                "meet_relative_error=True buys a smaller one, and names fewer items"
            )
        calls = rogers2024.most_calls(self.delta, self.delta_star)
        if calls < 10 * len(self.levels):
            paid = f"{counted(calls, 'selection')} of delta_star ({self.delta_star:g}) each"
            notes.append(
                f"delta ({self.delta:g}) pays for {paid}, and "
                f"{len(self.levels):,} may find nothing: a smaller delta_star allows more"
            )
        return tuple(notes)

    @staticmethod
    def _error_at_threshold(level: rogers2024.Level) -> float:
        """1.5 sigma over the stop element's lead: the relative error where the rule of sigma aims."""
        return 1.5 * level.sigma * level.gamma / level.offset
