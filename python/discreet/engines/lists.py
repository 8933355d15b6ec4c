"""The items of every user of a table, for mechanisms that weigh a user's items against each other."""

from __future__ import annotations

import os
from typing import Any

from discreet import _core
from discreet.engines import files, local
from discreet.errors import DiscreetError, InputError, ParameterError

__all__ = ["read"]


def read(data: Any, *, user: str, item: str) -> tuple[_core.Labels, _core.Lists]:
    """The items' labels and every user's distinct items; `data` and errors are those of `local.count`."""
    for name, value in (("user", user), ("item", item)):
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be the name of a column")
    if user == item:
        raise ParameterError("user and item must be two different columns")
    if isinstance(data, dict):
        files.require_columns(data, [user, item])
        return _core.Lists.from_pairs(data[user], data[item])
    try:
        if isinstance(data, str | os.PathLike):
            return _core.Lists.from_stream(local.scan([data], [user, item]), user, item)
        if hasattr(data, "collect") and not hasattr(data, "__arrow_c_stream__"):
            data = data.collect()
        if not hasattr(data, "__arrow_c_stream__"):
            raise ParameterError(
                "data must be a path, a frame or relation with __arrow_c_stream__, or a dict of arrays, "
                f"not {type(data).__name__}"
            )
        if (known := local.names(data)) is not None:
            files.require_columns(known, [user, item])
        return _core.Lists.from_stream(data, user, item)
    except DiscreetError as error:
        if isinstance(error, InputError) and not str(error).startswith("cannot read"):
            raise InputError("cannot read the table; check it and its source") from None
        raise
    except (MemoryError, ImportError):
        raise
    except Exception:
        # What others say of the data is never passed on: it may quote cells.
        raise InputError("cannot read the table; check it and its source") from None
