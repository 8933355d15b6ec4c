"""`CalibratedAggregates`: rows, sums and means of columns for each item, without bounds to choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from discreet import engines
from discreet.engines.projection import require_free
from discreet.engines.table import Table
from discreet.errors import Parameter, ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.parameters import require_countable, require_delta, require_items
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.calibrated import Asked, CountListed, MeasureAll, NameItems
from discreet.mechanisms.steps.measured import require_several, require_steps
from discreet.mechanisms.steps.numbers import PairRows
from discreet.privacy.conversion import round_down
from discreet.privacy.validation import require_flag, require_number, require_text
from discreet.release.aggregates import column_name
from discreet.release.facts import Facts, Summed

__all__ = ["CalibratedAggregates", "Free"]

Free: TypeAlias = tuple[str, int | None, int | None, float]
"""A column of values, the least and the largest sum of a user for an item in steps, or None, and the step."""
_NAMING = 0.5
_MOST = 12
"""The most numbers of a release: the steps that find scales and totals have a share of rho for each of them."""


@dataclass(frozen=True, kw_only=True)
class CalibratedAggregates(FromRhoAndDelta, Steps):
    """A mechanism that estimates rows, sums and means of columns for each item, without bounds to choose.

    Half of rho names the items and estimates their numbers of users, with `CalibratedCounts`. The rest measures all
    other numbers of these items at once: a user's numbers are weighted and shortened to one norm, whose scale is found
    with privacy. The published counts and one total of each column then show what shortening took, and it is put back.
    A user may have any number of items, rows and values. The guarantee is delta-approximate rho-zCDP per user, added or
    removed. Only the names of items need delta.

    Sigma includes the noise and the spread of what was put back. An interval is right for about 95 % of the items, and
    not where 1 % of the users hold half of a sum.

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1; None with `items`.
        rows: Whether to estimate numbers of rows.
        sums: For each column to add up its name, the least and the largest sum of a user for an item in steps, or None
            for any, and the step, from 1e-12 to 1e12. Choose bounds without the data.
        means: The same for each column to average over rows.
        items: The public items, or None to find items.

    Raises:
        ParameterError: A parameter is out of range, or two numbers have one name.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(9000)], "shop": ["a"] * 9000, "price": [20] * 9000}
        >>> made = dp.mechanisms.CalibratedAggregates(rho=1, delta=1e-6, sums=(("price", None, None, 1),))
        >>> release = made.release(log, user="user", item="shop")
        >>> release.items, bool(160_000 < release.aggregates[0].values[0] < 200_000)
        (['a'], True)

    Source:
        The theorem of docs/calibrated-aggregates.md, a result of this project.
    """

    rho: float
    delta: float | None
    rows: bool = False
    sums: tuple[Free, ...] = ()
    means: tuple[Free, ...] = ()
    items: tuple[str | int | bytes, ...] | None = None

    def __post_init__(self) -> None:
        require_flag("rows", self.rows)
        self._set(
            sums=tuple(_require_free("sums", one) for one in require_several("sums", self.sums)),
            means=tuple(_require_free("means", one) for one in require_several("means", self.means)),
        )
        if self.items is None:
            self._set(delta=require_delta(self.delta))
        else:
            if self.delta is not None:
                raise ParameterError.about("public {items} need no {delta}: leave it out")
            self._set(items=require_items(self.items))
            require_countable(self.items)
        if not (self.rows or self.sums or self.means):
            raise ParameterError.about("give {rows}, {sums} or {means}; count alone counts users")
        if len({name.lower() for name in self.names}) < len(self.names):
            raise ParameterError.about(
                "two columns of the release would have one name but for case: give each column once, or rename one"
            )
        super().__post_init__()
        if len(self._measuring.asked) > _MOST:
            raise ParameterError.about("give at most {} numbers in {rows}, {sums} and {means}", _MOST)
        if self._measuring.shares is None:
            raise ParameterError.about("{rho} is too small for sums: the noise would have a scale above 2^29")

    @property
    def steps(self) -> StepList:
        """Return the steps: the items with their numbers of users, and all other numbers."""
        naming = round_down(_NAMING * self.rho)
        if self.items is not None:
            return CountListed(given=CorrelatedCounts(items=self.items, rho=naming)), self._measuring
        assert self.delta is not None
        return NameItems(given=CalibratedCounts(rho=naming, delta=self.delta)), self._measuring

    @property
    def _measuring(self) -> MeasureAll:
        asked = [Asked("rows")] if self.rows else []
        asked += [Asked("sum", column, step, low, high) for column, low, high, step in self.sums]
        asked += [Asked("mean", column, step, low, high) for column, low, high, step in self.means]
        return MeasureAll(rho=round_down((1 - _NAMING) * self.rho, 4), asked=tuple(asked))

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers of a release."""
        found = [column_name(one.kind, one.column) for one in self._measuring.asked]
        return ["count", "sigma", *(name for one in found for name in (one, f"{one}_sigma"))]

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), columns=(tuple(self.names),))

    def _rows(self, table: Table) -> PairRows:
        require_free(self.names, table.user, table.item, table.period)
        if self.items is None:
            engines.require_rows_again(table.data)  # the counts, and the numbers
        return PairRows(table, ((column, step) for column, _, _, step in (*self.sums, *self.means)), self.items)


def _require_free(name: str, given: object) -> Free:
    """Return a column with its bounds, or None for each, and its step, or raise ParameterError."""
    if not isinstance(given, tuple | list) or len(given) != 4:
        raise ParameterError.about(
            "each of {} must have a column, the least and the largest sum of a user or None for each, and the step, "
            'such as ("price", None, None, 0.01)',
            Parameter(name),
        )
    column, low, high, step = given
    if not isinstance(column, str):
        raise ParameterError("value must be the name of a column")
    require_text("the name of the column of values", column)
    if low is None and high is None:
        return column, None, None, require_number("resolution", step, 1e-12, 1e12, open_low=False)
    return column, *require_steps(low, high, step)
