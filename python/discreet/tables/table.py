"""`Table`: rows for mechanisms that read a table themselves, with the names of its columns. SENSITIVE."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypedDict

from discreet.errors import ParameterError
from discreet.private import Private

__all__ = ["PairColumns", "Table", "TableColumns"]


class PairColumns(TypedDict):
    """The columns of users and items, and how to read them."""

    user: str
    item: str
    memory: int | str | None
    progress: Callable[[], None] | None


class TableColumns(TypedDict, total=False):
    """The keyword arguments of a mechanism that reads a table."""

    user: str | None
    item: str | None
    value: str | None
    memory: int | str | None
    progress: Callable[[], None] | None


class Table(Private):
    """A table for mechanisms that read rows instead of counts. It is as sensitive as its rows.

    Some mechanisms read the rows twice.

    Args:
        data: A table as for `Histogram.from_table`: a path, a list of paths, a frame, a dict of columns, a Spark
            DataFrame or an Ibis table.
        user: The name of the column of users.
        item: The name of the column of items.
        value: The name of the column to sum, only for `ClippedSums` and `DiscoverAndSum`.
        memory: Bytes, or text such as "2GB", that reading may use.
        progress: A function that is called now and then, without a number.

    Raises:
        ParameterError: The name of a column is not a string.

    Example:
        >>> import discreet as dp
        >>> table = dp.tables.Table({"user": [1, 2], "page": ["a", "b"]}, user="user", item="page")
        >>> table
        Table(SENSITIVE)
    """

    data: object
    user: str
    item: str
    value: str | None
    memory: int | str | None
    progress: Callable[[], None] | None

    def __init__(
        self,
        data: object,
        *,
        user: str,
        item: str,
        value: str | None = None,
        memory: int | str | None = None,
        progress: Callable[[], None] | None = None,
    ) -> None:
        for what, name in (("user", user), ("item", item), ("value", value)):
            if not (isinstance(name, str) or (what == "value" and name is None)):
                raise ParameterError(f"{what} must be the name of a column")
        given = {"data": data, "user": user, "item": item, "value": value, "memory": memory, "progress": progress}
        for name, member in given.items():
            object.__setattr__(self, name, member)

    def __repr__(self) -> str:
        return "Table(SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Table cannot be changed: make a new one")
