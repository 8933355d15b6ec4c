"""Private Count Release: R. Rogers, "Private Count Release" (2024), arXiv 2403.05073.

The algorithm selects one item at a time by the unknown-domain Gumbel mechanism, publishes its noisy count and removes
it. When nothing is selected, it raises epsilon by sqrt(2). The cost of a step depends only on its epsilon's number in
that sequence. So all costs are fixed before any data is read: the price list. Prices are whole numbers of units of
2^-64 of rho, rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from discreet.privacy.conversion import round_down, round_up

__all__ = [
    "UNIT",
    "Level",
    "budget_units",
    "call_delta",
    "level_epsilon",
    "measurement_sigma",
    "most_calls",
    "most_releases",
    "plume_sigma",
    "plume_threshold",
    "price_list",
    "refined_sigma",
    "units_rho",
]

UNIT = 2**64
"""The number of units in a rho of one."""


class Level(NamedTuple):
    """The scales and prices of the calls that share one epsilon."""

    gamma: float
    """epsilon/linf: one over the scale of the Gumbel noise."""
    offset: float
    """epsilon T = epsilon + log(k_bar/delta*): the offset of the stop element's score from the (k_bar+1)-th score."""
    sigma: float
    """The scale of the Gaussian noise of a count."""
    call_price: int
    """epsilon^2/8 in units: an exponential mechanism of range epsilon (Rogers 2024, Theorem 4)."""
    count_price: int
    """linf^2/(2 sigma^2) in units: Gaussian noise on a count that one user changes by linf."""

    @property
    def dearest(self) -> int:
        """The guard of Algorithm 2: epsilon^2/4, or more if the count costs more than the call."""
        return self.call_price + max(self.call_price, self.count_price)


def level_epsilon(epsilon_star: float, level: int) -> float:
    """Return epsilon after `level` calls that selected nothing: epsilon* sqrt(2)^level (Rogers 2024, Algorithm 2)."""
    return math.ldexp(epsilon_star, level // 2) * (math.sqrt(2) if level % 2 else 1.0)


def price_list(
    rho: float,
    *,
    epsilon_star: float,
    delta_star: float,
    k_bar: int,
    relative_error: float,
    meet_relative_error: bool = False,
    linf: int = 1,
) -> list[Level]:
    """Return all affordable levels, cheapest first (Rogers 2024, Theorem 6).

    For a relative error r, sigma is linf (r/1.5)(1 + log(k_bar/delta*)/epsilon), and at least 2 linf/epsilon. So a
    count never costs more than the call that selected it. `meet_relative_error` drops the lower bound on sigma. The
    guard then uses the larger of the two prices. All counts over linf change by at most one, which is the theorem's
    case.
    """
    budget = budget_units(rho)
    levels: list[Level] = []
    while True:
        epsilon = level_epsilon(epsilon_star, len(levels))
        tail = math.log(k_bar) - math.log(delta_star)
        sigma = relative_error / 1.5 * (1 + tail / epsilon)
        if not meet_relative_error:
            sigma = max(sigma, 2 / epsilon)
        sigma *= linf
        level = Level(
            gamma=epsilon if linf == 1 else round_down(epsilon / linf),
            offset=round_up(epsilon + tail, 8),
            sigma=sigma,
            call_price=math.ceil(Fraction(epsilon) ** 2 * UNIT / 8),
            count_price=math.ceil(linf**2 * UNIT / (2 * Fraction(sigma) ** 2)),
        )
        if level.dearest > budget:
            return levels
        levels.append(level)


def plume_sigma(rho: float, items: int, *, literal: bool = False) -> float:
    """Return sqrt(m' / (2 rho)): the scale of noise on up to m' counts of a user, for `rho` (Rogers 2024, Section 4).

    The paper uses m' itself as the l2 sensitivity, which is too much noise by a factor sqrt(m'). `literal` follows the
    paper.
    """
    return round_up((items if literal else math.sqrt(items)) / math.sqrt(2 * rho), 16)


def plume_threshold(sigma: float, relative_error: float) -> float:
    """Return (2 + r) sigma / r: noisy counts above it have a relative error of about r (Rogers 2024, Section 4)."""
    return (2 + relative_error) * sigma / relative_error


def measurement_sigma(rho: float) -> float:
    """Return 1/sqrt(2 rho): the scale of Gaussian noise for `rho`, on a count that one user changes by one."""
    return round_up(1 / math.sqrt(2 * rho), 8)


def refined_sigma(*sigmas: float) -> float:
    """Return the scale of the mean of independent noisy counts, weighted by their precisions 1/sigma^2.

    Such a mean has the law of Brownian noise that was reduced to this scale. It costs as much as a single count of this
    scale (Whitehouse et al. 2022, which Rogers 2024 names as an extension).
    """
    return 1 / math.sqrt(math.fsum(sigma**-2 for sigma in sigmas))


def budget_units(rho: float) -> int:
    """Return rho in units, rounded down by one part in 2^51 more than needed.

    So what a mechanism spends is at most rho even if rho is a float just above the number that a caller has in mind, as
    the float 0.1 is (docs/decisions/total-and-parts.md).
    """
    return math.floor(Fraction(rho) * (2**51 - 1) * UNIT / 2**51)


def units_rho(units: int) -> float:
    """Return the rho of these units, rounded up."""
    rho = units / UNIT
    return rho if Fraction(rho) * UNIT >= units else math.nextafter(rho, math.inf)


def most_calls(delta: float, delta_star: float) -> int:
    """Return floor(delta/delta*), the number of calls that fit into delta (Rogers 2024, Theorem 6).

    The quotient uses the decimal numbers as written. A float may differ from its decimal number by a few parts in 1e17.
    The product form 1 - (1 - delta*)^n of the composition is below n delta* by more than that, unless n is one. If
    rounding still leaves the composition above delta, calls are dropped one by one.
    """
    calls = min(math.floor(Fraction(repr(delta)) / Fraction(repr(delta_star))), 2**62)
    while calls > 0 and call_delta(calls, delta_star) > delta:
        calls -= 1
    return calls


def call_delta(calls: int, delta_star: float) -> float:
    """Return 1 - (1 - delta*)^calls, rounded up (Rogers 2023, Theorem 6)."""
    if calls <= 1:
        return calls * delta_star
    return min(round_up(-math.expm1(calls * math.log1p(-delta_star)), 2), round_up(calls * delta_star, 1))


def most_releases(rho: float, levels: list[Level], calls: int) -> int:
    """Return the most rows that a release can have, by what the budget can pay for (Rogers 2024, Algorithm 2).

    Removing a row moves the later ranks up. So a truncated histogram must contain this many rows beyond the
    (k_bar+1)-th.
    """
    if not levels:
        return 0
    cheapest = min(level.call_price + level.count_price for level in levels)
    return min(calls, budget_units(rho) // cheapest)
