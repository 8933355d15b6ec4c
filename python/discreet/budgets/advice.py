"""Advice for a budget that is exceeded: an epsilon and delta that still fit."""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.budgets.balance import Balance
from discreet.errors import LEAST, BudgetExceeded, ParameterError, fitting, to_three_digits, trying
from discreet.privacy.guarantee import Guarantee, Promising

__all__ = ["require"]

_STEPS = 7
"""Bisection steps."""
_LEAST = 0.03
"""The smallest epsilon that is tried, as a share of the largest one that is tried."""


def require(
    budget: Balance,
    mechanism: Guarantee | Promising,
    made: Callable[[float, float], Guarantee | Promising],
    epsilon: float | None,
    delta: float | None,
) -> None:
    """Raise BudgetExceeded, with advice in epsilon and delta, unless a mechanism fits into the budget.

    `made` returns the mechanism for another epsilon and delta, or its guarantee, or raises ParameterError. `epsilon` is
    None if a rho was given, for which BudgetExceeded has its own advice.
    """
    try:
        budget.require(mechanism)
    except BudgetExceeded as error:
        if epsilon is None:
            raise
        requested, left = error.requested, error.remaining
        found = None if delta is None else _fitting(budget, made, epsilon, delta)
        if found is not None:
            advice = trying(dict(zip(("epsilon", "delta"), found, strict=True)))
        elif isinstance(requested, str) or isinstance(left, str) or left.dp or left.rho < LEAST:
            raise
        else:
            advice = trying(fitting(requested, left), ", without {epsilon}")
        raise BudgetExceeded(requested, left, advice) from None


def _fitting(
    budget: Balance, made: Callable[[float, float], Guarantee | Promising], epsilon: float, delta: float
) -> tuple[float, float] | None:
    """Return an epsilon and delta, with three digits, that fit into the remaining budget; None if none is found."""
    left, cost = budget.remaining, budget.cost(made(epsilon, delta))
    if left.dp is not None:
        if left.dp[0] < LEAST:
            return None
        epsilon, delta = min(epsilon, left.dp[0]), min(delta, left.dp[1])
    elif cost.delta > left.delta:
        delta = delta * left.delta / cost.delta
    # The text has three digits, so these digits are tried: a number that the text rounds up would be refused again.
    epsilon_limit = to_three_digits(epsilon)

    found = _largest(budget, made, epsilon_limit, to_three_digits(delta))
    # At a smaller epsilon a mechanism may charge a larger share of its delta. So try a delta that fits as a whole.
    return found or _largest(budget, made, epsilon_limit, to_three_digits(min(delta, left.delta)))


def _largest(
    budget: Balance, made: Callable[[float, float], Guarantee | Promising], epsilon_limit: float, delta: float
) -> tuple[float, float] | None:
    """Return the largest epsilon up to `epsilon_limit`, of three digits, that fits with this delta. Uses bisection."""

    def fits(candidate: float) -> bool:
        try:
            return budget.fits(made(candidate, delta))
        except ParameterError:
            return False

    if delta <= 0:
        return None
    if fits(epsilon_limit):
        return epsilon_limit, delta
    best = to_three_digits(epsilon_limit * _LEAST)
    if not fits(best):
        return None
    low, high = math.log(best), math.log(epsilon_limit)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        candidate = to_three_digits(math.exp(middle))
        if fits(candidate):
            best, low = candidate, middle
        else:
            high = middle
    return best, delta
