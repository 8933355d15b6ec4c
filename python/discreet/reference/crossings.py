"""The values that reach a sequence of thresholds."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["crossings"]


def crossings(values: Sequence[int], bars: Sequence[int]) -> list[int]:
    """Return the indices of values that reach a sequence of thresholds.

    The first index is of the first value that reaches the first threshold. The next is of the first later value that
    reaches the second threshold, and so on until values or thresholds run out.
    """
    places: list[int] = []
    for place, value in enumerate(values):
        if len(places) < len(bars) and value >= bars[len(places)]:
            places.append(place)
    return places
