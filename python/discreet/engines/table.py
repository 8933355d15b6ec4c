"""Rows with the names of their columns, and how to read them. SENSITIVE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal, NoReturn, Self, TypedDict

from discreet.engines.memory import Memory
from discreet.engines.projection import Names, Period, Times, UserUnit, period_of, require_names
from discreet.errors import ParameterError
from discreet.privacy.validation import require_text
from discreet.private import Private
from discreet.progress import ProgressOption, require_progress
from discreet.signatures import refuse_unknown

__all__ = ["Columns", "Table", "as_table"]


class Columns(TypedDict, total=False):
    """The columns of rows that are no `Table`, and how to read them.

    Args:
        user: The column of users, or a list of columns that are one user together: integers, text, bytes, dates, times
            or booleans.
        item: The column of items, or a list of columns that are one item together, such as country and page. They are
            columns of the release, too. A row with a NULL in one of them is left out.
        time: The column of times: timestamps, dates or text such as 2026-01-31T12:00. A time without a zone is in UTC.
            A row whose cell is no time is left out.
        every: The length of periods: the period of a row, an hour, a day, a week or a month, becomes the first column
            of its item, named as the column of times. The guarantee is for a user with all periods together. Weeks
            begin on Monday.
        since: Read only rows from this time on, such as 2026-01-31 or 2026-01-31T12:00.
        until: Read only rows before this time.
        unit: What counts as one user, and what the guarantee protects: a user, which is the default, or a user in one
            period of `time` in UTC. Counts are then numbers of distinct pairs of user and period, and l0 bounds the
            items of a user in one period. The guarantee covers one period of a user; it is weaker for users with rows
            in many periods.
        memory: The memory that reading may use in addition to the data and its counts, such as 8G or 8GiB; half of the
            machine's or container's memory by default. Rows that do not fit spill to encrypted temporary files without
            a name. An `int` is a number of bytes.
        progress: True for a bar on a terminal or in a notebook, or a function that is called now and then without
            numbers: the number of rows is not public.
    """

    user: str | Sequence[str]
    item: str | Sequence[str]
    time: str | None
    every: Literal["1h", "1d", "1w", "1mo"] | None
    since: str | date | None
    until: str | date | None
    unit: Literal["user", "user-hour", "user-day", "user-week", "user-month"]
    memory: int | str | None
    progress: ProgressOption


class Table(Private):
    """Rows with the names of their columns, checked when they are made; see `discreet.Table`."""

    data: object
    user: Names
    item: Names
    period: Period | None
    value: str | None
    valued: bool
    """Whether only rows with a value count."""
    memory: int | str | None
    progress: ProgressOption
    listed: tuple[object, ...] | None
    """Public items, whose type a list of items is read as; None if the cells decide the type."""
    secret: bytes | None
    """The key of the choice of a user's l0 items, if counting again must make the same one; None for a new choice."""

    def __init__(
        self,
        data: object,
        *,
        user: Names,
        item: Names,
        time: str | None = None,
        every: str | None = None,
        since: Times = None,
        until: Times = None,
        unit: UserUnit = "user",
        value: str | None = None,
        memory: int | str | None = None,
        progress: ProgressOption = None,
    ) -> None:
        if value is not None:
            if not isinstance(value, str):
                raise ParameterError("value must be the name of a column")
            require_text("the name of the column of values", value)
        if isinstance(data, Private):
            raise ParameterError(f"data must be rows, not a {type(data).__name__}")
        require_progress(progress)
        if memory is not None:
            Memory.of(memory)
        period = period_of(time, every, since, until, unit)
        user, item = require_names(user, item, period)
        self._hold(data=data, user=user, item=item, period=period, value=value, valued=False)
        self._hold(memory=memory, progress=progress, listed=None, secret=None)

    @property
    def every(self) -> str | None:
        """The length of the periods of the items, or None."""
        return None if self.period is None else self.period.every

    @property
    def unit(self) -> UserUnit:
        """The unit that guarantees protect: what counts as one user."""
        return "user" if self.period is None else self.period.unit

    def exchanged(self) -> Self:
        """Return this table with users for items and items for users, whose counts are the items of each user."""
        return self._changed(user=self.item, item=self.user, period=self.period and self.period.exchanged)

    def with_values(self) -> Self:
        """Return this table, of which only rows with a value count."""
        return self._changed(valued=True)

    def without_value(self) -> Self:
        """Return this table without a column to sum."""
        return self._changed(value=None)

    def _changed(self, **members: object) -> Self:
        made = object.__new__(type(self))
        made._hold(**{name: getattr(self, name) for name in Table.__annotations__} | members)
        return made

    def _hold(self, **members: object) -> None:
        for name, member in members.items():
            object.__setattr__(self, name, member)

    def __repr__(self) -> str:
        return "Table(SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Table cannot be changed: make a new one")


def as_table(data: object, columns: Columns, value: str | None = None, *, caller: Callable[..., object]) -> Table:
    """Return `data` if it is a Table, or the rows `data` with these columns.

    Raises:
        ParameterError: A column is missing, or given beside a Table. Other errors are those of a Table.
        TypeError: There is no parameter of such a name; `caller` is the function that has none.
    """
    pays = {"budget", "charge"} & columns.keys()
    hint = "; to charge a budget, call budget.release(mechanism, ...)" if pays else ""
    refuse_unknown(caller, columns, Columns.__annotations__, hint)
    if isinstance(data, Table):
        if value is not None or any(given is not None for given in columns.values()):
            raise ParameterError("a Table already has its columns, memory and progress: leave them out")
        return data
    if columns.get("user") is None or columns.get("item") is None:
        raise ParameterError(f"{caller.__qualname__} reads a table: give user= and item=, the names of the columns")
    return Table(data, **columns, value=value)
