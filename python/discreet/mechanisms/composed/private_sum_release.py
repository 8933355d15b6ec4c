"""`PrivateSumRelease`: Private Count Release with a sum of a value in place of each count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet import _core, engines
from discreet.engines.sums import clipped_sums, summed_column
from discreet.engines.table import Table
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.composed.clipped_sums import SKIPPED
from discreet.mechanisms.counts.private_count_release import PrivateCountRelease
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.published import noted, published
from discreet.mechanisms.steps.measured import require_steps, shift_of
from discreet.mechanisms.steps.sums import as_sums, in_own_unit
from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.release.export import shortened
from discreet.release.facts import Facts, Summed, all_close
from discreet.release.release import Release, changed
from discreet.tables.histogram import Histogram

__all__ = ["PrivateSumRelease"]


@dataclass(frozen=True, kw_only=True)
class PrivateSumRelease(TableMechanism):
    """A mechanism that selects the items with the most users one by one, and releases a sum for each, without an l0.

    `counting` selects the items by their users. The sum of a selected item takes the place of its count: each user's
    own sum is clipped to [`low`, `high`], and the noise is B = max(|low|, |high|) times that of the count. So a sum
    costs as much as the count would. Only released sums are paid for, and a user may have any number of items. The
    `relative_error` of `counting` is that of a sum if the users' sums are near B. The guarantee is that of `counting`.
    The table is read twice. Only rows with a value count. If most users have few items, `DiscoverAndSum` releases more.

    Args:
        counting: The mechanism that selects the items. Its counts are not published.
        low: The least sum of one user for one item, in steps of `resolution`: a whole number from -2^95 to 2^95. Choose
            it without the data.
        high: The largest such sum, also chosen without the data.
        resolution: The step to which values are rounded: from 1e-12 to 1e12.

    Raises:
        ParameterError: A parameter is out of range, or low is not below high.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(90000)], "shop": ["a"] * 90000, "price": [20] * 90000}
        >>> counting = dp.PrivateCountRelease(rho=1, delta=1e-6)
        >>> mechanism = dp.mechanisms.PrivateSumRelease(counting=counting, low=0, high=20)
        >>> release = mechanism.release(log, user="user", item="shop", value="price")
        >>> release.items, bool(1_000_000 < release.counts[0] < 2_600_000)
        (['a'], True)

    Source:
        Rogers (2024), Section 5, other aggregates of the selected items, with Algorithm 2 and Theorem 6.
    """

    releases = "sums"
    _costs_by_step = True

    counting: PrivateCountRelease
    low: int
    high: int
    resolution: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.counting, PrivateCountRelease):
            raise ParameterError("counting must be a PrivateCountRelease, which selects the items")
        low, high, resolution = require_steps(self.low, self.high, self.resolution)
        self._set(low=low, high=high, resolution=resolution)
        if self._shift is None:
            raise ParameterError(
                "the noise of a sum may have a scale above 1e9 times its bound; give counting a larger epsilon_star"
            )

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP (Rogers 2024, Theorem 6, an adaptive filter).

        The selections do not depend on the published numbers, so noise that is drawn after all of them has the same
        law as in the paper's order. One user changes the sum of an item by at most B, and B times the noise of a count
        costs at most the price of the count, which the filter has reserved. B and each user's sum may be rounded toward
        zero to a multiple of a power of two of steps, as in `ClippedSums`.
        """
        return self.counting.guarantee

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any rows, because the user's sum for each item is clipped."""
        return Sensitivity(l0=None, linf=max(abs(self.low), abs(self.high)))

    @property
    def sigmas(self) -> list[float]:
        """Return the scales of the noise of sums in the unit of the column, one for each level of epsilon."""
        return [scale * 2.0 ** (self._shift or 0) * self.resolution for scale in self._scales]

    @property
    def _shift(self) -> int | None:
        """The power of two of steps in which sums are added up; None if no noise is small enough."""
        return shift_of(self.protects.linf, max(level.sigma for level in self.counting.levels))

    @property
    def _scales(self) -> list[float]:
        """The scales of the noise in which sums are added up."""
        largest = self.protects.linf >> (self._shift or 0)
        return [round_up(largest * level.sigma, 1) for level in self.counting.levels]

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is selected at some level, if there is no other candidate.

        Args:
            users: The number of users of the item.
        """
        return self.counting.release_chance(users)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return as_sums(super()._facts(l0, summed), self.low, self.high, self.resolution, summed)

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        return all_close(rows["sigmas"], np.array(self.sigmas))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        value = summed_column(table)
        engines.require_rows_again(table.data)
        histogram = Histogram.from_table(table.with_values())
        rng = opened_rng(rng)
        found = self.counting.release(histogram, rng=rng)
        assert found.sigmas is not None
        levels = np.searchsorted([-level.sigma for level in self.counting.levels], -found.sigmas)
        sigmas, bounds, shift = np.array(self._scales)[levels], (self.low, self.high), self._shift or 0
        labels, noisy = _core.Labels.from_sequence([]), np.zeros(0, np.int64)
        if found.items:
            labels, noisy = clipped_sums(
                table, items=found.items, bounds=bounds, resolution=self.resolution, shift=shift
            )
        for sigma in np.unique(sigmas):
            at = np.flatnonzero(sigmas == sigma)
            noisy[at] += rng.sample(_core.Noise.discrete_gaussian(float(sigma)), len(at))
        release = published(
            self,
            labels,
            np.arange(len(noisy)),
            rng,
            noisy=noisy,
            sigmas=np.array(self.sigmas)[levels],
            item_type=found.item_type,
            spent=found.spent,
            calls=found.calls,
            clipped=True,
            summed=Summed(*bounds, self.resolution, shortened(value)),
        )
        return in_own_unit(changed(noted(release), notes=(*noted(release).notes, SKIPPED)), shift)
