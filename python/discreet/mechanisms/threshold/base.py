"""Threshold mechanisms: noise on every count, and the rows whose noisy counts are large enough."""

from __future__ import annotations

from abc import abstractmethod

from discreet import _core
from discreet.mechanisms.from_histogram import require_complete
from discreet.mechanisms.noises import NoisyCounts
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["ThresholdMechanism"]


class ThresholdMechanism(NoisyCounts):
    """What the histogram mechanisms share: a `threshold` that knows its own tail."""

    __slots__ = ()

    @property
    @abstractmethod
    def threshold(self) -> _core.Threshold:
        """A noisy count is released if it is larger than this."""

    def release_chance(self, count: int) -> float:
        """The chance that an item of this count is released, rounded up."""
        return self.threshold.chance(count)

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        rows, noisy = self.threshold.release(histogram._counts(), rng)
        return self._published(histogram, rows, rng, noisy=noisy, sigmas=self.deviation)
