"""The largest release probabilities by number of users under approximate zCDP: partition selection for one item.

Let an item of n users be released with probability pi(n), and pi(0) = 0. The selection is delta-approximate rho-zCDP
for one item of a user if, for every n, a coin of chance pi(n) and one of chance pi(n+1) are so. By the definition of
approximate zCDP (Bun and Steinke 2016, Definition 8.1), there must be parts of both coins with probability at least
1 - delta whose Rényi divergence of every order a > 1 is at most a rho, in both directions. The part of a coin of chance
p may have any chance from (p - delta)/(1 - delta) to p/(1 - delta), within 0 and 1.

The largest pi(n+1) for a given pi(n) follows. The part of the first coin has the largest chance, x = pi(n)/(1 - delta),
or 1. The part of the second one has the largest chance y whose divergence from x holds, and pi(n+1) = (1 - delta) y +
delta. Both steps are the best ones, because y grows with x: for x < x' <= y, the coin x' lies between the coins x and
y, so its divergences from y are smaller. By induction no selection has a larger pi(n) for any n. From x = 1 on all
items are released. The first step is pi(1) = delta, since only a coin of chance 0 is near one of chance 0.

The problem is that of Desfontaines et al. (2020) with another definition of privacy; their Theorem 1 has (epsilon,
delta)-DP. Harrison and Manurangsi (2026) consider it for zCDP.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNITS", "largest_chances", "satisfy_zcdp"]

UNITS = 2**64
"""Probabilities are whole numbers of 2^-64."""
_ORDERS, _ROUNDS = 48, 4
"""The orders at which divergences are computed. Between two of them they are bounded, with more orders if in doubt."""
_ULP = 2.0**-52


def largest_chances(rho: float, delta: float) -> NDArray[np.uint64]:
    """Return the release probabilities by number of users in units of 2^-64, rounded down; it is one beyond them.

    Args:
        rho: The cost of one item in zCDP: above 0.
        delta: The delta of one item: at least 2^-60 and below 1.

    Returns:
        An array of whole numbers.
    """
    part = Fraction(delta)
    chances, step = [0], 1
    while Fraction(chances[-1], UNITS) < 1 - part:
        now = chances[-1]
        following = _largest(now, now + int(part * UNITS), max(1, step), rho, part)  # at least y = x is allowed
        step = following - now
        chances.append(following)
    return np.array(chances, np.uint64)


def _largest(now: int, least: int, step: int, rho: float, delta: Fraction) -> int:
    """Return nearly the largest next probability in units, from `least` on; the search begins at steps of `step`."""
    x = Fraction(now, UNITS) / (1 - delta)

    def is_allowed(units: int) -> bool:
        y = (Fraction(units, UNITS) - delta) / (1 - delta)
        return satisfy_zcdp((float(x), float(1 - x)), (float(y), float(1 - y)), rho)

    low, high = least, UNITS
    while low + step < UNITS and is_allowed(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step)
    # The remaining gap is below 2^-20 of the distance to the next end.
    while high - low > 1 + (min(low, UNITS - low) >> 30):
        middle = (low + high) // 2
        if is_allowed(middle):
            low = middle
        else:
            high = middle
    return low


def satisfy_zcdp(one: tuple[float, float], other: tuple[float, float], rho: float) -> bool:
    """Return whether two coins surely satisfy rho-zCDP; each is given by its chance and the chance of its complement.

    Let K(a) be the logarithm of the sum of p^a q^(1-a). The divergence of order a is K(a)/(a - 1), and must be at most
    a rho. K is convex, so between two orders it is below the chord, which is compared with rho a (a - 1). For orders
    from 1 + m/rho on, the divergence is at most m, the largest logarithm of a quotient, and so below a rho. The errors
    of floats are added to K.
    """
    for (p, p_not), (q, q_not) in ((one, other), (other, one)):
        if min(q, q_not) <= 0:
            if (p, p_not) != (q, q_not):
                return False
            continue
        if min(p, p_not) <= 0:  # the coin falls on one side: its divergence of every order is one logarithm
            if -math.log(q if p_not <= 0 else q_not) > rho:
                return False
            continue
        logs = np.log([p, p_not]), np.log([q, q_not])
        largest = float(np.max(logs[0] - logs[1])) + 16 * _ULP
        orders = 1 + np.concatenate([[0.0], np.geomspace(1e-4, max(1.0, largest / rho), _ORDERS)])
        for _ in range(_ROUNDS):
            start, end = _doubtful(orders, logs, rho)
            if not len(start) or np.any(np.isnan(start)):
                break
            orders = np.concatenate([np.linspace(*ends, 9) for ends in zip(start, end, strict=True)])
        if len(start):
            return False
    return True


def _doubtful(
    orders: NDArray[np.float64], logs: tuple[NDArray[np.float64], NDArray[np.float64]], rho: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals between orders in which the bound of K may exceed rho a (a - 1).

    They are one NaN if K itself does at an order.
    """
    terms = orders[:, None] * logs[0] + (1 - orders[:, None]) * logs[1]
    values = np.logaddexp(terms[:, 0], terms[:, 1])
    # A term has an error of a few ULPs of its parts and of its order, as chances are floats, and counts by its share.
    parts = orders[:, None] * (np.abs(logs[0]) + np.abs(logs[1]))
    errors = 8 * _ULP * (1 + orders + np.sum(parts * np.exp(terms - values[:, None]), axis=1))
    upper, allowed = values + errors, rho * orders * (orders - 1)
    upper[orders == 1] = 0.0
    if np.any(upper > allowed):
        return np.array([np.nan]), np.array([np.nan])
    start, end = orders[:-1], orders[1:]
    slope = np.diff(upper) / np.maximum(end - start, _ULP)
    worst = np.clip((slope / rho + 1) / 2, start, end)
    # Between two lists of finer orders lies what was allowed before. It is looked at again.
    bad = (upper[:-1] + slope * (worst - start) > rho * worst * (worst - 1)) & (end > start)
    return start[bad], end[bad]
