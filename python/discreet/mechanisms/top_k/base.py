"""Top-k mechanisms: the k_bar largest counts, and the one after them to measure by."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet.cached import cached_property
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.noises import NoisyCounts
from discreet.mechanisms.parameters import check_threshold_parameters
from discreet.privacy.validation import require_whole
from discreet.theorems import rogers2023
from discreet.theorems.tails import least

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet import _core
    from discreet.release.release import Release
    from discreet.tables.histogram import Histogram

__all__ = ["K_BAR_LIMIT", "NoisyTopK", "RankedMechanism", "largest"]

K_BAR_LIMIT = 2**30
"""The largest k_bar."""


def largest(histogram: Histogram, k_bar: int) -> tuple[NDArray[np.int64], int]:
    """The k_bar largest counts and the next one, zero where there is none.

    Raises SensitivityError where the histogram was cut before it: reading a count that was cut as zero
    would let items pass that delta does not cover.
    """
    if histogram._limit is not None and histogram._limit <= k_bar:
        raise SensitivityError(
            f"this histogram keeps too few counts: this mechanism must see k_bar + 1 = {k_bar + 1}; "
            "make it with a larger k_bar, or give the mechanism a smaller one"
        )
    counts = histogram._counts()
    return counts[:k_bar], int(counts[k_bar]) if len(counts) > k_bar else 0


class RankedMechanism(HistogramMechanism):
    """What mechanisms that see the `k_bar` largest counts and the next one share."""

    __slots__ = ()

    k_bar: int

    def _require(self, histogram: Histogram) -> None:
        largest(histogram, self.k_bar)


class NoisyTopK(RankedMechanism, NoisyCounts):
    """Items of the k_bar largest whose noisy counts exceed the noisy (k_bar+1)-th one by a margin.

    Rogers (2023), Algorithm 2 and Theorem 8, after Durfee and Rogers (2019), Algorithm 1.
    """

    __slots__ = ()

    delta: float

    @property
    def differing(self) -> int:
        """min(l0, k_bar): the most items that a neighbour's top list has and this one's has not (Theorem 8)."""
        return rogers2023.differing_items(self.l0, self.k_bar)

    @cached_property
    @abstractmethod
    def difference_tail(self) -> Callable[[int], float]:
        """An upper bound of the chance that two noises differ by at least m >= 1."""

    @cached_property
    def margin(self) -> int:
        """linf - 1 + m, m the least that two noises differ by with a chance of at most delta/min(l0, k_bar)."""
        return self.linf - 1 + least(lambda m: self.difference_tail(m) <= self.delta / self.differing)

    def release_chance(self, users: int) -> float:
        """The chance that an item of so many users more than the (k_bar+1)-th one is released, rounded up."""
        m = self.margin - users + 1
        return self.difference_tail(m) if m > 0 else 1 - self.difference_tail(1 - m) * (1 - 1e-9)

    def _check(self, scale: str) -> None:
        check_threshold_parameters(self, scale)
        object.__setattr__(self, "k_bar", require_whole("k_bar", self.k_bar, 1, K_BAR_LIMIT))
        if self.delta / self.differing <= 1e-290:
            raise ParameterError("delta is too small for tails of noise to reach; give a larger one")

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        counts, bottom = largest(histogram, self.k_bar)
        noise = rng.sample(self.noise, len(counts) + 1)
        noisy = counts + noise[1:]
        rows = np.flatnonzero((counts > 0) & (noisy > bottom + int(noise[0]) + self.margin))
        return self._published(histogram, rows, rng, noisy=noisy[rows], sigmas=self.deviation)
