"""Optimal partition selection: D. Desfontaines, J. Voss, B. Gipson, C. Mandayam, "Differentially private
partition selection" (2020), arXiv 2006.03684.

Each user has one partition. pi(n) is the probability that a partition of n users is released. `e` is
expm1(epsilon) throughout.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "PLACES",
    "chance_table",
    "crossovers",
    "release_chance",
    "release_chances",
    "table_numbers",
    "truncation_bound",
]

PLACES = 192
"""The binary places of the recurrence in `chance_table`."""


def crossovers(epsilon: float, delta: float) -> tuple[int, int]:
    """Return n1 and n2, the numbers of users at which pi changes its form (Theorem 1).

    Up to n1, pi grows like e^(n epsilon). From n1 to n2, 1 - pi falls like e^(-n epsilon). Beyond n2, pi is 1.
    """
    e = math.expm1(epsilon)
    n1 = 1 + math.floor(math.log1p(e * (1 - delta) / ((e + 2) * delta)) / epsilon)
    n2 = n1 + math.floor(math.log1p(e * (1 - _rising(epsilon, delta, n1)) / delta) / epsilon)
    return n1, n2


def release_chances(epsilon: float, delta: float) -> NDArray[np.float64]:
    """Return pi(0), pi(1), ..., pi(n2), 1: the optimal probabilities, in closed form (Theorem 1).

    Each is within a few parts in 1e15. None is above the largest value that the definition allows after the rounded
    value before it: the recurrence of Lemma 1 caps it.
    """
    n1, n2 = crossovers(epsilon, delta)
    n = np.arange(n2 + 2, dtype=np.float64)
    e, at_n1 = math.expm1(epsilon), _rising(epsilon, delta, n1)
    rising = delta * np.expm1(np.minimum(n, n1) * epsilon) / e
    falling = at_n1 - (1 - at_n1 + delta / e) * np.expm1(-(n - n1) * epsilon)
    chances = np.clip(np.where(n <= n1, rising, falling), 0.0, 1.0)
    chances[n2 + 1 :] = 1.0
    return chances


def release_chance(epsilon: float, delta: float, users: int) -> float:
    """Return pi(users) (Theorem 1)."""
    chances = release_chances(epsilon, delta)
    return float(chances[min(users, len(chances) - 1)])


def chance_table(epsilon: float, delta: float) -> NDArray[np.uint64]:
    """Return pi(0), pi(1), ... in units of 2^-64, up to the last that is below 1 (Lemma 1).

    Decisions with this table need no floats. Each value is computed from the previous one in integers and rounded down,
    so the definition holds exactly between neighbours. At delta = 1e-10 the values are a few parts in 1e8 below the
    optimum. `_core.chance_table` returns the same table.
    """
    growth, decay, share = table_numbers(epsilon, delta)
    one = 1 << PLACES
    chances, unit = [0], 1 << (PLACES - 64)
    while True:
        chance = chances[-1] * unit
        rest = one - chance - share
        following = min((growth * chance >> PLACES) + share, one - (-(-decay * rest >> PLACES)) if rest > 0 else one)
        if following >= one:
            return np.array(chances, np.uint64)
        chances.append(following // unit)


def table_numbers(epsilon: float, delta: float) -> tuple[int, int, int]:
    """Return e^epsilon rounded down, e^-epsilon rounded up and delta rounded down, in units of 2^-PLACES."""
    return *_exp_bounds(epsilon, PLACES), math.floor(Fraction(delta) * 2**PLACES)


def _exp_bounds(epsilon: float, places: int) -> tuple[int, int]:
    """Return e^epsilon rounded down and e^-epsilon rounded up, in units of 2^-places."""
    with localcontext() as context:
        context.prec = places // 3 + 40
        exact = Decimal(epsilon)
        unit = Decimal(2) ** places
        return int(exact.exp() * unit) - 1, int((-exact).exp() * unit) + 2


def truncation_bound(epsilon: float, delta: float) -> int:
    """Return k of the truncated geometric mechanism (Definition 6, Theorem 4).

    It is the least bound that noise of scale 1/epsilon, truncated there, reaches with probability at most delta.
    """
    e = math.expm1(epsilon)
    return math.ceil(math.log1p(e * (1 - delta) / ((e + 2) * delta)) / epsilon)


def _rising(epsilon: float, delta: float, n: int) -> float:
    return min(1.0, delta * math.expm1(n * epsilon) / math.expm1(epsilon))
