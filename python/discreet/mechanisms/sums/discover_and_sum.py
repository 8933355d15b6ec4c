"""`DiscoverAndSum`: selects items with a threshold, then releases a sum of a value for each selected item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from discreet import _core, engines
from discreet.engines.engine import Label
from discreet.engines.sums import summed_column
from discreet.engines.table import Table
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import L0_SHARE, PERCENTILE, require_delta, require_rho
from discreet.mechanisms.published import noted, published, retold
from discreet.mechanisms.sums.clipped_sums import ClippedSums, as_sums, in_own_unit
from discreet.mechanisms.sums.measured import Measured
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.verifiable import Verifiable, all_close
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import Summed
from discreet.release.release import Release, changed
from discreet.tables.histogram import Histogram
from discreet.wording import counted

__all__ = ["DiscoverAndSum"]


@dataclass(frozen=True, kw_only=True)
class DiscoverAndSum(TableMechanism):
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
        self._set(
            rho=require_rho(self.rho),
            delta=require_delta(self.delta),
            l0=None if self.l0 is None else require_whole("l0", self.l0, 1, 2**30),
            most=require_whole("most", self.most, 2, 2**20),
            share=require_number("share", self.share, 0, 1),
        )
        if self.share >= 1:
            raise ParameterError("share must be below 1: the sums need the rest of rho")
        if self.l0 is None:
            # Nothing may be refused after the charge. The scales of noise grow with l0, so all lie between these.
            _, _, inner = self.bound, self.bounded(self.most), self.bounded(1)
            self._set(low=inner.low, high=inner.high, resolution=inner.resolution)
            return
        one = self.sums(("an item",))
        self._set(low=one.low, high=one.high, resolution=one.resolution)
        # The noise grows with the number of selected items, up to l0. The sums are made after the charge, so the
        # largest noise is validated here: an error there would depend on the data.
        _ = self._measured(self.l0)

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        l0: int | None,
        low: int,
        high: int,
        resolution: float = 1.0,
        share: float = 0.5,
        most: int = 1_000,
    ) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0, low=low, high=high, resolution=resolution, share=share, most=most)

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        l0: int | None,
        low: int,
        high: int,
        resolution: float = 1.0,
        share: float = 0.5,
        most: int = 1_000,
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        Half of delta goes to the conversion from zCDP.
        """
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0, low=low, high=high, resolution=resolution, share=share, most=most)

    @property
    def finds_l0(self) -> bool:
        """Whether a bound on the items of a user is found."""
        return self.l0 is None

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of both steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta)

    @property
    def bound(self) -> ContributionBound:
        """Return the mechanism that finds l0, if it was left out."""
        rho = round_down(L0_SHARE * self.rho)
        return ContributionBound.from_rho(rho=rho, percentile=PERCENTILE, most=self.most)

    def bounded(self, l0: int) -> Self:
        """Return the mechanism of the later steps, which have the rest of rho.

        Args:
            l0: The bound that was found.

        Returns:
            A DiscoverAndSum.
        """
        return replace(self, l0=l0, rho=round_down((1 - L0_SHARE) * self.rho, 8))

    @property
    def selection(self) -> GaussianThreshold:
        """Return the mechanism that selects the items; without l0, that of the largest l0."""
        if self.l0 is None:
            return self.bounded(self.most).selection
        return GaussianThreshold.from_rho(rho=round_down(self.share * self.rho), delta=self.delta, l0=self.l0)

    def sums(self, items: tuple[Label, ...]) -> ClippedSums:
        """Return the mechanism that sums the value for the selected items.

        Args:
            items: The selected items, at least one.

        Returns:
            A ClippedSums; without l0, that of the largest l0.
        """
        if self.l0 is None:
            return self.bounded(self.most).sums(items)
        return ClippedSums(
            items=items,
            rho=round_down(self.rho - self.selection.guarantee.rho, 8),
            low=self.low,
            high=self.high,
            resolution=self.resolution,
            l0=self.l0,
        )

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is selected.

        Args:
            users: The number of users of the item, each with at most l0 items.

        Returns:
            A probability from 0 to 1.
        """
        return self.selection.release_chance(users)

    def _verifiable(self, l0: int | None, summed: Summed | None) -> Verifiable:
        own = as_sums(super()._verifiable(l0, summed), self.low, self.high, self.resolution, summed)
        if self.finds_l0:
            return replace(own, has_sigmas=self.bounded(l0 or 1)._has_sigmas, claims_l0=True, largest_l0=self.most)
        return replace(own, l0=self.l0, largest_l0=self.l0)

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        number = len(rows["items"]) if rows["part_of"] is None else rows["part_of"]
        return all_close(rows["sigmas"], np.array([self._measured(max(1, min(number, self.l0 or self.most))).sigma]))

    def _measured(self, moved: int) -> Measured:
        """Return how sums are measured of which one user changes this number."""
        one = self.sums(("an item",))
        return Measured.sum(("", one.low, one.high, one.resolution), one.rho, moved)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        value = summed_column(table)
        engines.require_rows_again(table.data)
        valued = table.with_values()
        if self.l0 is None:
            numbers = engines.numbers_of_items(valued)
            if not engines.rows_here(table.data):
                # An engine may refuse l0 for a table, and must refuse it before the charge.
                Histogram.from_table(valued, l0=1, k_bar=1)
            rng = opened_rng(rng)
            l0 = self.bound._drawn(numbers, rng)
            later = self.bounded(l0)
            release = later._steps(table, value, Histogram.from_table(valued, l0=l0), rng)  # noqa: SLF001 - of this class
            return retold(release, self, self.bound.note(l0))
        # Errors of the values come before the charge. The sums are made after it.
        histogram = Histogram.from_table(valued, l0=self.l0)
        return self._steps(table, value, histogram, opened_rng(rng))

    def _steps(self, table: Table, value: str, histogram: Histogram, rng: _core.Rng) -> Release:
        """Return the release of the selection from this histogram, and of the sums."""
        found = self.selection.release(histogram, rng=rng)
        if found.items:
            release = self.sums(tuple(found.items)).release(table, rng=rng)
            return retold(release, self, item_type=found.item_type, l0=self.l0, listed=self.lists_items)
        nothing = np.zeros(0, np.int64)
        labels = _core.Labels.from_sequence([])
        least = self.selection.threshold.value
        note = f"no item was selected: the selection needs a noisy count of more than {counted(least, 'user')}"
        sums = self.sums(("an item",))
        release = noted(
            published(
                self,
                labels,
                nothing,
                rng,
                noisy=nothing,
                sigmas=nothing.astype(float),
                item_type=found.item_type,
                clipped=True,
                l0=self.l0,
                summed=sums.summed(value),
            )
        )
        return in_own_unit(changed(release, notes=(*release.notes, note)), sums.measured.shift)
