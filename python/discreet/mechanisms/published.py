"""How rows become a release, in an order that tells nothing more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet import _core
from discreet.privacy.guarantee import Guarantee
from discreet.release.release import Release
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["clipped", "published", "uncounted"]

_CLIPPED = "counts of users clipped to"
"""How the note of `clipped` begins."""


class Promising(Protocol):
    """A value with a guarantee."""

    @property
    def guarantee(self) -> Guarantee:
        """What every release of it promises."""


def published(
    mechanism: Promising,
    labels: _core.Labels,
    rows: NDArray[np.int64],
    rng: _core.Rng,
    *,
    noisy: NDArray[np.int64] | None = None,
    sigmas: NDArray[np.float64] | float | None = None,
    ranked: bool = False,
    **more: Any,
) -> Release:
    """The release of these rows of `labels`, in an order that depends on nothing but what is published.

    That is the order of the noisy counts, of the ranks that `rows` come in, or of the items. `noisy`: a count for each
    row. `sigmas`: of each of them, or one for all.
    """
    named = labels.select(rows)
    keys = np.zeros(len(rows), np.int64) if noisy is None else noisy
    order = np.arange(len(rows)) if ranked else _core.top(named, keys, len(rows))
    fields = {"spent": mechanism.guarantee, "item_type": named.type_name, **more}
    return Release(
        items=named.take(order),
        counts=None if noisy is None else noisy[order],
        sigmas=None if sigmas is None else np.broadcast_to(sigmas, len(rows))[order],
        ranked=ranked,
        guarantee=mechanism.guarantee,
        made_by=repr(mechanism),
        seeded=rng.is_seeded,
        **fields,
    )


def clipped(release: Release, l0: int | None) -> Release:
    """Return a release of counts of which at most `l0` of a user counted, with a note that says so.

    Such a count is below the number of users by what was left out, which no sigma tells.
    """
    if l0 is None or release.counts is None:
        return release
    note = f"{_CLIPPED} {counted(l0, 'item')} each; sigma is the noise alone"
    return replace(release, clipped=True, notes=(*release.notes, note))


def uncounted(release: Release) -> Release:
    """Return a release without its counts, and without the note of `clipped`, which speaks of them."""
    notes = tuple(note for note in release.notes if not note.startswith(_CLIPPED))
    return replace(release, counts=None, sigmas=None, clipped=False, notes=notes)
