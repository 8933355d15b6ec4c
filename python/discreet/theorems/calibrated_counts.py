"""The price list and the threshold of `CalibratedCounts` (theorem and proof: docs/calibrated-counts.md).

The mechanism confirms common items as `ConfirmedCounts` does, and removes them from the rows. A user with d further
items gives each of m = min(d, K) of them the weight w(m) = floor(2^bits min(1, sqrt(l/m))). The squared norm of one
user's weights is at most 2^(2 bits) l, however many items they have. Discrete Gaussian noise on all sums of weights
costs l/(2 sigma^2), for a sigma in users. A threshold hides the items of a single user except with probability delta.

One user moves the k-th smallest of any counts by at most one, also if the user has all of the items. Twice the k-th
smallest count less the number of users N then moves by exactly one, and costs 1/(2 sigma^2).

Each price is a whole number of units of 2^-64 of rho, rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet import _core
from discreet.privacy.conversion import round_down, round_up
from discreet.theorems.confirmed_counts import variance_price
from discreet.theorems.rogers2024 import UNIT, budget_units
from discreet.theorems.union_noise import bits_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BOUND_SHARE",
    "CALIBRATION_SHARE",
    "FIRST_SHARE",
    "HEAVY_SHARE",
    "LOOK_SHARE",
    "MOST_BANDS",
    "PERCENTILE",
    "RANK",
    "SINGLE_SHARE",
    "TIMES",
    "USERS_SHARE",
    "band_sigma",
    "deviation",
    "least_single",
    "least_users",
    "least_weight",
    "nearly_none",
    "ordered_price",
    "ordered_sigma",
    "places",
    "places_of",
    "reach",
    "selection_price",
    "share_of",
    "threshold",
    "threshold_of",
    "unspent_delta",
    "weight",
    "weights_price",
    "weights_sigma",
]

FIRST_SHARE = 0.15
"""The share of rho after which the first step, which confirms common items, pauses."""
BOUND_SHARE = 0.01
"""The share of rho that chooses l, the items of a user that weigh fully."""
HEAVY_SHARE = 0.005
"""The share of rho that measures the number of users with more than l items."""
USERS_SHARE = 0.03
"""The share of rho that measures the number of users: a third before the first step, the rest after it."""
CALIBRATION_SHARE = 0.06
"""The share of rho that measures order statistics of true counts less estimates."""
LOOK_SHARE = 0.02
"""The share of rho that measures one weight, to decide whether weights go on."""
SINGLE_SHARE = 0.008
"""The share of rho that measures the number of users with more than one item."""
PERCENTILE = 60
"""The percentage of users who have at most l further items."""
TIMES = 16
"""A user gives weight to at most this many times l items."""
RANK = 20
"""The rank of the measured weight among the items that are not confirmed, from 1."""

MOST_BANDS = 64
"""More bands than a release has: each has a ratio of 1.6, and counts are below 2^35."""

_MOST_CLIPPED = 0.004
_DEVIATIONS = 3
_USERS, _WEIGHT = 7, 0.52
_LARGEST_SIGMA = 1e9
_MOST_BITS = 26


def share_of(rho: float, share: float) -> int:
    """Return this share of rho in units, rounded down."""
    return math.floor(Fraction(share) * budget_units(rho))


def weight(number: int, full: int, bits: int) -> int:
    """Return floor(2^bits min(1, sqrt(l/m))): the weight of each of a user's m items (theorem, weights).

    m times its square is at most 2^(2 bits) l. The floor of a square root of a quotient is the square root of the
    floor, so whole numbers give it exactly.

    Args:
        number: m, the number of items that weigh.
        full: l, the most items that weigh fully.
        bits: The binary places of weights.
    """
    return min(1 << bits, math.isqrt((full << (2 * bits)) // number))


def threshold(noise: _core.Noise, full: int, most: int, bits: int, delta: float) -> _core.Threshold:
    """Return the least threshold T with m P[w(m) + noise > T] <= delta for every m from 1 to `most` (theorem, weights).

    A user may have from 1 to K items that no other user has. `Threshold.chance` is the tail that this uses, and
    `Threshold.release` applies the same rule to noisy weights.

    A range of numbers is skipped if its largest weight, with the smallest probability, cannot raise the threshold.

    Args:
        noise: The noise of the weights, on their lattice.
        full: l, the most items that weigh fully.
        most: K, the most items that weigh.
        bits: The binary places of weights.
        delta: The probability that a user's own items are released.
    """

    def least(weighing: int, number: int) -> int:
        """Return the least threshold for `number` items of the weight that `weighing` items have."""
        chance = round_down(delta / number, 1)
        return _core.Threshold.for_chance(noise, weight(weighing, full, bits), chance).value

    found = least(most, most)
    ranges = [(1, most)]
    while ranges:
        low, high = ranges.pop()
        if least(low, high) <= found:
            continue
        if weight(low, full, bits) == weight(high, full, bits):
            found = max(found, least(high, high))
            continue
        middle = (low + high) // 2
        ranges += [(low, middle), (middle + 1, high)]
    return _core.Threshold(noise, found)


def threshold_of(sigma: float, full: int, most: int, bits: int, delta: float) -> int:
    """Return the value of `threshold` for noise of scale `sigma` in users."""
    return threshold(_core.Noise.discrete_gaussian(math.ldexp(sigma, bits)), full, most, bits, delta).value


def unspent_delta(delta: float, spent: float) -> float:
    """Return delta less the part that other steps have, rounded down."""
    return max(0.0, round_down(delta - spent, 1))


def weights_price(sigma: float, full: int) -> int:
    """Return l/(2 sigma^2) in units, rounded up: the rho of noise on the sums of weights (theorem, weights)."""
    p, q = float(sigma).as_integer_ratio()
    return -(-UNIT * full * q**2 // (2 * p**2))


def weights_sigma(price: int, full: int) -> float | None:
    """Return the scale of noise, in users, that costs at most `price` units, or None if it would exceed 1e9."""
    return _affordable(price, full, lambda sigma: weights_price(sigma, full))


def ordered_price(sigma: float) -> int:
    """Return the price in units of an order statistic with noise of scale `sigma` in users (theorem, order statistics).

    The measured value is twice the order statistic less N. It moves by exactly one, and its noise has the scale
    2 sigma: 1/(8 sigma^2). This holds for counts, and for weights in units of 2^-bits.
    """
    return variance_price(2 * sigma)


def ordered_sigma(price: int) -> float | None:
    """Return the scale in users at which `ordered_price` is at most `price` units, or None if it would exceed 1e9."""
    return _affordable(price, 1 / 4, ordered_price)


def _affordable(price: int, square: float, price_of: Callable[[float], int]) -> float | None:
    """Return about the least sigma with square/(2 sigma^2) at most `price` units, or None if it would exceed 1e9."""
    if price <= 0:
        return None
    sigma = round_up(math.sqrt(square * UNIT / (2 * price)), 16)
    return sigma if sigma <= _LARGEST_SIGMA / 4 and price_of(sigma) <= price else None


def selection_price(epsilon: float) -> int:
    """Return epsilon^2/8 in units, rounded up: a selection of bounded range epsilon (Rogers 2023, Theorem 5)."""
    return math.ceil(Fraction(epsilon) ** 2 * UNIT / 8)


def band_sigma(price: int, number: int) -> float | None:
    """Return the scale, in users, of the median of each of `number` bands that cost at most `price` units together.

    Each band has a median of this scale, and two ends of twice this scale. An end costs a quarter of the median, up to
    rounding, so a band costs 1.5 times its median. Return None if the scale would exceed 1e9.
    """
    return ordered_sigma(2 * (price // number) // 3 - 2)


def places(sigma: float) -> int:
    """Return the binary places of numbers with noise of scale `sigma` in users.

    They are as many as the sampler's range allows, and at most 26, for sums over 2^35 users.
    """
    return min(_MOST_BITS, bits_of(sigma))


def places_of(sigma: float, most: int) -> int:
    """Return the binary places of weights, if a user weighs at most `most` items.

    There are none if all weights are one and sigma is below one: whole noise is then zero more often.
    """
    return 0 if most == 1 and sigma < 1 else places(sigma)


def nearly_none(heavy: float, deviation: float, users: float) -> bool:
    """Return whether nearly no user has more than l items, by the upper end of a measured number of users.

    Args:
        heavy: The measured number of users with more than l items.
        deviation: Its standard deviation.
        users: The measured number of all users.
    """
    return heavy + _DEVIATIONS * deviation < _MOST_CLIPPED * users


def least_single(deviation: float) -> float:
    """Return the least number of users with which it is measured how many of them have more than one item.

    Users of one item each then pass `nearly_none` except with a chance of 0.0013: the limit is three standard
    deviations above their true number.
    """
    return 2 * _DEVIATIONS * deviation / _MOST_CLIPPED


def deviation(sigma: float, precision: float) -> float:
    """Return the standard deviation of a number of users that is measured as twice the number less N.

    Args:
        sigma: The scale of its own noise, in users.
        precision: 1/sigma^2 of the published N.
    """
    return math.sqrt(sigma**2 + 1 / (4 * precision))


def reach(heads: int, threshold: float) -> float:
    """Return a number of users that both ways to go on are compared with: (A + 6)^.3 T.

    Confirming costs more for each further item, so the more items are confirmed, the more users an item of about the
    same size must have.

    Args:
        heads: A, the number of confirmed items.
        threshold: T, the threshold of the weights, in users.
    """
    return math.pow(heads + 6, 0.3) * threshold


def least_users(reached: float) -> float:
    """Return the least number of users with which weights go on, 7 (A + 6)^.3 T: a multiple fitted on public tables."""
    return _USERS * reached


def least_weight(reached: float, sigma: float) -> float:
    """Return the least measured weight of rank 20 with which weights go on, for noise of scale `sigma`.

    Weights always go on if the limit is below six standard deviations: noise would decide there, even for a weight of
    0.
    """
    limit = _WEIGHT * reached
    return limit - _DEVIATIONS * sigma if limit >= 2 * _DEVIATIONS * sigma else -math.inf
