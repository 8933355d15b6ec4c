"""Functions that build a `Release` from selected rows, in an order that reveals nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from discreet import _core
from discreet.privacy.guarantee import Guarantee, Promising, Unit, per_unit
from discreet.release.facts import Kind, Listed, Summed
from discreet.release.release import ItemType, Release, changed, later

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CountFields",
    "ReleaseFields",
    "marked_clipped",
    "noted",
    "of_rows",
    "published",
    "raised",
    "retold",
    "uncounted",
]


class ReleaseFields(TypedDict, total=False):
    """Further fields of a release."""

    spent: Guarantee
    calls: int
    stopped_early: bool
    notes: tuple[str, ...]
    users: tuple[int, float] | None
    item_type: ItemType
    clipped: bool
    l0: int | None
    above: int | None
    kind: Kind
    listed: Listed
    most: int | None
    summed: Summed | None


class CountFields(ReleaseFields, total=False):
    """The counts of a release, their noise, and further fields."""

    noisy: NDArray[np.int64] | None
    sigmas: NDArray[np.float64] | float | None
    ranked: bool


def published(
    mechanism: Promising,
    labels: _core.Labels,
    rows: NDArray[np.int64],
    rng: _core.Rng,
    *,
    noisy: NDArray[np.int64] | None = None,
    sigmas: NDArray[np.float64] | float | None = None,
    confirmed: NDArray[np.bool_] | None = None,
    ranked: bool = False,
    **more: Unpack[ReleaseFields],
) -> Release:
    """Return the release of these rows of `labels`, in an order that depends on published values alone.

    The order is by noisy count, by rank (the order of `rows`) or by item. `noisy` has one count per row. `sigmas` is
    one number per row, or one for all rows. `confirmed` has one value per row of a release with estimates.
    """
    if ranked:
        named, order = labels.select(rows), np.arange(len(rows))
    else:
        named, order = labels.ordered(rows, np.zeros(len(rows), np.int64) if noisy is None else noisy)
    guarantee = mechanism.guarantee
    more = {
        "spent": guarantee,
        "item_type": named.type_name,
        "kind": getattr(mechanism, "releases", "users"),
        "listed": getattr(mechanism, "lists_items", "none"),
        **more,
    }
    return Release(
        items=later(named),
        counts=None if noisy is None else noisy[order],
        sigmas=None if sigmas is None else _ordered(sigmas, order),
        confirmed=None if confirmed is None else confirmed[order],
        ranked=ranked,
        guarantee=guarantee,
        made_by=repr(mechanism),
        seeded=rng.is_seeded,
        noise=getattr(mechanism, "law", "gaussian"),
        **more,
    )


def _ordered(sigmas: NDArray[np.float64] | float, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return one sigma per row. One number needs no order, which saves a read of each row."""
    return sigmas[order] if isinstance(sigmas, np.ndarray) else np.full(len(order), sigmas)


def marked_clipped(release: Release, l0: int | None) -> Release:
    """Return a release with a note that counts were clipped to `l0` items of each user.

    Clipping makes a count at most the number of the item's users. Sigma does not include the difference.
    """
    if l0 is None or release.counts is None or release.clipped:  # a refinement has the bound of what it refines
        return release
    return noted(changed(release, clipped=True, l0=l0))


def retold(release: Release, mechanism: Promising, *notes: str, **changes: object) -> Release:
    """Return the release of a step of `mechanism` as its own, with its guarantee, further notes and other changes."""
    own = {"guarantee": mechanism.guarantee, "spent": mechanism.guarantee, "made_by": repr(mechanism)}
    return changed(release, **{**own, "notes": (*release.notes, *notes), **changes})


def noted(release: Release) -> Release:
    """Return a release with its measure as its last note."""
    return changed(release, notes=(*release.notes, release.measure))


def of_rows(release: Release, every: str | None, unit: Unit) -> Release:
    """Return the release of rows with periods in their items (`every`), and with such a unit as one user.

    Mechanisms know users only. So the first note says what a user is in their notes.
    """
    if every is None and unit == "user":
        return release
    guarantee, spent = per_unit(release.guarantee, unit), per_unit(release.spent, unit)
    made = changed(release, every=every, guarantee=guarantee, spent=spent)
    notes = [made.measure if note == release.measure else note for note in release.notes]
    if unit != "user":
        period = unit.removeprefix("user-")
        told = f"here a user is a user in one {period} in UTC: who has rows in several {period}s counts in each of them"
        notes = [told, *(note for note in notes if note != told)]
    return changed(made, notes=(*notes,))


def raised(release: Release, below: int) -> Release:
    """Return a release of counts that were lowered by `below`, with `below` added to each count.

    The threshold and the stop element of the mechanism are then higher by `below`, too (Rogers 2023, Section 4.1).
    """
    if not below:
        return release
    note = (
        f"the histogram holds only counts of at least {below + 1}, so thresholds are higher by {below} than the "
        "mechanism states"
    )
    counts = None if release.counts is None else release.counts + below
    above = None if release.above is None else release.above + below
    return changed(release, counts=counts, above=above, notes=(*release.notes, note))


def uncounted(release: Release) -> Release:
    """Return a release without its counts and without the note of `clipped`, which describes them."""
    notes = tuple(note for note in release.notes if note != release.measure)
    return changed(release, counts=None, sigmas=None, clipped=False, l0=None, notes=notes)
