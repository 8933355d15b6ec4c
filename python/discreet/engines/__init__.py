"""Sources of rows: the only package that reads rows with DuckDB, Spark and Ibis.

An engine turns a table of (user, item) rows into the number of distinct users of each item, or into weights of
items, or adds up their values. It draws no noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines import local, remote, rereading
from discreet.engines.engine import Counted, Engine, Items
from discreet.engines.table import Columns, Table
from discreet.engines.weighing import Counting, Lists, LocalLists, RemoteCounting, RemoteLists
from discreet.errors import ParameterError
from discreet.logs import debug
from discreet.progress import shown_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Columns",
    "Table",
    "counting",
    "counts_users",
    "engine_of",
    "held",
    "histogram",
    "lists",
    "numbers_of_items",
    "require_rows_again",
    "rows_here",
]

_ENGINES: dict[str, Callable[[], Engine]] = {"pyspark": lambda: remote.spark, "ibis": lambda: remote.ibis}
"""Engines by the library of a table. Tables of other libraries are read on this machine."""


def engine_of(source: object) -> Engine | None:
    """Return the remote engine for the library of `source`, or None."""
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    found = next((name for name in _ENGINES if name in libraries), None)
    debug(
        "engine: %s, because the table is a %s.%s",
        found or "this machine",
        type(source).__module__,
        type(source).__qualname__,
    )
    return None if found is None else _ENGINES[found]()


def rows_here(source: object) -> bool:
    """Return whether this machine reads the rows of `source`, because no other engine holds them."""
    return engine_of(source) is None


def counts_users(source: object) -> bool:
    """Return whether the engine of `source` counts users in the query that counts items (`histogram(users=True)`)."""
    asked: Callable[[object], bool] | None = getattr(engine_of(source), "counts_users", None)
    return asked is None or asked(source)


def require_rows_again(source: object) -> None:
    """Raise ParameterError for a table that can be read only once, because the mechanism reads it twice.

    Tables of a cluster or a warehouse stay there, and pass.
    """
    if rows_here(source):
        rereading.require_rows_again(source)


def histogram(
    table: Table,
    *,
    l0: int | None = None,
    limit: int | None = None,
    cap: int | None = None,
    only: Items | None = None,
    users: bool = False,
) -> Counted:
    """Return the number of distinct users of each item, counted by the engine that holds the rows; see `Engine`."""
    if isinstance(table.data, LocalLists):
        counted = table.data.histogram(l0=l0, only=only, users=users, secret=table.secret)
    else:
        engine = engine_of(table.data) or local
        with shown_progress(table.progress) as tick:
            counted = engine.histogram(table, l0=l0, limit=limit, cap=cap, only=only, users=users, tick=tick)
    return counted if cap is None else counted._replace(counts=np.minimum(counted.counts, cap))


def held(table: Table, *, any_order: bool = False) -> LocalLists:
    """Return what one pass over the rows of a table finds, which answers all later questions but sums.

    `any_order` is faster, and for counts and even weights only; see `LocalLists.read`.

    Raises:
        ParameterError: The rows are elsewhere. The other errors are the same as in `lists`.
    """
    found = lists(table, any_order=any_order)
    if not isinstance(found, LocalLists):
        raise ParameterError("read needs the rows on this machine; a cluster or a warehouse keeps its rows")
    return found


def counting(table: Table) -> Counting:
    """Return one release's access to counts, and to the other items of users once some items are set apart.

    Rows on this machine are read once. For rows of a cluster or a warehouse, every answer is a query.

    Raises:
        ResourceError: The folder for temporary files is full. The other errors are the same as in `histogram`.
    """
    engine = None if isinstance(table.data, LocalLists) else engine_of(table.data)
    return held(table, any_order=True) if engine is None else RemoteCounting(engine, table)


def numbers_of_items(table: Table) -> NDArray[np.int64]:
    """Return the number of distinct items of each user who has any, in any order of the users.

    The engine counts with the columns of users and items exchanged, so that a count is the number of items of a user.
    A cluster or warehouse sends one number for each user.

    Raises:
        SchemaError: A column is missing or of another type. The other errors are the same as in `histogram`.
    """
    if isinstance(table.data, LocalLists):
        return table.data.sizes()
    return histogram(table.exchanged()).counts


def lists(table: Table, *, l0: int | None = None, any_order: bool = False) -> Lists:
    """Return the items of every user, at most `l0` of each if `l0` is given.

    Rows on this machine are read, and the table's `memory` limits reading and the lists; items beyond it are in an
    encrypted temporary file. Rows of a cluster or a warehouse stay there.

    Raises:
        ResourceError: The folder for temporary files is full. The other errors are the same as in `histogram`.
    """
    if isinstance(table.data, LocalLists):
        return table.data
    engine = engine_of(table.data)
    if engine is not None:
        return RemoteLists(engine, table)
    with shown_progress(table.progress) as tick:
        return LocalLists.read(table, l0=l0, tick=tick, any_order=any_order)
