"""What discreet refuses, and how it says so.

Every class is stable, every message names the remedy, and no message ever shows a value of the data:
an error that depends on the data is a leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_DOWN, Context
from typing import NoReturn

__all__ = [
    "BudgetExceeded",
    "DiscreetError",
    "EntropyError",
    "InputError",
    "LedgerError",
    "ParameterError",
    "ResourceError",
    "SchemaError",
    "SensitivityError",
    "StateError",
    "needs",
    "raise_alone",
]


_LEAST_RHO = 1e-9
"""No release is of use that costs less: what the rounding of charges leaves."""


class DiscreetError(Exception):
    """The base of every error that discreet raises on purpose."""


class ParameterError(DiscreetError, ValueError):
    """A parameter is outside the range for which the theorem holds."""


class SchemaError(DiscreetError):
    """A column is missing, ambiguous, or of a type that cannot be a user or an item."""


class InputError(DiscreetError):
    """A file or stream could not be read. The message names the path, never the content."""


class SensitivityError(DiscreetError):
    """The histogram does not bound what the mechanism needs bounded. The message names the remedy."""


class BudgetExceeded(DiscreetError):
    """A charge does not fit into what is left; `requested` and `remaining` say by how much."""

    def __init__(self, requested: object, remaining: object) -> None:
        super().__init__(
            f"the charge {requested} does not fit into the remaining {remaining}{_fitting(requested, remaining)}"
        )
        self.requested = requested
        self.remaining = remaining

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[object, object]]:
        return type(self), (self.requested, self.remaining)


def _fitting(requested: object, remaining: object) -> str:
    """What would fit into what is left, where that has a rho and a delta."""
    rho, delta = (getattr(remaining, name, None) for name in ("rho", "delta"))
    if rho is None or delta is None:
        return ""
    if rho < _LEAST_RHO:
        return "; rho is used up: nothing more can be released of this data"
    if delta == 0 and getattr(requested, "delta", 1) == 0:
        return f"; a release of rho {_shortened(rho)} and no delta, given as such, would fit"
    if delta == 0:
        return "; delta is used up, and only what needs none fits: let each release have a share of the total delta"
    return f"; a release of rho {_shortened(rho)} and delta {_shortened(delta)}, given as such, would fit"


def _shortened(number: float) -> str:
    """Three digits of a number, rounded down."""
    return f"{float(Context(prec=3, rounding=ROUND_DOWN).create_decimal(repr(number))):g}"


class LedgerError(DiscreetError):
    """The durable budget is locked, corrupt, rolled back or written by a newer version."""


class StateError(DiscreetError):
    """The state of a stream is corrupt, stale, locked or past its horizon."""


class EntropyError(DiscreetError):
    """The operating system refused to give randomness; nothing was released."""


class ResourceError(DiscreetError):
    """Memory, disk or a connection gave out; nothing was released."""


def raise_alone(error: BaseException) -> NoReturn:
    """Raises an error without the one that is being handled, whose text may quote cells: `from None` only hides it."""
    try:
        raise error from None
    finally:
        error.__context__ = None


@contextmanager
def needs(library: str, package: str | None = None) -> Iterator[None]:
    """Around an import of what may be missing: an ImportError then says how to install it."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"this needs {library}: pip install {package or library}") from error
