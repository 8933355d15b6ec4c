"""`Aggregates`: counts of users and rows, sums and means of several columns for one selection of items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.engines.engine import Label
from discreet.engines.local import listed_labels
from discreet.engines.pairs import read_pairs
from discreet.engines.projection import require_free
from discreet.engines.table import Table
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.counts.contribution_bound import ContributionBound
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import (
    L0_SHARE,
    PERCENTILE,
    require_countable,
    require_delta,
    require_items,
    require_rho,
)
from discreet.mechanisms.published import noted, published, retold
from discreet.mechanisms.sums.measured import LIMIT, Bounded, Measured, require_bounded, require_several
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.verifiable import Verifiable, all_close
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, Sensitivity, resolve_rho
from discreet.privacy.validation import require_number, require_whole
from discreet.release.aggregates import Aggregate, column_name
from discreet.release.facts import Listed, Summed
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["Aggregates"]


@dataclass(frozen=True, kw_only=True)
class Aggregates(TableMechanism):
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
            rho=require_rho(self.rho),
            l0=None if self.l0 is None else require_whole("l0", self.l0, 1, LIMIT),
            rows=None if self.rows is None else require_whole("rows", self.rows, 1, LIMIT),
            sums=tuple(require_bounded("sums", one) for one in require_several("sums", self.sums)),
            means=tuple(require_bounded("means", one) for one in require_several("means", self.means)),
            most=require_whole("most", self.most, 2, 2**20),
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
        if self.share is not None:
            self._set(share=require_number("share", self.share, 0, 1, open_high=True))
        # Nothing may be refused after the charge. The scales of noise grow with l0, so all lie between these.
        if self.finds_l0:
            _, _, _ = self.bound, self.bounded(1), self.bounded(self.most)
            return
        for scale in (scale for scales in self.scales.values() for scale in scales):
            _ = _core.Noise.discrete_gaussian(scale)

    @classmethod
    def from_rho(
        cls,
        *,
        rho: float,
        delta: float,
        l0: int | None,
        rows: int | None = None,
        sums: tuple[Bounded, ...] = (),
        means: tuple[Bounded, ...] = (),
        share: float | None = None,
        most: int = 1_000,
    ) -> Self:
        """Return the mechanism that guarantees delta-approximate rho-zCDP."""
        return cls(rho=rho, delta=delta, l0=l0, rows=rows, sums=sums, means=means, share=share, most=most)

    @classmethod
    def from_epsilon(
        cls,
        *,
        epsilon: float,
        delta: float,
        l0: int | None,
        rows: int | None = None,
        sums: tuple[Bounded, ...] = (),
        means: tuple[Bounded, ...] = (),
        share: float | None = None,
        most: int = 1_000,
    ) -> Self:
        """Return the mechanism whose total guarantee is (epsilon, delta)-DP.

        Half of delta goes to the conversion from zCDP.
        """
        rho, own = resolve_rho(None, epsilon, delta)
        return cls(rho=rho, delta=own, l0=l0, rows=rows, sums=sums, means=means, share=share, most=most)

    @property
    def lists_items(self) -> Listed:  # type: ignore[override]
        """Return which items are published even if nobody has them."""
        return "none" if self.items is None else "all"

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of all steps (Rogers 2023, Theorem 6).

        Each user keeps at most l0 items. The choice depends on the user's items and on random keys alone, which are the
        same for all steps and independent of the data, so the guarantee holds for each value of the keys. One user then
        changes each number of at most l0 items by at most its bound, and its noise has the scale of sqrt(l0) bounds.
        """
        return Guarantee(self.rho, self.delta or 0.0)

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any rows, because the mechanism clips each user's contribution."""
        return Sensitivity(l0=None, linf=1)

    @property
    def finds_l0(self) -> bool:
        """Whether a bound on the items of a user is found."""
        return self.l0 is None and self.items is None

    @property
    def _l0(self) -> int:
        """The most items of a user that count; the largest one if it is found."""
        if self.items is not None:
            return min(len(self.items), self.l0 or len(self.items))
        return self.l0 or self.most

    @property
    def bound(self) -> ContributionBound:
        """Return the mechanism that finds l0, if it was left out."""
        return ContributionBound.from_rho(rho=round_down(L0_SHARE * self.rho), percentile=PERCENTILE, most=self.most)

    def bounded(self, l0: int) -> Self:
        """Return the mechanism of the later steps, which have the rest of rho.

        Args:
            l0: The bound that was found.

        Returns:
            An Aggregates.
        """
        return replace(self, l0=l0, rho=round_down((1 - L0_SHARE) * self.rho, 8))

    @property
    def _parts(self) -> int:
        """The number of noisy sums of an item besides its count of users."""
        return (self.rows is not None) + len(self.sums) + 2 * len(self.means)

    @property
    def _counting(self) -> float:
        """The rho of the counts of users."""
        return round_down((1 / (1 + self._parts) if self.share is None else self.share) * self.rho)

    @property
    def selection(self) -> GaussianThreshold:
        """Return the mechanism that counts users and selects items; without l0, that of the largest l0.

        Raises:
            ParameterError: The items are listed, so nothing selects them.
        """
        if self.items is not None:
            raise ParameterError("listed items need no selection")
        if self.finds_l0:
            return self.bounded(self.most).selection
        return GaussianThreshold.from_rho(rho=self._counting, delta=self.delta or 0.0, l0=self._l0)

    @property
    def scales(self) -> dict[str, tuple[float, ...]]:
        """Return the scale of the noise of each number as it is drawn: of a mean, those of its two sums.

        A dict by the names of the columns, with "count" first; without l0, for the largest l0.
        """
        if self.finds_l0:
            return self.bounded(self.most).scales
        count = self.selection.sigma if self.items is None else Measured.rows(1, self._counting, self._l0).sigmas[0]
        return {"count": (count,), **{column_name(one.kind, one.column): one.sigmas for one in self._plan()}}

    def _plan(self) -> list[Measured]:
        """Return how each aggregate is measured; without l0, with the largest one."""
        if self.finds_l0:
            return self.bounded(self.most)._plan()  # noqa: SLF001 - of this class
        own, l0 = round_down((self.rho - self._counting) / self._parts, 16), self._l0
        plan = []
        if self.rows is not None:
            plan.append(Measured.rows(self.rows, own, l0))
        plan += [Measured.sum(one, own, l0) for one in self.sums]
        for one in self.means:
            assert self.rows is not None
            plan.append(Measured.mean(one, self.rows, own, l0))
        return plan

    def empty(self) -> list[Aggregate]:
        """Return the aggregates of a release without items: their facts without numbers."""
        return [one.published(np.zeros((0, len(one.sigmas)), np.int64)) for one in self._plan()]

    @property
    def names(self) -> list[str]:
        """The names of the columns of numbers of a release."""
        found = [] if self.rows is None else [column_name("rows", None)]
        found += [
            column_name(kind, column) for kind, of in (("sum", self.sums), ("mean", self.means)) for column, *_ in of
        ]
        return ["count", "sigma", *(name for one in found for name in (one, f"{one}_sigma"))]

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is selected.

        Args:
            users: The number of users of the item, each with at most l0 items.

        Returns:
            A probability from 0 to 1; 1 for listed items.
        """
        return self.selection.release_chance(users) if self.items is None else 1.0

    def _verifiable(self, l0: int | None, summed: Summed | None) -> Verifiable:
        own = replace(super()._verifiable(l0, summed), columns=(tuple(self.names),), largest_l0=self.l0)
        if self.means:
            own = replace(own, claims=("the sigmas of means",))
        if self.items is not None:
            bound = self.l0 if self.l0 is not None and self.l0 < len(self.items) else None
            return replace(own, l0=bound, clips=bound is not None, rows=len(self.items))
        if self.finds_l0:
            made = self.bounded(l0 or 1)
            own = replace(own, has_sigmas=made._has_sigmas, claims_l0=True, largest_l0=self.most)
            return replace(own, threshold=made.selection.threshold.value)
        return replace(own, l0=self.l0, threshold=self.selection.threshold.value)

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        # The sigmas of means are claims.
        plan, found = self._plan(), rows["aggregates"]
        if [one.header for one in found] != [one.header for one in self.empty()]:
            return False
        sigmas = [rows["sigmas"], *(one.sigmas for one in found if one.kind != "mean")]
        scales = [self.scales["count"][0], *(one.sigma for one in plan if one.kind != "mean")]
        for mean in (one for one in found if one.kind == "mean"):
            low, high = mean.low * mean.resolution, mean.high * mean.resolution
            slack = 1e-9 * (abs(low) + abs(high))
            is_within = (mean.values >= low - slack) & (mean.values <= high + slack)
            if not np.all(is_within & (mean.sigmas > 0) & (mean.sigmas <= (high - low) / 2 + slack)):
                return False
        return all(all_close(own, np.array([scale])) for own, scale in zip(sigmas, scales, strict=True))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        require_free(self.names, table.user, table.item, table.period)
        columns = [*dict.fromkeys((column, unit) for column, _, _, unit in (*self.sums, *self.means))]
        # Errors of the values come before the charge. The sums are made after it, from the rows in memory.
        pairs = read_pairs(table, columns or [(None, 1.0)], self.items)
        if not self.finds_l0:
            return self._steps(columns, pairs, rng, table.unit)
        numbers = pairs[0].sizes()
        rng = opened_rng(rng)
        l0 = self.bound._drawn(numbers, rng)
        release = self.bounded(l0)._steps(columns, pairs, rng, table.unit)  # noqa: SLF001 - of this class
        return retold(release, self, self.bound.note(l0))

    def _steps(
        self, columns: list[tuple[str, float]], pairs: list[_core.Pairs], rng: _core.Rng | Opening | None, unit: str
    ) -> Release:
        """Return the release of counts of users, and of all other numbers of the released items."""
        l0 = self._l0
        if self.items is None:
            counts = pairs[0].counts(l0)
            rng = opened_rng(rng)
            histogram = Histogram._of(*counts, Sensitivity(l0=l0, linf=1), None, clipped_to=l0)  # noqa: SLF001
            first = self.selection.release(histogram, rng=rng)
        else:
            labels, users = pairs[0].measured(_labels(self.items), l0, [("rows", 0, 0, 1, 1, 0)])
            rng = opened_rng(rng)
            first = self._counts(labels, users[:, 0], rng)
        labels, found = _labels(first.items), []
        for one in self._plan():
            place = 0 if one.column is None else columns.index((one.column, one.resolution))
            sums = pairs[place].measured(labels, l0, [one.asked])[1] if len(first) else np.zeros((0, 2), np.int64)
            noise = [rng.sample(_core.Noise.discrete_gaussian(scale), len(first)) for scale in one.sigmas]
            found.append(one.published(sums[:, : len(noise)] + np.stack(noise, axis=1)))
        measures = [one.measure(unit) for one in found]
        return retold(first, self, *measures, aggregates=tuple(found))

    def _counts(self, labels: _core.Labels, users: NDArray[np.int64], rng: _core.Rng) -> Release:
        """Return the release of the counts of users of listed items."""
        assert self.items is not None
        (scale,) = self.scales["count"]
        noisy = users + rng.sample(_core.Noise.discrete_gaussian(scale), len(users))
        bound = self._l0 if self._l0 < len(self.items) else None
        rows = np.arange(len(users))
        release = published(self, labels, rows, rng, noisy=noisy, sigmas=scale, clipped=bound is not None, l0=bound)
        return noted(release) if release.clipped else release


def _labels(items: Iterable[Label]) -> _core.Labels:
    labels = listed_labels(tuple(items))
    assert labels is not None
    return labels
