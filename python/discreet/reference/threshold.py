"""The threshold release: noise on each count, and the rows whose noisy counts exceed a threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Streams", "threshold_release"]

CHUNK = 1 << 16


class Streams(Protocol):
    """A stream of random bits that splits, as `_core.Rng` does."""

    def split(self) -> Self:
        """Return another stream."""


_Stream = TypeVar("_Stream", bound=Streams)


def threshold_release(
    counts: NDArray[np.int64],
    value: int,
    noise: Callable[[_Stream, int], NDArray[np.int64]],
    rng: _Stream,
    *,
    least: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of positive count whose noisy counts exceed `value`, and these noisy counts.

    Each 2^16 rows have a stream of their own. If only counts of at least `least` are known, the threshold is higher by
    least - 1 (Rogers 2023, Section 4.1).
    """
    noisy = counts.copy()
    for start in range(0, len(counts), CHUNK):
        part = noisy[start : start + CHUNK]
        part += noise(rng.split(), len(part))
    rows = np.flatnonzero((counts >= least) & (noisy > value + least - 1))
    return rows, noisy[rows]
