"""Mechanisms that take counts of users by item: `HistogramMechanism`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from discreet import _core
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms.base import Mechanism, Opening, opened
from discreet.mechanisms.published import clipped, published
from discreet.privacy.guarantee import Sensitivity
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["HistogramMechanism", "require_complete"]


class HistogramMechanism(Mechanism[Histogram, Release]):
    """A mechanism that takes a `Histogram`, and refuses one that it does not protect."""

    __slots__ = ()

    reads = Histogram

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

    def release(self, data: Histogram, *, rng: _core.Rng | Opening | None = None) -> Release:
        """Publish what the mechanism finds in a histogram.

        Args:
            data: A Histogram whose sensitivity is at most `protects`.
            rng: For tests (`discreet.testing.seeded_rng`). Without it every release draws from a fresh stream with a
                key from the operating system.

        Returns:
            A Release.

        Raises:
            SensitivityError: One user can change more in the histogram than the mechanism protects, or the histogram
                lacks counts that the mechanism must see.
            ParameterError: The data is not a Histogram.
            EntropyError: The operating system gives no randomness.

        Example:
            >>> import discreet as dp
            >>> table = dp.Histogram.from_counts(["a", "b"], [9000, 8000], l0=2, linf=1, complete=True)
            >>> sorted(dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2).release(table).items)
            ['a', 'b']
        """
        if not isinstance(data, Histogram):
            raise ParameterError(
                "release takes a Histogram: make one by Histogram.from_table, from_pairs or from_counts"
            )
        if not data.sensitivity.within(self.protects):
            raise SensitivityError(_remedy(data.sensitivity, self.protects))
        if data._cap is not None and (self.cap is None or self.cap > data._cap):
            raise SensitivityError(
                f"the counts of this histogram stop at {data._cap}, and this mechanism must see larger ones: "
                "make it without cap, or with the mechanism's own"
            )
        self._require(data)
        return clipped(self._run(data, opened(rng)), data._clipped_to)


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
