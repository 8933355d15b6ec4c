"""Lebeda (2025), "Better Gaussian Mechanism using Correlated Noise": noise of d counts that share a part of it.

A user who is added or removed moves each of d counts c_i by 0 or 1, and the number N of users by 1. So each 2c_i - N
moves by exactly 1, up or down. Noise on all 2c_i - N and on N costs d/(2 sigma^2) + 1/(2 users_sigma^2), and half of
the sum of both measurements estimates c_i. All moves are whole numbers, so the noise may be discrete
(docs/how-to/public-items.md).
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_up

__all__ = ["correlated_deviation", "correlated_rho", "correlated_sigmas"]


def correlated_sigmas(rho: float, d: int) -> tuple[float, float]:
    """Return the scales of the noise of each 2c_i - N and of N, which minimise the noise of the counts for a rho.

    By Cauchy and Schwarz, (s^2 + t^2)(d/s^2 + 1/t^2) is at least (sqrt d + 1)^2, and equal to it if s^2 = sqrt(d) t^2.
    """
    root = math.sqrt(d)
    squared = (root + 1) / (2 * rho)
    return round_up(math.sqrt(root * squared), 16), round_up(math.sqrt(squared), 16)


def correlated_rho(sigma: float, users_sigma: float, d: int) -> float:
    """Return d/(2 sigma^2) + 1/(2 users_sigma^2): the cost of both measurements."""
    return round_up(d / (2 * sigma**2) + 1 / (2 * users_sigma**2))


def correlated_deviation(sigma: float, users_sigma: float) -> float:
    """Return a bound of the standard deviation of a count.

    The estimate is half of the sum of two measurements. A fair coin rounds halves, which adds 1/4 to the variance with
    a probability of at most 1/2.
    """
    return round_up(math.sqrt((sigma**2 + users_sigma**2) / 4 + 1 / 8))
