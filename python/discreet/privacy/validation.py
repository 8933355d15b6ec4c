"""Validation of parameters: numbers, whole numbers, flags, text and arrays."""

from __future__ import annotations

import numbers
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, SupportsIndex

from discreet.errors import Parameter, ParameterError, about
from discreet.wording import meant

__all__ = [
    "brief",
    "exact",
    "in_terms_of",
    "is_bytes",
    "is_comma",
    "is_equal",
    "is_number",
    "is_zero",
    "require_array",
    "require_choice",
    "require_flag",
    "require_number",
    "require_path",
    "require_text",
    "require_whole",
]


def require_number(
    name: str, value: object, low: float, high: float, *, open_low: bool = True, open_high: bool = False
) -> float:
    """Return `value` as a float between `low` and `high`; `open_low` and `open_high` exclude an endpoint.

    A Decimal or a Fraction becomes the nearest float, as a number in Python's source does. The guarantee of a release
    is computed from this float.

    Raises:
        ParameterError: The value is out of range or not a number: a bool, a string, an array or NaN.
    """
    if is_number(value):
        given: Any = value
        # NumPy would round the limits to the precision of a small type.
        real: numbers.Real = given.item() if getattr(value, "itemsize", 8) < 8 else given
        # numpy registers timedelta64 as a number, but cannot compare it. Nor can a Decimal that is NaN be compared.
        with suppress(TypeError, ArithmeticError):
            if real <= high and not real < low:
                # Converting to float can round a value just inside the range onto an excluded endpoint.
                number = float(real)
                if (number > low or not open_low) and (number < high or not open_high):
                    return number
    remedy, refused, beyond = "", None, 0
    if is_number(value):
        with suppress(TypeError, ValueError, ArithmeticError):  # a signaling NaN is no float
            refused = float(real)
            beyond = (refused >= high) - (refused <= low)
    if isinstance(value, str):
        point = "use a point as the decimal separator, and " if is_comma(value) else ""
        remedy = f"; {point}give a number without quotes, such as 0.5 or 1e-6"
    least, most = "above" if open_low else "at least", "below" if open_high else "at most"
    limits = f"{least} {exact(low)} and {most} {exact(high)}"
    error = ParameterError.about("{} must be a number {}, not {}{}", Parameter(name), limits, brief(value), remedy)
    raise error if refused is None else error.outside(refused, beyond)


_NOISE = {"scale", "sigma"}
"""The parameters of mechanisms that follow from the privacy parameters: the larger these, the smaller the noise."""


@contextmanager
def in_terms_of(rho: float | None, epsilon: float | None, delta: float | None) -> Iterator[None]:
    """Let an error about a number that the caller did not give name the privacy parameters that it follows from."""
    try:
        yield
    except ParameterError as error:
        promised = {"rho": rho, "epsilon": epsilon, "delta": delta}
        given = {name: value for name, value in promised.items() if value is not None}
        name = next((name.split(",")[0] for name in error.names), "")
        if not error.beyond or name not in {*promised, *_NOISE} or given.get(name) == error.refused:
            raise
        is_small = (error.beyond > 0) == (name in _NOISE)
        own = ["delta"] if name == "delta" else ["epsilon", "delta"] if rho is None and is_small else ["rho", "epsilon"]
        own = [one for one in own if one in given]
        if not own:
            raise
        parts = [about("{} ({})", Parameter(one), brief(given[one])) for one in own]
        verb, ones = ("is", "a {} value") if len(own) == 1 else ("are", "{} values")
        size, more = ("small", ones.format("larger")) if is_small else ("large", ones.format("smaller"))
        text = f"{' and '.join('{}' for _ in own)} {verb} too {size} for this release: give {more}"
        raise ParameterError.about(text, *parts).outside(given[own[0]], -1 if is_small else 1) from None


def exact(limit: float) -> str:
    """Return the text of a limit, with all digits if six do not suffice."""
    return text if float(text := f"{limit:g}") == limit else f"{limit!r}"


