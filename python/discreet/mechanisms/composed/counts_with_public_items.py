"""`CountsWithPublicItems`: counts of public items and, in the same pass over the rows, of items that nobody listed."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.engines.table import Table
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.parameters import RELATIVE_ERROR, checked_fields
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.others import CountOthers, ListedRows
from discreet.mechanisms.steps.select import Run
from discreet.privacy.conversion import round_down

__all__ = ["CountsWithPublicItems"]


@dataclass(frozen=True, kw_only=True)
class CountsWithPublicItems(Steps):
    """A mechanism that counts public `items` without a threshold, and other items as `CalibratedCounts` does.

    `CorrelatedCounts` takes a `share` of rho for the public items, and releases all of them. `CalibratedCounts` takes
    the rest of rho and all of delta, on the rows without public items. A user may have any number of items. The
    guarantee is delta-approximate rho-zCDP per user, added or removed: the sum of both.

    Args:
        items: Distinct integers, strings or bytes, or tuples for several columns. Choose them without the data.
        rho: The privacy cost of both steps in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: from 1e-100 to below 1.
        share: The fraction of rho for the public items: above 0 and below 1.
        relative_error: The error of confirmed counts of other items, as for `CalibratedCounts`.

    Raises:
        ParameterError: A parameter is out of range, or rho is too small.
        SchemaError: The items are of mixed types.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(9000)] * 2, "page": ["home"] * 9000 + ["help"] * 9000}
        >>> mechanism = dp.mechanisms.CountsWithPublicItems(items=("home", "jobs"), rho=1, delta=1e-6)
        >>> sorted(mechanism.release(log, user="user", item="page").items)
        ['help', 'home', 'jobs']

    Source:
        Rogers (2023), Theorem 6, for the sum of both guarantees; the sources of `CorrelatedCounts` and
        `CalibratedCounts`. A user's rows without public items follow from the user's rows alone, so tables that differ
        by one user still do.
    """

    _costs_by_step = True

    items: tuple[str | int | bytes, ...]
    rho: float
    delta: float
    share: float = 0.5
    relative_error: float = RELATIVE_ERROR

    def __post_init__(self) -> None:
        self._set(**checked_fields(self))
        others = self.others
        self._set(items=self.public.items, delta=others.delta, relative_error=others.relative_error)

    @property
    def steps(self) -> StepList:
        """Return the steps: the counts of the public items, and of the others."""
        return Run(given=self.public), CountOthers(given=self.others, items=self.items)

    @property
    def public(self) -> CorrelatedCounts:
        """Return the mechanism that counts the public items."""
        return CorrelatedCounts(items=self.items, rho=round_down(self.share * self.rho))

    @property
    def others(self) -> CalibratedCounts:
        """Return the mechanism that counts the other items."""
        rest = round_down(self.rho - round_down(self.share * self.rho), 8)
        return CalibratedCounts(rho=rest, delta=self.delta, relative_error=self.relative_error)

    def _rows(self, table: Table) -> ListedRows:
        return ListedRows(table, self.others._lists(table), self.items)
