"""The errors of the library.

Every class is stable and every message names a remedy. No message shows a value of the data, because an error that
depends on the data is a leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, Protocol

__all__ = [
    "AlreadyCharged",
    "BudgetExceeded",
    "Charged",
    "DiscreetError",
    "EntropyError",
    "InputError",
    "ItemTypeError",
    "LedgerError",
    "MissingLibraryError",
    "ParameterError",
    "ResourceError",
    "SchemaError",
    "SensitivityError",
    "StateError",
]


def __dir__() -> list[str]:
    return __all__


LEAST = 1e-9
"""The smallest rho or epsilon that is suggested for a release. Rounding of charges can leave less."""


OUT_OF_DELTA = "No delta is left: give each release a share of the total delta, or use one that needs none."
"""The remedy for a budget with no delta left: mechanisms for unknown items need some."""


@dataclass(frozen=True, slots=True)
class Charged:
    """The charge to a budget for a release or stream that ended with an exception.

    Every exception after a charge has it as the attribute `charged`, also KeyboardInterrupt and MemoryError.

    Args:
        dataset: The name of the dataset in its ledger; empty for a `Budget`.
        rho: The rho that was charged.
        delta: The delta that was charged.
        certain: False if the charge was interrupted, so that it may have been made or not. The budget's history shows
            which.
        release: The release, if it was complete: it is paid for, and may be published. Otherwise None.
        alone: Whether `budget.charge` made the charge, which makes no release.
        pair: The epsilon and delta of the charge, if the budget adds up epsilons.

    Example:
        >>> from discreet.errors import Charged
        >>> print(Charged("views", rho=0.25, delta=1e-7, certain=True))
        Charged to views: rho 0.25 and delta 1e-07. No rows were released, and a new release is charged again.
    """

    dataset: str
    rho: float
    delta: float
    certain: bool
    release: object = None
    alone: bool = False
    pair: tuple[float, float] | None = None

    @property
    def amount(self) -> str:
        """The charge in the terms of the budget."""
        if self.pair is not None:
            return "epsilon {:.6g} and delta {:.3g}".format(*self.pair)
        return f"rho {self.rho:.6g} and delta {self.delta:.3g}"

    @property
    def cost(self) -> str:
        """The sentence about the charge."""
        paid = "Charged" if self.certain else "Perhaps charged"
        return f"{paid} to {self.dataset or 'the budget'}: {self.amount}."

    def __str__(self) -> str:
        if self.alone:
            return f"{self.cost} Look at the budget's history before you charge it again."
        if self.release is None:
            return f"{self.cost} No rows were released, and a new release is charged again."
        return f"{self.cost} The release is complete: it is in the attribute charged.release of this error."


class DiscreetError(Exception):
    """The base class of the errors that discreet raises deliberately."""

    charged: Charged | None = None
    """The charge to a budget before the error; None if nothing was charged."""
    names: tuple[str, ...] = ()
    """The parameters that the text names. The command line shows them as options."""
    remedy: str = ""
    """The end of the text, if it gives parameters of a call that works. The command line shows them as options."""
    only_in_python: str = ""
    """The part of the text about a step that the command line does not have, and leaves out."""


class ParameterError(DiscreetError, ValueError):
    """A parameter is outside the range for which the theorem holds.

    Args:
        text: The message.
        names: The parameters that the text names, with spaces between them.
    """

    def __init__(self, text: object = "", *, names: str = "") -> None:
        super().__init__(text)
        self.names = tuple(names.split())


class MissingLibraryError(ImportError):
    """A library is not installed, or too old. The text says how to install it."""


class SchemaError(DiscreetError):
    """A column is missing, ambiguous, or of a type that cannot hold users or items."""


class ItemTypeError(SchemaError):
    """Listed items have another type than the column of items, or another number of columns."""


class InputError(DiscreetError):
    """A file or stream cannot be read. The message names the path, never the content."""


class SensitivityError(DiscreetError):
    """The histogram does not bound a user's contribution as the mechanism needs it. The message names the remedy."""


class Amount(Protocol):
    """A cost in rho and delta: a Guarantee."""

    @property
    def rho(self) -> float:
        """The rho."""

    @property
    def delta(self) -> float:
        """The delta."""

    @property
    def dp(self) -> tuple[float, float] | None:
        """The epsilon and delta; None if there is none."""


class BudgetExceeded(DiscreetError):
    """A charge exceeds the rest of a budget; nothing was charged.

    The message suggests a charge that fits, or gives `advice`.

    Args:
        requested: The charge: a Guarantee, or text if it is counted in another unit.
        remaining: The rest of the budget: a Guarantee or text.
        advice: The remedy, if it is not the parameters of a smaller release.
    """

    def __init__(self, requested: Amount | str, remaining: Amount | str, advice: str | None = None) -> None:
        shortfall, self.remedy = _shortfall(requested, remaining, advice)
        super().__init__(f"Privacy budget exceeded: {shortfall} {self.remedy}".rstrip())
        self.requested = requested
        self.remaining = remaining
        self._advice = advice

    def __reduce__(
        self,
    ) -> tuple[type[BudgetExceeded], tuple[Amount | str, Amount | str, str | None], dict[str, object]]:
        return type(self), (self.requested, self.remaining, self._advice), self.__dict__