def is_comma(value: object) -> bool:
    """Return whether this is text with a decimal comma, such as "0,5"."""
    return isinstance(value, str) and re.fullmatch(r"-?\d*,\d+", value) is not None


def is_number(value: object) -> bool:
    """Return whether this is a real number of Python, numpy or the module decimal. Bools and text are none."""
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool)


def is_zero(value: object) -> bool:
    """Return whether this is the number zero, such as a delta that a mechanism does not need."""
    with suppress(ArithmeticError):  # a signalling NaN of the module decimal
        return is_number(value) and bool(value == 0)
    return False


def require_whole(name: str, value: object, low: int, high: int = 2**40) -> int:
    """Return `value` as an int in [low, high]; raise ParameterError for all else, including bools and floats."""
    # On Python 3.11 a test for SupportsIndex takes 6 us, so it comes after the test for int.
    if isinstance(value, (int, SupportsIndex)) and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0:
        # Zero-dimensional arrays have an __index__ that raises TypeError unless they hold a whole number.
        with suppress(TypeError):
            number = operator.index(value)
            if low <= number <= high and not getattr(value, "mask", False):  # NumPy returns the number under a mask
                return number
    raise ParameterError.about(
        "{} must be a whole number from {} to {}, not {}", Parameter(name), low, high, brief(value)
    )


def require_flag(name: str, value: object) -> bool:
    """Return `value` if it is a bool; otherwise raise ParameterError (other truthy values are refused)."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be True or False, not {brief(value)}")
    return value


def require_text(name: str, value: object) -> str:
    """Return text that UTF-8 can encode; raise ParameterError for all else, such as half of a surrogate pair."""
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):
            value.encode()
            return value
    raise ParameterError(f"{name} must be text that UTF-8 can encode, not {brief(value)}")


def require_path(path: object) -> str:
    """Return the text of a path; raise ParameterError for all else, such as bytes or text with a NUL character."""
    if isinstance(path, str | os.PathLike):
        with suppress(Exception):  # `__fspath__` may raise anything
            text = os.fspath(path)
            if isinstance(text, str) and b"\0" not in os.fsencode(text):
                return text
    raise ParameterError(f"a path must be text without NUL or a pathlib.Path, not {brief(path)}; give a file's path")


def require_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return text that is one of the choices; raise ParameterError for all else, with the choice most like it."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    near = meant(value, known) if isinstance(value, str) else ""
    *more, last = map(repr, known)
    raise ParameterError.about(
        "{} must be {} or {}, not {}{}", Parameter(name), ", ".join(more), last, brief(value), near
    )


def is_equal(value: object, default: object) -> bool:
    """Return whether a parameter has its default value. An array, which compares item by item, has not."""
    with suppress(Exception):
        return bool(value == default)
    return False


def require_array(name: str, value: object) -> None:
    """Raise ParameterError for a value without cells in a fixed order: a mapping, set, iterator, text or bytes.

    Such values can be iterated too. A mapping then gives its keys, and bytes give small integers.
    """
    interfaces = ("__array__", "__arrow_c_array__", "__arrow_c_stream__", "to_pylist")
    is_array = isinstance(value, Sequence) or any(hasattr(value, interface) for interface in interfaces)
    if not is_array or isinstance(value, str | Mapping) or is_bytes(value):
        kind = type(value).__name__
        article = "an" if kind[:1].lower() in {*"aeio"} else "a"
        raise ParameterError(f"{name} must be a list or an array, not {article} {kind}")


def is_bytes(value: object) -> bool:
    """Return whether a value is bytes, whose cells would be small integers."""
    return isinstance(value, bytes | bytearray | memoryview)


def brief(value: object) -> str:
    """Return a parameter's value for an error text, or its type if the value is long or has no text."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    text = None
    with suppress(Exception):  # for example, of a fraction of two numbers of thousands of digits
        text = repr(value)
    return text if text is not None and len(text) <= 60 else f"a {type(value).__name__}"
