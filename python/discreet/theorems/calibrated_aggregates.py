"""Prices, weights and estimates of `CalibratedAggregates` (theorem and proof: docs/calibrated-aggregates.md).

The items are named, and have published counts. A user has for each named item whole numbers: one for being there, one
for each column. Weights bring all columns to one scale. The vector of all weighted numbers of a user is shortened to a
norm of at most 2^bits. The sums of these vectors over users, with discrete Gaussian noise, cost 2^(2 bits)/(2 sigma^2)
for any number of items and columns, of any sign, and have no delta: every named item is measured, also one without
rows.

The scale of a column is the 85th percentile of the users' norms in it, from a noisy histogram of their binary
exponents. What shortening takes from the sums is estimated twice: by the published counts of the items, which the
shortened counts of users miss by the same rule, and by a total of each column that is measured once.

All functions take published values, so they cost no budget. Each price is a whole number of units of 2^-64 of rho,
rounded up. The estimates may be changed without a change of the guarantee.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.theorems.confirmed_counts import affordable_sigma, variance_price
from discreet.theorems.rogers2024 import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "BINS",
    "CUT",
    "Adjustment",
    "Multipliers",
    "Shares",
    "Total",
    "adjustment",
    "estimates",
    "exponents",
    "multipliers",
    "norm_bits",
    "norm_price",
    "norm_sigma",
    "put_back",
    "shares",
    "total",
    "totals_price",
    "weights",
]

BINS = 192
"""The binary exponents of the norm of a user: sums are below 2^127 steps, weights at most 2^20, items below 2^40."""
CUT = 28
"""A weighted number is cut at 2^28 before the norm is computed."""

_SCALE_SHARE, _TOTAL_SHARE = 0.01, 0.05
_PERCENTILE = 0.85
_KEPT = 5
"""A bin of a histogram of norms counts from this many standard deviations of its noise.

Noise alone makes one of 800 bins count in one of four thousand releases.
"""
_OWN = 0.5
"""The scale of the numbers of users in the norm, relative to that of the other columns."""
_PLACES = 28
"""The fewest binary places of a multiplier."""
_MOST_BITS, _LARGEST_SIGMA = 24, 2.0**29
_FLOOR, _SPREAD, _WIDTH = 0.1, 0.05, 0.3
_LEAST_WELL, _TOTAL_ERRORS = 0.02, 5
_CAP, _FEW = 0.03, 8
_LAYERS = Fraction(3, 8)
"""The squared norm of a user's three layers of a total, in squares of the cap: 1/16 + 1/16 + 1/4."""
_MOST_UP = 20.0


class Shares(NamedTuple):
    """The public prices of the steps, in units."""

    scale_sigma: float
    """The scale of the noise of the histograms of norms, in users."""
    scale_price: int
    """The price of one histogram."""
    total_price: int
    """The most that the total of one column costs."""
    budget: int

    def rest(self, columns: int, live: int) -> int:
        """Return what is left for all weighted sums, if `live` of the columns are measured."""
        return self.budget - (columns + 1) * self.scale_price - live * self.total_price


class Multipliers(NamedTuple):
    """The whole numbers that weigh one column: a number q of item x becomes floor(|q| factors[x] / 2^shift)."""

    factors: NDArray[np.int64]
    shift: int

    @property
    def floats(self) -> Floats:
        """The weights as floats."""
        found: Floats = np.ldexp(self.factors.astype(float), -self.shift)
        return found


class Adjustment(NamedTuple):
    """By how much shortened sums are too small, as the published counts of the items show it."""

    ratios: Floats
    """The true over the shortened number, for each item."""
    variance: float
    """The squared relative error of these ratios."""
    precision: Floats
    """The precision of the relative error of each item's shortened number of users and count."""
    informative: NDArray[np.bool_]
    """The items whose count is at least three of its sigmas."""


class Total(NamedTuple):
    """How the total of a column is measured."""

    factors: NDArray[np.int64]
    """The whole number that weighs the column's value for each item."""
    shift: int
    """A user's total is divided by 2^shift, rounded toward zero."""
    cap: int
    """A user's total is cut at this number, a multiple of 4, in three layers: to a quarter, a half and the whole."""
    sigma: float
    """The scale of the noise of each layer."""
    expected: float
    """The total of the sums that are published without it."""
    error: float
    """The standard deviation of `expected`."""


