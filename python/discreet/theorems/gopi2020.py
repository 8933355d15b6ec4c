"""Set union by weights and a threshold, after S. Gopi, P. Gulhane, J. Kulkarni, J. H. Shen, M. Shokouhi, S. Yekhanin,
"Differentially Private Set Union" (2020).

Every user gives weights to their items, so that one user more or less changes all weights by at most one in l2 (in
l1); an item whose weight and noise exceed the threshold is named. A user of t novel items gives each at most
1/sqrt(t) (1/t).
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_up
from discreet.theorems import rogers2023

__all__ = ["gaussian_threshold", "laplace_threshold", "round_shares"]


def gaussian_threshold(sigma: float, delta: float, t: int) -> float:
    """1/sqrt(t) + sigma isf(1 - (1 - delta)^(1/t)): what t novel items of one user exceed with a chance of delta."""
    return rogers2023.gaussian_threshold(sigma, rogers2023.novel_chance(delta, t), 1 / math.sqrt(t))


def laplace_threshold(scale: float, delta: float, t: int) -> float:
    """1/t + scale log(1/(2(1 - (1 - delta)^(1/t)))): the same for Laplace noise."""
    return round_up(1 / t - scale * math.log(2 * rogers2023.novel_chance(delta, t)), 64)


def round_shares(rounds: int, ratio: float = 1 / 3) -> list[float]:
    """The share of each round of the budget, each `ratio` times the next one's (Swanberg et al. 2023, DP-SIPS)."""
    shares = [ratio ** (rounds - 1 - i) for i in range(rounds)]
    return [share / math.fsum(shares) for share in shares]
