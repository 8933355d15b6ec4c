"""Where rows come from: the only folder that meets other engines.

An engine turns a table of (user, item) rows into the distinct users of each item, or into weights of items. It knows no
noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.engines import ibis, local, spark
from discreet.engines.engine import Counted, Engine, Items, Progress
from discreet.engines.frames import is_read_once
from discreet.engines.memory import Memory
from discreet.engines.weighing import Elsewhere, Here, Lists
from discreet.errors import ParameterError

__all__ = ["histogram", "lists", "require_rows_again", "rows_here"]

_ENGINES: dict[str, Engine] = {"pyspark": spark, "ibis": ibis}
"""By the library that a table comes from; all others are tables of this machine."""


def _elsewhere(source: object, user: str, item: str) -> Engine | None:
    """The engine that has the rows of `source`, where they are not on this machine."""
    for name, value in (("user", user), ("item", item)):
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be the name of a column")
    if user == item:
        raise ParameterError("user and item must be two different columns")
    return _engine_of(source)


def _engine_of(source: object) -> Engine | None:
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    return next((_ENGINES[name] for name in _ENGINES if name in libraries), None)


def rows_here(source: object) -> bool:
    """Whether the rows of `source` are, or can be, on this machine: no other engine has them."""
    return _engine_of(source) is None


def require_rows_again(source: object) -> None:
    """Raises ParameterError for a table that gives its rows once: what comes of it is read twice."""
    if is_read_once(source):
        raise ParameterError(
            "the table is read twice, and a reader or generator gives its rows once: read it all first"
        )


def histogram(
    source: Any,
    user: str,
    item: str,
    *,
    l0: int | None = None,
    limit: int | None = None,
    cap: int | None = None,
    only: Items | None = None,
    users: bool = False,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Counted:
    """The distinct users of each item of `source`, by the engine that has its rows; see `Engine`."""
    count = (_elsewhere(source, user, item) or local).histogram
    wanted: Any = {"l0": l0, "limit": limit, "cap": cap, "only": only, "users": users}
    counted = count(source, user, item, **wanted, memory=memory, progress=progress)
    return counted if cap is None else counted._replace(counts=np.minimum(counted.counts, cap))


def lists(
    source: object,
    user: str,
    item: str,
    *,
    l0: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Lists:
    """The items of every user of `source`, at most `l0` of each where that is given.

    Tables of this machine are read, for which `memory` is what reading and the lists may take; ResourceError where
    that is not enough. Those of a cluster or a warehouse stay there. Other errors are those of `histogram`.
    """
    engine = _elsewhere(source, user, item)
    if engine is None:
        return Here.read(source, user, item, l0=l0, memory=memory, progress=progress)
    Memory.of(memory)
    return Elsewhere(engine, source, user, item, progress)
