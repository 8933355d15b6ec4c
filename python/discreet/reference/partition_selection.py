"""Optimal partition selection: each partition is released with a probability from a table."""

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
        """Return another stream."""


def partition_selection(counts: NDArray[np.int64], chances: NDArray[np.uint64], rng: SplitBits) -> NDArray[np.int64]:
    """Return the released rows.

    A row of n users is released with probability chances[n] in units of 2^-64. Beyond the table it is always released.
    """
    rows: list[int] = []
    for start in range(0, len(counts), ROWS):
        part = counts[start : start + ROWS].tolist()
        stream = rng.split()
        more = stream.split()
        for row, count in enumerate(part):
            if row % 4 == 0:
                word = stream.bits32()
            byte, word = word % 256, word // 256
            chance = 0 if count <= 0 else 2**64 if count >= len(chances) else int(chances[count])
            # Draw more bits only if the first byte does not decide.
            below = more.bits64() >> 8 < chance % 2**56 if byte == chance >> 56 else byte < chance >> 56
            if below:
                rows.append(start + row)
    return np.array(rows, np.int64)
