"""`SumsWithFoundBounds`: finds the bounds of a user's sums with privacy, then sums under these bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from discreet import _core, engines
from discreet.cached import cached_property
from discreet.engines.engine import Label
from discreet.engines.projection import FINE, exact_step
from discreet.engines.sums import summed_column, sums_of_users
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import L0_SHARE, PERCENTILE
from discreet.mechanisms.published import retold
from discreet.mechanisms.sums.clipped_sums import ClippedSums
from discreet.mechanisms.sums.discover_and_sum import DiscoverAndSum
from discreet.mechanisms.sums.measured import FEWEST, LIMIT
from discreet.mechanisms.verifiable import Verifiable
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import Listed, Summed
from discreet.release.release import Release

__all__ = ["SumsWithFoundBounds"]

_GRID = tuple(
    step * 10**power // 10
    for power in range(19)
    for step in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
    if step * 10**power % 10 == 0
)
_SMALLEST = Fraction(1, 10**6)
"""The smallest candidate for steps below it."""
_LARGEST = 10**9
"""The largest candidate in the unit of the column, or 2^30 steps if they are more."""
_MOST = 2**62
"""The largest candidate in steps."""


@dataclass(frozen=True, kw_only=True)
class SumsWithFoundBounds(TableMechanism):
    """A mechanism that finds bounds [-c, c] for the sums of single users with privacy, then sums under these bounds.

    Every user with a value has one vote: the absolute value of the sum of one of the user's items, chosen uniformly.
    `ContributionBound` chooses c with 5 % of rho, so that about `percentile` percent of the votes are at most c. Users
    with many items have one vote too, so another share of all sums may be clipped. With fewer than about `users_needed`
    users, c may be any candidate. The
    candidates are 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100 steps and so on, up to 2^30 steps
    or 1e9 in the unit of the column, whichever is larger; of steps below 1e-6 they are these numbers of millionths. The
    rest of rho pays for `DiscoverAndSum` under these bounds, or for `ClippedSums`
    of public items. The guarantee is delta-approximate rho-zCDP per user, added or removed. `Release.summed` has the
    bounds that were found.

    The noise of a sum depends on c alone, so bounds on one side of zero would not have less noise. The mechanism reads
    the table once before the charge, and again for each later step.

    Args:
        rho: The privacy cost of all steps in zCDP: from 1e-9 to 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1; None with `items`, which need none.
        l0: The most items of one user: from 1 to 2^30. With None a bound is found, as in `DiscoverAndSum`; with `items`
            a user may have all of them.
        items: The labels to sum for: public; None to find items with a threshold.
        resolution: The step to which values are rounded: from 1e-12 to 1e12.
        percentile: The percentage of votes that are not clipped, about: a whole number from 1 to 99.

    Raises:
        ParameterError: A parameter is out of range, or rho is too small for the noise of the smallest bounds.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)], "shop": ["a"] * 5000, "price": [20] * 5000}
        >>> mechanism = dp.mechanisms.SumsWithFoundBounds(rho=1, delta=1e-6, l0=1)
        >>> release = mechanism.release(log, user="user", item="shop", value="price")
        >>> release.items, release.summed.high, bool(99_000 < release.counts[0] < 101_000)
        (['a'], 20, True)

    Source:
        McSherry and Talwar (2007), for the bounds; Rogers (2023), Theorem 6, for all steps together, of which the later
        ones depend on the bounds that were found.
    """

    releases = "sums"

    rho: float
    delta: float | None
    l0: int | None
    items: tuple[Label, ...] | None = None
    resolution: float = 1.0
    percentile: int = PERCENTILE

    def __post_init__(self) -> None:
        self._set(
            rho=require_number("rho", self.rho, 1e-9, RHO_LIMIT, open_low=False),
            percentile=require_whole("percentile", self.percentile, 1, 99),
        )
        if (self.delta is None) != (self.items is not None):
            raise ParameterError.about(
                "{delta} is needed to find {items}, and only then: give {delta}, or items that are public"
            )
        one = self.later(1)
        self._set(delta=getattr(one, "delta", None), l0=one.l0, resolution=one.resolution)
        if isinstance(one, ClippedSums):
            self._set(items=one.items)
        _ = self.bound

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        l0: int | None,
        resolution: float = 1.0,
        percentile: int = PERCENTILE,
    ) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0, resolution=resolution, percentile=percentile)

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        l0: int | None,
        resolution: float = 1.0,
        percentile: int = PERCENTILE,
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0, resolution=resolution, percentile=percentile)

    @property
    def lists_items(self) -> Listed:  # type: ignore[override]
        """Which items are released even if nobody has them."""
        return "none" if self.items is None else "all"

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of all steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta or 0.0)

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Return the numbers from which c is chosen, in steps. The resolution alone decides them."""
        step = exact_step(self.resolution)
        unit, most = max(step, _SMALLEST), max(LIMIT * step, _LARGEST)
        return tuple(found for one in _GRID if one * unit <= most and (found := math.ceil(one * unit / step)) <= _MOST)

    @property
    def bound(self) -> ContributionBound:
        """Return the mechanism that chooses the place of c among the candidates."""
        rho, most = round_down(L0_SHARE * self.rho), len(self.candidates)
        return ContributionBound.from_rho(rho=rho, percentile=self.percentile, most=most)

    @property
    def users_needed(self) -> int:
        """Return how many users with a value make a bound that is too wide improbable: a chance of at most 0.1 %."""
        return self.bound.users_needed

    def later(self, bound: int) -> DiscoverAndSum | ClippedSums:
        """Return the mechanism of the later steps, which have the rest of rho.

        Args:
            bound: The number c that was found.

        Returns:
            A DiscoverAndSum, or the ClippedSums of the public items.

        Raises:
            ParameterError: A parameter is out of range, or the noise would be too large.
        """
        rho = round_down((1 - L0_SHARE) * self.rho, 8)
        if self.items is not None:
            return ClippedSums(
                items=self.items, rho=rho, low=-bound, high=bound, resolution=self.resolution, l0=self.l0
            )
        assert self.delta is not None
        return DiscoverAndSum(rho=rho, delta=self.delta, l0=self.l0, low=-bound, high=bound, resolution=self.resolution)

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is selected.

        Args:
            users: The number of users of the item, each with at most l0 items.

        Returns:
            A probability from 0 to 1.
        """
        later = self.later(1)
        return later.release_chance(users) if isinstance(later, DiscoverAndSum) else 1.0

    def _verifiable(self, l0: int | None, summed: Summed | None) -> Verifiable:
        found = 1 if summed is None or summed.high not in self.candidates else summed.high
        own = self.later(found)._verifiable(l0, summed)
        return replace(own, claims=(*own.claims, "the bounds of summed"))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        summed_column(table)
        engines.require_rows_again(table.data)
        votes = sums_of_users(table, resolution=self.resolution, items=self.items)
        rng = opened_rng(rng)
        places = np.minimum(np.searchsorted(self.candidates, votes), len(self.candidates) - 1)
        place = min(self.bound._drawn(1 + places, rng), len(self.candidates))
        bound = self.candidates[place - 1]
        release = self.later(bound).release(table, rng=rng)
        found = (
            f"were found with privacy: for about {self.percentile} % of the users, the sum for one of their items, "
            f"chosen at random, lies within. With fewer than about {self.users_needed:,} users they say nothing"
        )
        if place == len(self.candidates):
            found = "are the widest possible ones, and may clip many sums: give a larger resolution"
        assert release.summed is not None
        low, high = release.summed.bounds
        note = f"the bounds, {low} to {high}, {found}"
        notes: tuple[str, ...] = (note,)
        if self.resolution == FINE and bound < FEWEST:
            notes += ("values are near the step to which they were rounded, 2^-32: give a resolution, such as 1e-12",)
        return retold(release, self, *notes)
