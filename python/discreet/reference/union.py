"""Item weights in unbounded integers, user by user, as in `rust/union/mod.rs`."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

__all__ = ["weights"]

FINE = 50


def weights(
    lists: Sequence[Sequence[int]], size: int, weighting: str, bits: int, *, target: int = 1, few: int = 1
) -> list[int]:
    """Return the weights of `size` items, in units of 2^-bits, from users with these items."""
    fine = FINE if weighting == "step" else bits
    unit, target, result = 1 << fine, target << (fine - bits), [0] * size
    for items in lists:
        gaps = [max(0, target - result[item]) for item in items]
        if weighting == "even":
            added = [unit // len(items)] * len(items)
        elif weighting == "even_squares":
            added = [isqrt(unit**2 // len(items)) for _ in items]
        elif weighting == "capped_squares":
            added = [min(unit, isqrt(few * unit**2 // len(items))) for _ in items]
        elif weighting == "step":
            square = sum(gap**2 for gap in gaps)
            norm = isqrt(square) + (isqrt(square) ** 2 < square)
            added = [gap if norm <= unit else unit * gap // norm for gap in gaps]
        else:
            added = _water(gaps, unit)
        for item, more in zip(items, added, strict=True):
            result[item] += more
    return [weight >> (fine - bits) for weight in result]


def _water(gaps: list[int], unit: int) -> list[int]:
    """Return the highest uniform level that the budget allows, plus one unit for the first items above it."""
    low, high = 0, max(gaps, default=0)
    while low < high:
        level = (low + high + 1) // 2
        low, high = (level, high) if sum(min(gap, level) for gap in gaps) <= unit else (low, level - 1)
    rest, added = unit - sum(min(gap, low) for gap in gaps), []
    for gap in gaps:
        one = gap > low and rest > 0
        rest -= one
        added.append(min(gap, low) + one)
    return added
