"""This machine: DuckDB scans Parquet files, everything else arrives as an Arrow stream; Rust counts.

DuckDB's own error texts are never passed on, since they quote cells of the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discreet import _core
from discreet.engines import files
from discreet.engines.batches import Rows, shortened
from discreet.engines.csv_rows import CsvInput, CsvRows
from discreet.engines.engine import Counted, Items, Progress
from discreet.engines.files import quoted
from discreet.engines.frames import frame, is_read_once, library, require_labels
from discreet.engines.memory import Memory
from discreet.engines.milliseconds import Microseconds, has_milliseconds
from discreet.engines.sql import connect, interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError, SchemaError, raise_alone

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["histogram", "read", "scan", "scanning"]

_Result = TypeVar("_Result")
_REMEDIES = {
    "duckdb": "; where a cell may not be what a query casts it to, TRY_CAST makes it NULL, and where text may not be "
    "UTF-8, read_parquet(..., utf8_validation = 'replace') reads it",
}
"""What else helps with a frame of a library that cannot be read."""
_PARSED = {"GEOMETRY", "JSON"}
"""Types of text and bytes whose cells DuckDB parses in a scan, which ends at one that it cannot."""


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
    """The distinct users of each item of a table of this machine; see `Engine`.

    `source`: a path or glob, an object with `__arrow_c_stream__`, a dict of arrays, or a list of these, whose rows are
    counted as those of one table. Rows that do not fit into `memory` wait in encrypted temporary files without a name.
    """
    listed = None if only is None else _core.Labels.from_sequence(only)

    def count(sources: list[Any], room: int) -> Counted:
        wanted: Any = {"l0": l0, "only": listed, "limit": limit, "cap": cap, "memory": room, "progress": progress}
        if users:
            return Counted(*_core.count_with_users(sources, user, item, **wanted))
        return Counted(*_core.count_distinct(sources, user, item, **wanted))

    return read(source, user, item, memory, count)


def read(
    source: object, user: str, item: str, memory: int | str | None, work: Callable[[list[object], int], _Result]
) -> _Result:
    """What `work` makes of the tables of `source`, as `_core` takes them, in so many bytes of memory."""
    room = Memory.of(memory)
    tables = source if isinstance(source, list | tuple) else [source]
    paths = [table for table in tables if isinstance(table, str | os.PathLike)]
    frames = [table for table in tables if not isinstance(table, str | os.PathLike)]

    has_csv = bool(paths) or any(isinstance(table, CsvInput) for table in frames)

    def attempt(careful: bool) -> _Result:
        with interruptible():
            found = scan(paths, [user, item], room, careful=careful) if paths else None
            scanned: list[object] = [found if isinstance(found, CsvRows) else Rows(found)] if paths else []
            opened = [
                table.columns([user, item]) if isinstance(table, CsvInput) else frame(table, user, item)
                for table in frames
            ]
            is_parquet = any(not isinstance(table, CsvRows) for table in scanned)
            left = room.beside_scan if is_parquet else room.beside_csv if has_csv else room.total
            kept = sum(path.size for path in paths if isinstance(path, files.Nameless))
            return work(scanned + opened, left - kept)

    try:
        return attempt(False) if any(map(is_read_once, frames)) else scanning(paths, attempt)
    except SchemaError:
        for table in frames:
            if isinstance(table, dict):
                require_labels(table, [user, item])
        raise
    except (MemoryError, ParameterError, ResourceError, ImportError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":
            raise_alone(ResourceError("the scan of the data needs more memory; allow more with `memory`"))
        # What others say of the data, or an exception of theirs holds, is never passed on: it may quote cells.
        ours = isinstance(error, DiscreetError)
        if not ours or (isinstance(error, InputError) and not str(error).startswith("cannot read")):
            shown = [*map(files.shown, paths), *map(_named, frames)]
            remedies = dict.fromkeys(_REMEDIES.get(library(table), "") for table in frames)
            raise_alone(InputError(f"cannot read {', '.join(shown)}; check it and its source{''.join(remedies)}"))
        raise


def scanning(paths: Sequence[str | os.PathLike[str]], attempt: Callable[[bool], _Result]) -> _Result:
    """What an attempt makes of the scan of files, the second time of a careful one.

    DuckDB reads Parquet up to the first text that is not UTF-8, and a cell must not decide whether there is an answer.
    What it says may quote cells, so any failure of a scan of Parquet is taken for this one.
    """
    try:
        return attempt(False)
    except (MemoryError, ParameterError, ResourceError, SchemaError, ImportError):
        raise
    except Exception as error:
        if not paths or type(error).__name__ == "OutOfMemoryException":
            raise
        failed = error
    if files.find(paths).form != "parquet":
        raise failed
    return attempt(True)


def scan(
    paths: Sequence[str | os.PathLike[str]],
    columns: list[str],
    room: Memory | None = None,
    *,
    careful: bool = False,
    time: str | None = None,
) -> DuckDBPyRelation | CsvRows:
    """The named columns of Parquet or of CSV files, given by paths and globs; an object with an Arrow stream.

    Rows of Parquet files in which one of them is text that is not UTF-8 are left out where the scan is `careful`, which
    takes twice as long; otherwise they end it. Those of CSV files are always left out. A cell of Parquet files over
    `_core.LONGEST` bytes is NULL, and so is one of the column `time`, where it is given, beyond the range of TIMESTAMP.
    """
    source = files.find(paths)
    if source.form == "CSV":
        return CsvRows.of(source, columns)

    import duckdb

    connection = connect(room)
    try:
        _require_one_schema(connection, source, columns)
        return shortened(_rows(connection, source, columns, time, careful=careful))
    except duckdb.Error:
        raise_alone(
            InputError(f"cannot read {source.shown} as {source.form}: it must be whole, and what its suffix says")
        )


def _require_one_schema(connection: DuckDBPyConnection, source: files.Source, columns: list[str]) -> None:
    """Raises SchemaError unless all Parquet files have the columns, and of one type: DuckDB would cast to the first
    file's, and stop at a cell that is not of it."""
    types = set()
    for path in source.escaped:
        asked = "SELECT name, num_children, duckdb_type FROM parquet_schema($1)"
        found = files.top_level(connection.execute(asked, [path]).fetchall())
        files.require_distinct([name for name, _ in found], source.shown)
        files.require_columns([name for name, _ in found], columns, is_schema=True)
        types.add(tuple(dict(found)[name] for name in columns))
    if len(types) > 1:
        raise SchemaError(
            f"the columns of {source.shown} are not of the same types in all files; cast them, in a query that makes "
            "one table of these by UNION ALL"
        )


