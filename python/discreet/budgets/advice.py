"""An (epsilon, delta) that a budget can still pay for, named where one that was asked for does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.budgets.filter import PrivacyFilter
from discreet.errors import BudgetExceeded, ParameterError, shortened

__all__ = ["require"]

_STEPS = 7
_LEAST = 0.03
"""The least epsilon that is tried, as a share of the one that was asked for."""


def require(
    budget: PrivacyFilter,
    mechanism: object,
    made: Callable[[float, float], object],
    epsilon: float | None,
    delta: float | None,
) -> None:
    """Raise BudgetExceeded unless the budget pays for a mechanism, with advice in the terms that the caller gave.

    Args:
        budget: What is to pay.
        mechanism: What was asked for, by `epsilon` and `delta`.
        made: Returns the mechanism of another epsilon and delta, or raises ParameterError.
        epsilon: The epsilon that was asked for; None for a rho, in which the error speaks by itself.
        delta: The delta that was asked for.
    """
    try:
        budget.require(mechanism)
    except BudgetExceeded as error:
        found = None if epsilon is None or delta is None else _fitting(budget, made, epsilon, delta)
        if found is None:
            raise
        advice = "Try epsilon={:g} and delta={:g}.".format(*found)
        raise BudgetExceeded(error.requested, error.remaining, advice) from None


def _fitting(
    budget: PrivacyFilter, made: Callable[[float, float], object], epsilon: float, delta: float
) -> tuple[float, float] | None:
    """An epsilon and delta, of three digits, that fit into what is left; None if none was found."""
    left, cost, whole = budget.remaining, budget.cost(made(epsilon, delta)), budget.guarantee.dp
    most = epsilon
    if left.dp is not None and whole is not None:
        most, delta = min(epsilon, whole[0]), min(delta, whole[1])
    elif cost.delta > left.delta:
        delta = shortened(delta * left.delta / cost.delta)

    found = _largest(budget, made, most, delta)
    # Another epsilon may take another share of delta.
    return found or _largest(budget, made, most, min(delta, shortened(left.delta)))


def _largest(
    budget: PrivacyFilter, made: Callable[[float, float], object], most: float, delta: float
) -> tuple[float, float] | None:
    """The largest epsilon up to `most`, of three digits, that fits with this delta, found by bisection."""

    def fits(candidate: float) -> bool:
        try:
            return budget.fits(made(candidate, delta))
        except ParameterError:
            return False

    if delta <= 0:
        return None
    if fits(most):
        return most, delta
    best = shortened(most * _LEAST)
    if not fits(best):
        return None
    low, high = math.log(best), math.log(most)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        candidate = shortened(math.exp(middle))
        if fits(candidate):
            best, low = candidate, middle
        else:
            high = middle
    return best, delta
