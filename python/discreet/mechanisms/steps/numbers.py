"""A step that adds up rows and columns for all selected items, from rows in memory.

All numbers of an item are about the same users: the rows of a table are read into memory before the charge, and each
user keeps one random order of items for all numbers. What would break: a number that keeps other items of a user, whose
noise is that of l0 items no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Never

import numpy as np
from numpy.typing import NDArray

from discreet import _core
from discreet.engines.engine import Label
from discreet.engines.local import listed_labels
from discreet.engines.pairs import read_pairs
from discreet.engines.table import Table
from discreet.mechanisms.steps.base import Rows, SoFar, Step
from discreet.mechanisms.steps.measured import Bounded, Measured
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.release.facts import Summed, all_close
from discreet.release.release import changed
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    from discreet.engines.untrusted import Fields
    from discreet.mechanisms.base import Mechanism
    from discreet.release.aggregates import Aggregate
    from discreet.release.facts import Facts
    from discreet.release.release import Release

__all__ = ["Numbers", "PairRows"]


class PairRows(Rows):
    """Rows in memory, with each column of values. SENSITIVE."""

    def __init__(self, table: Table, columns: Iterable[tuple[str, float]], items: tuple[Label, ...] | None) -> None:
        super().__init__(table)
        self._columns, self._items = [*dict.fromkeys(columns)], items
        # Errors of the values come before the charge. The sums are made after it, from the rows in memory.
        self.pairs = read_pairs(table, self._columns or [(None, 1.0)], items)

    def _read_numbers(self) -> NDArray[np.int64]:
        return self.pairs[0].sizes()

    def counts(self, l0: int) -> Histogram:
        """Return the number of users of each item, with at most l0 items of each user."""
        sensitivity = Sensitivity(l0=l0, linf=1)
        return Histogram._of(*self.pairs[0].counts(l0), sensitivity, None, clipped_to=l0)  # noqa: SLF001

    def taken_by(self, mechanism: Mechanism[Never, Release]) -> Histogram:
        """Return the number of users of the listed items of a mechanism, with at most its l0 of them of each user."""
        assert self._items is not None
        l0, number = mechanism.protects.l0, len(self._items)
        labels, users = self.measured(Measured.rows(1, 1.0, 1), self._items, l0 or number)
        return Histogram._of(labels, users[:, 0], Sensitivity(l0=l0, linf=1), None, clipped_to=l0)  # noqa: SLF001

    def measured(self, one: Measured, items: Iterable[Label], l0: int) -> tuple[_core.Labels, NDArray[np.int64]]:
        """Return the exact sums of a number for these items, with at most l0 items of each user."""
        labels = listed_labels(tuple(items))
        assert labels is not None
        place = 0 if one.column is None else self._columns.index((one.column, one.resolution))
        labels, sums = self.pairs[place].measured(labels, l0, [one.asked])
        return labels, sums[:, : len(one.sigmas)]

    def weighted(
        self, columns: Iterable[tuple[str, str | None, float, int, int]], items: Iterable[Label]
    ) -> _core.WeightedPairs:
        """Return the numbers of each user for these items: of users, and of each column, with bounds in steps."""
        labels = listed_labels(tuple(items))
        assert labels is not None
        given = [(0, "users", 1, 1)]
        for kind, column, step, low, high in columns:
            place = 0 if column is None else self._columns.index((column, step))
            given.append((place, kind, low, high))
        return _core.WeightedPairs(self.pairs, given, labels)

    def require_l0(self) -> None:
        """Do nothing: rows in memory can be bounded."""


@dataclass(frozen=True, kw_only=True)
class Numbers(Step[None]):
    """Adds up rows and columns for the selected items. Each sum costs rho, and a mean has two of them."""

    rho: float
    l0: int | None
    """The most items of a user; None if it is found."""
    rows: int | None
    sums: tuple[Bounded, ...]
    means: tuple[Bounded, ...]

    reads_rows = False

    def plan(self, l0: int) -> list[Measured]:
        """Return how each number is measured."""
        plan = [] if self.rows is None else [Measured.rows(self.rows, self.rho, l0)]
        plan += [Measured.sum(one, self.rho, l0) for one in self.sums]
        return plan + [Measured.mean(one, self.rows or 1, self.rho, l0) for one in self.means]

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of all sums."""
        scales = [scale for one in self.plan(self.l0 or l0) for scale in one.sigmas]
        for scale in scales:
            _ = _core.Noise.discrete_gaussian(scale)
        return Guarantee(len(scales) * self.rho, 0.0)

    def run(self, so_far: SoFar, read: None, rng: _core.Rng) -> None:
        """Release the numbers."""
        assert isinstance(so_far.rows, PairRows)
        items, l0 = so_far.selected.items, self.l0 or so_far.l0 or 1
        found: list[Aggregate] = []
        for one in self.plan(l0):
            sums = so_far.rows.measured(one, items, l0)[1] if items else np.zeros((0, len(one.sigmas)), np.int64)
            noise = [rng.sample(_core.Noise.discrete_gaussian(scale), len(items)) for scale in one.sigmas]
            found.append(one.published(sums + np.stack(noise, axis=1)))
        notes = (*so_far.selected.notes, *(one.measure(so_far.table.unit) for one in found))
        so_far.release = changed(so_far.selected, aggregates=tuple(found), notes=notes)

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has these numbers with their noise. The sigmas of means are claims."""
        plan, counted = self.plan(self.l0 or l0 or 1), facts.has_sigmas

        def has_sigmas(rows: Fields, replaced: bool) -> bool:
            found: list[Aggregate] = rows["aggregates"]
            headers = [one.published(np.zeros((0, len(one.sigmas)), np.int64)).header for one in plan]
            is_own = counted(rows, replaced) and [one.header for one in found] == headers
            return is_own and all(_has_noise(one, made.sigma) for one, made in zip(found, plan, strict=True))

        return replace(facts, has_sigmas=has_sigmas, claims=("the sigmas of means",) if self.means else ())


def _has_noise(one: Aggregate, sigma: float) -> bool:
    """Return whether a number of a file can have its sigmas; those of a mean are at most half of its bounds."""
    if one.kind != "mean" or one.low is None or one.high is None:
        return all_close(one.sigmas, np.array([sigma]))
    low, high = one.low * one.resolution, one.high * one.resolution
    slack = 1e-9 * (abs(low) + abs(high))
    is_within = (one.values >= low - slack) & (one.values <= high + slack)
    return bool(np.all(is_within & (one.sigmas > 0) & (one.sigmas <= (high - low) / 2 + slack)))
