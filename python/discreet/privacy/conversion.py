"""Conversions between differential privacy, bounded range and concentrated differential privacy.

All functions take and return floats and round conservatively. An epsilon, delta or rho that a guarantee states is
rounded up. A rho that a mechanism may spend is rounded down. `rho` is the parameter of zero-concentrated differential
privacy (zCDP, Bun and Steinke 2016).

A mechanism has bounded range epsilon if, for any two neighbouring datasets, its privacy loss log(P(output)/P'(output))
varies by at most epsilon over all outputs. All logarithms are natural.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

__all__ = [
    "bisect",
    "bounded_range_rho",
    "bun_steinke_epsilon",
    "cdp_delta",
    "cdp_epsilon",
    "cdp_implies",
    "cdp_rho",
    "pure_rho",
    "round_down",
    "round_up",
]

_ULP = 2.0**-52
_LEAST_RHO, _MOST_EPSILON = 1e-280, 1e9


def round_up(value: float, ulps: int = 4) -> float:
    """Return a float above `value` by more than the rounding error of a short formula.

    The difference is about `ulps` times 2^-52, relative to `value`.
    """
    return math.nextafter(value + abs(value) * ulps * _ULP, math.inf)


def round_down(value: float, ulps: int = 4) -> float:
    """Return a float below `value` by more than the rounding error of a short formula; see `round_up`."""
    return -round_up(-value, ulps)


def pure_rho(epsilon: float, *, tight: bool = False) -> float:
    """Return a rho such that every epsilon-DP mechanism is rho-zCDP: epsilon^2/2 (Rogers 2023, Theorem 3).

    With `tight`, rho is epsilon tanh(epsilon/2). No smaller rho holds for randomised response.
    """
    return round_up(epsilon * math.tanh(epsilon / 2) if tight else epsilon**2 / 2)


def bounded_range_rho(epsilon: float, *, tight: bool = False) -> float:
    """Return a rho such that every mechanism of bounded range epsilon is rho-zCDP: epsilon^2/8.

    The exponential mechanism has bounded range. With `tight`, rho is x - 1 - log x at x = epsilon/(e^epsilon - 1).

    Source:
        Rogers (2023), Theorem 5, for epsilon^2/8.
    """
    if not tight or epsilon == 0:
        return round_up(epsilon**2 / 8)
    if epsilon > 700:  # x is negligible, and e^epsilon overflows a float
        return round_up(epsilon - 1 - math.log(epsilon), 8)
    if epsilon < 0.05:  # the Taylor series: the closed form suffers cancellation
        return round_up(epsilon**2 / 8 - epsilon**4 / 576 + epsilon**6 / 17280, 64)
    x = epsilon / math.expm1(epsilon)
    return x - 1 - math.log(x) + 8 * _ULP * (1 + abs(math.log(x)))


def bun_steinke_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP: rho + 2 sqrt(rho log(1/delta)).

    Source:
        Bun and Steinke (2016), Proposition 1.3.
    """
    return round_up(rho + 2 * math.sqrt(rho * -math.log(delta)), 16)


def cdp_delta(rho: float, epsilon: float) -> float:
    """Return a delta such that every rho-zCDP mechanism is (epsilon, delta)-DP, rounded up.

    For each Renyi order alpha above 1, Proposition 12 gives a valid delta. The function minimises it over alpha. An
    inexact minimiser only makes delta larger. A smaller delta may hold by another proof.

    Source:
        Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    if rho == 0:
        return 0.0
    # Both changes can only make delta larger, and no product of a tiny rho or a huge epsilon overflows.
    rho, epsilon = max(rho, _LEAST_RHO), min(epsilon, _MOST_EPSILON)
    order_less_one = _best_order(rho, epsilon)
    terms = (
        order_less_one * (rho * (1 + order_less_one) - epsilon),
        -math.log(order_less_one),
        -(1 + order_less_one) * math.log1p(1 / order_less_one),
    )
    magnitude = 1 + order_less_one * (rho * (1 + order_less_one) + abs(epsilon)) + sum(map(abs, terms[1:]))
    logarithm = math.fsum(terms) + 8 * _ULP * magnitude
    return 1.0 if logarithm >= 0 else min(1.0, round_up(math.exp(logarithm)))


def _best_order(rho: float, epsilon: float) -> float:
    """Return alpha - 1 at the root of (2 alpha - 1) rho - epsilon + log(1 - 1/alpha), by bisection of log(alpha - 1).

    At this root the delta of `cdp_delta` is least.
    """
    low = math.log(max(math.exp(-min(rho, 600.0) - 60.0), 1e-300))
    high = math.log((epsilon + 1) / (2 * rho) + 2)
    for _ in range(60):
        middle = (low + high) / 2
        t = math.exp(middle)
        if (2 * t + 1) * rho - epsilon - math.log1p(1 / t) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)


@lru_cache(maxsize=256)
def cdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP, rounded up.

    Bisection finds about the least epsilon with cdp_delta(rho, epsilon) <= delta. This inequality was checked for the
    returned epsilon.
    """
    if cdp_delta(rho, 0.0) <= delta:
        return 0.0
    rho = max(rho, _LEAST_RHO)  # as in `cdp_delta`
    low, high = 0.0, bun_steinke_epsilon(rho, delta)
    ulps = 1024
    while cdp_delta(rho, high) > delta:  # for the smallest floats as delta, whose rounding is coarse
        high, ulps = round_up(high, ulps), 2 * ulps
    near = _near_epsilon(rho, delta)
    return bisect(low, high, lambda epsilon: cdp_delta(rho, epsilon) <= delta, near, precision=1e-15)


