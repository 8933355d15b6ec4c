"""Private Count Release, with one selection among all candidates per call (Rogers 2024, Algorithm 2).

The candidates are the k_bar most common items that were not released yet. A call selects one candidate, or "stop". A
level has the parameters of calls: (gamma, offset, sigma, price of a call, price of a count). "Stop" ends a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draws", "private_count_release"]

Level = tuple[float, float, float, int, int]


class Draws(Protocol):
    """The randomness of a release, such as `_core.Rng`."""

    def select(self, counts: NDArray[np.int64], reference: int, gamma: float, bottom: int, offset: float) -> int:
        """Return the index of the candidate that the exponential mechanism selects, or len(counts) for "stop".

        The score of a candidate is gamma (count - reference). The score of "stop" is gamma (bottom - reference) plus
        offset. The reference does not change the distribution. A candidate with a count of zero is never selected.
        """

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Return `size` whole numbers of noise with scale sigma."""


def private_count_release(
    counts: NDArray[np.int64],
    limit: int | None,
    levels: Sequence[Level],
    budget: int,
    calls: int,
    k_bar: int,
    rng: Draws,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int, bool]:
    """Return row numbers, noisy counts, levels, calls made, price paid, and whether the limit ended the release.

    `limit` is the number of rows to which the histogram was truncated, or None for all rows.
    """
    slots = np.arange(min(len(counts), k_bar))
    shown = counts[slots].copy()
    following, made, spent, level, stopped = k_bar, 0, 0, 0, False
    rows, noisy, at = [], [], []

    def count_of(row: int) -> int:
        return int(counts[row]) if row < len(counts) else 0

    reference = int(shown.max(initial=0))
    while level < len(levels):
        gamma, offset, sigma, call_price, count_price = levels[level]
        if made == calls or spent + call_price + max(call_price, count_price) > budget:
            break
        if limit is not None and following >= limit:
            stopped = True
            break
        made += 1
        spent += call_price
        slot = rng.select(shown, reference, gamma, count_of(following), offset)
        if slot == len(shown):
            level += 1
            reference = int(shown.max(initial=0))
            continue
        rows.append(int(slots[slot]))
        noisy.append(int(shown[slot]) + int(rng.discrete_gaussian(sigma, 1)[0]))
        at.append(level)
        spent += count_price
        slots[slot], shown[slot] = following, count_of(following)
        following += 1
    as_array = [np.array(column, dtype=np.int64) for column in (rows, noisy, at)]
    return as_array[0], as_array[1], as_array[2], made, spent, stopped
