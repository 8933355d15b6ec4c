"""Sums of clipped values for given items, of users who contribute to a bounded number of items."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

__all__ = ["clipped_sums"]


def clipped_sums(
    rows: Iterable[tuple[Hashable, Hashable, float]],
    items: Sequence[Hashable],
    bounds: tuple[int, int],
    l0: int,
    key: str,
) -> list[int]:
    """Return for each item the sum over users of their clipped sums.

    Each user contributes to the l0 items with the least SHA-256 of the key, the place of the item and the user. A row
    whose value is not finite is dropped. Values are rounded to whole numbers.
    """
    places = {item: place for place, item in enumerate(items)}
    own: dict[Hashable, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for user, item, value in rows:
        if item in places and math.isfinite(value):
            own[user][places[item]] += round(value)
    sums = [0] * len(items)
    for user, found in own.items():
        order = sorted(found, key=lambda place: hashlib.sha256(f"{key}{place}:{user}".encode()).hexdigest())
        for place in order[:l0]:
            sums[place] += max(bounds[0], min(bounds[1], found[place]))
    return sums
