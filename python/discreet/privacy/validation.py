"""Parameters that are what they must be: numbers, whole numbers, flags and text."""

from __future__ import annotations

import numbers
import operator
from contextlib import suppress

from discreet.errors import ParameterError

__all__ = ["brief", "is_zero", "require_flag", "require_number", "require_text", "require_whole"]


def require_number(
    name: str, value: object, low: float, high: float, *, open_low: bool = True, open_high: bool = False
) -> float:
    """`value` as a float in (low, high], where `open_low` and `open_high` say which end does not belong to it.

    Raises ParameterError for anything else, a bool, a string, an array or a NaN included.
    """
    within = False
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(TypeError):  # numpy takes a span of time for a number, which it cannot compare with one
            within = bool(low <= value <= high)  # type: ignore[operator]
    if within:
        # What lies beside an end may be that end as a float.
        number = float(value)  # type: ignore[arg-type]
        if (number > low or not open_low) and (number < high or not open_high):
            return number
    least, most = "above" if open_low else "at least", "below" if open_high else "at most"
    raise ParameterError(f"{name} must be a number {least} {low:g} and {most} {high:g}, not {brief(value)}")


def is_zero(value: object) -> bool:
    """Whether this is the number zero, such as a delta where a promise needs none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and bool(value == 0)


def require_whole(name: str, value: object, low: int, high: int = 2**40) -> int:
    """`value` as an int in [low, high]; ParameterError for anything else, a bool or a float included."""
    if not isinstance(value, bool) and getattr(value, "ndim", 0) == 0:
        # An array of one cell has an __index__ that refuses what is no whole number.
        with suppress(TypeError):
            number = operator.index(value)  # type: ignore[arg-type]
            if low <= number <= high:
                return number
    raise ParameterError(f"{name} must be a whole number from {low} to {high}, not {brief(value)}")


def require_flag(name: str, value: object) -> bool:
    """`value`, where it is True or False; ParameterError for anything else, of which much would be taken for True."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be True or False, not {brief(value)}")
    return value


def require_text(name: str, value: object) -> str:
    """Return text that UTF-8 can encode; raise ParameterError for anything else, such as half of a surrogate pair."""
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):
            value.encode()
            return value
    raise ParameterError(f"{name} must be text that UTF-8 can encode, not {brief(value)}")


def brief(value: object) -> str:
    """A parameter's own value for an error message, cut where it is long."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "so large a number"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
