"""B. Ghazi, R. Kumar and P. Manurangsi, "On Avoiding the Union Bound When Answering Multiple Differentially Private
Queries" (2020), arXiv 2012.09116: Theorems 2 and 13, with constants.

The last stage of sparse vector has m runs, a threshold T, and noise B on the threshold, Q on each query of each run,
and L on each new measurement. Suppose that every |B| + |Q| is at most a, every |L| is below T - a, and at most m errors
are T - a or larger before the stage. A run finds only errors of at least T - a. Their new measurement leaves them below
T - a, so no run finds them again. Thus the m runs find all of them, or a run finds nothing, and then every error is
below T + a. In both cases every error is below T + a in the end (Theorem 2).

Before the last stage, every error is one of the draws so far. So the number of large errors is at most the number of
large draws, which is a sum of independent indicators, and Chernoff's bound holds for it (Theorem 13). The paper also
counts the errors that earlier stages remove (Theorem 9). This bound does without, because it is not asymptotic.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["PARTS", "large_errors", "noise_reach"]

PARTS = 5
"""The events that share the probability of failure: B, Q, L, the number of large errors, and the guard."""


Quantile = Callable[[float], int]
"""Returns the least m with P[X >= m] of at most its argument."""


def noise_reach(k: int, runs: int, noises: tuple[Quantile, Quantile, Quantile], chance: float) -> tuple[int, int]:
    """Return the a of the noises B and Q of a stage, and the least T - a that is above every |L|.

    `noises` are the quantiles of B, Q and L. Each fails with a probability of at most chance/PARTS.
    """
    of_threshold, of_query, again = noises
    each = chance / (2 * PARTS * runs)
    return of_threshold(each) + of_query(each / k) - 2, again(each)


def large_errors(mean: float, m: int) -> float:
    """Return an upper bound of the probability that more than m draws are large, for an expected number `mean`.

    Chernoff's bound for a mean of u and x = m + 1 > u is e^-u (e u/x)^x.
    """
    mean, x = mean * (1 + 1e-9), m + 1
    if mean >= x:
        return 1.0
    return min(1.0, math.exp(max(x * (1 + math.log(mean / x)) - mean, -700.0)) * (1 + 1e-6))
