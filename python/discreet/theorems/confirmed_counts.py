"""The price list of `ConfirmedCounts` (theorem and proof: docs/confirmed-counts.md).

The mechanism draws one of k_bar slots by the exponential mechanism. It measures the query of the item in that slot
with Gaussian noise. It names the item if the noisy value exceeds a bound on the query of any item outside the slots.
A step is delta-approximately rho-zCDP: the draw costs epsilon^2/8, the noise 1/(2 sigma^2). delta is the probability
that an item is confirmed that is in the slots of only one of two neighbours.

The scales of a step depend only on its level. Level i looks for items of about 2^(i/16) users. So each price is
known before the data: a whole number of units of 2^-64 of rho, rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from discreet import _core
from discreet.privacy.conversion import round_down, round_up
from discreet.theorems.rogers2024 import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CHOICES",
    "FINE",
    "FIRST_FALL",
    "FIRST_SHARE",
    "HIGHEST",
    "LEVELS_TOP",
    "LOWEST",
    "MOST",
    "Level",
    "Measurement",
    "affordable_sigma",
    "deltas",
    "final_price",
    "first_sigma",
    "forecast",
    "forecast_on",
    "level",
    "levels",
    "margin",
    "octaves",
    "priced_levels",
    "reach",
    "scale",
    "spent_delta",
    "variance_price",
]

_Numbers = TypeVar("_Numbers", float, "NDArray[np.float64]")

MOST = 2**16
"""The most items in one release. The number is public, so a histogram may be truncated after enough rows."""
LOWEST, HIGHEST = 16, 496
"""The first and the last level: for items of 2 users, and of 2^31."""
FINE = 256
"""The position between levels is kept in this many parts of an octave."""
LEVELS_TOP = 31 * FINE
"""The position of the last level."""
FIRST_FALL = 7
"""Before the first item is named, a step without a name lowers the position by this many levels."""
FIRST_SHARE = 0.01
"""The share of rho spent on the first measurement of the number of users."""

_STEEPNESS = 11
_LARGEST_SCALE = 0.08
_BOUND_SCALE = 0.03
_HEADROOM = 0.78
CHOICES = 4


class Measurement(NamedTuple):
    """The scale of Gaussian noise, and the price of the noise and of the draw before it, if any."""

    sigma: float
    price: int


class Level(NamedTuple):
    """The scales and prices of the steps that look for items of one size."""

    gamma: float
    """epsilon: a slot is drawn with probability proportional to exp(epsilon times its count)."""
    ceiling: int
    """The most that the bound plus its margin plus 2 may be, in the query's units, for a step at this level."""
    steps: tuple[Measurement, ...]
    """Four choices of the noise of a count, each with half the variance of the previous one."""
    outside: Measurement
    """The noise of the largest count outside the slots."""
    variance: float
    """The variance of the first choice, in users. It determines the reserve for the last measurement of users."""