def shares(budget: int, columns: int) -> Shares | None:
    """Return the prices of the steps for a budget in units, or None if it is too small for noise."""
    price = math.floor(Fraction(_SCALE_SHARE) * budget)
    sigma = affordable_sigma(price)
    share = _TOTAL_SHARE if columns <= 2 else _TOTAL_SHARE / 2
    if sigma is None:
        return None
    found = Shares(sigma, variance_price(sigma), math.floor(Fraction(share) * budget), budget)
    return found if found.rest(columns, columns) > 0 and norm_bits(found.rest(columns, columns)) else None


def weights(counts: Floats, sigmas: Floats) -> NDArray[np.int64]:
    """Return floor(2^20 / m^(1/4)) for each item, of its count, but at least three sigmas and one, as m.

    Rare items weigh more, so that their sums have about the relative error of common ones.
    """
    most = np.ceil(np.maximum(np.maximum(counts, 3 * sigmas), 1))
    return np.array([math.isqrt(math.isqrt((1 << 80) // int(count))) for count in most], np.int64)


def exponents(noisy: NDArray[np.int64], sigma: float, users: float, *, first: bool) -> float | None:
    """Return the binary logarithm of the 85th percentile of norms, from a noisy histogram of `BINS` exponents.

    Bins below five standard deviations of their noise count nothing. Return None if the others have less than half of
    all users, in the first histogram, or a tenth, in the others: sums would be noise.

    Args:
        noisy: The noisy numbers of users by exponent.
        sigma: The scale of the noise.
        users: The published number of users; 0 if there is none.
        first: Whether this is the histogram of users alone.
    """
    kept = np.where(noisy >= _KEPT * sigma, noisy, 0)
    whole = int(kept.sum())
    if not whole or whole < (0.5 if first else 0.1) * users:
        return None
    sums = np.cumsum(kept)
    place = int(np.searchsorted(sums, _PERCENTILE * whole))
    return float(place - 0.5 + (_PERCENTILE * whole - (sums[place] - kept[place])) / kept[place])


def multipliers(weighed: NDArray[np.int64], logs: Sequence[float], bits: int) -> list[Multipliers]:
    """Return the multipliers of the users and of each column, so that a norm of 2^bits is that of a common user.

    Args:
        weighed: The weights of the items.
        logs: The binary logarithms of the scales of the users and of the columns.
        bits: The binary exponent of the limit of norms.
    """
    found = []
    spread = 0.5 * math.log2(_OWN**2 + len(logs) - 1)
    for place, log in enumerate(logs):
        power = bits - log - spread - (0 if place else -math.log2(_OWN))
        least = power + math.log2(int(weighed.min()))
        shift = max(0, math.ceil(_PLACES - least))
        # Public floats: any rounding of them is a choice of weights.
        scaled = np.floor(np.exp2(power + shift) * weighed.astype(float))
        found.append(Multipliers(np.maximum(scaled, 1).astype(np.int64), shift))
    return found


def norm_bits(price: int) -> int:
    """Return the binary exponent of the limit of norms for weighted sums that cost at most `price` units, or 0.

    It is at most 24, so that sums over 2^35 users have 64 bits, and so small that the sampler takes the scale of noise.
    """
    if price <= 0:
        return 0
    return max(0, min(_MOST_BITS, math.floor(math.log2(_LARGEST_SIGMA * math.sqrt(2 * price / UNIT)))))


def norm_price(sigma: float, bits: int) -> int:
    """Return 2^(2 bits)/(2 sigma^2) in units, rounded up: the rho of noise on sums of vectors of norm 2^bits."""
    p, q = float(sigma).as_integer_ratio()
    return -(-(UNIT * q**2 << (2 * bits)) // (2 * p**2))


def norm_sigma(price: int, bits: int) -> float:
    """Return about the least scale of noise at which weighted sums cost at most `price` units."""
    sigma = math.ldexp(math.sqrt(UNIT / (2 * price)), bits)
    while norm_price(sigma, bits) > price:
        sigma = math.nextafter(sigma * (1 + 2**-50), math.inf)
    return sigma


def adjustment(counts: Floats, sigmas: Floats, users: Floats, noise: Floats) -> Adjustment:
    """Return by how much the shortened numbers of users miss the published counts, as a smooth function of the count.

    Args:
        counts: The published counts.
        sigmas: Their sigmas.
        users: The shortened numbers of users.
        noise: The standard deviations of their noise.
    """
    positive = np.maximum(counts, 1e-9)
    precision = 1 / ((noise / positive) ** 2 + (sigmas / positive) ** 2 + _FLOOR**2)
    informative = counts >= 3 * sigmas
    if not informative.any():
        return Adjustment(np.ones(len(counts)), 0.0, precision, informative)
    logs = np.log(np.maximum(counts, 1))
    own, given = logs[informative], precision[informative]
    relative = users[informative] / counts[informative]
    ratios = np.ones(len(counts))
    for place, log in enumerate(np.clip(logs, own.min(), own.max())):
        near = np.exp(-0.5 * ((log - own) / _WIDTH) ** 2) * given
        below = float((near * relative).sum())
        if below > 0:
            ratios[place] = float(near.sum()) / below
    scaled = ratios[informative]
    missed = (scaled * relative - 1) ** 2
    expected = (scaled * noise[informative] / counts[informative]) ** 2
    expected += (sigmas[informative] / counts[informative]) ** 2
    trust = (expected + 0.01) ** -2.0
    mean = float((trust * (missed - expected)).sum() / trust.sum())
    error = math.sqrt(float((trust**2 * (missed - expected - mean) ** 2).sum())) / float(trust.sum())
    return Adjustment(ratios, max(0.0, mean) + error, precision, informative)


def total(price: int, counts: Floats, sums: Floats, noise: Floats, adjusted: Adjustment, users: float) -> Total | None:
    """Return how to measure the total of a column, or None if too few sums are well measured.

    Args:
        price: The price in units.
        counts: The published counts of the items.
        sums: The adjusted sums of the column, in steps.
        noise: The standard deviations of their noise.
        adjusted: The adjustment.
        users: The published number of users; 0 if there is none. The cap is at least eight times their mean total: if
            all users were beyond it, their layers would look like a tail.
    """
    well = adjusted.informative & (np.abs(sums) > 3 * noise)
    if np.count_nonzero(well) < max(1, _LEAST_WELL * len(sums)):
        return None
    trust = np.where(well, np.sign(sums) * adjusted.precision / np.maximum(counts, 1e-9), 0.0)
    factors = np.rint(np.ldexp(trust / np.abs(trust).max(), 20)).astype(np.int64)
    expected, error = float((factors * sums).sum()), math.sqrt(float(((factors * noise) ** 2).sum()))
    if expected <= _TOTAL_ERRORS * error:
        return None
    rho = price / UNIT
    cap = max(_CAP * math.sqrt(2 * rho), _FEW / users if users > 0 else 0.0) * expected
    relative = math.sqrt(_LAYERS / (2 * rho))
    shift = max(0, math.ceil(math.log2(cap * relative / _LARGEST_SIGMA))) if cap >= 4 else 0
    limit = math.floor(math.ldexp(cap, -shift)) // 4 * 4
    if not limit:
        return None
    sigma = limit * relative
    while totals_price(limit, sigma) > price:
        sigma = math.nextafter(sigma * (1 + 2**-50), math.inf)
    return Total(factors, shift, limit, sigma, expected, error)


def totals_price(cap: int, sigma: float) -> int:
    """Return (3/8) cap^2/(2 sigma^2) in units, rounded up: the rho of noise on the three layers of a total."""
    return math.ceil(_LAYERS * cap**2 * UNIT / (2 * Fraction(sigma) ** 2))


def put_back(given: Total, layers: Sequence[float]) -> tuple[float, float]:
    """Return the total of a column over the one expected, from its noisy layers, and its relative error.

    The layers of users' totals fall beyond the cap about as they fall below it, so the last two show what is cut off.
    """
    first, second, third = layers
    sigma = given.sigma
    fall = min(max(third / second if second > 0 else 0.0, 0.0), 0.75)
    if second < 2 * sigma and third >= 2 * sigma:
        fall = 0.5
    if third < sigma:
        fall = 0.0
    beyond = max(0.0, third) * min(2.0, fall / (1 - fall))
    expected = math.ldexp(given.expected, -given.shift)
    up = (first + second + third + beyond) / expected
    error = (
        math.sqrt(3 * sigma**2 + (beyond / 2 + third / 4) ** 2 + math.ldexp(given.error, -given.shift) ** 2) / expected
    )
    if up < 1:
        up, error = 1.0, math.hypot(error, 1 - up)
    up = min(up, _MOST_UP)
    return up, error / up


def estimates(sums: Floats, noise: Floats, adjusted: Adjustment, up: float, error: float) -> tuple[Floats, Floats]:
    """Return the published sums of a column and their sigmas, in steps.

    Args:
        sums: The adjusted sums.
        noise: The standard deviations of their noise.
        adjusted: The adjustment.
        up: The factor of `put_back`.
        error: Its relative error.
    """
    spread = adjusted.variance + 0.16 * math.log(up) + _SPREAD**2 + error**2
    spread = max(spread, 1.0) if up > 3 else spread
    values = up * sums
    return values, np.sqrt((up * noise) ** 2 + spread * values**2)
