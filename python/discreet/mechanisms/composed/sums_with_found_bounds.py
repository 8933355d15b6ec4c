"""`SumsWithFoundBounds`: finds the bounds of a user's sums with privacy, then sums under these bounds."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.engines.engine import Label
from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.composed.clipped_sums import ClippedSums
from discreet.mechanisms.composed.discover_and_sum import select_and_sum
from discreet.mechanisms.parameters import L0_SHARE, PERCENTILE
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.bounds import FindBounds
from discreet.mechanisms.steps.sums import Sums
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import RHO_LIMIT
from discreet.privacy.validation import require_number

__all__ = ["SumsWithFoundBounds"]


@dataclass(frozen=True, kw_only=True)
class SumsWithFoundBounds(FromRhoAndDelta, Steps):
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
        if (self.delta is None) != (self.items is not None):
            raise ParameterError.about(
                "{delta} is needed to find items, and only then: give {delta}, or {items} that are public"
            )
        items = ("an item",) if self.items is None else self.items
        one = ClippedSums(items=items, rho=1.0, low=-1, high=1, resolution=self.resolution)
        self._set(
            rho=require_number("rho", self.rho, 1e-9, RHO_LIMIT, open_low=False),
            resolution=one.resolution,
            items=None if self.items is None else one.items,
        )
        super().__post_init__()

    @property
    def steps(self) -> StepList:
        """Return the steps: the bounds of sums, and those of `DiscoverAndSum`, or of `ClippedSums` with `items`."""
        finding = FindBounds(
            rho=round_down(L0_SHARE * self.rho),
            percentile=self.percentile,
            resolution=self.resolution,
            items=self.items,
        )
        rho = round_down((1 - L0_SHARE) * self.rho, 8)
        sums = Sums(rho=rho, resolution=self.resolution, l0=self.l0, items=self.items)
        return (finding, sums) if self.delta is None else (finding, *select_and_sum(sums, self.delta, 0.5, 1_000))
