"""Rigorous tails of sums and differences of integer noise, from the tail of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet import _core
from discreet.privacy.conversion import round_up
from discreet.theorems.wilkins2022 import lattice_distortion

__all__ = [
    "gaussian_difference_tail",
    "gaussian_hockey_stick",
    "gaussian_sum_bound",
    "gaussian_sum_tail",
    "least",
    "sub_gaussian",
]

_ROUNDING = 1e-12
"""An upper bound of the relative change of a tail, down to 1e-300, if its scale is off by 1 part in 2^52."""
_EXACT_SIGMA = 4.0
_FAR = 2**60
_LEAST = 1e-300


def gaussian_sum_tail(sigma: float, terms: int, *, quick: bool = False) -> Callable[[int], tuple[float, float]]:
    """Return lower and upper bounds of P[X_1 + ... + X_terms >= m] for discrete Gaussians of one sigma.

    With `quick` they are a relative 1e-8 wider, and faster.
    """
    law = _core.Noise.discrete_gaussian(math.sqrt(terms) * sigma)
    factor = lattice_distortion(sigma, terms) * (1 + _ROUNDING)

    def bounds(m: int) -> tuple[float, float]:
        if quick:
            low, high = law.tail_bounds(max(-_FAR, min(m, _FAR)))
            return low / factor, min(1.0, high * factor)
        tail = law.tail(max(-_FAR, min(m, _FAR)))
        # At its floor of 1e-300, tail() is only an upper bound, so the lower bound is 0.
        return (tail / factor if tail > _LEAST else 0.0), min(1.0, tail * factor)

    return bounds


def sub_gaussian(reach: float, deviation: float) -> float:
    """Return e^(-reach^2 / (2 deviation^2)), rounded up, at least e^-700.

    It bounds P[X >= reach] for weighted sums of discrete Gaussians (Canonne, Kamath and Steinke 2020, Corollary 17).
    """
    if reach <= 0:
        return 1.0
    # For an exponent of 700, a relative error of a few units of 2^-53 makes a relative error of 3e-13 in e^-exponent.
    exponent = reach * reach / (2 * deviation**2) / (1 + _ROUNDING)
    return math.exp(-min(exponent, 700.0)) * (1 + _ROUNDING)


def gaussian_sum_bound(sigma: float, terms: int) -> Callable[[int], float]:
    """Return an upper bound of P[X_1 + ... + X_terms >= m], m >= 1, for discrete Gaussians of one sigma.

    It is the lesser of `gaussian_sum_tail`, which needs a large scale, and the sub-Gaussian tail
    e^(-m^2 / (2 terms sigma^2)) (Canonne, Kamath and Steinke 2020, Corollary 17).
    """
    bounds = gaussian_sum_tail(sigma, terms)
    return lambda m: min(bounds(m)[1], sub_gaussian(m, math.sqrt(terms) * sigma))


def gaussian_hockey_stick(sigma: float, linf: int, terms: int, *, quick: bool = False) -> Callable[[float], float]:
    """Return an upper bound of the hockey-stick divergence, as a function of epsilon.

    The divergence is between discrete Gaussian noise on `terms` counts and the same noise moved by linf on each. The
    likelihood ratio depends on the sum S only. So the divergence is P[S >= m] - e^epsilon P[S >= m + terms linf]. Here
    m is the least integer above epsilon sigma^2/linf - terms linf/2 (Canonne, Kamath and Steinke 2020, Theorem 7, for
    one count).
    """
    bounds = gaussian_sum_tail(sigma, terms, quick=quick)

    def divergence(epsilon: float) -> float:
        epsilon = min(epsilon, 700.0)  # the divergence falls with epsilon, and e^epsilon must be a float
        m = math.floor(epsilon * sigma**2 / linf - terms * linf / 2) + 1
        above, moved = bounds(m)[1], bounds(m + terms * linf)[0]
        # If rounding picked m +- 1 instead of m, the difference is at most above * _ROUNDING.
        return min(1.0, round_up(max(0.0, above - math.exp(epsilon) * moved), 4) + above * _ROUNDING)

    return divergence


def gaussian_difference_tail(sigma: float) -> Callable[[int], float]:
    """Return upper bounds of P[X - Y >= m], m >= 1, for two discrete Gaussians of one sigma.

    For small scales the sum is computed: P[X - Y = z] = e^(-z^2/4 sigma^2) A_(z mod 2) / Z^2. A_0 and A_1 are the sums
    of e^(-x^2/sigma^2) over integers and half-integers, Z is the sum of e^(-x^2/2 sigma^2) over integers.
    """
    if sigma > _EXACT_SIGMA:
        bounds = gaussian_sum_tail(sigma, 2)
        return lambda m: bounds(m)[1]
    reach = math.ceil(60 * max(sigma, 1.0))
    whole = math.fsum(math.exp(-((x / sigma) ** 2)) for x in range(-reach, reach + 1))
    half = math.fsum(math.exp(-(((x - 0.5) / sigma) ** 2)) for x in range(-reach, reach + 2))
    total = math.fsum(math.exp(-((x / sigma) ** 2) / 2) for x in range(-reach, reach + 1))

    def tail(m: int) -> float:
        terms = (math.exp(-((z / sigma) ** 2) / 4) * (half if z % 2 else whole) for z in range(m, m + 4 * reach))
        return min(1.0, round_up(math.fsum(terms) / total**2 * (1 + _ROUNDING), 64) + 5e-324)

    return tail


def least(holds: Callable[[int], bool], start: int = 1) -> int:
    """Return the least whole number from `start` up at which `holds` is true; it must stay true from there on."""
    low, step = start - 1, 1
    while not holds(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
