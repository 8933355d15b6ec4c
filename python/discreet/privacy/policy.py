"""A policy: the largest epsilon that a guarantee may have, at a given delta."""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import InputError, ParameterError
from discreet.privacy.guarantee import UNITS, Guarantee, Unit
from discreet.privacy.validation import require_choice, require_number
from discreet.wording import shown_down, shown_up

__all__ = ["policy_text", "require_policy", "require_within"]


def require_policy(max_epsilon: object, delta: object) -> tuple[float, float] | None:
    """Return a policy, the largest epsilon and its delta, or None if none is given."""
    if max_epsilon is None and delta is None:
        return None
    if max_epsilon is None or delta is None:
        raise ParameterError.about("give both {max_epsilon} and {delta}: the epsilon of a guarantee depends on it")
    return require_number("max_epsilon", max_epsilon, 0, 1000), require_number(
        "delta", delta, 0, 1, open_low=False, open_high=True
    )


def require_within(
    guarantee: Guarantee, max_epsilon: float, delta: float, *, what: str, unit: Unit = "user", parts: int = 1
) -> float:
    """Return the epsilon of a guarantee at a delta, rounded up; raise InputError if it exceeds the policy.

    Three parts of 0.1 keep a policy of 0.3, although the floats add up to more: at most one part in 2^52, by which true
    costs are below stated ones (docs/decisions/total-and-parts.md).
    """
    if guarantee.unit != require_choice("unit", unit, tuple(UNITS)):
        raise InputError(
            f"{what} is per {UNITS[guarantee.unit]}, and the policy is per {UNITS[unit]}: no epsilon of the one "
            f"follows from the other. Release with the unit of the policy, or check a policy with unit={guarantee.unit}"
        )
    try:
        is_pure = guarantee.dp is not None and guarantee.dp[1] == 0 == delta
        epsilon = guarantee.dp[0] if is_pure and guarantee.dp is not None else guarantee.epsilon(delta)
    except ParameterError:
        raise InputError(
            f"{what} exceeds the policy: it has no epsilon at delta {delta:g}, because its own delta is "
            f"{shown_up(guarantee.delta)}. Release with a smaller delta, or choose a policy with a larger one"
        ) from None
    if Fraction(epsilon) > Fraction(max_epsilon) * (1 if parts == 1 else Fraction(2**52 + 1, 2**52)):
        raise InputError(f"{what} exceeds the policy: {policy_text(epsilon, max_epsilon, delta)}")
    return min(epsilon, max_epsilon)


def policy_text(epsilon: float, most: float, delta: float) -> str:
    """Return an epsilon and the largest allowed one, with enough digits to tell them apart."""
    shown, limit = shown_up(epsilon, 4), shown_down(most)
    if (float(shown) > float(limit)) != (epsilon > most):
        shown, limit = repr(epsilon), repr(most)
    return f"epsilon {shown} at delta {delta:g}; the policy allows at most {limit}"
