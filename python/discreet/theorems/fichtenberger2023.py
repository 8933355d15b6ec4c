"""Running counts by the square root of a matrix: H. Fichtenberger, M. Henzinger, J. Upadhyay, "Constant Matters:
Fine-grained Complexity of Differentially Private Continual Observation" (2023), arXiv 2202.11205.

Let f be the coefficients of (1 - x)^(-1/2). The lower triangular matrix of ones is the square of the matrix whose
first column is f. Noise is added to sums weighted by f. Weighting these sums by f again gives the running counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

__all__ = [
    "factor",
    "squared_reach",
    "weighted_tail",
]


def factor(rounds: int) -> list[float]:
    """Return f_0, ..., f_(rounds - 1): f_0 = 1 and f_k = f_(k-1) (1 - 1/(2k))."""
    column = [1.0]
    for k in range(1, rounds):
        column.append(column[-1] * (1 - 0.5 / k))
    return column


def squared_reach(column: Sequence[int], rounds: int) -> int:
    """Return the most that events in `rounds` rounds change the weighted sums of one item, squared.

    `column` must not increase. An event in round t adds column[k - t] to the sum of round k. The result is for the
    first `rounds` rounds. No other rounds change the sums more. Proof: the squared change is the sum of the inner
    products of all pairs of shifted columns. An inner product falls if the two rounds are further apart, and if the
    later of them is later. Sort the rounds: then the a-th is at least a, and two of them are at least as far apart as
    in consecutive rounds.

    It also bounds the change of all items if each event has at most l0 items, divided by l0: a pair of events has at
    most l0 items in common, and no inner product is negative.
    """
    sums = [0, *accumulate(column)]
    return sum((sums[k] - sums[max(k - rounds, 0)]) ** 2 for k in range(1, len(sums)))


def weighted_tail(scale: float, total: float, square: float, reach: float) -> float:
    """Return an upper bound of the probability that a weighted sum of discrete Gaussians of one scale reaches `reach`.

    `total` is the sum of the absolute weights, `square` the sum of their squares. The result is the lesser of two
    bounds.

    The first is the sub-Gaussian tail e^(-reach^2 / (2 scale^2 square)) (Canonne, Kamath and Steinke 2020, Corollary
    17).

    The second is the tail of a continuous Gaussian of the same deviation from reach - 2 total on. Proof: let X be a
    discrete and Y a continuous Gaussian of one scale. Then X is stochastically less than Y + 2, and such orders add up.
    For n > 0, each P[X = m] is at most the density of Y at m. The density decreases, so P[X >= n] <= P[Y >= n - 1]. For
    j = 1 - n > 0, likewise P[X >= j] >= P[Y >= j]/(1 + 0.4/scale). This is at least P[Y >= j + 1], because the hazard
    of Y rises from 0.79/scale. So P[X >= n] <= P[Y >= n - 2].
    """
    deviation = scale * math.sqrt(square)
    compared = 0.5 * math.erfc((reach - 2 * total) / deviation / math.sqrt(2))
    bound = math.exp(-min(reach * reach / (2 * deviation**2), 700.0)) if reach > 0 else 1.0
    return min(1.0, max(min(compared, bound), 1e-304) * (1 + 1e-11))
