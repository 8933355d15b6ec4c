"""The exact (epsilon, delta) of thresholded Gaussian counts, after A. Wilkins, D. Kifer, D. Zhang, B. Karrer,
"Exact Privacy Analysis of the Gaussian Sparse Histogram Mechanism" (2022).

Some of the l0 items of a user may be novel (no other user has them) and the others shared. The worst split determines
delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.privacy.conversion import round_up

__all__ = ["lattice_distortion", "sparse_histogram_delta"]


def sparse_histogram_delta(epsilon: float, seen: float, l0: int, hockey_stick: Callable[[float, int], float]) -> float:
    """Return the delta at `epsilon` of noisy counts above a threshold, rounded up.

    `seen` is an upper bound of the probability that one novel item is released. `hockey_stick(e, j)`, in short h(e, j),
    is an upper bound of the divergence at e between the noise and the noise moved on j items at once. For j shared
    items, q = (1 - seen)^(l0 - j) is a lower bound of the probability that no novel item is released. delta is
    max(1 - (1 - seen)^l0, max over j >= 1 of 1 - q + q h(epsilon - log q, j) and of h(epsilon + log q, j)).

    h grows with j. Both expressions are at most h(epsilon, j) + 1/q - 1. So once this bound, for the least q, is below
    the maximum so far, no smaller j matters.
    """
    worst = _any(seen, l0)
    most = round_up(worst / (1 - worst), 16) if worst < 1 else 1.0
    for shared in range(l0, 0, -1):
        if hockey_stick(epsilon, shared) + most <= worst:
            break
        lost = _any(seen, l0 - shared)
        slack = -math.log1p(-lost)
        gained = lost + (1 - lost) * hockey_stick(epsilon + slack * (1 - 1e-12), shared)
        at = epsilon - slack * (1 + 1e-12)
        # For at < 0, exchange the two laws: by symmetry their divergences are equal.
        other = hockey_stick(at, shared) if at >= 0 else 1 - math.exp(at) * (1 - hockey_stick(-at, shared))
        worst = max(worst, gained, other)
    return min(1.0, round_up(worst, 64))


def _any(seen: float, novel: int) -> float:
    """Return 1 - (1 - seen)^novel, rounded up."""
    return round_up(-math.expm1(novel * math.log1p(-seen)), 16) if novel else 0.0


def lattice_distortion(sigma: float, terms: int) -> float:
    """Return F >= 1 that bounds the ratio between a sum of discrete Gaussians and one discrete Gaussian.

    Let S be the sum of `terms` discrete Gaussians of one sigma, and X one discrete Gaussian of scale sqrt(terms) sigma.
    The probabilities of S are within the factors 1/F and F of the probabilities of X. F is infinite if sigma is too
    small.

    Proof: given their sum, the variables lie on a coset of a lattice. By Poisson summation the weights of cosets differ
    by factors of 1 +- theta. theta is the sum of q^(|y|^2) over the nonzero vectors of the dual lattice, with
    q = e^(-2 pi^2 sigma^2). Each y is the projection of an integer vector z, whose sum is from -terms/2 to terms/2. So
    |y|^2 >= |z|^2/2 and 1 + theta <= (1 + 2 (q^(1/2) + q^2 + ...))^terms.
    """
    if terms == 1:
        return 1.0
    root = math.exp(-(math.pi**2) * sigma**2)
    theta = math.expm1(3 * terms * root) if 3 * terms * root < 0.6 else math.inf
    return round_up((1 + theta) / (1 - theta), 16) if theta < 1 else math.inf
