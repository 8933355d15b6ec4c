"""The columns that a count reads: users, items, and the times that divide or limit the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from discreet import _core
from discreet.errors import Parameter, ParameterError
from discreet.privacy.validation import require_choice, require_text

__all__ = [
    "EVERY",
    "FINE",
    "Names",
    "Period",
    "Times",
    "UserUnit",
    "columns_of",
    "exact_step",
    "is_free",
    "period_of",
    "require_free",
    "require_names",
]

Names: TypeAlias = "str | Sequence[str]"
"""The name of a column, or of several columns that are one user or one item together."""

Times: TypeAlias = "str | date | None"

UserUnit: TypeAlias = Literal["user", "user-hour", "user-day", "user-week", "user-month"]
"""What counts as one user: a user, or a user in one period."""

FINE = 2.0**-32
"""The step of columns of floats and text, and of columns whose cells decide their type."""
EVERY = ("1h", "1d", "1w", "1mo")
"""The lengths of periods."""
_UNITS: dict[UserUnit, str | None] = {
    "user": None,
    **dict(zip(("user-hour", "user-day", "user-week", "user-month"), EVERY, strict=True)),
}
"""The length of the periods of each unit."""
_RELEASED = ("rank", "count", "sigma")
"""The other columns of a release."""
_START = datetime(1970, 1, 1, tzinfo=UTC)


def exact_step(step: float) -> Fraction:
    """Return a step as the engine takes it: a power of two, or the shortest decimal of a float."""
    return Fraction(step) if math.frexp(step)[0] == 0.5 else Fraction(str(step))


class Period(NamedTuple):
    """How a column of times divides or limits the rows and users. `period_of` makes it from times as text.

    Args:
        column: The name of the column of times.
        every: The length of the periods that become a column of the item: 1h, 1d, 1w or 1mo.
        since: The first moment that counts, in microseconds since 1970 in UTC.
        until: The first moment afterwards that does not count, in the same unit.
        each: The length of the periods in each of which a user counts as another user.

    Example:
        >>> from discreet.engines.projection import period_of
        >>> period_of("ts", "1d", None, "1970-01-02").until
        86400000000
    """

    column: str
    every: str | None
    since: int | None
    until: int | None
    each: str | None = None

    @property
    def unit(self) -> UserUnit:
        """What counts as one user."""
        return next(unit for unit, each in _UNITS.items() if each == self.each)

    @property
    def exchanged(self) -> Period:
        """The period for the same rows with users for items and items for users."""
        return self._replace(every=self.each, each=self.every)

    def __repr__(self) -> str:
        """Return the fields, and `each` only if it is given: a ledger has digests of such texts, for `once`."""
        given = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True) if name != "each" or value]
        return f"Period({', '.join(given)})"


def period_of(
    time: str | None, every: str | None, since: Times, until: Times, unit: UserUnit = "user"
) -> Period | None:
    """Return the period of these parameters, or None if there is no column of times.

    Args:
        time: The name of the column of times.
        every: The length of the periods that become a column of the item: 1h, 1d, 1w or 1mo.
        since: The first time that counts, in a form that a column of text may have.
        until: The first time afterwards that does not count.
        unit: What counts as one user: "user", "user-hour", "user-day", "user-week" or "user-month".

    Returns:
        A Period, or None.

    Raises:
        ParameterError: A parameter is missing or out of range.

    Example:
        >>> from discreet.engines.projection import period_of
        >>> period_of("ts", "1d", "1970-01-01", None)
        Period(column='ts', every='1d', since=0, until=None)
    """
    require_choice("unit", unit, tuple(_UNITS))
    each = _UNITS[unit]
    if time is None:
        if each is not None:
            raise ParameterError.about(
                "{} needs {time}, the name of the column of times", Parameter("unit", repr(unit))
            )
        if not (every is since is until is None):
            raise ParameterError.about("{every}, {since} and {until} need {time}, the name of the column of times")
        return None
    if not isinstance(time, str):
        raise ParameterError("time must be the name of a column")
    require_text("the name of the column of times", time)
    if every is since is until is each is None:
        raise ParameterError.about("{time} needs {every}, {since}, {until} or {unit:'user-day'}")
    if every is not None:
        require_choice("every", every, EVERY)
    found = Period(time, every, _moment("since", since), _moment("until", until), each)
    if found.since is not None and found.until is not None and found.since >= found.until:
        raise ParameterError.about("{until} must be later than {since}")
    return found


def _moment(name: str, given: Times) -> int | None:
    if given is None:
        return None
    if not isinstance(given, date):
        try:
            moment = _core.moment_of(given)
        except (TypeError, ValueError):
            moment = None
        if moment is None:
            raise ParameterError.about("{} must be a time such as 2026-01-31 or 2026-01-31T12:00", Parameter(name))
        return moment
    if not isinstance(given, datetime):
        given = datetime(given.year, given.month, given.day, tzinfo=UTC)
    passed = given.replace(tzinfo=given.tzinfo or UTC) - _START
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def require_names(user: Names, item: Names, period: Period | None = None) -> tuple[str | list[str], str | list[str]]:
    """Return the names of users and items, as a string if they have one column.

    Raises:
        ParameterError: A name is no string, is given twice, or is that of another column of the release.
    """
    if period is not None and not isinstance(period, Period):
        raise ParameterError("period must come from discreet.tables.period_of, or be left out")
    users, items = _named("user", user), _named("item", item)
    given = [*users, *items, *([] if period is None else [period.column])]
    if len({*given}) < len(given):
        if len(given) == 2:
            raise ParameterError.about("{user} and {item} must be two different columns")
        raise ParameterError.about("{user}, {item} and {time} must be the names of different columns")
    released = [*([] if period is None or period.every is None else [period.column]), *items]
    if len(released) > 1 and not all(name and "\0" not in name for name in released):
        raise ParameterError("a column of an item needs a name without NUL; rename it")
    if len({name.lower() for name in released}) < len(released):
        raise ParameterError("the columns of an item have the same name but for case; rename one")
    if len(released) > 1 and (taken := [name for name in released if name.lower() in _RELEASED]):
        raise ParameterError(
            f"an item of several columns cannot have the column {taken[0]!r}, because the release has a column of this "
            "name; rename it"
        )
    return (users[0] if len(users) == 1 else users), (items[0] if len(items) == 1 else items)


def _named(what: str, given: object) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or isinstance(names, bytes) or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{what} must be the name of a column, or a list of names")
    if not names:
        raise ParameterError(f"{what} must name at least one column")
    return [require_text(f"the name of the column of {what}s", name) for name in names]


def is_free(name: str) -> bool:
    """Return whether one column of items has a name of its own in a release, and not the usual one, "item"."""
    return bool(name) and "\0" not in name and name.lower() not in (*_RELEASED, "method") and name != "item"


def columns_of(user: Names, item: Names, period: Period | None = None) -> list[str]:
    """Return the names of all columns that are read."""
    users, items = _named("user", user), _named("item", item)
    return [*users, *items, *([] if period is None else [period.column])]


def require_free(released: Iterable[str], user: Names, item: Names, period: Period | None = None) -> None:
    """Raise ParameterError if a column that is read has the name of one of these columns of the release.

    No column of the release may have a NUL in its name, which Arrow and Parquet cannot hold.
    """
    named = {name.lower() for name in released}
    if any("\0" in name for name in named):
        raise ParameterError("a column to add up or average needs a name without NUL; rename it")
    if named & {name.lower() for name in columns_of(user, item, period)}:
        raise ParameterError.about(
            "a column of users, items or times has the name of a column of the release, in any case; rename it"
        )
