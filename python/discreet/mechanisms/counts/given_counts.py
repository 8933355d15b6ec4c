"""`GivenCounts`: the base class of mechanisms that release noisy counts of all given items, without a threshold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.from_histogram import HistogramMechanism, require_complete
from discreet.mechanisms.noises import NoisyCounts
from discreet.mechanisms.parameters import LINF_LIMIT, require_items
from discreet.mechanisms.published import published
from discreet.privacy.guarantee import Sensitivity
from discreet.privacy.validation import require_number, require_whole
from discreet.release.facts import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.mechanisms.published import ReleaseFields
    from discreet.release.facts import Summed
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["GivenCounts", "GivenItems"]


class GivenItems(HistogramMechanism):
    """A mechanism for given `items`. They are public and reveal no user, so there is no threshold and no delta."""

    __slots__ = ()

    lists_items = "all"

    items: tuple[str | int | bytes, ...]

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), rows=min(len(self.items), getattr(self, "k", len(self.items))))

    @cached_property
    def _known(self) -> _core.KnownLabels:
        """The items with a hash table."""
        return _core.KnownLabels.from_sequence(self.items)

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)
        # Before the charge: an item may not fit the type of the column, and a table of items may not fit into memory.
        self._known.require_like(histogram._in_any_order()[0])

    def _counted(self, histogram: Histogram) -> tuple[_core.Labels, NDArray[np.int64]]:
        """Return the items, spelled as in the histogram, and their exact counts, zero for an item without users."""
        every, exact = histogram._in_any_order()
        _, counts, places = self._known.split(every, exact)
        none, numbers = np.zeros(0, np.int64), np.arange(len(counts))
        labels, found = self._known.join((numbers, numbers, places), every, (none, none))
        return labels.select(np.argsort(found)), counts


class GivenCounts(GivenItems, NoisyCounts):
    """A mechanism that releases noisy counts of all given `items`, also of items without users."""

    __slots__ = ()

    l0: int | None  # type: ignore[assignment]

    @property
    def moved(self) -> int:
        """Return the most counts that one user changes: the smaller of l0 and the number of items."""
        return len(self.items) if self.l0 is None else min(self.l0, len(self.items))

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: at most l0 items per user, each count changed by at most linf."""
        return Sensitivity(l0=self.l0 if self.moved < len(self.items) else None, linf=self.linf)

    def release_chance(self, users: int) -> float:
        """Return one: all items are released."""
        return 1.0

    def _check(self, scale: str) -> None:
        """Validate and normalise all parameters, or raise ParameterError."""
        self._set(
            **{scale: require_number(scale, getattr(self, scale), 1e-3, 1e9)},
            items=require_items(self.items),
            l0=None if self.l0 is None else require_whole("l0", self.l0, 1, 2**30),
            linf=require_whole("linf", self.linf, 1, LINF_LIMIT),
        )

    def _noisy(
        self, counts: NDArray[np.int64], histogram: Histogram, rng: _core.Rng
    ) -> tuple[NDArray[np.int64], ReleaseFields]:
        """Return noisy counts, and further fields of the release."""
        return counts + rng.sample(self.noise, len(counts)), {}

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        labels, counts = self._counted(histogram)
        noisy, more = self._noisy(counts, histogram, rng)
        return published(self, labels, np.arange(len(noisy)), rng, noisy=noisy, sigmas=self.deviation, **more)
