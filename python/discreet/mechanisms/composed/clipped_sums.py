"""`ClippedSums`: sums over users for items that are already public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet import _core
from discreet.engines.engine import Label
from discreet.errors import ParameterError
from discreet.mechanisms.parameters import require_countable, require_list
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.measured import Measured, require_steps
from discreet.mechanisms.steps.sums import Sums
from discreet.privacy.guarantee import Guarantee, Sensitivity

__all__ = ["SKIPPED", "ClippedSums"]

SKIPPED = "rows whose cell is no finite number, such as a date or 3,50, are left out"
"""The note of sums of a column, whose cells may be anything."""


@dataclass(frozen=True, kw_only=True)
class ClippedSums(Steps):
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
        low, high, resolution = require_steps(self.low, self.high, self.resolution)
        # Plain Python values, so that the repr is readable.
        plain = tuple(_core.Labels.from_sequence(list(items)).take(np.arange(len(items))))
        self._set(items=plain, low=low, high=high, resolution=resolution)
        super().__post_init__()

    @property
    def steps(self) -> StepList:
        """Return the only step."""
        return (self._sums,)

    @property
    def _sums(self) -> Sums:
        bounds = self.low, self.high
        return Sums(rho=self.rho, bounds=bounds, resolution=self.resolution, l0=self.l0, items=self.items)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: rho-zCDP, by Gaussian noise on all sums (Rogers 2023, Theorem 4).

        One user changes at most l0 sums, each by at most max(|low|, |high|). So the l2-sensitivity is
        sqrt(l0) max(|low|, |high|). If the noise of these bounds is too large to be drawn in steps, each user's sum
        is rounded toward zero to a multiple of some power of two of steps, which bounds and rho alone decide; so are
        the bounds (`scale_of`).
        """
        return Guarantee(self.rho, 0.0)

    @property
    def measured(self) -> Measured:
        """Return how each sum is measured."""
        return self._sums.measured(self._sums.moved(len(self.items), self.l0), 1)

    @property
    def sigma(self) -> float:
        """Return the scale of the noise of each sum, in the unit of the column."""
        return self.measured.sigma

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any rows, because the user's sum for each item is clipped."""
        return Sensitivity(l0=None, linf=max(abs(self.low), abs(self.high)))
