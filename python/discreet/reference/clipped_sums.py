"""Sums of clipped values for given items, of users who contribute to a bounded number of items."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

__all__ = ["clipped_sums", "rounded", "steps"]


def clipped_sums(
    rows: Iterable[tuple[Hashable, Hashable, float | Decimal]],
    items: Sequence[Hashable],
    bounds: tuple[int, int],
    resolution: Fraction,
    l0: int,
    place: Callable[[Hashable, Hashable], float],
    shift: int = 0,
) -> list[int]:
    """Return for each item the sum over users of their clipped sums, in parts of 2^shift steps of the resolution.

    Each user contributes to the l0 items in `items` for which `place(user, item)` is least. A row whose value is not
    finite is dropped. A clipped sum is rounded toward zero to whole parts.
    """
    sums = dict.fromkeys(items, 0)
    own: dict[Hashable, dict[Hashable, int]] = defaultdict(lambda: defaultdict(int))
    for user, item, value in rows:
        if item in sums and math.isfinite(value):
            own[user][item] += steps(value, resolution)
    for user, found in own.items():
        for item in sorted(found, key=lambda item: place(user, item))[:l0]:
            sums[item] += rounded(max(bounds[0], min(bounds[1], found[item])), shift)
    return [*sums.values()]


def steps(value: float | Decimal, resolution: Fraction) -> int:
    """Return a value in whole steps, halves to even, cut at 2^95 steps on both sides."""
    return max(-(2**95), min(2**95, round(Fraction(value) / resolution)))


def rounded(number: int, shift: int) -> int:
    """Return a number in whole parts of 2^shift, rounded toward zero."""
    return abs(number) >> shift if number >= 0 else -(abs(number) >> shift)
