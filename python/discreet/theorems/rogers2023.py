"""Unknown domains: R. Rogers, "A Unifying Privacy Analysis Framework for Unknown Domain Algorithms in
Differential Privacy" (2023), arXiv 2309.09170.

An item that only one of two neighbouring datasets has must stay unpublished except with probability delta. `l0` is
the most items of one user, `linf` the most that one user adds to a count. If the paper's text has an error, the
function uses the corrected form and says so. Floats in, floats out, each rounded to the safe side.
"""

from __future__ import annotations

import math

from discreet.errors import ParameterError
from discreet.privacy.conversion import bounded_range_rho, pure_rho, round_down, round_up

__all__ = [
    "conditioned_rho",
    "differing_items",
    "gaussian_rho",
    "gaussian_sigma",
    "gaussian_threshold",
    "gumbel_offset",
    "gumbel_rho",
    "gumbel_scale",
    "laplace_threshold",
    "laplace_threshold_rho",
    "laplace_threshold_scale",
    "novel_chance",
    "tree_levels",
    "tree_reach",
    "unconditioned_rho",
]


def novel_chance(delta: float, l0: int) -> float:
    """Return 1 - (1 - delta)^(1/l0), the largest release probability of one novel item (Theorem 7).

    With it, all l0 items of a user stay unpublished except with probability delta, because their noises are
    independent.
    """
    return delta if l0 == 1 else round_down(-math.expm1(math.log1p(-delta) / l0), 16)


def laplace_threshold(scale: float, p: float, linf: int = 1) -> float:
    """Return linf + scale log(1/(2p)) (Algorithm 1).

    A count of linf with Laplace noise exceeds it with probability p.
    """
    return round_up(linf + scale * -math.log(2 * p), 16)


def gaussian_threshold(sigma: float, p: float, linf: float = 1) -> float:
    """Return linf + sigma isf(p) (Algorithm 1).

    A count of linf with Gaussian noise exceeds it with probability p.
    """
    return round_up(linf + sigma * _isf(p), 64)


def laplace_threshold_rho(epsilon: float, l0: int, *, tight: bool = False) -> float:
    """Return l0 epsilon^2/2, for discrete Laplace noise of scale linf/epsilon on each count (Theorem 7).

    With `tight` return l0 epsilon tanh(epsilon/2): discrete noise does not have the smaller rho of continuous noise.
    """
    return round_up(l0 * pure_rho(epsilon, tight=tight), 1)


def laplace_threshold_scale(rho: float, l0: int, linf: int) -> float:
    """Return the scale whose `laplace_threshold_rho` is rho."""
    return round_up(linf / math.sqrt(2 * rho / l0), 64)


def gaussian_rho(sigma: float, l0: float, linf: int = 1) -> float:
    """Return l0 linf^2 / (2 sigma^2), for Gaussian noise on counts of l2 sensitivity sqrt(l0) linf (Theorem 7)."""
    return round_up(l0 * (linf / sigma) ** 2 / 2)


def gaussian_sigma(rho: float, l0: float, linf: int = 1) -> float:
    """Return the sigma whose `gaussian_rho` is rho."""
    return round_up(linf * math.sqrt(l0 / (2 * rho)), 16)


def differing_items(l0: int | None, k_bar: int) -> int:
    """Return min(l0, k_bar), a bound on the items among the k_bar largest counts of only one neighbour (Theorem 8)."""
    return k_bar if l0 is None else min(l0, k_bar)


def conditioned_rho(rho: float, delta: float) -> float:
    """Return (sqrt(rho) + sqrt(-log(1 - delta)))^2.

    It is the rho of two rho-zCDP laws given an event of probability 1 - delta. Conditioning has this cost for noise on
    a lattice, and no cost for continuous Gaussian noise (Theorem 8).
    """
    return round_up((math.sqrt(rho) + math.sqrt(-math.log1p(-delta))) ** 2, 16)


def unconditioned_rho(rho: float, delta: float) -> float:
    """Return the largest rho for which `conditioned_rho` is at most `rho`, up to rounding.

    Raises ParameterError if rho is too small for delta.
    """
    low, high = 0.0, rho
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if conditioned_rho(middle, delta) <= rho else (low, middle)
    if low <= 0:
        raise ParameterError(f"rho must exceed delta, but rho={rho:g} and delta={delta:g}; raise rho or lower delta")
    return low


def gumbel_offset(epsilon: float, delta: float, differing: int) -> float:
    """Return epsilon + log(differing/delta), with epsilon = linf/scale (Algorithm 3).

    The stop element's score, over the Gumbel scale, exceeds the score of the (k_bar+1)-th count by this offset.
    """
    return round_up(epsilon + math.log(differing) - math.log(delta), 16)


def gumbel_rho(epsilon: float, k: int, *, tight: bool = False) -> float:
    """Return k epsilon^2/8: k selections of range epsilon each (Theorem 9)."""
    return round_up(k * bounded_range_rho(epsilon, tight=tight), 1)


def gumbel_scale(rho: float, k: int, linf: int) -> float:
    """Return linf/sqrt(8 rho/k): the scale whose `gumbel_rho` is rho (Theorem 9)."""
    return round_up(linf / math.sqrt(8 * rho / k), 64)


def _isf(p: float) -> float:
    """Return the value that a standard normal exceeds with probability p, accurate for small p."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(p)


def tree_levels(horizon: int) -> int:
    """Return floor(log2 L) + 1: the most nodes of the binary mechanism that contain one event (Theorem 11)."""
    return horizon.bit_length()


def tree_reach(horizon: int, rounds: int) -> int:
    """Return the most that events in `rounds` rounds change the binary mechanism's sums of one item, squared.

    One item an event. It is the sum, over the levels j of the tree, of the largest sum of squares of whole numbers from
    0 to 2^j whose sum is `rounds`: as many as possible are 2^j. For one event it is `tree_levels`.

    It also bounds the change of all items if each event has at most l0 items, divided by l0. Proof: let a node hold r
    of the events. Each item is in at most r of them, and the items together have at most l0 r. So their squares sum to
    at most l0 r^2.
    """
    sizes = (1 << level for level in range(tree_levels(horizon)))
    return sum(rounds // size * size**2 + (rounds % size) ** 2 for size in sizes)
