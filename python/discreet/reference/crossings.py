"""Which values reach bars that are put up one after the other."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["crossings"]


def crossings(values: Sequence[int], bars: Sequence[int]) -> list[int]:
    """The place of the first value that reaches the first bar, of the next one behind it that reaches the second, and
    so on while there are any."""
    places: list[int] = []
    for place, value in enumerate(values):
        if len(places) < len(bars) and value >= bars[len(places)]:
            places.append(place)
    return places
