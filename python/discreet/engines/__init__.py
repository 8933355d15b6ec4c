"""Sources of rows: the only package that reads rows with DuckDB, Spark and Ibis.

An engine turns a table of (user, item) rows into the number of distinct users of each item, or into weights of
items. It draws no noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines import local, remote, rereading
from discreet.engines.engine import Counted, Engine, Items
from discreet.engines.memory import Memory
from discreet.engines.selection import Names, Period, period_of, require_names
from discreet.engines.weighing import Lists, LocalLists, RemoteLists
from discreet.logs import debug
from discreet.progress import ProgressOption, require_progress, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "histogram",
    "lists",
    "numbers_of_items",
    "period_of",
    "require_names",
    "require_rows_again",
    "rows_here",
]

_ENGINES: dict[str, Callable[[], Engine]] = {"pyspark": lambda: remote.spark, "ibis": lambda: remote.ibis}
"""Engines by the library of a table. Tables of other libraries are read on this machine."""


def _engine_of(source: object) -> Engine | None:
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
    return _engine_of(source) is None


def require_rows_again(source: object) -> None:
    """Raise ParameterError for a table that can be read only once, because the mechanism reads it twice.

    Tables of a cluster or a warehouse stay there, and pass.
    """
    if rows_here(source):
        rereading.require_rows_again(source)


def histogram(
    source: object,
    user: Names,
    item: Names,
    *,
    period: Period | None = None,
    l0: int | None = None,
    limit: int | None = None,
    cap: int | None = None,
    only: Items | None = None,
    users: bool = False,
    memory: int | str | None = None,
    progress: ProgressOption = None,
) -> Counted:
    """Return the number of distinct users of each item, counted by the engine that holds the rows; see `Engine`."""
    user, item = require_names(user, item, period)
    engine = _engine_of(source) or local
    with shown(progress) as tick:
        counted = engine.histogram(
            source,
            user,
            item,
            period=period,
            l0=l0,
            limit=limit,
            cap=cap,
            only=only,
            users=users,
            memory=memory,
            progress=tick,
        )
    return counted if cap is None else counted._replace(counts=np.minimum(counted.counts, cap))


def numbers_of_items(
    source: object,
    user: Names,
    item: Names,
    *,
    period: Period | None = None,
    memory: int | str | None = None,
    progress: ProgressOption = None,
) -> NDArray[np.int64]:
    """Return the number of distinct items of each user who has any, in any order of the users.

    The engine counts with the columns of users and items exchanged, so that a count is the number of items of a user.
    A cluster or warehouse sends one number for each user.

    Raises:
        SchemaError: A column is missing or of another type. The other errors are the same as in `histogram`.
    """
    user, item = require_names(user, item, period)
    # Not `histogram`, which checks the names of a release: no user is released.
    with shown(progress) as tick:
        found = (_engine_of(source) or local).histogram(
            source,
            item,
            user,
            period=period,
            l0=None,
            limit=None,
            cap=None,
            only=None,
            users=False,
            memory=memory,
            progress=tick,
        )
    if period is None or period.every is None:
        return found.counts
    # A label is now a period and a user. Items of different periods are different items, so a user's numbers add up.
    _, *columns = found.labels.columns()
    if len(columns) == 1 and (users := columns[0].integers()) is not None:
        distinct, places = np.unique(users, return_inverse=True)
        total = np.zeros(len(distinct), np.int64)
        np.add.at(total, places, found.counts)
        return total
    numbers: dict[object, int] = {}
    for label, count in zip(zip(*(one.to_list() for one in columns), strict=True), found.counts.tolist(), strict=True):
        numbers[label] = numbers.get(label, 0) + count
    return np.fromiter(numbers.values(), np.int64, len(numbers))


def lists(
    source: object,
    user: Names,
    item: Names,
    *,
    period: Period | None = None,
    l0: int | None = None,
    memory: int | str | None = None,
    progress: ProgressOption = None,
) -> Lists:
    """Return the items of every user of `source`, at most `l0` of each if `l0` is given.

    Rows on this machine are read, and `memory` limits reading and the lists. Rows of a cluster or a warehouse stay
    there.

    Raises:
        ResourceError: The lists do not fit into `memory`. The other errors are the same as in `histogram`.
    """
    user, item = require_names(user, item, period)
    engine = _engine_of(source)
    if engine is None:
        with shown(progress) as tick:
            return LocalLists.read(source, user, item, period=period, l0=l0, memory=memory, progress=tick)
    require_progress(progress)
    Memory.of(memory)
    return RemoteLists(engine, source, user, item, period, progress)
