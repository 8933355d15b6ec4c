"""Set union by weights and a threshold, after S. Gopi, P. Gulhane, J. Kulkarni, J. H. Shen, M. Shokouhi, S. Yekhanin,
"Differentially Private Set Union" (2020).

Each user gives weights to their items. Adding or removing one user changes all weights by at most one in l2 (in l1 for
Laplace noise). An item is named if its noisy weight exceeds the threshold. A user of t novel items gives each at most
1/sqrt(t) (1/t for Laplace noise).
"""

from __future__ import annotations

import math

from discreet.privacy.conversion import round_up
from discreet.theorems import rogers2023

__all__ = ["gaussian_threshold", "laplace_threshold", "round_shares"]


def gaussian_threshold(sigma: float, delta: float, t: int) -> float:
    """Return 1/sqrt(t) + sigma isf(1 - (1 - delta)^(1/t)).

    The probability that any of t novel items of one user exceeds it is delta.
    """
    return rogers2023.gaussian_threshold(sigma, rogers2023.novel_chance(delta, t), 1 / math.sqrt(t))


def laplace_threshold(scale: float, delta: float, t: int) -> float:
    """Return 1/t + scale log(1/(2(1 - (1 - delta)^(1/t)))): the same threshold for Laplace noise."""
    return round_up(1 / t - scale * math.log(2 * rogers2023.novel_chance(delta, t)), 64)


def round_shares(rounds: int, ratio: float = 1 / 3) -> list[float]:
    """Return each round's share of the budget: `ratio` times the next round's (Swanberg et al. 2023, DP-SIPS)."""
    shares = [ratio ** (rounds - 1 - i) for i in range(rounds)]
    return [share / math.fsum(shares) for share in shares]
