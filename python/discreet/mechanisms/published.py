"""Functions that build a `Release` from selected rows, in an order that reveals nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from discreet import _core
from discreet.privacy.guarantee import Guarantee, Promising
from discreet.release.release import ItemType, Release, changed, later
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["More", "Shown", "clipped", "published", "uncounted"]


class More(TypedDict, total=False):
    """Further fields of a release."""

    spent: Guarantee
    calls: int
    stopped_early: bool
    notes: tuple[str, ...]
    users: tuple[int, float] | None
    item_type: ItemType


class Shown(More, total=False):
    """The counts of a release, their noise, and further fields."""

    noisy: NDArray[np.int64] | None
    sigmas: NDArray[np.float64] | float | None
    ranked: bool


_CLIPPED = "these counts are lower than the true numbers of users"
"""The beginning of the note that `clipped` adds."""


def published(
    mechanism: Promising,
    labels: _core.Labels,
    rows: NDArray[np.int64],
    rng: _core.Rng,
    *,
    noisy: NDArray[np.int64] | None = None,
    sigmas: NDArray[np.float64] | float | None = None,
    ranked: bool = False,
    **more: Unpack[More],
) -> Release:
    """Return the release of these rows of `labels`, in an order that depends on published values alone.

    The order is by noisy count, by rank (the order of `rows`) or by item. `noisy` has one count per row. `sigmas` is
    one number per row, or one for all rows.
    """
    if ranked:
        named, order = labels.select(rows), np.arange(len(rows))
    else:
        named, order = labels.ordered(rows, np.zeros(len(rows), np.int64) if noisy is None else noisy)
    more = {"spent": mechanism.guarantee, "item_type": named.type_name, **more}
    return Release(
        items=later(named),
        counts=None if noisy is None else noisy[order],
        sigmas=None if sigmas is None else _ordered(sigmas, order),
        ranked=ranked,
        guarantee=mechanism.guarantee,
        made_by=repr(mechanism),
        seeded=rng.is_seeded,
        **more,
    )


def _ordered(sigmas: NDArray[np.float64] | float, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return one sigma per row. One number needs no order, which saves a read of each row."""
    return sigmas[order] if isinstance(sigmas, np.ndarray) else np.full(len(order), sigmas)


def clipped(release: Release, l0: int | None) -> Release:
    """Return a release with a note that counts were clipped to `l0` items of each user.

    Clipping makes a count at most the number of the item's users. Sigma does not include the difference.
    """
    if l0 is None or release.counts is None:
        return release
    most = counted(l0, "item")
    note = f"{_CLIPPED} if users have more than {most}: only {most} of each user count; sigma does not include this"
    return changed(release, clipped=True, notes=(*release.notes, note))


def uncounted(release: Release) -> Release:
    """Return a release without its counts and without the note of `clipped`, which describes them."""
    notes = tuple(note for note in release.notes if not note.startswith(_CLIPPED))
    return changed(release, counts=None, sigmas=None, clipped=False, notes=notes)
