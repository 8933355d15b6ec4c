"""A step that counts all items which an earlier step did not list, from the same pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Never

import numpy as np

from discreet import _core
from discreet.engines.engine import Label
from discreet.engines.table import Table
from discreet.engines.weighing import Counting
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts, CalibratedSteps
from discreet.mechanisms.published import published
from discreet.mechanisms.steps.base import Rows, SoFar, Step
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.release.facts import Listed, Summed
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    from discreet.engines.untrusted import Fields
    from discreet.mechanisms.base import Mechanism
    from discreet.release.facts import Facts
    from discreet.release.release import Release

__all__ = ["CountOthers", "ListedRows"]


class ListedRows(Rows):
    """Rows whose listed items are counted apart from all others. SENSITIVE."""

    def __init__(self, table: Table, counting: Counting, items: Sequence[Label]) -> None:
        super().__init__(table)
        self._counting, self._items = counting, items
        self._others = counting.excluding(items).checked()  # first: its errors name a mechanism that helps

    def taken_by(self, mechanism: Mechanism[Never, Release]) -> Histogram:
        """Return the counts of the listed items, and the number of users."""
        labels, counts, users = self._counting.public(self._items)
        return Histogram._of(labels, counts, Sensitivity(l0=None, linf=1), None, users=users)  # noqa: SLF001 - private

    def others(self, *, ordered: bool = False) -> Counting:
        """Return access to the rows of the other items, after all that may be refused."""
        return self._counting.ordered().excluding(self._items) if ordered else self._others


@dataclass(frozen=True, kw_only=True)
class CountOthers(Step[Counting]):
    """Counts the items that are not listed with `CalibratedCounts`.

    A user's rows of other items follow from the user's rows alone, so tables that differ by one user still do.
    """

    given: CalibratedCounts
    items: tuple[Label, ...]

    lists: Listed = "some"

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the mechanism."""
        return self.given.guarantee

    def read(self, so_far: SoFar) -> Counting:
        """Return access to the rows of the other items, after all that may be refused."""
        assert isinstance(so_far.rows, ListedRows)
        return so_far.rows.others()

    def run(self, so_far: SoFar, read: Counting, rng: _core.Rng) -> None:
        """Add the other items to those of the earlier step."""
        assert isinstance(so_far.rows, ListedRows)
        rest = so_far.rows.others(ordered=True) if rng.is_seeded else read
        first, second = so_far.selected, CalibratedSteps(self.given, rest, rng).release()
        assert first.counts is not None is not second.counts
        assert first.sigmas is not None is not second.sigmas
        assert second.confirmed is not None
        whole = so_far.mechanism.guarantee
        so_far.spent = Guarantee(min(whole.rho, (first.spent + second.spent).rho), whole.delta)
        so_far.release = published(
            so_far.mechanism,
            _core.Labels.from_sequence([*first.items, *second.items]),
            np.arange(len(first) + len(second)),
            rng,
            noisy=np.append(first.counts, second.counts),
            sigmas=np.append(first.sigmas, second.sigmas),
            confirmed=np.append(np.ones(len(first), bool), second.confirmed),
            calls=second.calls,
            stopped_early=second.stopped_early,
            users=first.users,
            item_type=first.item_type,
            notes=(*first.notes, *(f"other items: {note}" for note in second.notes)),
        )

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has all listed items, and the sigmas of their noise; those of others depend on their users."""
        listed, counted = {*self.items}, facts.has_sigmas

        def has_sigmas(rows: Fields, replaced: bool) -> bool:
            is_listed = np.array([item in listed for item in rows["items"]], bool)
            are_all = rows["part_of"] is not None or int(is_listed.sum()) == len(listed)
            return are_all and counted({**rows, "sigmas": rows["sigmas"][is_listed]}, replaced)

        columns = self.given._facts(l0, summed).columns
        return replace(facts, has_sigmas=has_sigmas, columns=columns, rows=None)
