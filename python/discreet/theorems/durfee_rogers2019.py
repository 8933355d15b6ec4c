"""Top-k with restricted sensitivity: D. Durfee and R. Rogers, "Practical Differentially Private Top-k Selection
with Pay-what-you-get Composition" (2019).

The threshold printed in the paper, 1 + log(l/delta), lacks the division by epsilon. It also ignores that the
(k_bar+1)-th count is noisy. The tail of the difference of two Laplace variables is needed instead.
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_up

__all__ = ["discrete_laplace_difference_tail", "exponential_mechanism_chance"]


def discrete_laplace_difference_tail(scale: float, m: int) -> float:
    """Return P[X - Y >= m] for two discrete Laplace variables of one scale and m >= 1, rounded up.

    It is a^m ((m + g)(1 - a) + a)/(1 + a)^2 with a = e^(-1/scale), g = (1 + a^2)/(1 - a^2), and at least 1e-300.
    """
    gamma = 1 / scale
    a, rest = math.exp(-gamma), -math.expm1(-gamma)
    g = (1 + a * a) / -math.expm1(-2 * gamma)
    tail = math.exp(-m * gamma) * ((m + g) * rest + a) / (1 + a) ** 2
    # The error of e^-x is about x parts in 2^53.
    return max(round_up(tail, 64 + 4 * math.ceil(m * gamma)), 1e-300)


def exponential_mechanism_chance(gamma: float, users: int, others: int, k: int) -> float:
    """Return the probability that the exponential mechanism draws a candidate in k draws without replacement.

    The candidate has `users` users, and each of the `others` has none. The draws have the law of the k largest counts
    with Gumbel noise of scale 1/gamma.
    """
    missed, weight = 0.0, math.exp(-min(gamma * users, 700.0))
    for drawn in range(k):
        if drawn >= others:
            return 1.0
        missed -= math.log1p(1 / ((others - drawn) * weight))
    return -math.expm1(missed)
