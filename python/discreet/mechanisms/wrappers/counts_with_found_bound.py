"""`CountsWithFoundBound`: finds a bound on the items of a user with privacy, then counts under this bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from discreet import _core, engines
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.counts.kept_pairs import KeptPairs
from discreet.mechanisms.fewest import Notes, fewest_users, with_counts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import L0_SHARE, PERCENTILE, require_delta
from discreet.mechanisms.published import retold
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.verifiable import Verifiable
from discreet.mechanisms.wrappers.counts_with_share import RHO_SHARE
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import RHO_LIMIT, Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import Summed
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["CountsWithFoundBound"]

_MOST_RHO = 1_000
"""The largest rho that `ContributionBound` takes."""


@dataclass(frozen=True, kw_only=True)
class CountsWithFoundBound(TableMechanism):
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
            delta=require_delta(self.delta),
            percentile=require_whole("percentile", self.percentile, 1, 99),
            most=require_whole("most", self.most, 2, 2**20),
            l0_share=require_number("l0_share", self.l0_share, 0, 0.9),
        )
        if self.l0_share * self.rho > _MOST_RHO:
            raise ParameterError.about("{l0_share} of {rho} must be at most {:,}; lower {l0_share} or {rho}", _MOST_RHO)
        _ = self.bound
        # Nothing may be refused after the charge. The scales of noise grow with l0, so all lie between these.
        for l0 in (1, self.most):
            _ = self.pairs(l0)
            GaussianThreshold.from_rho(rho=self._rest, delta=self.delta, l0=l0)

    @classmethod
    def from_rho(
        cls, *, rho: float, delta: float, percentile: int = PERCENTILE, most: int = 1_000, l0_share: float = L0_SHARE
    ) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, percentile=percentile, most=most, l0_share=l0_share)

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        percentile: int = PERCENTILE,
        most: int = 1_000,
        l0_share: float = L0_SHARE,
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP. Half of delta goes to the conversion."""
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, percentile=percentile, most=most, l0_share=l0_share)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of all steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta)

    @property
    def bound(self) -> ContributionBound:
        """Return the mechanism that finds l0."""
        rho = round_down(self.l0_share * self.rho)
        return ContributionBound.from_rho(rho=rho, percentile=self.percentile, most=self.most)

    def pairs(self, l0: int) -> KeptPairs:
        """Return the mechanism that measures the share of kept pairs.

        It leaves out a user's items beyond 20 l0, or beyond 10 l0 for a percentile of at least 90. Few users then have
        more, and half the limit has half the noise.

        Args:
            l0: The bound that was found.

        Returns:
            A KeptPairs.
        """
        times = 10 if self.percentile >= 90 else 20
        return KeptPairs(l0=l0, most=times * l0, rho=round_down(RHO_SHARE * self.rho))

    def counting(self, l0: int) -> tuple[HistogramMechanism, Notes]:
        """Return the mechanism that counts, and the reason for it.

        Args:
            l0: The bound that was found. The choice depends on it and on the parameters alone.

        Returns:
            A threshold mechanism and notes.
        """
        return fewest_users(with_counts(), self._rest, None, self.delta, l0)

    @property
    def _rest(self) -> float:
        # A mechanism made for a rho may cost a few roundings more than that. 4096 ulps are one part in 10^12.
        return round_down(self.rho * (1 - self.l0_share - RHO_SHARE), 4096)

    def _verifiable(self, l0: int | None, summed: Summed | None) -> Verifiable:
        made = self.counting(l0 or 1)[0]._verifiable(l0, summed)
        return replace(made, largest_l0=self.most, clips=True, claims=(*made.claims, "kept_share"))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        engines.require_rows_again(table.data)
        numbers = engines.numbers_of_items(table)
        if not engines.rows_here(table.data):
            # An engine may refuse l0 for a table, and must refuse it before the charge.
            Histogram.from_table(table, l0=1, k_bar=1)
        rng = opened_rng(rng)
        l0 = self.bound._drawn(numbers, rng)
        pairs, (mechanism, reasons) = self.pairs(l0), self.counting(l0)
        share = pairs.share(*pairs._measured(numbers, rng))
        release = mechanism.release(Histogram.from_table(table, l0=l0), rng=rng)
        return retold(release, self, self.bound.note(l0), pairs.note(share), *reasons, kept_share=share)
