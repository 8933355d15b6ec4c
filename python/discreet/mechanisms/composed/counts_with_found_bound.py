"""`CountsWithFoundBound`: finds a bound on the items of a user with privacy, then counts under this bound."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.composed.counts_with_share import RHO_SHARE
from discreet.mechanisms.parameters import L0_SHARE, PERCENTILE
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.bounds import FindL0
from discreet.mechanisms.steps.kept import KeptShareOf
from discreet.mechanisms.steps.select import FewestUsers
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import RHO_LIMIT
from discreet.privacy.validation import require_number

__all__ = ["CountsWithFoundBound"]

_MOST_RHO = 1_000
"""The largest rho that `ContributionBound` takes."""


@dataclass(frozen=True, kw_only=True)
class CountsWithFoundBound(FromRhoAndDelta, Steps):
    """A mechanism that finds a bound l0 with privacy, counts at most l0 items of each user, and says what it dropped.

    Three steps share rho. `ContributionBound` chooses l0 with `l0_share` of rho. A threshold mechanism counts at
    most l0 items of each user, with about 94 % of rho by default and all of delta. It is the one whose items need the
    fewest users at the found l0, which is released. `KeptPairs` takes 1 % of rho for `Release.kept_share`. The
    guarantee is delta-approximate rho-zCDP per user, added or removed. `Release.l0` is the bound that was found.

    The mechanism reads the table once before the charge, and once more after it, because the second pass needs l0.

    Args:
        rho: The privacy cost of all steps in zCDP: from 1e-9 to 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1.
        percentile: The percentage of users who have at most l0 items, about: a whole number from 1 to 99.
        most: The largest l0 to choose: from 2 to 2^20. Choose it without the data.
        l0_share: The fraction of rho that finds l0: above 0 and at most 0.9.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(50_000)] * 2, "page": ["home"] * 50_000 + ["help"] * 50_000}
        >>> release = dp.mechanisms.CountsWithFoundBound(rho=1, delta=1e-6).release(log, user="user", item="page")
        >>> sorted(release.items), release.l0
        (['help', 'home'], 2)

    Source:
        McSherry and Talwar (2007), for the bound; Rogers (2023), Theorem 7 for the counts and Theorem 6 for all steps
        together, of which the later ones depend on the bound that was found.
    """

    rho: float
    delta: float
    percentile: int = PERCENTILE
    most: int = 1_000
    l0_share: float = L0_SHARE

    def __post_init__(self) -> None:
        self._set(
            rho=require_number("rho", self.rho, 1e-9, RHO_LIMIT, open_low=False),
            l0_share=require_number("l0_share", self.l0_share, 0, 0.9),
        )
        if self.l0_share * self.rho > _MOST_RHO:
            raise ParameterError.about("{l0_share} of {rho} must be at most {:,}; lower {l0_share} or {rho}", _MOST_RHO)
        super().__post_init__()

    @property
    def steps(self) -> StepList:
        """Return the steps: the bound, the share of kept pairs, and the counts.

        The share leaves out a user's items beyond 20 l0, or beyond 10 l0 for a percentile of at least 90. Few users
        then have more, and half the limit has half the noise.
        """
        # A mechanism made for a rho may cost a few roundings more than that. 4096 ulps are one part in 10^12.
        rest = round_down(self.rho * (1 - self.l0_share - RHO_SHARE), 4096)
        return (
            FindL0(rho=round_down(self.l0_share * self.rho), percentile=self.percentile, most=self.most),
            KeptShareOf(rho=round_down(RHO_SHARE * self.rho), times=10 if self.percentile >= 90 else 20),
            FewestUsers(rho=rest, delta=self.delta, l0=None),
        )
