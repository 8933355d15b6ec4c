"""The expected counts of a `Shape`: a law of popularity and a law of activity, computed on groups of ranks and users.

The popularity of the i-th of I items is proportional to i^-s exp(-b i/I): Zipf's law with an exponential cutoff b. A
cutoff of 0 is Zipf's law itself. A user has 1 + x items, and x follows a log-normal law: the standard deviation of
log x is the spread, 1 by default. The items of a user are drawn in proportion to popularity, without repetition.

With a spread of 1, clipping to 1 to 100 items kept as many pairs as in seven public logs of words, bigrams and
purchases, with errors of at most 0.09 of all pairs. A constant number of items per user makes clipping look harmless,
because the users with the most items lose the most pairs.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "TWENTIETH",
    "ShapeGroups",
    "Size",
    "activity_of",
    "expected_users",
    "fitted",
    "fitted_exponent",
    "fitted_spread",
    "group_sizes",
    "groups_of",
    "kept_share",
    "mean_and_spread",
    "named_by",
]

_FINE, _COARSE = (256, 1500), (48, 240)
"""Numbers of groups of users and of ranks: for forecasts, and for the search for an exponent."""
_INTENSITIES = 300
_EXPONENTS = tuple(step / 10 for step in range(31))
_CUTOFFS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0)
"""The exponents and cutoffs that a fit compares first. Then it compares finer steps around the best of them."""
_FINE_EXPONENTS, _FINE_CUTOFFS = (-0.08, -0.06, -0.04, -0.02, 0, 0.02, 0.04, 0.06, 0.08), (-0.5, 0, 0.5)
_MOST_SPREAD = 400
_MODEL_ERROR = 0.15
"""The standard deviation of the logarithm of a number of items that no sample makes smaller."""
TWENTIETH = 20
"""The rank of the item whose users tell the exponent."""
_LEAST_MEDIAN = 0.25
"""The items beyond the first of the median user if that user has one: a number below a half rounds to one item."""
_LEAST, _POINTS = 20, 40
"""A fit compares the number of items with at least t users, for 40 values of t from 20 users to the largest count."""


class Size(NamedTuple):
    """The numbers of a shape."""

    users: int
    items: int
    exponent: float
    items_per_user: float
    cutoff: float = 0.0
    spread: float = 1.0


class ShapeGroups(NamedTuple):
    """A shape as groups of ranks and groups of users, all groups of users of equal size."""

    ranks: NDArray[np.int64]
    """The rank that stands for each group of ranks, from 1."""
    popularity: NDArray[np.float64]
    """The probability that one draw gives an item of this rank."""
    activity: NDArray[np.float64]
    """The number of distinct items of a user of each group, in ascending order."""
    draws: NDArray[np.float64]
    """The expected number of draws that give the `activity` of a group of users."""
    having: NDArray[np.float64]
    """The probability that a user of a group has the item of a rank: ranks in rows, users in columns."""


@lru_cache(maxsize=8)
def groups_of(size: Size, *, coarse: bool = False) -> ShapeGroups:
    """Return the groups of ranks and users of a shape."""
    groups, points = _COARSE if coarse else _FINE
    ranks = _ranks(size.items, points)
    weights = group_sizes(ranks, size.items)
    popularity = np.exp(-size.exponent * np.log(ranks) - size.cutoff * ranks / size.items)
    popularity /= (popularity * weights).sum()
    activity = activity_of(size, groups)
    intensities = np.geomspace(0.1, 1e12, _INTENSITIES)
    distinct = np.array([-(weights * np.expm1(-intensity * popularity)).sum() for intensity in intensities])
    # No finite number of draws is certain to give every item.
    wanted = np.minimum(activity, size.items * (1 - 1e-4))
    draws = np.exp(np.interp(np.log(wanted), np.log(distinct), np.log(intensities)))
    return ShapeGroups(ranks, popularity, activity, draws, -np.expm1(-np.outer(popularity, draws)))


def expected_users(
    size: Size, l0: int | None, *, coarse: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return ranks and the expected number of users of their items, if at most `l0` items of each user are counted."""
    groups = groups_of(size, coarse=coarse)
    kept = np.ones_like(groups.activity) if l0 is None else np.minimum(1.0, l0 / groups.activity)
    # A product of BLAS took 20 times as long while other processes used the cores.
    return groups.ranks, np.einsum("ij,j->i", groups.having, kept) * (size.users / len(groups.activity))


