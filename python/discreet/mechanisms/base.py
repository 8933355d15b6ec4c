"""What every mechanism is: parameters, a guarantee known before any data, and a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet import _core
from discreet.errors import ParameterError, SensitivityError
from discreet.privacy.guarantee import Guarantee, Sensitivity
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Mechanism", "Opening", "Value", "clipped", "opened", "published", "require_complete", "uncounted"]

_CLIPPED = "counts of users clipped to"
"""How the note of `clipped` begins."""

Opening = Callable[[], _core.Rng]
"""Opens the stream of a release, and has it paid for."""


class Value:
    """A frozen dataclass of parameters: what is computed of them is neither copied nor pickled, but computed anew."""

    __slots__ = ()

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class Mechanism(Value, ABC):
    """A frozen value whose guarantee is a function of its parameters alone.

    A subclass says what it protects and promises and implements `_run`; this class refuses a histogram
    that it does not protect.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def protects(self) -> Sensitivity:
        """The largest sensitivity for which the guarantee holds."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What every release of this mechanism promises."""

    @abstractmethod
    def release_chance(self, users: int) -> float:
        """The chance that an item of so many users is released where no other stands in its way.

        Where ranks decide, so many users more than the (k_bar+1)-th item has.
        """

    @property
    def cap(self) -> int | None:
        """The count beyond which all counts are alike to this mechanism, None where there is none."""
        return None

    def _require(self, histogram: Histogram) -> None:
        """Refuses a histogram that was cut where this mechanism must see more; SensitivityError."""

    @abstractmethod
    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        """The release, from a histogram that has been checked."""

    def _published(self, histogram: Histogram, rows: NDArray[np.int64], rng: _core.Rng, **more: Any) -> Release:
        """The release of these rows; see `published`."""
        return published(self, histogram._labels, rows, rng, **more)

    def release(self, histogram: Histogram, *, rng: _core.Rng | Opening | None = None) -> Release:
        """Publishes what the mechanism finds in `histogram`.

        `rng` is for tests (`discreet.testing.seeded_rng`); without it every release draws from a fresh
        stream with a key from the operating system. Raises SensitivityError where the histogram lets one
        user change more than the mechanism protects, EntropyError where the system gives no randomness.
        """
        if not isinstance(histogram, Histogram):
            raise ParameterError(
                "release takes a Histogram: make one by Histogram.from_table, from_pairs or from_counts"
            )
        if not histogram.sensitivity.within(self.protects):
            raise SensitivityError(_remedy(histogram.sensitivity, self.protects))
        if histogram._cap is not None and (self.cap is None or self.cap > histogram._cap):
            raise SensitivityError(
                f"the counts of this histogram stop at {histogram._cap}, and this mechanism must see larger ones: "
                "make it without cap, or with the mechanism's own"
            )
        self._require(histogram)
        return clipped(self._run(histogram, opened(rng)), histogram._clipped_to)


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


def opened(rng: _core.Rng | Opening | None) -> _core.Rng:
    """The stream of one release, opened when nothing is left that could be refused; a fresh one where none is given."""
    if rng is None or isinstance(rng, _core.Rng):
        return rng or _core.Rng()
    if not callable(rng):
        raise ParameterError("rng must come from discreet.testing.seeded_rng, or be left out")
    return rng()


def require_complete(histogram: Histogram) -> None:
    """Refuses a histogram of which only the largest counts were kept: where it was cut would show."""
    if histogram._limit is not None:
        raise SensitivityError(
            "this histogram keeps only its largest counts, and this mechanism must see all: "
            "make it without k_bar (complete=True), or use a top-k mechanism"
        )


def _remedy(given: Sensitivity, protected: Sensitivity) -> str:
    if given.linf > protected.linf:
        return (
            f"one user can change a count by {given.linf}, and this mechanism protects {protected.linf}: "
            "count each user once per item, or scale the mechanism to a larger linf"
        )
    larger = "" if given.l0 is None else f", or give the mechanism l0={given.l0}"
    return (
        f"one user can change {given.l0 or 'any number of'} counts, and this mechanism protects {protected.l0}: "
        f"count at most so many items of each user, by Histogram.from_table(..., l0={protected.l0}){larger}"
    )
