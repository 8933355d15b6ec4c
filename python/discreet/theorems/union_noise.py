"""The noise and the threshold of a set union: a user's sensitivity, the grid, and the privacy cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import takewhile

from discreet import _core
from discreet.errors import ParameterError
from discreet.privacy.conversion import bisect, cdp_rho, round_down, round_up
from discreet.privacy.validation import require_whole
from discreet.theorems import gopi2020, rogers2023
from discreet.theorems.balle_wang2018 import LatticeGaussian, lattice_delta

__all__ = [
    "EXACT_EPSILON",
    "SCALE_LIMIT",
    "SHARES",
    "alpha_of",
    "bits_of",
    "is_gaussian",
    "least_scale",
    "least_threshold",
    "moved",
    "pair_of",
    "require_l0",
    "sensitivity_of",
    "split",
]

SCALE_LIMIT = 1e4
EXACT_EPSILON = 100.0
"""The largest epsilon for which the exact analysis states an (epsilon, delta)."""
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Fractions of delta for the threshold. `from_epsilon` tries all of them."""
_ALPHA, _ALPHAS = 3.0, {"policy_gaussian": 5.0, "policy_laplace": 13.2}
"""Default targets, in deviations above the threshold. For the two methods named here, an item that has reached its
target is missed with a chance below 1e-6."""
_ITEM_LIMIT = 1 << 32
_L0_LIMIT = 1 << 12


def require_l0(l0: object) -> int:
    """Return the most items per user that count; raise ParameterError unless it is a whole number up to 4096."""
    return require_whole("l0", l0, 1, _L0_LIMIT)


def is_gaussian(method: str) -> bool:
    """Return whether the method's noise is Gaussian."""
    return method.endswith("gaussian")


def alpha_of(method: str, given: float | None) -> float:
    """Return by how many deviations above the threshold items are filled: `given`, or the method's default."""
    return _ALPHAS.get(method, _ALPHA) if given is None else given


def bits_of(scale: float) -> int:
    """Return the binary places of weights and noise: as many as the sampler's range allows, at most 28."""
    return min(28, math.floor(math.log2(5e8 / scale)))


def sensitivity_of(method: str, scale: float, l0: int) -> float:
    """Return the sensitivity of the weights to one user, relative to a weight of one.

    It is exactly one, except for the method that rounds intermediate values. It adds three units of 2^-50 for each of
    up to l0 items of up to 2^32 users. It also adds one unit of 2^-bits for each of up to 2^32 items.
    """
    return 1 + l0 * 2.0**-16 + 2.0 ** (16 - bits_of(scale)) if method == "policy_gaussian" else 1.0


def moved(method: str, scale: float, l0: int) -> LatticeGaussian:
    """Return the noise on the lattice, with the most that one user changes the weights.

    With plain weights, a user moves only the weights of their own items.
    """
    unit = 1 << bits_of(scale)
    change = sensitivity_of(method, scale, l0)
    return LatticeGaussian(
        sigma=round_up(scale * change) * unit,
        change=change * unit,
        entries=_ITEM_LIMIT if method == "policy_gaussian" else l0,
    )


def split(delta: float, share: float) -> tuple[float, float]:
    """Return the share of delta for thresholds, and the part that remains for the noise."""
    own = round_down(share * delta)
    return own, round_down((delta - own) / (1 - own), 16)


def least_scale(parts: Callable[[float], list[LatticeGaussian]], epsilon: float, delta: float) -> float:
    """Return the least scale, to 1 part in 1e9, at which these releases are (epsilon, delta)-DP."""

    @cache
    def cost(scale: float) -> float:
        return lattice_delta(epsilon, parts(scale))

    def holds(scale: float) -> bool:
        return cost(scale) <= delta

    high = 1 / math.sqrt(2 * min(max(cdp_rho(epsilon, delta), 1e-8), 5000.0))
    low = high / 4
    while not holds(high):
        low, high = high, 2 * high
        if high > SCALE_LIMIT:
            raise ParameterError(
                f"epsilon and delta are too small: the scale of noise would exceed {SCALE_LIMIT:g}; give larger ones"
            )
    return bisect(low, high, holds, _near(cost, delta, high), precision=1e-9, geometric=True)


def _near(cost: Callable[[float], float], delta: float, start: float) -> float:
    """Return about the scale at which the cost is delta, by the secant method for logarithms, or nan."""
    scale, other = start, 0.95 * start
    gap, other_gap = math.log(cost(scale) / delta), math.log(cost(other) / delta)
    for _ in range(12):
        if gap == other_gap:
            return math.nan
        step = min(max(gap * math.log(other / scale) / (gap - other_gap), -1.0), 1.0)
        other, other_gap = scale, gap
        scale *= math.exp(step)
        if abs(step) < 1e-9:
            return scale
        gap = math.log(cost(scale) / delta)
    return math.nan


def pair_of(epsilon: float, own: float, parts: list[LatticeGaussian]) -> tuple[float, float]:
    """Return (epsilon, delta') of these releases in sequence, with `own` as the delta of their thresholds."""
    return epsilon, min(1.0, round_up(own + (1 - own) * lattice_delta(epsilon, parts)))


def least_threshold(method: str, noise: _core.Noise, scale: float, delta: float, l0: int) -> int:
    """Return the least threshold that is safe for all numbers of novel items.

    Numbers whose threshold is clearly lower are skipped. For a delta of at most 0.2 the thresholds of `gopi2020` first
    fall with the number, then rise, so only numbers close to 1 or l0 can have the largest one. Proof for Gaussian
    noise: let s = log t. The threshold's derivative by s is h(s) - e^(-s/2)/2, and h is the scale times R(z) w. R is
    Mills' ratio at the quantile z, and w, at most one, grows with s. So log h falls by at most 1 - z R(z) per unit
    of s. That is below 1/2 for z above 0.62, so e^(s/2) h grows, and the derivative changes its sign once. For Laplace
    noise the derivative is h(s) - e^-s, and h is the scale times w.
    """
    unit = 1 << bits_of(scale)

    def largest_weight(t: int) -> int:
        """Return the largest weight of each of t novel items of one user."""
        return math.isqrt(unit**2 // t) if is_gaussian(method) else -(-unit // t)

    rule = gopi2020.gaussian_threshold if is_gaussian(method) else gopi2020.laplace_threshold
    own = scale * sensitivity_of(method, scale, l0)
    worst = max(rule(own, delta, t) for t in ((1, l0) if delta <= 0.2 else range(1, l0 + 1)))
    near = worst - abs(worst) * 1e-6 - 1e-6

    def close(t: int) -> bool:
        return rule(own, delta, t) >= near

    if delta <= 0.2:
        numbers = [*takewhile(close, range(1, l0 + 1)), *takewhile(close, range(l0, 0, -1))]
    else:
        numbers = [t for t in range(1, l0 + 1) if close(t)]
    return max(largest_weight(t) - 1 + noise.quantile(rogers2023.novel_chance(delta, t)) for t in numbers)