def level_users(number: int) -> float:
    """Return 2^(number/16): about how many users the items of a level have."""
    return math.ldexp(2.0 ** (number % 16 / 16), number // 16)


def scale(relative_error: float) -> float:
    """Return the standard deviation of a count's noise, as a share of the count that a level looks for."""
    return min(0.475 * relative_error, _LARGEST_SCALE)


def forecast(rho: float, relative_error: float, largest: int, exponent: float, *, choice: int = 0) -> tuple[int, int]:
    """Return about how many items are released, and the smallest of their counts, if counts follow Zipf's law.

    The i-th count is largest/i^exponent, and the number of all users is known. The result is a forecast, not a bound.
    It pays for a draw and a count for each item, and for the last measurement of the number of users. It adds about 2.5
    draws that release nothing and about 1.5 measurements of the bound. It supposes that the (k_bar+1)-th count is far
    smaller. `choice` is the choice of noise on each count, 0 for the widest.
    """
    share = scale(relative_error) / math.sqrt(2**choice)
    inverse, items = 0.0, 0
    while items < MOST:
        count = largest / (items + 1) ** exponent
        inverse += 1 / count**2
        if _cost(share, inverse, count) > (1 - FIRST_SHARE) * rho:
            break
        items += 1
    return items, math.floor(largest / max(items, 1) ** exponent)


def forecast_on(
    rho: float,
    relative_error: float,
    counts: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    choice: int = 0,
) -> tuple[float, float]:
    """Return about how many items are released, and the smallest of their counts, as `forecast` does, for any counts.

    The counts are in descending order. Each stands for a group of items, whose number is in `sizes`.
    """
    share = scale(relative_error) / math.sqrt(2**choice)
    paid = int(np.count_nonzero(_cost(share, np.cumsum(sizes / counts**2), counts) <= (1 - FIRST_SHARE) * rho))
    if not paid:
        return 0.0, float(counts[0])
    return min(float(sizes[:paid].sum()), float(MOST)), float(counts[paid - 1])


def _cost(share: float, inverse: _Numbers, count: _Numbers) -> _Numbers:
    """Return the forecast of the rho of a release down to a count, as `forecast` describes it.

    `share` is the noise as a share of the count, and `inverse` the sum of 1/count^2 of all released items.
    """
    step = _STEEPNESS**2 / 8 + 1 / (8 * share**2)
    last: _Numbers = (2 + (inverse * count**2 + 1) ** 0.5) / (8 * share**2)
    rest = last + 1.5 / (8 * _BOUND_SCALE**2) + 2.5 * step
    return step * inverse + rest / count**2


@lru_cache(maxsize=16)
def levels(relative_error: float, *, factor: int, replaced: bool) -> tuple[Level, ...]:
    """Return all levels from `LOWEST` to `HIGHEST`."""
    return tuple(
        level(relative_error, number, factor=factor, replaced=replaced) for number in range(LOWEST, HIGHEST + 1)
    )


@lru_cache(maxsize=8)
def priced_levels(relative_error: float, factor: int, replaced: bool, rho: float, delta: float) -> _core.Levels:
    """Return all levels, with the shares of delta of their noise and of their bounds; see `deltas`."""
    found = levels(relative_error, factor=factor, replaced=replaced)
    noise = [step.price for level in found for step in level.steps]
    return _core.Levels(found, deltas(noise, rho, delta), deltas([level.outside.price for level in found], rho, delta))


def level(relative_error: float, number: int, *, factor: int, replaced: bool) -> Level:
    """Return a level.

    `factor` is 2 if the query is 2 c - N, 1 if it is c. `replaced`: neighbours exchange one user for another, so a
    count can move up or down. The draw then has twice the range and costs four times as much.
    """
    share, users = scale(relative_error), level_users(number)
    gamma = _STEEPNESS / users
    sigmas = [factor * share * users / math.sqrt(2**v) for v in range(CHOICES)]
    outside = factor * _BOUND_SCALE * users
    return Level(
        gamma=gamma,
        ceiling=math.floor(factor * _HEADROOM * users),
        steps=tuple(Measurement(sigma, _step_price(4 if replaced else 1, gamma, sigma)) for sigma in sigmas),
        outside=Measurement(outside, variance_price(outside)),
        variance=(share * users) ** 2,
    )


def _step_price(ranges: int, gamma: float, sigma: float) -> int:
    """Return ranges gamma^2/8 + 1/(2 sigma^2) in units, rounded up: the rho of a draw and of a noisy count.

    Whole numbers give the same price as `Fraction`, which took 25 ms for all levels instead of 3 ms.
    """
    (a, b), (p, q) = gamma.as_integer_ratio(), sigma.as_integer_ratio()
    return -(-UNIT * (ranges * (a * p) ** 2 + (2 * b * q) ** 2) // (8 * (b * p) ** 2))


def first_sigma(rho: float) -> float:
    """Return the scale of the first measurement of the number of users, for `FIRST_SHARE` of rho."""
    return round_up(1 / math.sqrt(2 * FIRST_SHARE * rho), 8)


def variance_price(sigma: float) -> int:
    """Return 1/(2 sigma^2) in units, rounded up: the rho of noise on a query that one user changes by at most one."""
    p, q = float(sigma).as_integer_ratio()
    return -(-UNIT * q**2 // (2 * p**2))


def deltas(prices: list[int], rho: float, delta: float) -> list[float]:
    """Return delta price/rho for each price, rounded down: the share of delta that belongs to it."""
    share = Fraction(delta) / (Fraction(rho) * UNIT)
    # The quotient of two whole numbers is rounded once, like a Fraction, and takes a tenth of the time.
    return [round_down(price * share.numerator / share.denominator, 1) for price in prices]


def spent_delta(spent: int, rho: float, delta: float) -> float:
    """Return the share of delta that belongs to `spent` units, rounded up, at most delta."""
    return min(delta, round_up(float(Fraction(delta) * spent / (Fraction(rho) * UNIT)), 1))


def final_price(left: int, accuracy: float, variance: float) -> int:
    """Return the price in units of the last measurement of the number of users, at most `left`.

    `accuracy` is the sum of 1/variance over the published counts, `variance` the least of their variances. The
    measurement is not made more accurate than the error of the counts requires.
    """
    wanted = 2 * (1 + math.sqrt(accuracy * variance)) / variance
    return min(left, math.floor(Fraction(wanted) * UNIT))


def affordable_sigma(price: int) -> float | None:
    """Return the scale of noise that costs at most `price` units, or None if it would exceed 1e9."""
    if price < UNIT // 10**18 + 1:
        return None
    sigma = round_up(math.sqrt(UNIT / (2 * price)), 8)
    return sigma if variance_price(sigma) <= price else None


def margin(sigma: float, delta: float) -> int:
    """Return the least m >= 0 with P[noise >= m + 1] <= delta, for discrete Gaussian noise."""
    return _core.Noise.discrete_gaussian(sigma).quantile(delta) - 1


def reach(sigma: float, delta: float) -> int:
    """Return the least B >= sigma + 1 with P[noise >= B] + P[noise >= B + 1] <= delta."""
    noise = _core.Noise.discrete_gaussian(sigma)
    least = math.ceil(math.nextafter(sigma + 1, math.inf))
    # Both tails are at most half of delta here, and not a few values below.
    found = max(noise.quantile(delta / 2), least)
    while found > least and noise.two_tails_are_at_most(found - 1, delta):
        found -= 1
    return found


def octaves(number: int) -> int:
    """Return log2 of a whole number of at least one, in parts of 1/256, rounded to the nearest."""
    mantissa = number << (64 - number.bit_length())
    result = number.bit_length() - 1
    for _ in range(9):
        mantissa = mantissa * mantissa >> 63
        bit = mantissa >> 64
        mantissa >>= bit
        result = 2 * result + bit
    return (result + 1) // 2
