"""The private sums of `CalibratedAggregates`, user by user, in whole numbers of Python.

docs/calibrated-aggregates.md describes the mechanism. Items are numbers from 0. A user has for each of some items a
whole number in each column; the first column is one for every item that the user has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["histogram", "layers", "norm_bin", "shortened", "weighed_sums"]

User = Mapping[int, Sequence[int]]
"""The numbers of a user by item, one for each column."""


def norm_bin(numbers: Iterable[int]) -> int | None:
    """Return the binary exponent of the norm of whole numbers, rounded, or None if all are zero.

    Numbers of more than 48 bits are shifted so that the largest has 48, so that squares have 96 bits.
    """
    sizes = [abs(number) for number in numbers]
    shift = max(0, max((size.bit_length() for size in sizes), default=0) - 48)
    square = sum((size >> shift) ** 2 for size in sizes)
    return None if square == 0 else (square.bit_length() + 2 * shift) // 2


def histogram(users: Iterable[User], weights: Sequence[int], column: int, bins: int) -> NDArray[np.int64]:
    """Return the number of users by the binary exponent of the norm of their weighted numbers in a column."""
    found = np.zeros(bins, np.int64)
    for user in users:
        place = norm_bin(weights[item] * numbers[column] for item, numbers in user.items())
        if place is not None:
            found[min(place, bins - 1)] += 1
    return found


def shortened(vector: Sequence[int], bits: int) -> list[int]:
    """Return a vector of norm at most 2^bits with about the same direction: each part is rounded toward zero."""
    square, limit = sum(part * part for part in vector), 1 << (2 * bits)
    if square <= limit:
        return [*vector]
    return [isqrt(part * part * limit // square) * (1 if part > 0 else -1) for part in vector]


def weighed_sums(
    users: Iterable[User], multipliers: Sequence[tuple[Sequence[int], int]], bits: int, cut: int, size: int
) -> NDArray[np.int64]:
    """Return for each of `size` items the sums of the shortened numbers of all users, one for each column."""
    found = np.zeros((size, len(multipliers)), np.int64)
    for user in users:
        places = [(item, column) for item in user for column in range(len(multipliers))]
        vector = []
        for item, column in places:
            factors, shift = multipliers[column]
            number = user[item][column]
            part = min((abs(number) * int(factors[item])) >> shift, 1 << cut)
            vector.append(part if number >= 0 else -part)
        for place, part in zip(places, shortened(vector, bits), strict=True):
            found[place] += part
    return found


def layers(users: Iterable[User], column: int, factors: Sequence[int], shift: int, cap: int) -> list[int]:
    """Return the three sums over users of the parts of their weighted total: to cap/4, to cap/2, and to cap."""
    found = [0, 0, 0]
    ends = [0, cap // 4, cap // 2, cap]
    for user in users:
        total = sum(int(factors[item]) * numbers[column] for item, numbers in user.items())
        size, sign = abs(total) >> shift, 1 if total > 0 else -1
        for place in range(3):
            found[place] += sign * (min(size, ends[place + 1]) - min(size, ends[place]))
    return found
