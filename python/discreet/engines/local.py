"""The engine of this machine: DuckDB scans Parquet files, all other tables are Arrow streams, and Rust counts.

DuckDB's error texts are never passed on, because they quote cells of the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from discreet import _core
from discreet.engines import files
from discreet.engines.arrow_files import arrow_files
from discreet.engines.arrow_schema import durations
from discreet.engines.batches import SmallBatches, combined, is_relation, without_long_labels
from discreet.engines.csv_rows import CsvFiles, CsvInput, CsvRows
from discreet.engines.engine import Counted, Items, Progress
from discreet.engines.files import quoted
from discreet.engines.frames import (
    frame,
    is_read_once,
    kinds_of_lists,
    library,
    require_times,
    require_types,
)
from discreet.engines.json_rows import JsonRows
from discreet.engines.memory import Memory
from discreet.engines.milliseconds import Microseconds, has_milliseconds
from discreet.engines.projection import columns_of
from discreet.engines.sql import connect
from discreet.engines.table import Table
from discreet.engines.validated import interruptible
from discreet.engines.values import of_duckdb
from discreet.engines.versions import version_hint
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError, SchemaError, raise_alone
from discreet.formats import CSV, JSON_LINES, PARQUET

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["REMEDIES", "Reopened", "histogram", "read", "retried_carefully", "scan"]

_Result = TypeVar("_Result")
REMEDIES = {
    "duckdb": "; fetch the result of the connection's last query first, if it is open; if a query cannot cast a cell, "
    "TRY_CAST makes it NULL; if text is not UTF-8, use read_parquet(..., utf8_validation = 'replace'); if times in "
    "seconds or milliseconds exceed DuckDB's microseconds, give the Arrow table or the Parquet file itself instead of "
    "a relation",
}
"""Further remedies in errors about unreadable frames, by library."""
_FILE_NUMBER = "file_index"
"""DuckDB's name of the number of a row's file, from 0."""
_IN_UTC = "TIMESTAMP WITH TIME ZONE"
_KIND = f"CASE WHEN converted_type LIKE 'TIMESTAMP%' AND logical_type IS NULL THEN '{_IN_UTC}' ELSE duckdb_type END"
"""The type of a column of Parquet, as SQL. Writers before logical types wrote times in UTC, says Parquet's format."""


def histogram(
    table: Table,
    *,
    l0: int | None = None,
    limit: int | None = None,
    cap: int | None = None,
    only: Items | None = None,
    users: bool = False,
    tick: Progress | None = None,
) -> Counted:
    """Return the distinct users of each item of a table on this machine; see `Engine`.

    Rows that do not fit into `memory` spill to encrypted temporary files without a name.
    """
    listed = listed_labels(only)
    value = table.value if table.valued else None

    def count(sources: list[object], room: int) -> Counted:
        return Counted(
            *_core.count_distinct(
                sources,
                table.user,
                table.item,
                l0=l0,
                only=listed,
                limit=limit,
                cap=cap,
                memory=room,
                times=table.period,
                value=value,
                users=users,
                secret=table.secret,
                progress=tick,
            )
        )

    return read(table, count, value=value, only=listed)


def listed_labels(only: Items | None) -> _core.Labels | None:
    """Return listed items as labels."""
    return None if only is None else _core.Labels.from_sequence([*only] if isinstance(only, tuple) else only)


