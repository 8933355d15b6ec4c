"""What discreet refuses, and how it says so.

Every class is stable, every message names the remedy, and no message ever shows a value of the data:
an error that depends on the data is a leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_DOWN, Context

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
]


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
        fits = [_shortened(getattr(remaining, name, 0)) for name in ("rho", "delta")]
        remedy = "" if "0" in fits else f"; a release of rho {fits[0]} and delta {fits[1]}, given as such, would fit"
        super().__init__(f"the charge {requested} does not fit into the remaining {remaining}{remedy}")
        self.requested = requested
        self.remaining = remaining

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[object, object]]:
        return type(self), (self.requested, self.remaining)


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


@contextmanager
def needs(library: str, package: str | None = None) -> Iterator[None]:
    """Around an import of what may be missing: an ImportError then says how to install it."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"this needs {library}: pip install {package or library}") from error
