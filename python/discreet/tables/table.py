"""`Table`: rows for mechanisms that read a table themselves, with the names of its columns. SENSITIVE."""

from __future__ import annotations

from typing import NoReturn, TypedDict

from discreet.engines.memory import Memory
from discreet.engines.selection import Names, Period, require_names
from discreet.errors import ParameterError
from discreet.privacy.validation import require_text
from discreet.private import Private
from discreet.progress import ProgressOption, require_progress

__all__ = ["PairColumns", "Table", "TableColumns"]


class PairColumns(TypedDict):
    """The columns of users and items, and how to read them."""

    user: Names
    item: Names
    period: Period | None
    memory: int | str | None
    progress: ProgressOption


class TableColumns(TypedDict, total=False):
    """The keyword arguments of a mechanism that reads a table."""

    user: Names | None
    item: Names | None
    value: str | None
    memory: int | str | None
    progress: ProgressOption


class Table(Private):
    """A table for mechanisms that read rows instead of counts. It is as sensitive as its rows.

    Some mechanisms read the rows twice.

    Args:
        data: A table as for `Histogram.from_table`: a path, a list of paths, a frame, a dict of columns, a Spark
            DataFrame or an Ibis table.
        user: The name of the column of users, or of several columns.
        item: The name of the column of items, or of several columns that are one item.
        period: How a column of times divides or limits the rows; see `period_of`.
        value: The name of the column to sum, only for `ClippedSums` and `DiscoverAndSum`.
        memory: Bytes, or text such as "2GB", that reading may use.
        progress: True for a bar on a terminal or in a notebook, or a function that is called now and then.

    Raises:
        ParameterError: The name of a column is not a string, two names are the same, memory is no size, or progress is
            no function.

    Example:
        >>> import discreet as dp
        >>> table = dp.tables.Table({"user": [1, 2], "page": ["a", "b"]}, user="user", item="page")
        >>> table
        Table(SENSITIVE)
    """

    data: object
    user: Names
    item: Names
    period: Period | None
    value: str | None
    memory: int | str | None
    progress: ProgressOption

    def __init__(
        self,
        data: object,
        *,
        user: Names,
        item: Names,
        period: Period | None = None,
        value: str | None = None,
        memory: int | str | None = None,
        progress: ProgressOption = None,
    ) -> None:
        if value is not None:
            if not isinstance(value, str):
                raise ParameterError("value must be the name of a column")
            require_text("the name of the column of values", value)
        require_progress(progress)
        if memory is not None:
            Memory.of(memory)
        user, item = require_names(user, item, period)
        given: dict[str, object] = {"data": data, "user": user, "item": item, "period": period, "value": value}
        given |= {"memory": memory, "progress": progress}
        for name, member in given.items():
            object.__setattr__(self, name, member)

    @property
    def pairs(self) -> PairColumns:
        """The arguments of `Histogram.from_table` and `UserItems.from_table` for this table's columns."""
        return PairColumns(
            user=self.user, item=self.item, period=self.period, memory=self.memory, progress=self.progress
        )

    def __repr__(self) -> str:
        return "Table(SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Table cannot be changed: make a new one")
