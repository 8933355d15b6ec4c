"""Optimal partition selection: each partition is released with the chance of a table."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.reference.noise import Bits

__all__ = ["SplitBits", "partition_selection"]

ROWS = 1 << 16


class SplitBits(Bits, Protocol):
    """A stream of random words that splits, as `_core.Rng` does."""

    def split(self) -> SplitBits:
        """Another stream."""


def partition_selection(counts: NDArray[np.int64], chances: NDArray[np.uint64], rng: SplitBits) -> NDArray[np.int64]:
    """The rows that are released: with chances[n] in units of 2^-64, beyond the table with certainty."""
    rows = []
    streams = [rng.split() for _ in range(0, len(counts), ROWS)]
    for row, count in enumerate(counts.tolist()):
        stream = streams[row // ROWS]
        word = stream.bits32()
        chance = 0 if count <= 0 else 2**64 if count >= len(chances) else int(chances[count])
        # A second word is drawn where the first leaves it open.
        below = stream.bits32() < chance % 2**32 if word == chance >> 32 else word < chance >> 32
        if below:
            rows.append(row)
    return np.array(rows, np.int64)
