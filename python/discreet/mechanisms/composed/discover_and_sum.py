"""`DiscoverAndSum`: selects items with a threshold, then releases a sum of a value for each selected item."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.bounds import found_l0
from discreet.mechanisms.steps.measured import require_steps
from discreet.mechanisms.steps.select import Threshold
from discreet.mechanisms.steps.sums import Sums
from discreet.privacy.conversion import round_down

__all__ = ["DiscoverAndSum", "select_and_sum"]


@dataclass(frozen=True, kw_only=True)
class DiscoverAndSum(FromRhoAndDelta, Steps):
    """A mechanism that selects items with a threshold, then sums a value over users for each selected item.

    It answers `SELECT item, SUM(value) GROUP BY item` for items that are not known in advance, as one release with one
    guarantee. The selection is a `GaussianThreshold` with `share` of rho and all of delta. The sums are `ClippedSums`
    of the selected items with the rest of rho. Both steps use at most `l0` items of each user, so the noise of a sum
    does not depend on the number of selected items. The sums choose each user's items again, among the selected ones.
    The guarantee is delta-approximate rho-zCDP per user, added or removed. Only rows with a value count. The
    mechanism reads the table twice. The first read has the values too, so that an error in them costs nothing.

    Without `l0`, 5 % of rho first finds a bound that about 95 % of the users do not exceed (`ContributionBound`), from
    one more read. The later steps have the rest of rho.

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items of one user: from 1 to 2^30; None to find a bound.
        low: The least sum of one user for one item, in steps of `resolution`: a whole number from -2^95 to 2^95. Choose
            it without the data.
        high: The largest such sum, also chosen without the data.
        resolution: The step to which values are rounded: from 1e-12 to 1e12.
        share: The fraction of rho for the selection: above 0 and below 1.
        most: The largest l0 to find: from 2 to 2^20. Choose it without the data.

    Raises:
        ParameterError: A parameter is out of range, or low is not below high.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)], "shop": ["a"] * 5000, "price": [20] * 5000}
        >>> mechanism = dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-6, l0=1, low=0, high=20)
        >>> release = mechanism.release(log, user="user", item="shop", value="price")
        >>> release.items, bool(99_000 < release.counts[0] < 101_000)
        (['a'], True)

    Source:
        Desfontaines et al. (2020), Section 1, for partition selection before sums; Rogers (2023), Theorem 7 for the
        selection, Theorem 4 for the sums and Theorem 6 for all steps together; McSherry and Talwar (2007), for the
        bound.
    """

    releases = "sums"

    rho: float
    delta: float
    l0: int | None
    low: int
    high: int
    resolution: float = 1.0
    share: float = 0.5
    most: int = 1_000

    def __post_init__(self) -> None:
        low, high, resolution = require_steps(self.low, self.high, self.resolution)
        self._set(low=low, high=high, resolution=resolution)
        super().__post_init__()

    @property
    def steps(self) -> StepList:
        """Return the steps: the bound on the items of a user if there is no l0, the selection, and the sums."""
        sums = Sums(rho=self.rho, bounds=(self.low, self.high), resolution=self.resolution, l0=self.l0)
        return select_and_sum(sums, self.delta, self.share, self.most)


def select_and_sum(sums: Sums, delta: float, share: float, most: int) -> StepList:
    """Return the steps that select items and sum them with the rho of `sums`, and find l0 before that if it has none.

    `share` is that of the selection.
    """
    found, rho = found_l0(sums.rho, sums.l0, most)
    selection = Threshold(rho=round_down(share * rho), delta=delta, l0=sums.l0)
    return (*found, selection, replace(sums, rho=rho, selection=selection))
