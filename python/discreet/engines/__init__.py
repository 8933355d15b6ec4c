"""Where rows come from: the only folder that meets other engines.

An engine turns a table of (user, item) rows into the distinct users of each item. It knows no noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.engines import ibis, local, spark
from discreet.engines.engine import Counts, Engine, Items, Progress
from discreet.errors import ParameterError

__all__ = ["histogram"]

_ENGINES: dict[str, Engine] = {"pyspark": spark, "ibis": ibis}
"""By the library that a table comes from; all others are tables of this machine."""


def histogram(
    source: Any,
    user: str,
    item: str,
    *,
    l0: int | None = None,
    limit: int | None = None,
    enough: int | None = None,
    only: Items | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Counts:
    """The distinct users of each item of `source`, by the engine that has its rows; see `Engine`."""
    for name, value in (("user", user), ("item", item)):
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be the name of a column")
    if user == item:
        raise ParameterError("user and item must be two different columns")
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    engine = next((_ENGINES[name] for name in _ENGINES if name in libraries), local)
    labels, counts = engine.histogram(
        source, user, item, l0=l0, limit=limit, enough=enough, only=only, memory=memory, progress=progress
    )
    return labels, counts if enough is None else np.minimum(counts, enough)