@interruptible()
def read(
    table: Table,
    work: Callable[[list[object], int], _Result],
    *,
    value: str | None = None,
    only: _core.Labels | None = None,
) -> _Result:
    """Return `work(sources, room)`, for the rows as `_core` takes them and the bytes of memory left.

    The rows have the column `value` too, if it is given. A list of items, or a column without a type, is read as a
    column of the type of the listed items `only`: the cells do not decide whether the types fit.
    """
    source, room = table.data, Memory.of(table.memory)
    columns = [*columns_of(table.user, table.item, table.period), *([] if value is None else [value])]
    tables = source if isinstance(source, list | tuple) else [source]
    paths = [table for table in tables if isinstance(table, str | os.PathLike)]
    csv = [table for table in tables if isinstance(table, CsvFiles)]
    frames = [table for table in tables if not isinstance(table, str | os.PathLike | CsvFiles)]
    once = [table for table in frames if is_read_once(table)]
    if len({*map(id, once)}) < len(once):
        raise ParameterError("a reader is given twice, but it gives its rows once; give each reader once")
    if any(isinstance(table, dict) for table in once):
        raise ParameterError("a column is an iterator, which gives its cells once: give a list or an array instead")
    only = listed_labels(table.listed) if only is None else only  # type: ignore[arg-type]
    kinds = _kinds(table, frames, value, only)
    relations = [table for table in frames if is_relation(table)]
    if relations and any(hasattr(table, "read_next_batch") for table in once):
        # A connection has one open result: a reader of the same one could be read only if it had no rows.
        raise ParameterError(
            "a list may not hold both a reader and a relation of DuckDB, which may share a connection: read the reader "
            "into a table first, with read_all()"
        )
    if len(relations) > 1:
        with interruptible():
            frames = [*(table for table in frames if not is_relation(table)), *combined(relations, columns)]
    on_disk = files.find(paths) if paths else None
    if on_disk is not None and on_disk.form.dataset is not None:
        on_disk.require_no_folder(columns)
        frames += arrow_files(on_disk)
        paths, on_disk = [], None
    opened: list[bool] = []
    has_csv = bool(paths or csv) or any(isinstance(table, CsvInput) for table in frames)

    def attempt(careful: bool) -> _Result:
        opened.clear()
        found = scan(on_disk, columns, room, careful=careful, value=value) if on_disk is not None else None
        scanned = [] if found is None else [found if isinstance(found, CsvRows | JsonRows) else SmallBatches(found)]
        scanned += [CsvRows.of_files(table, columns, value) for table in csv]
        given = [
            table.columns(columns, value) if isinstance(table, CsvInput) else frame(table, columns, value, kinds)
            for table in frames
        ]
        is_parquet = any(not isinstance(table, CsvRows | JsonRows) for table in scanned)
        left = room.beside_scan if is_parquet else room.beside_csv if has_csv else room.total
        kept = sum(path.size for path in paths if isinstance(path, files.MemoryFile))
        opened.append(True)
        return work([*scanned, *given, *([] if only is None else [only])], left - kept)

    try:
        # A second attempt cannot read a reader again, or a relation whose result is still open.
        return attempt(bool(paths)) if once or relations else retried_carefully(paths, attempt)
    except (MemoryError, ParameterError, ResourceError, SchemaError, ImportError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":
            raise_alone(ResourceError("the scan of the data needs more memory; give a larger `memory`"))
        # Exceptions of other libraries are never passed on: their texts may quote cells.
        # `_core` does not name a file; errors before its work name theirs.
        if not isinstance(error, DiscreetError) or (isinstance(error, InputError) and opened):
            shown = [
                *map(files.path_text, [*paths, *(path for table in csv for path in table.paths)]),
                *map(_named, frames),
            ]
            if hint := next(filter(None, (version_hint(library(table)) for table in frames)), ""):
                raise_alone(InputError(f"cannot read {', '.join(shown)}: {hint}"))
            remedies = dict.fromkeys(REMEDIES.get(library(table), "") for table in frames)
            raise_alone(InputError(f"cannot read {', '.join(shown)}; check the data and its source{''.join(remedies)}"))
        raise


def _kinds(table: Table, frames: Sequence[object], value: str | None, only: _core.Labels | None) -> dict[str, str]:
    """Return the kinds of columns that are lists in dicts, or raise the SchemaError of arrays of other types.

    A list of times is text. A list of items has the type of listed items, if these are given: the cells do not decide
    whether the types fit.
    """
    dicts = [given for given in frames if isinstance(given, dict)]
    for given in dicts:
        require_types(given, table.user, table.item, table.period, value)
    kinds = kinds_of_lists(dicts, columns_of(table.user, table.item, table.period))
    if table.period is not None:
        require_times(frames, table.period.column)
        kinds |= dict.fromkeys({table.period.column} & {*kinds}, "text")
    if only is not None and isinstance(only.type_name, str) and isinstance(table.item, str) and table.item in kinds:
        kinds[table.item] = only.type_name.replace("string", "text")
    return kinds


def retried_carefully(paths: Sequence[str | os.PathLike[str]], attempt: Callable[[bool], _Result]) -> _Result:
    """Return the result of a scan of files. If the first attempt fails, make a second, careful one (see `scan`).

    DuckDB fails at the first Parquet text that is not UTF-8, but one cell must not decide whether a release succeeds.
    DuckDB's error text may quote cells, so it is not read: any failure of a Parquet scan leads to the careful attempt.
    """
    try:
        with interruptible():
            return attempt(False)
    except (MemoryError, ParameterError, ResourceError, SchemaError, ImportError):
        raise
    except Exception as error:
        if not paths or type(error).__name__ == "OutOfMemoryException":
            raise
        failed = error
    if files.find(paths).form is not PARQUET:
        raise failed
    return attempt(True)


def scan(
    paths: Sequence[str | os.PathLike[str]] | files.Source,
    columns: list[str],
    room: Memory | None = None,
    *,
    careful: bool = False,
    keeps_long: bool = False,
    value: str | None = None,
) -> DuckDBPyRelation | CsvRows | JsonRows:
    """Return the named columns of files of any format, given by paths and globs, as an Arrow stream.

    A row with a label that is not UTF-8 is always dropped from files of text. It fails the scan of Parquet files,
    unless the scan is `careful`: it then drops the row, and takes twice as long. A Parquet cell of more than
    `_core.LONGEST` bytes is NULL, unless `keeps_long`. A time beyond the range of TIMESTAMP is NULL too. The column
    `value` is to be summed: it may hold any numbers, and none of its cells drops a row.
    """
    source = paths if isinstance(paths, files.Source) else files.find(paths)
    if source.form is CSV:
        return CsvRows.of(source, columns, value=value)
    if source.form is JSON_LINES:
        return JsonRows.of(source, columns, value)
    import duckdb

    connection = connect(room)
    if source.form.dataset is not None:
        source.require_no_folder(columns)
        files.require_distinct(columns, source.shown)
        tables = [Reopened(partial(frame, one, columns, value)) for one in arrow_files(source)]
        try:
            return _union(connection, source, tables)
        except duckdb.Error:
            raise_alone(SchemaError(f"a column of {source.shown} has a type that DuckDB cannot read; cast it"))
    try:
        of_folders = _require_one_schema(connection, source, columns)
        found = _rows(connection, source, columns, of_folders, careful=careful, value=value)
        found = found if value is None else of_duckdb(found, value)
        return found if keeps_long else without_long_labels(found)
    except duckdb.Error:
        raise_alone(InputError(f"cannot read {source.shown} as Parquet: files must be complete and match their suffix"))


class Reopened:
    """A table that can be read several times, as DuckDB does."""

    def __init__(self, open_rows: Callable[[], object]) -> None:
        self._open_rows = open_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        rows = self._open_rows()
        return rows.__arrow_c_stream__() if hasattr(rows, "__arrow_c_stream__") else rows


def _union(connection: DuckDBPyConnection, source: files.Source, tables: list[Reopened]) -> DuckDBPyRelation:
    """Return the rows of all tables; raise SchemaError if their types differ."""
    names = [f"file{number}" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        table.__arrow_c_stream__()  # DuckDB would replace an error of an object by its own
        connection.register(name, table)
    if len({(*map(str, connection.table(name).types),) for name in names}) > 1:
        raise SchemaError(
            f"the columns of {source.shown} are not of the same types in all files; write them as one type"
        )
    return connection.sql(" UNION ALL ".join(f"SELECT * FROM {name}" for name in names))


def _require_one_schema(connection: DuckDBPyConnection, source: files.Source, columns: list[str]) -> list[str]:
    """Return the columns that are in the names of folders.

    Raise SchemaError unless all Parquet files or their folders have the columns, with the same types.

    DuckDB would cast to the types of the first file, and fail at a cell that cannot be cast.
    """
    types, keys, known = set(), source.partitions, set[str]()
    for kinds in files.parquet_schemas(connection, source.escaped, _KIND, given=source.shown):
        known |= {name.lower() for name in kinds}
        files.require_columns([*kinds, *(keys - {*kinds})], columns, is_schema=True)
        types.add(tuple(kinds.get(name) for name in columns))
    has_integers = any("BIGINT" in kinds for kinds in types)
    for name in durations(connection, source.escaped) & {*columns} if has_integers else ():
        raise SchemaError(f"the column {name!r} of {source.shown} holds durations; write them as integers or as text")
    if "" in columns:
        raise SchemaError(f"DuckDB cannot read a column of {source.shown} without a name; rename the column")
    source.require_no_folder(name for name in columns if name.lower() in known)
    if len(types) > 1:
        raise SchemaError(
            f"the columns of {source.shown} are not of the same types in all files; cast them in a query that "
            "combines the files by UNION ALL"
        )
    of_folders = [name for name in columns if name.lower() not in known]
    source.require_one_key(of_folders)
    if of_folders and _FILE_NUMBER in known:
        raise SchemaError(f"{source.shown} has a column {_FILE_NUMBER!r}, DuckDB's name of a file's number; rename it")
    return of_folders


def _rows(
    connection: DuckDBPyConnection,
    source: files.Source,
    columns: list[str],
    of_folders: list[str],
    *,
    careful: bool,
    value: str | None,
) -> DuckDBPyRelation:
    """Return a relation over Parquet files; if `careful`, without the rows whose labels are not UTF-8.

    Invalid text is detected by two scans: one replaces every invalid byte with a question mark, the other drops it, so
    that the results differ.
    """
    cells = {name: f"a.{quoted(name)}" for name in columns}
    given = [source.escaped, *map(source.values, of_folders)]
    # DuckDB would take values from the names of folders by rules of its own: it splits names at backslashes too.
    for place, name in enumerate(of_folders, 2):
        cells[name] = f"(${place}::VARCHAR[])[(a.{_FILE_NUMBER} + 1)::BIGINT] AS {quoted(name)}"
    files_of = "read_parquet($1, hive_partitioning = false)"
    found = connection.sql(f"SELECT {', '.join(cells.values())} FROM {files_of} a", params=given)
    for name, kind in zip(columns, map(str, found.types), strict=True):
        if kind in files.PARSED:
            raise SchemaError(
                f"the column {name!r} of {source.shown} is {kind}, and DuckDB fails at an invalid cell; write it as "
                "text, or give the table as pyarrow.parquet.read_table reads it"
            )
    text = [name for name, kind in zip(columns, found.types, strict=True) if careful and str(kind) == "VARCHAR"]
    text = [name for name in text if name not in of_folders]
    times = [name for name, kind in zip(columns, found.types, strict=True) if str(kind).startswith("TIMESTAMP")]
    millis = [name for name in times if has_milliseconds(connection, source.escaped, name)]
    kinds = next(iter(files.parquet_schemas(connection, source.escaped, _KIND))) if times else {}
    zoned = [name for name in times if kinds[name] == _IN_UTC]
    if zoned:
        connection.execute("SET TimeZone = 'UTC'")
    for time in zoned:
        cells[time] = f"a.{quoted(time)}::TIMESTAMPTZ AS {quoted(time)}"
    if not (text or millis or zoned):
        return found
    if text or millis:
        # A positional join pairs rows, so both scans must keep their order.
        connection.execute("SET preserve_insertion_order = true")
    validated = "read_parquet($1, hive_partitioning = false, utf8_validation = '{}') {}"
    tables = [validated.format("replace", "a") if text else f"{files_of} a"]
    if text:
        tables.append(validated.format("ignore", "b"))
    for number, time in enumerate(millis):
        connection.register(f"times{number}", Microseconds(source.paths, time))
        tables.append(f"times{number}")
        zone = "::TIMESTAMPTZ" if time in zoned else ""
        cells[time] = f"make_timestamp(times{number}.moment){zone} AS {quoted(time)}"
    valid = {name: f"a.{quoted(name)} IS NOT DISTINCT FROM b.{quoted(name)}" for name in text}
    if value in valid:
        cells[value] = f"CASE WHEN {valid.pop(value)} THEN a.{quoted(value)} ELSE '' END AS {quoted(value)}"
    whole = [*valid.values()] or ["true"]
    return connection.sql(
        f"SELECT {', '.join(cells.values())} FROM {' POSITIONAL JOIN '.join(tables)} WHERE {' AND '.join(whole)}",
        params=given,
    )


def _named(table: object) -> str:
    """Return the name of a table in error texts."""
    if isinstance(table, dict):
        return "the dict of arrays"
    return table.shown if isinstance(table, CsvInput) else f"the {library(table)} table"
