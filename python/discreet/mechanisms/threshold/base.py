"""`ThresholdMechanism`: the base class of mechanisms that compare noisy counts with a threshold."""

from __future__ import annotations

from dataclasses import replace

from discreet import _core
from discreet.cached import cached_property
from discreet.mechanisms.from_histogram import require_complete
from discreet.mechanisms.noises import NoisyCounts
from discreet.mechanisms.published import published
from discreet.release.facts import Facts, Summed
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.theorems import rogers2023

__all__ = ["ThresholdMechanism"]


class ThresholdMechanism(NoisyCounts):
    """A mechanism that adds noise to every count and releases the items whose noisy counts exceed a threshold."""

    __slots__ = ()

    takes_least = True
    doubled = ("l0",)

    delta: float

    @cached_property
    def threshold(self) -> _core.Threshold:
        """Return the release rule: a noisy count is released if it exceeds `threshold.value`.

        The noisy count of a novel item of linf exceeds it with probability at most 1 - (1 - delta)^(1/l0).
        """
        return _core.Threshold.for_chance(self.noise, self.linf, rogers2023.novel_chance(self.delta, self.l0))

    def release_chance(self, count: int) -> float:
        """Return the probability that an item is released, rounded up.

        Args:
            count: The number of users of the item.

        Returns:
            A probability from 0 to 1.
        """
        return self.threshold.chance(count)

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), threshold=self.threshold.value)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        labels, counts = histogram._for_noise(rng)
        rows, noisy = self.threshold.release(counts, rng)
        return published(self, labels, rows, rng, noisy=noisy, sigmas=self.deviation, above=self.threshold.value)
