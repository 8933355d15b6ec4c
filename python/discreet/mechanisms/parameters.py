"""Range checks for parameters that many mechanisms have."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np

from discreet import _core
from discreet.engines.cells import text_of
from discreet.errors import ParameterError
from discreet.privacy.guarantee import RHO_LIMIT
from discreet.privacy.validation import require_array, require_number, require_whole

__all__ = [
    "K_BAR",
    "L0_SHARE",
    "LINF_LIMIT",
    "PERCENTILE",
    "RELATIVE_ERROR",
    "check_threshold_parameters",
    "checked_fields",
    "require_bounds",
    "require_countable",
    "require_delta",
    "require_items",
    "require_list",
    "require_relative_error",
    "require_rho",
]

RELATIVE_ERROR, K_BAR = 0.1, 2**14
"""The defaults of confirmed counts, and of `count` without l0."""
PERCENTILE, L0_SHARE = 95, 0.05
"""The defaults of a bound that is found with privacy: the percentile of users, and its share of rho."""
LINF_LIMIT = 2**30
"""The largest linf: larger ones could overflow counts."""
_L0_LIMIT = 2**30


def check_threshold_parameters(mechanism: object, scale: str) -> None:
    """Validate and normalise scale, delta, l0 and linf of a frozen mechanism, or raise ParameterError."""
    checked = {
        scale: require_number(scale, getattr(mechanism, scale), 1e-3, 1e9),
        "delta": require_delta(getattr(mechanism, "delta", None)),
    }
    checked["l0"], checked["linf"] = require_bounds(getattr(mechanism, "l0", None), getattr(mechanism, "linf", None))
    if checked["delta"] / checked["l0"] < 1e-307:
        raise ParameterError(
            "delta is too small for this l0: delta/l0 must be at least 1e-307; raise delta or lower l0"
        )
    for name, value in checked.items():
        object.__setattr__(mechanism, name, value)


def require_bounds(l0: object, linf: object = 1) -> tuple[int, int]:
    """Return l0 and linf as integers from 1 to 2^30, or raise ParameterError."""
    return require_whole("l0", l0, 1, _L0_LIMIT), require_whole("linf", linf, 1, LINF_LIMIT)


def require_delta(delta: object) -> float:
    """Return delta as a float from 1e-300 to below 1, or raise ParameterError."""
    return require_number("delta", delta, 1e-300, 1, open_low=False, open_high=True)


def require_rho(rho: float) -> float:
    """Return rho as a float from 1e-300 to 10,000, or raise ParameterError."""
    return require_number("rho", rho, 1e-300, RHO_LIMIT, open_low=False)


def require_relative_error(relative_error: object) -> float:
    """Return the target error of confirmed counts as a float from 0.005 to below 1, or raise ParameterError."""
    return require_number("relative_error", relative_error, 0.005, 1, open_low=False, open_high=True)


def require_list(items: object) -> list[Any]:
    """Return items as a list, with the labels that columns of booleans, dates and times have.

    Raises ParameterError for anything but a list or an array of one dimension.
    """
    require_array("items", items)
    if getattr(items, "ndim", 1) != 1:
        raise ParameterError(
            "items must be a list of labels, such as release.items, and not an array of more dimensions"
        )
    found: list[Any] = items.to_pylist() if hasattr(items, "to_pylist") else list(items)  # type: ignore[call-overload]
    return found if {*map(type, found)} <= {str, int, bytes} else [*map(_label, found)]


def _label(value: object) -> object:
    """Return the label of a boolean, a date or a time: true, false, 2020-01-01 or 2020-01-01T12:00:00."""
    if isinstance(value, tuple):
        return (*map(_label, value),)
    if not isinstance(value, bool | np.bool_ | date | np.datetime64):
        return value
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise ParameterError('an item is a time with a zone: give its text in UTC, such as "2020-01-01T12:00:00Z"')
    return text_of(value)


def require_countable(items: Iterable[object]) -> None:
    """Raise ParameterError for an item longer than the labels of a table: rows with longer ones are left out."""
    if any(_size(label) > _core.LONGEST for label in items):
        raise ParameterError(
            f"an item has more than {_core.LONGEST:,} bytes, and rows with such an item are never counted; leave it "
            "out, or shorten it here and in the data"
        )


def _size(label: object) -> int:
    """Return the bytes of a label. One of several columns has a type, a length and a colon before each cell."""
    if isinstance(label, tuple):
        return sum(2 + len(str(size)) + size for size in map(_size, label))
    if isinstance(label, str):
        return len(label) if label.isascii() else len(label.encode("utf-8", "surrogatepass"))
    return len(label) if isinstance(label, bytes) else len(str(label)) if isinstance(label, int) else 0


def require_items(items: object) -> tuple[str | int | bytes, ...]:
    """Return given items as a tuple of plain Python values, so that a repr is readable.

    Raises ParameterError if there are no items, or if items repeat. Raises SchemaError if their types are mixed.
    """
    labels = tuple(require_list(items))
    plain = {*map(type, labels)} <= {str, int, bytes}  # a twelfth of the time of the next test
    hashable = plain or all(isinstance(label, Hashable) for label in labels)
    if not labels or not hashable or len(set(labels)) < len(labels):
        raise ParameterError("items must be distinct integers, strings or bytes, and at least one")
    found = _core.Labels.from_sequence(list(labels))
    return labels if plain else tuple(found.to_list())


def _whole(name: str, low: int, high: int) -> Callable[[object], int]:
    return partial(require_whole, name, low=low, high=high)


_CHECKS: dict[str, Callable[..., object]] = {
    "rho": require_rho,
    "delta": require_delta,
    "k": _whole("k", 1, 2**30),
    "l0": _whole("l0", 1, _L0_LIMIT),
    "most": _whole("most", 2, 2**20),
    "percentile": _whole("percentile", 1, 99),
    "rows": _whole("rows", 1, 2**30),
    "share": partial(require_number, "share", low=0, high=1, open_high=True),
}


def checked_fields(mechanism: object) -> dict[str, object]:
    """Return the fields of a frozen mechanism whose names have one meaning in all of them, or raise ParameterError.

    A field whose type has None may be None.
    """
    checked = {}
    for field in fields(mechanism):  # type: ignore[arg-type]
        value = getattr(mechanism, field.name)
        if field.name in _CHECKS and field.type != "bool" and not (value is None and "None" in str(field.type)):
            checked[field.name] = _CHECKS[field.name](value)
    return checked
