"""Running counts by square roots of a matrix: H. Fichtenberger, M. Henzinger, J. Upadhyay, "Constant Matters:
Fine-grained Complexity of Differentially Private Continual Observation" (2023), arXiv 2202.11205.

The matrix of ones on and below the diagonal is the square of one whose column is f, the coefficients of
(1 - x)^(-1/2): noise is added to sums weighted by f, and those weighted by f again are running counts.
"""

from __future__ import annotations

import math

from discreet.conversion import round_up
from discreet.theorems import rogers2023

__all__ = [
    "factor",
    "weighted_tail_reach",
]


def factor(rounds: int) -> list[float]:
    """f_0, ..., f_(rounds - 1): f_0 = 1 and f_k = f_(k-1) (1 - 1/(2k))."""
    column = [1.0]
    for k in range(1, rounds):
        column.append(column[-1] * (1 - 0.5 / k))
    return column


def weighted_tail_reach(scale: float, total: float, square: float, p: float) -> float:
    """What a sum of discrete Gaussians of one scale exceeds with a chance of at most p; its weights, up to their signs,
    add up to `total`, their squares to `square`.

    The lesser of two. By the sub-Gaussian tail, scale sqrt(square) sqrt(2 log(1/p)) (Canonne, Kamath and Steinke 2020,
    Corollary 17). By comparison, scale sqrt(square) isf(p) + 2 total: a discrete Gaussian X is less than Y + 2 in
    the order of tails, Y being the continuous one, and such orders add up. For n > 0 every P[X = m] is at most the
    density of Y at m, which falls, so that P[X >= n] <= P[Y >= n - 1]; for j = 1 - n > 0 likewise
    P[X >= j] >= P[Y >= j]/(1 + 0.4/scale), which is at least P[Y >= j + 1] since the hazard of Y rises from
    0.79/scale, and so P[X >= n] <= P[Y >= n - 2].
    """
    deviation = scale * math.sqrt(square)
    compared = rogers2023.gaussian_threshold(deviation, p, 0) + 2 * total
    return round_up(min(compared, deviation * math.sqrt(-2 * math.log(p))), 64)
