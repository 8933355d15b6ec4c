"""The check that a table gives its rows more than once."""

from __future__ import annotations

import os
from collections.abc import Callable

from discreet.engines.batches import SmallBatches
from discreet.engines.frames import is_read_once, library
from discreet.engines.memory import Memory
from discreet.engines.sql import connect
from discreet.engines.validated import interruptible
from discreet.errors import ParameterError, raise_alone

__all__ = ["require_rows_again"]

_REREADABLE = {"pandas": None, "polars": None, "pyarrow": ("Table", "RecordBatch", "FileSystemDataset")}
"""The classes of tables in each library that can be read again; None for all classes of a library."""


def require_rows_again(source: object) -> None:
    """Raise ParameterError for a table that can be read only once, or that differs in a second read.

    Files, dicts and tables of pandas, polars and pyarrow pass at once. A relation of DuckDB, or an object of another
    library, may read from a one-shot source. Its rows are counted twice, and both counts must be equal. The error tells
    only that the counts differ, never a count.

    Raises:
        ParameterError: The table gives its rows only once.
    """
    if is_read_once(source):
        raise ParameterError(
            "the table is read twice, but a reader or generator gives its rows once: read it into a table first"
        )
    for table in source if isinstance(source, list | tuple) else (source,):
        count = _row_counter(table)
        if count is not None:
            _require_equal(count, is_query=library(table) == "duckdb")


def _row_counter(table: object) -> Callable[[], int] | None:
    """Return a function that reads a table and counts its rows, or None if the table needs no such check."""
    if isinstance(table, str | bytes | os.PathLike | dict):
        return None
    if (known := _REREADABLE.get(library(table), ())) is None or type(table).__name__ in known:
        return None
    if library(table) == "duckdb" and hasattr(table, "aggregate"):
        return lambda: int(table.aggregate("count(*)").fetchall()[0][0])
    if hasattr(table, "scanner") and hasattr(table, "count_rows"):
        return lambda: int(table.count_rows())
    if not hasattr(table, "__arrow_c_stream__"):
        return None  # not a table: reading it raises the error

    def scanned() -> int:
        connection = connect(Memory.of(None))
        # One stream for each count: of an object, DuckDB takes a stream for the schema and another for the rows.
        connection.register("given", SmallBatches(table).__arrow_c_stream__())
        return int(connection.execute("SELECT count(*) FROM given").fetchall()[0][0])

    return scanned


def _require_equal(count: Callable[[], int], *, is_query: bool) -> None:
    """Raise ParameterError unless two counts of rows succeed and are equal."""
    counts: list[int] = []
    try:
        for _ in range(2):
            with interruptible():
                counts.append(count())
    except Exception:  # the text may quote cells
        if is_query and not counts:
            return  # a query that fails: reading it raises an error with its remedy
    if len(counts) < 2 or counts[0] != counts[1]:
        raise_alone(
            ParameterError(
                "the table is read twice, but its source gave its rows once, or other rows the second time: make the "
                "source again, and read it into a table of pyarrow, polars or pandas first"
            )
        )
