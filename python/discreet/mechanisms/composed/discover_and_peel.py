"""`DiscoverAndPeel`: a set union finds items, and the exponential mechanism ranks them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.found_items import Rank
from discreet.mechanisms.steps.select import Run
from discreet.mechanisms.union.set_union import SetUnion
from discreet.privacy.conversion import round_down
from discreet.privacy.validation import require_whole
from discreet.release.facts import RANKS

__all__ = ["DiscoverAndPeel"]


@dataclass(frozen=True, kw_only=True)
class DiscoverAndPeel(FromRhoAndDelta, Steps):
    """A mechanism that releases the k most common items among those that a weighted Gaussian set union finds, in order.

    A fraction `share` of rho finds a domain, with at most `l0` items of each user. The exponential mechanism then draws
    k items of the domain without replacement, by the number of all their users. The domain is public once it is found.
    One user changes every count by at most one, all in one direction. So each draw is (epsilon^2/8)-zCDP with
    epsilon = sqrt(8 (1 - share) rho / k). The total is delta-approximate rho-zCDP per user, added or removed. The
    mechanism reads the table twice.

    Args:
        k: The most items to release: from 1 to 2^30.
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1.
        l0: The most items of one user that the set union uses: from 1 to 4096. The ranking counts all items of a user.
        share: The fraction of rho for finding items: above 0 and below 1.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000), *range(3000)], "page": ["home"] * 5000 + ["help"] * 3000}
        >>> mechanism = dp.mechanisms.DiscoverAndPeel(k=2, rho=1, delta=1e-6, l0=2)
        >>> mechanism.release(log, user="user", item="page").items
        ['home', 'help']

    Source:
        Dick, Joseph and Raman (2026); Rogers (2023), Theorem 6, for the composition.
    """

    _columns = (RANKS,)
    items_compete = True

    k: int
    rho: float
    delta: float
    l0: int
    share: float = 0.5

    def __post_init__(self) -> None:
        self._set(l0=require_whole("l0", self.l0, 1, 4096))
        super().__post_init__()

    @property
    def steps(self) -> StepList:
        """Return the steps: the search for items, and their ranks."""
        return Run(given=self.discovery), Rank(k=self.k, epsilon=self.epsilon)

    @property
    def discovery(self) -> SetUnion:
        """Return the mechanism that finds the domain."""
        rho = round_down(self.share * self.rho, 64)
        return SetUnion.from_rho(method="weighted_gaussian", rho=rho, delta=self.delta, l0=self.l0)

    @property
    def epsilon(self) -> float:
        """Return epsilon: the bounded range of one draw."""
        rest = round_down(self.rho - self.discovery.guarantee.rho, 8)
        return min(round_down(math.sqrt(8 * rest / self.k), 8), 1000.0)
