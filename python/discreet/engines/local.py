"""This machine: DuckDB scans files, everything else arrives as an Arrow stream; Rust counts.

DuckDB's own error texts are never passed on, since they quote cells of the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discreet import _core
from discreet.engines import files
from discreet.engines.engine import Counts, Items, Progress
from discreet.engines.files import quoted
from discreet.engines.frames import frame, is_read_once, library, require_labels
from discreet.engines.memory import Memory
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
    """The distinct users of each item of a table of this machine; see `Engine`.

    `source`: a path or glob, an object with `__arrow_c_stream__`, a dict of arrays, or a list of these, whose rows are
    counted as those of one table. Rows that do not fit into `memory` wait in encrypted temporary files without a name.
    """
    listed = None if only is None else _core.Labels.from_sequence(only)

    def count(sources: list[Any], room: int) -> Counts:
        return _core.count_distinct(
            sources, user, item, l0=l0, only=listed, limit=limit, enough=enough, memory=room, progress=progress
        )

    return read(source, user, item, memory, count)


def read(
    source: Any, user: str, item: str, memory: int | str | None, work: Callable[[list[Any], int], _Result]
) -> _Result:
    """What `work` makes of the tables of `source`, as `_core` takes them, in so many bytes of memory."""
    room = Memory.of(memory)
    tables = source if isinstance(source, list | tuple) else [source]
    paths = [table for table in tables if isinstance(table, str | os.PathLike)]
    frames = [table for table in tables if not isinstance(table, str | os.PathLike)]

    def attempt(careful: bool) -> _Result:
        with interruptible():
            sources: list[Any] = [scan(paths, [user, item], room, careful=careful)] if paths else []
            sources += [frame(table, user, item) for table in frames]
            return work(sources, room.beside_scan if paths else room.total)

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
            shown = [*map(files.shown, paths), *(f"the {library(table)} table" for table in frames)]
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
    paths: Sequence[str | os.PathLike[str]], columns: list[str], room: Memory | None = None, *, careful: bool = False
) -> DuckDBPyRelation:
    """A relation over the named columns of Parquet or of CSV files, given by paths and globs.

    Rows of Parquet files in which one of them is text that is not UTF-8 are left out where the scan is `careful`, which
    takes twice as long; otherwise they end it. Those of CSV files are always left out.
    """
    import duckdb

    source = files.find(paths)
    wanted = ", ".join(quoted(name) for name in columns)
    connection = connect(room)
    try:
        if source.form == "parquet":
            _require_one_schema(connection, source, columns)
            found = connection.sql(f"SELECT {wanted} FROM read_parquet($1)", params=[source.paths])
            return _without_broken_text(connection, source.paths, found) if careful else found
        names = files.csv_header(source)
        marks = "tabs" if source.delimiter == "\t" else "commas"
        headless = f"; the first line of a CSV file must be the names of its columns, in UTF-8, with {marks} in between"
        files.require_columns(names, columns, instead="" if {*names} & {*columns} else headless)
        # A column without a name, as the index of a frame is written, has to be called something.
        called = [name or f"unnamed {place}" for place, name in enumerate(names)]
        types = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in called)
        return connection.sql(
            f"SELECT {wanted} FROM read_csv($1, columns = {{{types}}}, delim = {_literal(source.delimiter)}, "
            "header = true, auto_detect = false, quote = '\"', escape = '\"', nullstr = '', "
            "allow_quoted_nulls = false, ignore_errors = true, null_padding = false, strict_mode = false)",
            params=[source.paths],
        )
    except duckdb.Error:
        raise_alone(
            InputError(f"cannot read {source.shown} as {source.form}: it must be whole, and what its suffix says")
        )


def _require_one_schema(connection: DuckDBPyConnection, source: files.Source, columns: list[str]) -> None:
    """Raises SchemaError unless all Parquet files have the columns, and of one type: DuckDB would cast to the first
    file's, and stop at a cell that is not of it."""
    types = set()
    for path in source.paths:
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


def _without_broken_text(
    connection: DuckDBPyConnection, paths: list[str], relation: DuckDBPyRelation
) -> DuckDBPyRelation:
    """A relation over Parquet files without the rows that have text which is not UTF-8.

    Read once with a question mark for every such byte and once without them, such text is different.
    """
    text = [name for name, kind in zip(relation.columns, relation.types, strict=True) if str(kind) == "VARCHAR"]
    if not text:
        return relation
    connection.execute("SET preserve_insertion_order = true")
    wanted = ", ".join(f"a.{quoted(name)}" for name in relation.columns)
    whole = " AND ".join(f"a.{quoted(name)} IS NOT DISTINCT FROM b.{quoted(name)}" for name in text)
    return connection.sql(
        f"SELECT {wanted} FROM read_parquet($1, utf8_validation = 'replace') a POSITIONAL JOIN "
        f"read_parquet($1, utf8_validation = 'ignore') b WHERE {whole}",
        params=[paths],
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
