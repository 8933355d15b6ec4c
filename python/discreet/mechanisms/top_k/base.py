"""Base classes of top-k mechanisms, which read the k_bar largest counts and the (k_bar+1)-th one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

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
    """Return the k_bar largest counts and the next one, which is zero if there are no more.

    Raises SensitivityError if the histogram was cut before the (k_bar+1)-th count. Reading the missing count as zero
    would release items that delta does not cover.
    """
    if histogram._limit is not None and histogram._limit <= k_bar:
        raise SensitivityError(
            f"this histogram keeps too few counts: the mechanism needs k_bar + 1 = {k_bar + 1}; "
            "make the histogram with a larger k_bar, or the mechanism with a smaller one"
        )
    _, counts = histogram._in_order(k_bar + 1)
    return counts[:k_bar], int(counts[k_bar]) if len(counts) > k_bar else 0


class RankedMechanism(HistogramMechanism):
    """A mechanism that reads only the `k_bar` largest counts and the (k_bar+1)-th one."""

    __slots__ = ()

    takes_least = True
    doubled: ClassVar[tuple[str, ...] | None] = ("l0", "linf")

    k_bar: int

    @property
    def rows_needed(self) -> int:
        """Return the most rows of a histogram that this can use: k_bar + 1."""
        return self.k_bar + 1

    def _require(self, histogram: Histogram) -> None:
        largest(histogram, self.k_bar)


class NoisyTopK(RankedMechanism, NoisyCounts):
    """A mechanism that releases items among the k_bar most common whose noisy counts are large enough.

    A noisy count must exceed the noisy (k_bar+1)-th count by more than a margin.

    Source:
        Rogers (2023), Algorithm 2 and Theorem 8, after Durfee and Rogers (2019), Algorithm 1.
    """

    __slots__ = ()

    delta: float

    @property
    def differing(self) -> int:
        """Return min(l0, k_bar): the most top-k_bar items of one dataset that its neighbour lacks (Theorem 8)."""
        return rogers2023.differing_items(self.l0, self.k_bar)

    @cached_property
    @abstractmethod
    def difference_tail(self) -> Callable[[int], float]:
        """Return a function of m >= 1 that bounds the probability that two noises differ by at least m."""

    @cached_property
    def margin(self) -> int:
        """Return linf - 1 + m, for the least m with a tail probability of at most delta/min(l0, k_bar)."""
        return self.linf - 1 + least(lambda m: self.difference_tail(m) <= self.delta / self.differing)

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released, rounded up."""
        m = self.margin - users + 1
        return self.difference_tail(m) if m > 0 else 1 - self.difference_tail(1 - m) * (1 - 1e-9)

    def _check(self, scale: str) -> None:
        """Validate and normalise all parameters, or raise ParameterError."""
        check_threshold_parameters(self, scale)
        self._set(k_bar=require_whole("k_bar", self.k_bar, 1, K_BAR_LIMIT))
        if self.delta / self.differing <= 1e-290:
            raise ParameterError(
                "delta is too small for the noise: delta/min(l0, k_bar) must be above 1e-290; raise delta"
            )

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        counts, bottom = largest(histogram, self.k_bar)
        noise = rng.sample(self.noise, len(counts) + 1)
        noisy = counts + noise[1:]
        rows = np.flatnonzero((counts > 0) & (noisy > bottom + int(noise[0]) + self.margin))
        return self._published(histogram, rows, rng, noisy=noisy[rows], sigmas=self.deviation)
