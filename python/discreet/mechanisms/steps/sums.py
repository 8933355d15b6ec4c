"""A step that adds up a column for the selected items, or for public ones, under bounds of a user's own sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.engines.engine import Counts, Label
from discreet.engines.sums import clipped_sums, summed_column
from discreet.mechanisms.published import noted, published
from discreet.mechanisms.steps.base import SoFar, Step
from discreet.mechanisms.steps.measured import Measured, own_unit
from discreet.privacy.conversion import round_down
from discreet.privacy.guarantee import Guarantee
from discreet.release.export import shortened
from discreet.release.facts import Listed, Summed, all_close
from discreet.release.release import changed
from discreet.wording import counted

if TYPE_CHECKING:
    from discreet.engines.untrusted import Fields
    from discreet.mechanisms.steps.select import Threshold
    from discreet.release.facts import Facts
    from discreet.release.release import Release

__all__ = ["Sums", "as_sums", "in_own_unit"]


@dataclass(frozen=True, kw_only=True)
class Sums(Step[Counts | None]):
    """Adds up the clipped sums of users, with the noise of at most l0 of them for each user.

    With public `items` and bounds the table is read before the charge. The items of a user are chosen again, among the
    items to sum.
    """

    rho: float
    """The rho of the sums, or of the sums and of `selection`."""
    resolution: float
    l0: int | None
    bounds: tuple[int, int] | None = None
    """The least and the largest sum of a user for an item; None if they are found."""
    items: tuple[Label, ...] | None = None
    selection: Threshold | None = None
    """An earlier step that takes a part of rho."""

    @property
    def lists(self) -> Listed:
        """Return which items are published even if nobody has them."""
        return "none" if self.items is None else "all"

    def moved(self, number: int, l0: int | None) -> int:
        """Return the most sums of so many items that one user changes."""
        return number if l0 is None else min(l0, number)

    def measured(self, moved: int, l0: int, bounds: tuple[int, int] | None = None) -> Measured:
        """Return how sums are measured of which one user changes so many, after a selection under l0."""
        return Measured.sum(("", *(bounds or self.bounds or (-1, 1)), self.resolution), self.cost(l0).rho, moved)

    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee: the rho that `selection` leaves."""
        rho = self.rho if self.selection is None else round_down(self.rho - self.selection.cost(l0).rho, 8)
        return Guarantee(rho, 0.0)

    def check(self, l0: int) -> None:
        """Refuse noise that is out of range: that of one sum, or of all that one user may change.

        The noise grows with the number of selected items, up to l0. The sums are made after the charge, so an error
        there would depend on the data.
        """
        for moved in (1, l0) if self.items is None else (self.moved(len(self.items), self.l0),):
            _ = _core.Noise.discrete_gaussian(self.measured(moved, l0).sigmas[0])

    def read(self, so_far: SoFar) -> Counts | None:
        """Return the sums of public items under bounds that are parameters."""
        if self.items is None or self.bounds is None:
            return None
        made = self.measured(self.moved(len(self.items), self.l0), 1)
        return self._added(so_far, self.items, made)

    def _added(self, so_far: SoFar, items: tuple[Label, ...], made: Measured) -> Counts:
        """Return the exact sums. They are as sensitive as the data."""
        bounds, l0 = (made.low, made.high), so_far.l0 or self.l0
        return clipped_sums(
            so_far.table, items=items, bounds=bounds, resolution=self.resolution, shift=made.shift, l0=l0
        )

    def run(self, so_far: SoFar, read: Counts | None, rng: _core.Rng) -> None:
        """Release the sums."""
        items = tuple(so_far.selected.items) if self.items is None else self.items
        l0 = so_far.l0 or self.l0
        moved = self.moved(len(items), l0)
        made = self.measured(max(1, moved), l0 or 1, so_far.bounds)
        nothing = _core.Labels.from_sequence([]), np.zeros(0, np.int64)
        labels, sums = read or (self._added(so_far, items, made) if items else nothing)
        noisy = sums + rng.sample(_core.Noise.discrete_gaussian(made.sigmas[0]), len(sums))
        is_bounded = l0 is not None and (self.items is None or moved < len(items))
        value = shortened(summed_column(so_far.table))
        release = noted(
            published(
                so_far.mechanism,
                labels,
                np.arange(len(sums)),
                rng,
                noisy=noisy,
                sigmas=made.sigma,
                clipped=True,
                l0=l0 if is_bounded else None,
                summed=Summed(made.low, made.high, self.resolution, value),
            )
        )
        release = in_own_unit(release, made.shift)
        notes = release.notes
        if l0 is not None and moved < len(items):
            notes += (f"each user contributes to at most {counted(moved, 'sum')}; sigma does not include this",)
        if not items:
            least = counted(so_far.selected.above or 0, "user")
            notes += (f"no item was selected: the selection needs a noisy count of more than {least}",)
        if self.items is None:
            release = changed(release, item_type=so_far.selected.item_type)
        so_far.release = changed(release, notes=notes)

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """A release has the noise of its bounds and of its number of sums."""
        low, high = self.bounds or (facts.sums or (-1, 1))[:2]
        at = self.l0 or l0 or 1

        def has_sigmas(rows: Fields, replaced: bool) -> bool:
            number = len(rows["items"]) if rows["part_of"] is None else rows["part_of"]
            moved = max(1, self.moved(number, at if self.items is None else self.l0))
            return all_close(rows["sigmas"], np.array([self.measured(moved, at, (low, high)).sigma]))

        own = replace(facts, has_sigmas=has_sigmas, law="gaussian", threshold=None, clips=True)
        own = as_sums(own, low, high, self.resolution, summed)
        if self.items is None:
            return own
        bound = self.l0 if self.moved(len(self.items), self.l0) < len(self.items) else None
        return replace(own, items=frozenset(self.items), l0=bound, rows=len(self.items))


def as_sums(own: Facts, low: int, high: int, resolution: float, summed: Summed | None) -> Facts:
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