def named_by(ranks: NDArray[np.int64], counts: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of items with at least t users, for each t in `least`."""
    return np.exp(np.interp(-np.log(least), -np.log(counts), np.log(ranks), left=-30.0))


def fitted(users: int, counts: NDArray[np.int64], items_per_user: float, spread: float) -> tuple[float, float]:
    """Return the exponent and the cutoff whose counts are closest to these descending counts.

    The distance compares the logarithms of the numbers of items with at least t users, for 40 values of t. A number of
    few items has a smaller weight, by its variance. Counts below 20 users are left out, because few releases name such
    items.
    """
    largest = float(counts[0])
    least = np.geomspace(min(_LEAST, max(1.0, largest / 4)), largest, _POINTS)
    numbers = np.searchsorted(-counts, -least, side="right")
    found, weights = np.log1p(numbers), 1 / (1 / (numbers + 1) + _MODEL_ERROR**2)

    def distance(pair: tuple[float, float]) -> float:
        size = Size(users, len(counts), pair[0], items_per_user, pair[1], spread)
        apart = np.log1p(named_by(*expected_users(size, None, coarse=True), least)) - found
        return float((weights * apart**2).sum())

    exponent, cutoff = min(product(_EXPONENTS, _CUTOFFS), key=distance)
    finer = product((exponent + more for more in _FINE_EXPONENTS), (cutoff + more for more in _FINE_CUTOFFS))
    return min(((round(s, 2), b) for s, b in finer if s >= 0 and b >= 0), key=distance)


def _ranks(items: int, points: int) -> NDArray[np.int64]:
    """Return ranks that stand for groups of ranks, the first third of them single."""
    head = np.arange(1, min(items, points // 3) + 1)
    return np.unique(np.concatenate([head, np.geomspace(head[-1], items, points).round().astype(np.int64)]))


def group_sizes(ranks: NDArray[np.int64], items: int) -> NDArray[np.float64]:
    """Return the number of items for which each of these ranks stands."""
    middles = (ranks[1:] + ranks[:-1]) / 2
    return np.diff(np.concatenate([[0.5], middles, [items + 0.5]]))


def activity_of(size: Size, groups: int = _FINE[0]) -> NDArray[np.float64]:
    """Return the items of a user at equally spaced quantiles of activity, at most all items."""
    shape = np.exp(size.spread * _normal_quantiles(groups))
    low, high = 1e-12, 1e12
    for _ in range(100):
        middle = math.sqrt(low * high)
        mean = np.minimum(1 + middle * shape, size.items).mean()
        low, high = (low, middle) if mean >= size.items_per_user else (middle, high)
    return np.minimum(1 + high * shape, size.items)


def kept_share(size: Size, l0: int) -> float:
    """Return the share of pairs that remain if at most l0 items of each user are counted."""
    activity = activity_of(size)
    return float(np.minimum(activity, l0).sum() / activity.sum())


def fitted_spread(size: Size, l0: int, kept: float) -> float:
    """Return the spread with which clipping to l0 items keeps this share of the pairs, from 0 to 4, to two decimals."""
    low, high = 0, _MOST_SPREAD
    while low < high:
        middle = (low + high) // 2
        less = kept_share(size._replace(spread=middle / 100), l0) <= kept
        low, high = (low, middle) if less else (middle + 1, high)
    return low / 100


def mean_and_spread(median: int, p95: int, items: int) -> tuple[float, float]:
    """Return the mean number of items of a user, and the spread, for a median and a 95th percentile."""
    middle = max(median - 1, _LEAST_MEDIAN)
    if p95 == 1:
        return 1.0, 0.0
    spread = round(min(4.0, max(0.0, math.log((p95 - 1) / middle) / NormalDist().inv_cdf(0.95))), 2)
    mean = np.minimum(1 + middle * np.exp(spread * _normal_quantiles(_FINE[0])), items).mean()
    return float(f"{mean:.3g}"), spread


def fitted_exponent(size: Size, users: int) -> float:
    """Return the exponent, from 0 to 2, with which the 20th most common item has about this many users."""

    def distance(exponent: float) -> float:
        return abs(float(expected_users(size._replace(exponent=exponent), None, coarse=True)[1][TWENTIETH - 1]) - users)

    return min((round(step / 50, 2) for step in range(101)), key=distance)


@lru_cache(maxsize=4)
def _normal_quantiles(groups: int) -> NDArray[np.float64]:
    inverse = NormalDist().inv_cdf
    places: Sequence[float] = [(group + 0.5) / groups for group in range(groups)]
    return np.array([inverse(place) for place in places])
