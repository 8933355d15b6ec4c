"""Sums of a user's values of an item, clipped, and then summed over the users; by DuckDB."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from discreet.engines import files
from discreet.engines.local import Columns, connect, narrowed, quoted, scan
from discreet.errors import DiscreetError, InputError, ParameterError, SchemaError

__all__ = ["Rows", "clipped_sums"]

_MOST = 2**53
"""Beyond it a user's value says nothing that clipping would leave."""


def clipped_sums(
    data: Any,
    *,
    columns: tuple[str, str, str],
    items: list[Any],
    bounds: tuple[int, int],
    resolution: float,
) -> list[int]:
    """For each of `items` the sum over users of their own clipped sums, in whole units of the resolution.

    `columns`: the names of user, item and value. Items are compared as text, values that are no finite number
    are left out. Raises SchemaError for a missing column, InputError where the data cannot be read.
    """
    if len(set(columns)) < len(columns) or not all(isinstance(name, str) for name in columns):
        raise ParameterError("user, item and value must be the names of three different columns")
    user, item, value = (quoted(name) for name in columns)
    low, high = bounds
    # Whole units are exact in floating point up to 2^53, and rounding each row is part of what is summed.
    units = f"round(TRY_CAST({value} AS DOUBLE) / {resolution!r})"
    query = f"""
        SELECT place, CAST(sum(greatest({low}, least({high}, own))) AS BIGINT) AS total FROM (
            SELECT place, {user} AS who, sum(CAST(least({_MOST}, greatest(-{_MOST}, {units})) AS HUGEINT)) AS own
            FROM given JOIN wanted ON CAST({item} AS VARCHAR) = label
            WHERE {user} IS NOT NULL AND isfinite(TRY_CAST({value} AS DOUBLE))
            GROUP BY place, who)
        GROUP BY place"""
    texts = [label if isinstance(label, str) else str(label) for label in items]
    try:
        connection = connect()
        connection.register("given", Rows(_rows(data, list(columns))))
        connection.register("wanted", Columns([("place", np.arange(len(items)), "int64"), ("label", texts, "string")]))
        totals = dict(connection.sql(query).fetchall())
    except (MemoryError, ImportError, DiscreetError):
        raise
    except Exception:
        # What others say of the data is never passed on: it may quote cells.
        raise InputError("cannot sum this data; check it and its source") from None
    return [int(totals.get(place, 0)) for place in range(len(items))]


def _rows(data: Any, columns: list[str]) -> Any:
    """The columns as an object with an Arrow stream."""
    if isinstance(data, str | os.PathLike):
        return scan([data], columns)
    if isinstance(data, dict):
        files.require_columns(data, columns)
        arrays = [np.asarray(data[name]) for name in columns]
        if len({array.shape for array in arrays}) > 1 or arrays[0].ndim != 1:
            raise ParameterError("the columns must be equally long")
        return Columns([(name, array, _kind(name, array)) for name, array in zip(columns, arrays, strict=True)])
    frame = narrowed(data, columns)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise ParameterError(
            "data must be a path, a frame or relation with __arrow_c_stream__, or a dict of arrays, "
            f"not {type(data).__name__}"
        )
    return frame


def _kind(name: str, array: Any) -> str:
    kind = {"i": "int64", "u": "uint64", "f": "float64", "U": "string"}.get(array.dtype.kind)
    if kind is None:
        raise SchemaError(f"the column {name!r} must be an array of whole numbers, floats or text")
    return kind


class Rows:
    """An Arrow stream whatever its library: DuckDB would refuse a relation of another connection."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._source.__arrow_c_stream__()
