"""The errors of the library.

Every class is stable and every message names a remedy. No message shows a value of the data, because an error that
depends on the data is a leak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from typing import NamedTuple, NoReturn, Protocol, Self

from discreet.wording import shown_down, shown_up

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
            return f"epsilon {shown_up(self.pair[0])} and delta {shown_up(self.pair[1], 3)}"
        return f"rho {shown_up(self.rho)} and delta {shown_up(self.delta, 3)}"

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


class Parameter(NamedTuple):
    """A parameter in a text, and the value that the text gives it, as in a call; "=" for any value."""

    name: str
    given: object = ""


class OnlyInPython(str):
    """A part of a text about a step that the command line does not have, and leaves out."""

    __slots__ = ()


_Spelling = Callable[[Parameter], str]


def _in_call(parameter: Parameter) -> str:
    """Return a parameter as a call has it: l0, l0="auto", or user= for any value."""
    return f"{parameter.name}{'=' * (parameter.given not in ('', '='))}{parameter.given}"


class _Spelt(Formatter):
    """A formatter whose named fields are parameters, and whose numbered fields are values."""

    def __init__(self, spelling: _Spelling) -> None:
        self._spelling = spelling

    def get_value(self, key: int | str, args: Sequence[object], _named: Mapping[str, object]) -> object:
        return args[key] if isinstance(key, int) else Parameter(key)

    def format_field(self, value: object, spec: str) -> str:
        if isinstance(value, Parameter):
            return self._spelling(Parameter(value.name, spec) if spec else value)
        if isinstance(value, Text | DiscreetError | OnlyInPython) and self._spelling is not _in_call:
            return "" if isinstance(value, OnlyInPython) else _spelt(value, self._spelling)
        return format(value, spec)


class Text(str):
    """A text as Python shows it, which knows where it names parameters; `about` makes it."""

    template: str
    values: tuple[object, ...]


def about(template: str, *values: object) -> Text:
    """Return a text about parameters, which a call and a command spell in different ways.

    Args:
        template: The text. `{}` is the next value, whose own braces and words stay as they are. `{l0}` is a parameter,
            `{l0:"auto"}` one with a value, `{certificate:True}` a flag and `{user:=}` one with any value.
        *values: The values, which may be a `Parameter`, an `OnlyInPython` or another text or error.
    """
    made = Text(_Spelt(_in_call).vformat(template, values, {}))
    made.template, made.values = template, values
    return made


def _spelt(text: str | DiscreetError, spelling: _Spelling) -> str:
    given = text.args[0] if isinstance(text, DiscreetError) and text.args else text
    return _Spelt(spelling).vformat(given.template, given.values, {}) if isinstance(given, Text) else str(text)


class DiscreetError(Exception):
    """The base class of the errors that discreet raises deliberately."""

    charged: Charged | None = None
    """The charge to a budget before the error; None if nothing was charged."""
    remedy: str = ""
    """The end of the text, if it gives parameters of a call that works."""

    @classmethod
    def about(cls, template: str, *values: object) -> Self:
        """Return an error whose text names parameters: `{l0}` in the template is one, and `{}` is the next value.

        Args:
            template: The text, as `about` takes it.
            *values: The values.
        """
        return cls(about(template, *values))

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that the text names."""
        found: dict[str, None] = {}

        def note(parameter: Parameter) -> str:
            found[parameter.name] = None
            return ""

        _spelt(self, note)
        return tuple(found)

    def in_options(self, options: Mapping[str, str]) -> str:
        """Return the text for a command, with options in place of the parameters that it names.

        Args:
            options: The options of the command, by parameter. Other parameters stay as they are, but if the text gives
                them a value, they are options of another command.
        """

        def spelling(parameter: Parameter) -> str:
            name, given = parameter
            option = options.get(name, f"--{name.replace('_', '-')}" if given else name)
            value = str(given).strip("'\"")
            return option if value in ("", "=", "True") else f"{option} {value}"

        return _spelt(self, spelling)


class ParameterError(DiscreetError, ValueError):
    """A parameter is outside the range for which the theorem holds."""

    refused: float | None = None
    """The number that is out of range, if the text is about one."""
    beyond: int = 0
    """-1 if this number is too small, and 1 if it is too large."""

    def outside(self, refused: float, beyond: int) -> Self:
        """Return this error as one about a number that is out of range.

        Args:
            refused: The number.
            beyond: -1 if it is too small, and 1 if it is too large.

        Returns:
            This error.
        """
        self.refused, self.beyond = refused, beyond
        return self


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
        super().__init__(
            about(
                "Privacy budget exceeded: {} {}" if self.remedy else "Privacy budget exceeded: {}",
                shortfall,
                self.remedy,
            )
        )
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
        return trying(dict(zip(("epsilon", "delta"), remaining.dp, strict=True)))
    if remaining.rho < LEAST:
        return "No rho is left: nothing more can be released from this data."
    if remaining.delta == 0 and requested.delta > 0:
        return OUT_OF_DELTA
    if advice is not None:
        return advice
    return trying(fitting(requested, remaining))


def trying(amounts: Mapping[str, float], more: str = "") -> Text:
    """Return the remedy to try these parameters, rounded down to three digits."""
    given = (Parameter(name, _digits(amount)) for name, amount in amounts.items())
    return about(f"Try {' and '.join('{}' for _ in amounts)}{more}.", *given)


def fitting(requested: Amount, remaining: Amount) -> dict[str, float]:
    """Return the parameters of a charge in rho that fits the rest of the budget."""
    # A guarantee in epsilon may split delta differently, so its charge names a delta if it has one.
    names = [name for name in ("rho", "delta") if getattr(requested, name) > getattr(remaining, name)]
    if requested.dp is not None:
        names = ["rho", "delta"] if requested.delta > 0 else ["rho"]
    return {name: min(getattr(requested, name), getattr(remaining, name)) for name in names}


def _apart(more: float, less: float) -> tuple[str, str]:
    """Return two numbers, rounded apart to six digits; with all digits if that does not tell them apart."""
    texts = shown_up(more), shown_down(less)
    return texts if texts[0] != texts[1] else (repr(more), repr(less))


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
        self.remedy = about(
            "If the rows are lost, they cannot be drawn again: give a new key and {replaces} {!r}, which is charged in "
            "full.",
            once,
        )
        if replaced_by:
            self.remedy = f"The charge with the key {replaced_by!r} replaced it."
        found = f"Its rows have the SHA-256 {digest}." if digest else "It still runs, or ended without a release."
        super().__init__(
            about(
                "{once} {!r} was charged to {} at {}. Nothing is charged again. {} {}",
                once,
                dataset,
                time,
                found,
                self.remedy,
            )
        )

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
