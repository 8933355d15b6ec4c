"""Top-k with restricted sensitivity: D. Durfee and R. Rogers, "Practical Differentially Private Top-k Selection
with Pay-what-you-get Composition" (2019).

The threshold printed there, 1 + log(l/delta), lost the division by epsilon, and even with it ignores that the
(k_bar+1)-th count is noisy too: the difference of two Laplace variables exceeds t scales with the chance
(2 + t) e^-t / 4, and the threshold here inverts that.
"""

from __future__ import annotations

import math

from discreet.conversion import round_up

__all__ = ["discrete_laplace_difference_tail", "laplace_difference_tail", "laplace_top_k_threshold"]


def laplace_difference_tail(t: float) -> float:
    """(2 + t) e^-t / 4: the chance that two Laplace variables of scale one differ by more than t >= 0."""
    return round_up((2 + t) * math.exp(-t) / 4, 16)


def laplace_top_k_threshold(scale: float, delta: float, differing: int, linf: int = 1) -> float:
    """linf + scale t above the noisy (k_bar+1)-th count, with t = -2 - W(-4 e^-2 delta/differing).

    W is the lower branch of Lambert's function; t is found by Newton's method on the logarithm.
    """
    target = math.log(delta / differing)
    t = max(1.0, -target)
    for _ in range(100):
        # log((2 + t)/4) - t is concave and falls, so that the steps come from one side.
        step = (math.log((2 + t) / 4) - t - target) / (1 / (2 + t) - 1)
        t -= step
        if abs(step) <= 1e-15 * t:
            break
    return round_up(linf + scale * round_up(t, 64), 4)


def discrete_laplace_difference_tail(scale: float, m: int) -> float:
    """P[X - Y >= m] for two discrete Laplace variables of this scale and m >= 1, rounded up.

    a^m ((m + g)(1 - a) + a)/(1 + a)^2, 1e-300 where it is smaller, with a = e^(-1/scale), g = (1 + a^2)/(1 - a^2).
    """
    gamma = 1 / scale
    a, rest = math.exp(-gamma), -math.expm1(-gamma)
    g = (1 + a * a) / -math.expm1(-2 * gamma)
    tail = math.exp(-m * gamma) * ((m + g) * rest + a) / (1 + a) ** 2
    # The exponent loses as many parts in 2^53 as it is large.
    return max(round_up(tail, 64 + 4 * math.ceil(m * gamma)), 1e-300)
