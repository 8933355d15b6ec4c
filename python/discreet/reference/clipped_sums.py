"""Sums of clipped values for given items, of users who contribute to a bounded number of items."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

__all__ = ["clipped_sums"]


def clipped_sums(
    rows: Iterable[tuple[Hashable, Hashable, float]],
    items: Sequence[Hashable],
    bounds: tuple[int, int],
    resolution: float,
    l0: int,
    place: Callable[[Hashable, Hashable], float],
) -> list[int]:
    """Return for each item the sum over users of their clipped sums, in whole units of the resolution.

    Each user contributes to the l0 items in `items` for which `place(user, item)` is least. A row whose value is not
    finite is dropped. Each value is rounded to whole units, halves away from zero.
    """
    sums = dict.fromkeys(items, 0)
    own: dict[Hashable, dict[Hashable, int]] = defaultdict(lambda: defaultdict(int))
    for user, item, value in rows:
        if item in sums and math.isfinite(value):
            units = value / resolution
            own[user][item] += math.floor(abs(units) + 0.5) * (1 if units > 0 else -1)
    for user, found in own.items():
        for item in sorted(found, key=lambda item: place(user, item))[:l0]:
            sums[item] += max(bounds[0], min(bounds[1], found[item]))
    return [*sums.values()]
