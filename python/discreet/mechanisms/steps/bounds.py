"""Steps that find a bound with privacy: on the items of a user, and on the sums of a user."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.engines.projection import FINE, exact_step
from discreet.engines.sums import sums_of_users
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.parameters import L0_SHARE, PERCENTILE
from discreet.mechanisms.steps.base import FindsL0, SoFar, Step
from discreet.mechanisms.steps.measured import FEWEST, LIMIT
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee
from discreet.release.facts import Summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.engines.engine import Label
    from discreet.release.facts import Facts

__all__ = ["FindBounds", "FindL0", "found_l0"]

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
class FindL0(FindsL0):
    """Finds a bound on the items of a user, for the later steps (`ContributionBound`)."""

    rho: float
    percentile: int = PERCENTILE
    most: int = 1_000

    @property
    def mechanism(self) -> ContributionBound:
        """Return the mechanism that chooses the bound."""
        return ContributionBound.from_rho(rho=self.rho, percentile=self.percentile, most=self.most)

    @property
    def l0s(self) -> tuple[int, int]:
        """Return the least and the largest bound."""
        return 1, self.most

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee, which is that for every l0."""
        return self.mechanism.guarantee

    def read(self, so_far: SoFar) -> None:
        """Read the number of items of each user; refuse a table whose engine could refuse the bound."""
        _ = so_far.rows.numbers()
        so_far.rows.require_l0()

    def run(self, so_far: SoFar, read: None, rng: _core.Rng) -> None:
        """Draw the bound."""
        so_far.l0 = self.mechanism._drawn(so_far.rows.numbers(), rng)
        so_far.notes += (self.mechanism.note(so_far.l0),)

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """The bound is a claim of a release, and at most `most`."""
        return replace(facts, claims_l0=True, largest_l0=self.most)


def found_l0(rho: float, l0: int | None, most: int) -> tuple[tuple[FindL0, ...], float]:
    """Return the step that finds l0, or none if it is given, and the rho of the later steps."""
    if l0 is not None:
        return (), rho
    return (FindL0(rho=round_down(L0_SHARE * rho), most=most),), round_down((1 - L0_SHARE) * rho, 8)


@dataclass(frozen=True, kw_only=True)
class FindBounds(Step["NDArray[np.int64]"]):
    """Finds bounds [-c, c] for the sum of a user, from the sum of one item of each user (`SumsWithFoundBounds`)."""

    rho: float
    percentile: int
    resolution: float
    items: tuple[Label, ...] | None

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Return the numbers from which c is chosen, in steps. The resolution alone decides them."""
        step = exact_step(self.resolution)
        unit, most = max(step, _SMALLEST), max(LIMIT * step, _LARGEST)
        return tuple(found for one in _GRID if one * unit <= most and (found := math.ceil(one * unit / step)) <= _MOST)

    @property
    def mechanism(self) -> ContributionBound:
        """Return the mechanism that chooses the place of c among the candidates."""
        return ContributionBound.from_rho(rho=self.rho, percentile=self.percentile, most=len(self.candidates))

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee, which is that for every l0."""
        return self.mechanism.guarantee

    def read(self, so_far: SoFar) -> NDArray[np.int64]:
        """Return the place of each user's vote among the candidates."""
        votes = sums_of_users(so_far.table, resolution=self.resolution, items=self.items)
        return 1 + np.minimum(np.searchsorted(self.candidates, votes), len(self.candidates) - 1)

    def run(self, so_far: SoFar, read: NDArray[np.int64], rng: _core.Rng) -> None:
        """Draw the bounds."""
        place = min(self.mechanism._drawn(read, rng), len(self.candidates))
        bound = self.candidates[place - 1]
        so_far.bounds = -bound, bound
        found = (
            f"were found with privacy: for about {self.percentile} % of the users, the sum for one of their items, "
            f"chosen at random, lies within. With fewer than about {self.mechanism.users_needed:,} users they say "
            "nothing"
        )
        if place == len(self.candidates):
            found = "are the widest possible ones, and may clip many sums: give a larger resolution"
        low, high = Summed(*so_far.bounds, self.resolution).bounds
        so_far.notes += (f"the bounds, {low} to {high}, {found}",)
        if self.resolution == FINE and bound < FEWEST:
            so_far.notes += (
                "values are near the step to which they were rounded, 2^-32: give a resolution, such as 1e-12",
            )

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """The bounds are a claim of a release, and among the candidates."""
        bound = 1 if summed is None or summed.high not in self.candidates else summed.high
        return replace(facts, sums=(-bound, bound, self.resolution), claims=(*facts.claims, "the bounds of summed"))
