"""`ClippedSums`: sums over users for items that are already public."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet import _core
from discreet.engines.engine import Label
from discreet.engines.sums import clipped_sums, summed_column
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import require_countable, require_list, require_rho
from discreet.mechanisms.published import noted, published
from discreet.mechanisms.sums.measured import LIMIT, Measured, own_unit, require_steps
from discreet.mechanisms.verifiable import Verifiable
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_whole
from discreet.release.export import shortened
from discreet.release.facts import Summed
from discreet.release.release import Release, changed
from discreet.wording import counted

__all__ = ["SKIPPED", "ClippedSums", "as_sums", "in_own_unit"]

SKIPPED = "rows whose cell is no finite number, such as a date or 3,50, are left out"
"""The note of sums of a column, whose cells may be anything."""


@dataclass(frozen=True, kw_only=True)
class ClippedSums(TableMechanism):
    """A mechanism that sums a value over users for each of `items`.

    Each user's own sum for an item is clipped to [`low`, `high`]. So one user changes an item's sum by at most
    max(|low|, |high|). With `l0`, a user contributes to at most l0 of the items, chosen uniformly among the user's
    items. The noise is then that of l0 sums, whatever the number of items. With n items and no l0 it is larger by
    sqrt(n/l0). Each sum has its own Gaussian noise. The guarantee is rho-zCDP per user, added or removed. The table's
    `value` names a column of numbers, or of text that holds numbers. A row is dropped if its value is missing or not
    finite.

    Args:
        items: The labels to sum for: public, such as the items of a release, or chosen without the data. Of several
            columns they are tuples.
        rho: The privacy cost of all sums together, in zCDP: above 0 and at most 10,000.
        low: The least sum of one user for one item, in steps of `resolution`: a whole number from -2^95 to 2^95. Choose
            it without the data.
        high: The largest such sum, also chosen without the data. For prices of up to 20.00 use `high=2000,
            resolution=0.01`.
        resolution: The step to which values are rounded, halves to even: from 1e-12 to 1e12. The released sums and
            sigmas are in the unit of the column.
        l0: The most items that one user contributes to: from 1 to 2^30, or None for any number.

    Raises:
        ParameterError: A parameter is out of range, or low is not below high.
        SchemaError: The items are not all of one type.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)], "shop": ["a"] * 5000, "price": [20] * 5000}
        >>> sums = dp.mechanisms.ClippedSums(items=("a",), rho=1, low=0, high=20)
        >>> release = sums.release(log, user="user", item="shop", value="price")
        >>> bool(99_000 < release.counts[0] < 101_000)
        True

    Source:
        Desfontaines et al. (2020), Section 1, for sums per partition with bounded contributions; Rogers (2024),
        Private Count Release, which names sums after a selection as an extension; Rogers (2023), Theorem 4, for the
        noise.
    """

    releases = "sums"
    lists_items = "all"

    items: tuple[Label, ...]
    rho: float
    low: int
    high: int
    resolution: float = 1.0
    l0: int | None = None

    def __post_init__(self) -> None:
        items = tuple(require_list(self.items))
        if not items:
            raise ParameterError("items must have at least one label")
        require_countable(items)
        self._set(
            # Plain Python values, so that the repr is readable.
            items=tuple(_core.Labels.from_sequence(list(items)).take(np.arange(len(items)))),
            rho=require_rho(self.rho),
            l0=None if self.l0 is None else require_whole("l0", self.l0, 1, LIMIT),
        )
        low, high, resolution = require_steps(self.low, self.high, self.resolution)
        self._set(low=low, high=high, resolution=resolution)
        _ = _core.Noise.discrete_gaussian(self.measured.sigmas[0])

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: rho-zCDP, by Gaussian noise on all sums (Rogers 2023, Theorem 4).

        One user changes at most `moved` sums, each by at most max(|low|, |high|). So the l2-sensitivity is
        sqrt(moved) max(|low|, |high|). If the noise of these bounds is too large to be drawn in steps, each user's sum
        is rounded toward zero to a multiple of some power of two of steps, which bounds and rho alone decide; so are
        the bounds (`scale_of`).
        """
        return Guarantee(self.rho, 0.0)

    @property
    def moved(self) -> int:
        """Return the most sums that one user changes: the smaller of l0 and the number of items."""
        return len(self.items) if self.l0 is None else min(self.l0, len(self.items))

    @property
    def measured(self) -> Measured:
        """Return how each sum is measured."""
        return Measured.sum(("", self.low, self.high, self.resolution), self.rho, self.moved)

    @property
    def sigma(self) -> float:
        """Return the scale of the noise of each sum, in the unit of the column."""
        return self.measured.sigma

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any rows, because the user's sum for each item is clipped."""
        return Sensitivity(l0=None, linf=max(abs(self.low), abs(self.high)))

    def summed(self, column: str) -> Summed:
        """Return the facts of the values in a release: the bounds, the resolution and the column.

        Args:
            column: The name of the column of values.

        Returns:
            A Summed.
        """
        return Summed(self.low, self.high, self.resolution, shortened(column))

    def _verifiable(self, l0: int | None, summed: Summed | None) -> Verifiable:
        own = as_sums(super()._verifiable(l0, summed), self.low, self.high, self.resolution, summed)
        bound = self.l0 if self.moved < len(self.items) else None
        return replace(own, l0=bound, rows=len(self.items))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        value = summed_column(table)
        made, bounds = self.measured, (self.low, self.high)
        labels, sums = clipped_sums(
            table, items=self.items, bounds=bounds, resolution=self.resolution, shift=made.shift, l0=self.l0
        )
        rng = opened_rng(rng)
        noisy = sums + rng.sample(_core.Noise.discrete_gaussian(made.sigmas[0]), len(sums))
        notes, bound = tuple[str, ...](), self.l0 if self.moved < len(self.items) else None
        if bound is not None:
            notes = (f"each user contributes to at most {counted(self.moved, 'sum')}; sigma does not include this",)
        release = noted(
            published(
                self,
                labels,
                np.arange(len(sums)),
                rng,
                noisy=noisy,
                sigmas=self.sigma,
                clipped=True,
                l0=bound,
                summed=self.summed(value),
            )
        )
        return in_own_unit(changed(release, notes=(*release.notes, *notes)), made.shift)


def as_sums(own: Verifiable, low: int, high: int, resolution: float, summed: Summed | None) -> Verifiable:
    """Return the facts of a release as those of sums with these bounds; `summed` names their column."""
    columns = own.columns if summed is None else (*own.columns, summed.columns)
    return replace(own, sums=(low, high, resolution), columns=columns)


def in_own_unit(release: Release, shift: int) -> Release:
    """Return a release of sums in parts of 2^shift steps as sums in the unit of the column. Their sigmas have it."""
    assert release.summed is not None
    assert release.summed.resolution is not None
    assert release.counts is not None
    assert release.sigmas is not None
    return changed(release, counts=own_unit(release.counts, shift, release.summed.resolution, release.sigmas))