def _shortfall(requested: Amount | str, remaining: Amount | str, advice: str | None) -> tuple[str, str]:
    """Return the requested cost with the rest of the budget, and a charge that fits."""
    if isinstance(requested, str) or isinstance(remaining, str):
        left = remaining if isinstance(remaining, str) else f"rho={remaining.rho!r} and delta={remaining.delta!r}"
        return f"this needs {requested}; {left} are left. Nothing was charged.", advice or ""
    short = [name for name in ("rho", "delta") if getattr(requested, name) > getattr(remaining, name)]
    digits = [_apart(getattr(requested, name), getattr(remaining, name)) for name in short]
    costs = " and ".join(f"{name}={cost}" for name, (cost, _) in zip(short, digits, strict=True))
    rest = " and ".join(f"{name}={left}" for name, (_, left) in zip(short, digits, strict=True))
    verb = "is" if len(short) == 1 else "are"
    remedy = _remedy(requested, remaining, advice)
    return f"this release costs {costs}; {rest} {verb} left. Nothing was charged.", remedy


def _remedy(requested: Amount, remaining: Amount, advice: str | None) -> str:
    """Return a charge that fits the rest of the budget, as the parameters of a release, or the advice if it is
    given.
    """
    if remaining.dp is not None and advice is None:
        return "Try epsilon={} and delta={}.".format(*map(_digits, remaining.dp))
    if remaining.rho < LEAST:
        return "No rho is left: nothing more can be released from this data."
    if remaining.delta == 0 and requested.delta > 0:
        return OUT_OF_DELTA
    if advice is not None:
        return advice
    return f"Try {fitting(requested, remaining)}."


def fitting(requested: Amount, remaining: Amount) -> str:
    """Return the parameters of a charge in rho that fits the rest of the budget."""
    # A guarantee in epsilon may split delta differently, so its charge names a delta if it has one.
    names = [name for name in ("rho", "delta") if getattr(requested, name) > getattr(remaining, name)]
    if requested.dp is not None:
        names = ["rho", "delta"] if requested.delta > 0 else ["rho"]
    amounts = (min(getattr(requested, name), getattr(remaining, name)) for name in names)
    return " and ".join(f"{name}={_digits(amount)}" for name, amount in zip(names, amounts, strict=True))


def _apart(more: float, less: float) -> tuple[str, str]:
    """Return two numbers with at least six digits, and as many more as they need to differ."""
    texts = ((f"{more:.{digits}g}", f"{less:.{digits}g}") for digits in range(6, 17))
    return next((pair for pair in texts if pair[0] != pair[1]), (repr(more), repr(less)))


def to_three_digits(number: float) -> float:
    """Return a number rounded down to three significant digits."""
    from decimal import ROUND_DOWN, Context

    return float(Context(prec=3, rounding=ROUND_DOWN).create_decimal(repr(number)))


def _digits(number: float) -> str:
    return f"{to_three_digits(number):g}"


class AlreadyCharged(DiscreetError):
    """A release with this `once=` was charged before; nothing was charged again.

    Args:
        once: The key.
        dataset: The dataset that was charged.
        time: The time of the charge.
        digest: The SHA-256 of the published rows, which `Release.digest` of a copy of them is; empty if the ledger has
            no release of them: the process ended before it, or still runs.
        replaced_by: The key of the last charge that replaces this one; empty if none does.
    """

    def __init__(self, once: str, dataset: str, time: str, digest: str, replaced_by: str = "") -> None:
        self.once, self.dataset, self.time, self.digest = once, dataset, time, digest
        self.replaced_by = replaced_by
        self.remedy = (
            f"If the rows are lost, they cannot be drawn again: give a new key and replaces {once!r}, which is "
            "charged in full."
        )
        if replaced_by:
            self.remedy = f"The charge with the key {replaced_by!r} replaced it."
        found = f"Its rows have the SHA-256 {digest}." if digest else "It still runs, or ended without a release."
        super().__init__(
            f"once {once!r} was charged to {dataset} at {time}. Nothing is charged again. {found} {self.remedy}"
        )
        self.names = ("once", "replaces")

    def __reduce__(self) -> tuple[type[AlreadyCharged], tuple[str, ...]]:
        return type(self), (self.once, self.dataset, self.time, self.digest, self.replaced_by)


class LedgerError(DiscreetError):
    """The ledger is locked, corrupt, rolled back or written by a newer version."""


class StateError(DiscreetError):
    """The state of a stream is corrupt, stale, locked or past its horizon."""


class EntropyError(DiscreetError):
    """The operating system provided no randomness; nothing was released."""


class ResourceError(DiscreetError):
    """Memory, disk or a connection failed; nothing was released."""


def raise_alone(error: BaseException) -> NoReturn:
    """Raise an error without its context. The context may quote cells, and `from None` alone keeps it."""
    try:
        raise error from None
    finally:
        error.__context__ = None


@contextmanager
def needs(library: str) -> Iterator[None]:
    """Wrap the import of an optional library. An ImportError then says how to install the library."""
    try:
        yield
    except ImportError as error:
        raise MissingLibraryError(f"this needs {library}: pip install {library}") from error
