"""`GivenCounts`: the base class of mechanisms that release noisy counts of all given items, without a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet import _core
from discreet.mechanisms.from_histogram import require_complete
from discreet.mechanisms.noises import NoisyCounts
from discreet.mechanisms.parameters import LINF_LIMIT, require_items
from discreet.mechanisms.published import published
from discreet.privacy.guarantee import Sensitivity
from discreet.privacy.validation import require_number, require_whole

if TYPE_CHECKING:
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["GivenCounts"]


class GivenCounts(NoisyCounts):
    """A mechanism that releases noisy counts of all given `items`, also of items without users.

    No item reveals a user, so there is no threshold and no delta.
    """

    __slots__ = ()

    lists_items = "all"

    items: tuple[str | int | bytes, ...]
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
        """Return one: all items are released.

        Args:
            users: The number of users of the item.

        Returns:
            1.0
        """
        return 1.0

    def _check(self, scale: str) -> None:
        """Validate and normalise all parameters, or raise ParameterError."""
        self._set(
            **{scale: require_number(scale, getattr(self, scale), 1e-3, 1e9)},
            items=require_items(self.items),
            l0=None if self.l0 is None else require_whole("l0", self.l0, 1, 2**30),
            linf=require_whole("linf", self.linf, 1, LINF_LIMIT),
        )

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        noisy = histogram._counts_of(self.items) + rng.sample(self.noise, len(self.items))
        labels = _core.Labels.from_sequence(list(self.items))
        return published(self, labels, np.arange(len(noisy)), rng, noisy=noisy, sigmas=self.deviation)
