"""Top-k with restricted sensitivity: D. Durfee and R. Rogers, "Practical Differentially Private Top-k Selection
with Pay-what-you-get Composition" (2019).

The threshold printed there, 1 + log(l/delta), lost the division by epsilon, and even with it ignores that the
(k_bar+1)-th count is noisy too: what matters is the tail of the difference of two Laplace variables.
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_up

__all__ = ["discrete_laplace_difference_tail"]


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