def _rows(
    connection: DuckDBPyConnection, source: files.Source, columns: list[str], time: str | None, *, careful: bool
) -> DuckDBPyRelation:
    """A relation over Parquet files, if `careful` without the rows that have text which is not UTF-8.

    Read once with a question mark for every such byte and once without them, such text is different.
    """
    cells = {name: f"a.{quoted(name)}" for name in columns}
    found = connection.sql(f"SELECT {', '.join(cells.values())} FROM read_parquet($1) a", params=[source.escaped])
    for name, kind in zip(columns, map(str, found.types), strict=True):
        if kind in _PARSED:
            raise SchemaError(
                f"the column {name!r} of {source.shown} is {kind}, and DuckDB ends at a cell that is none; write it as "
                "text, or give the table as pyarrow.parquet.read_table reads it"
            )
    text = [name for name, kind in zip(columns, found.types, strict=True) if careful and str(kind) == "VARCHAR"]
    has_millis = time is not None and has_milliseconds(connection, source.escaped, time)
    if not (text or has_millis):
        return found
    # A positional join pairs the rows of scans that keep their order.
    connection.execute("SET preserve_insertion_order = true")
    tables = ["read_parquet($1, utf8_validation = 'replace') a" if text else "read_parquet($1) a"]
    if text:
        tables.append("read_parquet($1, utf8_validation = 'ignore') b")
    if time is not None and has_millis:
        connection.register("times", Microseconds(source.paths, time))
        tables.append("times")
        cells[time] = f"make_timestamp(moment) AS {quoted(time)}"
    whole = [f"a.{quoted(name)} IS NOT DISTINCT FROM b.{quoted(name)}" for name in text] or ["true"]
    return connection.sql(
        f"SELECT {', '.join(cells.values())} FROM {' POSITIONAL JOIN '.join(tables)} WHERE {' AND '.join(whole)}",
        params=[source.escaped],
    )


def _named(table: object) -> str:
    """A table in an error's text."""
    return table.shown if isinstance(table, CsvInput) else f"the {library(table)} table"
