"""Unknown domains: R. Rogers, "A Unifying Privacy Analysis Framework for Unknown Domain Algorithms in
Differential Privacy" (2023), arXiv 2309.09170.

An item that only one data set has must stay unseen but for a chance delta. `l0` is the most items that one
user has, `linf` the most that one adds to a count. Where the paper's own text errs the corrected form is
used, and said. Floats in, floats out, each rounded against the caller.
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
    "laplace_threshold",
    "laplace_threshold_rho",
    "laplace_threshold_scale",
    "novel_chance",
    "permute_and_flip_offset",
    "tree_levels",
    "unconditioned_rho",
]


def novel_chance(delta: float, l0: int) -> float:
    """The largest chance of one novel item for which all l0 of a user stay unseen but for delta (Theorem 7).

    1 - (1 - delta)^(1/l0): their noises are independent.
    """
    return delta if l0 == 1 else round_down(-math.expm1(math.log1p(-delta) / l0), 16)


def laplace_threshold(scale: float, p: float, linf: int = 1) -> float:
    """linf + scale log(1/(2p)): a count of linf with Laplace noise exceeds it with the chance p (Algorithm 1)."""
    return round_up(linf + scale * -math.log(2 * p), 16)


def gaussian_threshold(sigma: float, p: float, linf: float = 1) -> float:
    """linf + sigma isf(p): a count of linf with Gaussian noise exceeds it with the chance p (Algorithm 1)."""
    return round_up(linf + sigma * _isf(p), 64)


def laplace_threshold_rho(epsilon: float, l0: int, *, tight: bool = False) -> float:
    """l0 epsilon^2/2 for discrete Laplace noise of scale linf/epsilon on every count (Theorem 7).

    With `tight` l0 epsilon tanh(epsilon/2): discrete noise does not have the smaller rho of continuous noise.
    """
    return round_up(l0 * pure_rho(epsilon, tight=tight), 1)


def laplace_threshold_scale(rho: float, l0: int, linf: int) -> float:
    """The scale whose `laplace_threshold_rho` is rho."""
    return round_up(linf / math.sqrt(2 * rho / l0), 64)


def gaussian_rho(sigma: float, l0: float, linf: int = 1) -> float:
    """l0 linf^2 / (2 sigma^2): Gaussian noise on counts that move by sqrt(l0) linf in all (Theorem 7)."""
    return round_up(l0 * (linf / sigma) ** 2 / 2)


def gaussian_sigma(rho: float, l0: float, linf: int = 1) -> float:
    """The sigma whose `gaussian_rho` is rho."""
    return round_up(linf * math.sqrt(l0 / (2 * rho)), 16)


def differing_items(l0: int | None, k_bar: int) -> int:
    """min(l0, k_bar): the most of the k_bar largest that one data set has and its neighbour has not (Theorem 8)."""
    return k_bar if l0 is None else min(l0, k_bar)


def conditioned_rho(rho: float, delta: float) -> float:
    """(sqrt(rho) + sqrt(-log(1 - delta)))^2: the rho of two rho-zCDP laws given an event of chance 1 - delta.

    Noise on a lattice pays this for what continuous Gaussian noise has for nothing (Theorem 8, conditioning).
    """
    return round_up((math.sqrt(rho) + math.sqrt(-math.log1p(-delta))) ** 2, 16)


def unconditioned_rho(rho: float, delta: float) -> float:
    """The largest rho for which `conditioned_rho` is at most `rho`, but for rounding.

    Raises ParameterError where rho is too small for delta.
    """
    low, high = 0.0, rho
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if conditioned_rho(middle, delta) <= rho else (low, middle)
    if low <= 0:
        raise ParameterError(f"rho ({rho:g}) must exceed delta ({delta:g}); raise rho or lower delta")
    return low


def gumbel_offset(epsilon: float, delta: float, differing: int) -> float:
    """epsilon + log(differing/delta): by how much the stop element's score, over the Gumbel scale, exceeds that
    of the (k_bar+1)-th count (Algorithm 3); epsilon is linf over the scale."""
    return round_up(epsilon + math.log(differing) - math.log(delta), 16)


def permute_and_flip_offset(epsilon: float, delta: float, differing: int) -> float:
    """epsilon + log(differing/(2 delta)): the same for exponential noise, where differing is at least 2 delta."""
    return round_up(epsilon + math.log(differing) - math.log(2 * delta), 16)


def gumbel_rho(epsilon: float, k: int, *, tight: bool = False) -> float:
    """k epsilon^2/8: k selections of range epsilon each (Theorem 9)."""
    return round_up(k * bounded_range_rho(epsilon, tight=tight), 1)


def _isf(p: float) -> float:
    """The value that a standard normal exceeds with the chance p, computed in its own tail."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(p)


def tree_levels(horizon: int) -> int:
    """floor(log2 L) + 1: the most nodes of the binary mechanism that one event is in (Theorem 11)."""
    return horizon.bit_length()
