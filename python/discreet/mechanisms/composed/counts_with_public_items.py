"""`CountsWithPublicItems`: counts of public items and, in the same pass over the rows, of items that nobody listed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet import _core
from discreet.engines.engine import Counted
from discreet.engines.table import Table
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening, opened_rng
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts, CalibratedSteps
from discreet.mechanisms.counts.correlated_counts import CorrelatedCounts
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import RELATIVE_ERROR, require_rho
from discreet.mechanisms.published import published
from discreet.mechanisms.verifiable import Verifiable, all_close
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.privacy.validation import require_number
from discreet.release.facts import Listed, Summed
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["CountsWithPublicItems"]


@dataclass(frozen=True, kw_only=True)
class CountsWithPublicItems(TableMechanism):
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
        self._set(rho=require_rho(self.rho), share=require_number("share", self.share, 0, 1))
        if self.share >= 1:
            raise ParameterError("share must be below 1: the other items need the rest of rho")
        others = self.others
        self._set(items=self.public.items, delta=others.delta, relative_error=others.relative_error)

    @property
    def public(self) -> CorrelatedCounts:
        """Return the mechanism that counts the public items."""
        return CorrelatedCounts(items=self.items, rho=round_down(self.share * self.rho))

    @property
    def others(self) -> CalibratedCounts:
        """Return the mechanism that counts the other items."""
        rest = round_down(self.rho - round_down(self.share * self.rho), 8)
        return CalibratedCounts(rho=rest, delta=self.delta, relative_error=self.relative_error)

    @property
    def lists_items(self) -> Listed:  # type: ignore[override]
        """Return which items are published even if nobody has them: the public ones."""
        return "some"

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of both steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta)

    def _verifiable(self, l0: int | None, summed: Summed | None) -> Verifiable:
        public, others = self.public._verifiable(l0, summed), self.others._verifiable(l0, summed)
        own = replace(super()._verifiable(l0, summed), clips=False, columns=others.columns)
        return replace(own, users=public.users, needs_users=True, public=len(self.items))

    def _has_sigmas(self, rows: Fields, replaced: bool) -> bool:
        # The sigmas of other items depend on a number of users that is not published.
        given = {*self.items}
        public = np.array([item in given for item in rows["items"]], bool)
        are_all = rows["part_of"] is not None or int(public.sum()) == len(given)
        return are_all and all_close(rows["sigmas"][public], np.array([self.public.deviation]))

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        public, others, counting = self.public, self.others, self.others._lists(table)
        rest, histogram = counting.excluding(self.items).checked(), _histogram(counting.public(self.items))
        histogram._require_type_of(self.items)  # noqa: SLF001 - the schema, which is public
        public._require(histogram)
        rng = opened_rng(rng)
        if rng.is_seeded:
            counting = counting.ordered()
            rest, histogram = counting.excluding(self.items), _histogram(counting.public(self.items))
        first = public.release(histogram, rng=rng)
        second = CalibratedSteps(others, rest, rng).release()
        assert first.counts is not None is not second.counts
        assert first.sigmas is not None is not second.sigmas
        assert second.confirmed is not None
        size = len(first) + len(second)
        kind = histogram._named(first.item_type)  # noqa: SLF001 - as above
        return published(
            self,
            _core.Labels.from_sequence([*first.items, *second.items]),
            np.arange(size),
            rng,
            noisy=np.append(first.counts, second.counts),
            sigmas=np.append(first.sigmas, second.sigmas),
            confirmed=np.append(np.ones(len(first), bool), second.confirmed),
            spent=Guarantee(min(self.rho, (first.spent + second.spent).rho), self.delta),
            calls=second.calls,
            stopped_early=second.stopped_early,
            users=first.users,
            item_type=kind,
            notes=(*first.notes, *(f"other items: {note}" for note in second.notes)),
        )


def _histogram(counted: Counted) -> Histogram:
    """Return counts and the number of users as a histogram."""
    labels, counts, users = counted
    sensitivity = Sensitivity(l0=None, linf=1)
    return Histogram._of(labels, counts, sensitivity, None, users=users)  # noqa: SLF001 - the counts stay private
