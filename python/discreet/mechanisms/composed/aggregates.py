"""`Aggregates`: counts of users and rows, sums and means of several columns for one selection of items."""

from __future__ import annotations

from dataclasses import dataclass, replace

from discreet.engines.engine import Label
from discreet.engines.projection import require_free
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.counts.gaussian_counts import GaussianCounts
from discreet.mechanisms.parameters import require_countable, require_delta, require_items
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.bounds import FindL0, found_l0
from discreet.mechanisms.steps.measured import Bounded, Measured, require_bounded, require_several
from discreet.mechanisms.steps.numbers import Numbers, PairRows
from discreet.mechanisms.steps.select import Run, Threshold
from discreet.privacy.conversion import round_down
from discreet.release.aggregates import column_name
from discreet.release.facts import Facts, Summed

__all__ = ["Aggregates"]


@dataclass(frozen=True, kw_only=True)
class Aggregates(FromRhoAndDelta, Steps):
    """A mechanism that counts users and rows, and adds up and averages columns, for one selection of items.

    It answers `SELECT item, COUNT(DISTINCT user), COUNT(*), SUM(a), AVG(b) ... GROUP BY item` for items that are not
    known in advance, as one release with one guarantee. The counts of users select the items: a `GaussianThreshold`
    with all of delta. All numbers of an item are about the same users: each user keeps at most `l0` items, chosen
    uniformly once for all numbers. Every number has an equal part of rho, a mean two of them, the counts of users one,
    or `share`.

    With `items`, a public list, no item needs a threshold, and the guarantee has no delta. Without `l0`, 5 % of rho
    first finds a bound that about 95 % of the users do not exceed; of listed items a user may have all.

    A user and item add to the rows at most `rows`; to a sum the user's own sum, clipped to the bounds; and to a mean
    the user's own mean, clipped to the bounds, with the weight of at most `rows` rows with a value. A mean is the
    quotient of two noisy sums. The first one adds up distances from the centre of the bounds, so its noise is that of
    half their width. It counts parts of a step, up to 65,536, and each user's part is rounded at random, without bias.
    If steps are too fine for noise to be drawn in them, sums and means count multiples of a power of two of steps, and
    each user's part is rounded toward zero (`scale_of`).

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1; None with `items`.
        l0: The most items of one user: from 1 to 2^30; None to find a bound.
        rows: The most rows of a user for an item that count: from 1 to 2^30; None to count no rows. Means need it.
            Choose it without the data.
        sums: For each column to add up its name, the least and the largest sum of one user for one item in steps, from
            -2^95 to 2^95, and the step, from 1e-12 to 1e12. Choose them without the data.
        means: The same for each column to average, with bounds of a user's mean.
        items: The public items, or None to find items.
        share: The part of rho, after a bound was found, for the counts of users: above 0 and below 1; None for a part
            that is equal to that of every other number.
        most: The largest l0 to find: from 2 to 2^20. Choose it without the data.

    Raises:
        ParameterError: A parameter is out of range, or two numbers have one name.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)], "shop": ["a"] * 5000, "price": [19.99] * 5000}
        >>> made = dp.mechanisms.Aggregates(rho=1, delta=1e-6, l0=1, rows=1, means=(("price", 0, 5000, 0.01),))
        >>> release = made.release(log, user="user", item="shop")
        >>> release.items, bool(19 < release.aggregates[1].values[0] < 21)
        (['a'], True)

    Source:
        Rogers (2023), Theorem 7 for the selection, Theorem 4 for the noise of the numbers and Theorem 6 for all steps
        together. Desfontaines et al. (2020), Section 1, for the selection before sums.
    """

    rho: float
    delta: float | None
    l0: int | None
    rows: int | None = None
    sums: tuple[Bounded, ...] = ()
    means: tuple[Bounded, ...] = ()
    items: tuple[Label, ...] | None = None
    share: float | None = None
    most: int = 1_000

    def __post_init__(self) -> None:
        self._set(
            sums=tuple(require_bounded("sums", one) for one in require_several("sums", self.sums)),
            means=tuple(require_bounded("means", one) for one in require_several("means", self.means)),
        )
        if self.items is None:
            self._set(delta=require_delta(self.delta))
        else:
            if self.delta is not None:
                raise ParameterError.about("public {items} need no {delta}: leave it out")
            self._set(items=require_items(self.items))
            require_countable(self.items)
        if self.means and self.rows is None:
            raise ParameterError.about(
                "{rows} must be given with {means}: the most rows of a user for an item that count"
            )
        if self.rows is None and not self.sums:
            raise ParameterError.about("give {rows}, {sums} or {means}; count alone counts users")
        if len({name.lower() for name in self.names}) < len(self.names):
            raise ParameterError.about(
                "two columns of the release would have one name but for case: give each column once, or rename one"
            )
        super().__post_init__()

    @property
    def steps(self) -> StepList:
        """Return the steps: the bound on the items of a user if there is none, the counts of users, and the numbers.

        Each user keeps at most l0 items. The choice depends on the user's items and on random keys alone, which are the
        same for all steps and independent of the data, so the guarantee holds for each value of the keys. One user then
        changes each number of at most l0 items by at most its bound, and its noise has the scale of sqrt(l0) bounds.
        """
        found, selection, numbers = self._parts
        return *found, selection, numbers

    @property
    def _parts(self) -> tuple[tuple[FindL0, ...], Threshold | Run, Numbers]:
        found, rho = found_l0(self.rho, self.l0 if self.items is None else 1, self.most)
        parts = (self.rows is not None) + len(self.sums) + 2 * len(self.means)
        counting = round_down((1 / (1 + parts) if self.share is None else self.share) * rho)
        selection: Threshold | Run
        if self.items is None:
            assert self.delta is not None
            selection, l0 = Threshold(rho=counting, delta=self.delta, l0=self.l0), self.l0
        else:
            l0 = min(len(self.items), self.l0 or len(self.items))
            sigma = Measured.rows(1, counting, l0).sigma
            counts = GaussianCounts(items=self.items, sigma=sigma, l0=self.l0)  # type: ignore[arg-type]
            selection = Run(given=counts)
        own = round_down((rho - counting) / parts, 16)
        return found, selection, Numbers(rho=own, l0=l0, rows=self.rows, sums=self.sums, means=self.means)

    @property
    def scales(self) -> dict[str, tuple[float, ...]]:
        """Return the scale of the noise of each number as it is drawn: of a mean, those of its two sums.

        A dict by the names of the columns, with "count" first; without l0, for the largest l0.
        """
        _, selection, numbers = self._parts
        l0 = self._l0s[-1]
        plan = numbers.plan(numbers.l0 or l0)
        return {"count": (selection.sigma(l0),), **{column_name(one.kind, one.column): one.sigmas for one in plan}}

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers of a release."""
        found = [] if self.rows is None else [column_name("rows", None)]
        found += [
            column_name(kind, column) for kind, of in (("sum", self.sums), ("mean", self.means)) for column, *_ in of
        ]
        return ["count", "sigma", *(name for one in found for name in (one, f"{one}_sigma"))]

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), columns=(tuple(self.names),))

    def _rows(self, table: Table) -> PairRows:
        require_free(self.names, table.user, table.item, table.period)
        return PairRows(table, ((column, unit) for column, _, _, unit in (*self.sums, *self.means)), self.items)