def cdp_implies(rho: float, epsilon: float, delta: float) -> bool:
    """Return whether `cdp_epsilon(rho, delta)` is at most epsilon. Usually takes one or two evaluations of delta."""
    if 0 < epsilon < math.inf:
        if cdp_delta(rho, epsilon * (1 - 1e-12)) <= delta:
            return True
        if cdp_delta(rho, epsilon * (1 + 1e-12)) > delta:
            return False
    return cdp_epsilon(rho, delta) <= epsilon


@lru_cache(maxsize=256)
def cdp_rho(epsilon: float, delta: float) -> float:
    """Return a rho such that every rho-zCDP mechanism is (epsilon, delta)-DP, rounded down.

    Bisection finds about the largest rho with cdp_delta(rho, epsilon) <= delta. This inequality was checked for the
    returned rho.
    """
    near = _near_rho(epsilon, delta)
    return bisect(epsilon + 1, 0.0, lambda rho: cdp_delta(rho, epsilon) <= delta, near, precision=1e-15)


def _near_epsilon(rho: float, delta: float) -> float:
    """Return about `cdp_epsilon`, by Newton's method, or nan.

    Let t be the order less one. Solved for epsilon, the formula of `cdp_delta` is least where
    rho t^2 + log(1 + t) = log(1/delta).
    """
    goal = -math.log(delta)
    t = math.sqrt(goal / rho)
    for _ in range(40):
        excess = rho * t * t + math.log1p(t) - goal
        step = excess / (2 * rho * t + 1 / (1 + t))
        t = t - step if step < t else t / 8
        if abs(step) <= 1e-9 * t:
            break
    if not 0 < t < math.inf:
        return math.nan
    return rho * (1 + t) + (goal - math.log(t) - (1 + t) * math.log1p(1 / t)) / t


def _near_rho(epsilon: float, delta: float) -> float:
    """Return about `cdp_rho`, by Newton's method, or nan. The order is that of `_near_epsilon` at this rho."""
    goal = -math.log(delta)
    t = min(2 * goal / epsilon + 1, 1e90)
    for _ in range(40):
        rest, square = goal - math.log1p(t), t * t
        excess = rest * (1 + 2 * t) / square - math.log1p(1 / t) - epsilon
        step = -excess / (2 * rest * (1 + t) / (square * t) + 1 / square)
        t = min(max(t - step, t / 4), 4 * t)
        if abs(step) <= 1e-9 * t:
            break
    return (goal - math.log1p(t)) / (t * t)


def bisect(
    bad: float, good: float, holds: Callable[[float], bool], near: float, *, precision: float, geometric: bool = False
) -> float:
    """Return a point between `good` and `bad` that is near the border of `holds`, to about one part in 1/precision.

    `holds` is true at the returned point, unless the point is `good` itself: `holds` is not called for `good`. `near`
    is an estimate of the border, or nan. Only points close to the estimate are tested, and the last two points. If
    these contradict the estimate, all points are tested. With `geometric`, intervals are cut at the geometric mean.
    """
    ends, tests, reach = (bad, good), [True, True], 30 * precision * near
    for _ in range(200):
        middle = math.sqrt(bad * good) if geometric else (bad + good) / 2
        if middle in (bad, good) or abs(bad - good) <= precision * max(bad, good):
            break
        tested = not abs(middle - near) > reach
        passes = holds(middle) if tested else (middle > near) is (good > bad)
        if passes:
            good = middle
        else:
            bad = middle
        tests[passes] = tested
    if (tests[0] or not holds(bad)) and (tests[1] or holds(good)):
        return good
    return bisect(*ends, holds, math.nan, precision=precision, geometric=geometric)
