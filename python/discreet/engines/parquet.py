"""Parquet files of released columns, in the order of the rows."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines import untrusted
from discreet.engines.batches import BYTES
from discreet.engines.files import quoted
from discreet.engines.sql import ArrowColumns, connect
from discreet.engines.validated import interruptible
from discreet.errors import InputError, raise_alone

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read", "write"]

_MEMORY = 1 << 30
"""The memory of DuckDB for a file of another person."""
_NESTED = ("STRUCT", "MAP", "UNION", "VARIANT")
_SECONDS = "strftime({0}, '%Y-%m-%dT%H:%M:%S')"
_MICROS = _SECONDS + " || CASE WHEN epoch_us({0}) % 1000000 = 0 THEN '' ELSE strftime({0}, '.%f') END"
_NANOS = (
    "CASE strftime({0}, '%Y') WHEN 'infinity' THEN '2262-04-11T23:47:16.854775807' "
    "WHEN '-infinity' THEN '1677-09-21T00:12:43.145224193' ELSE "
    f"CASE WHEN epoch_ns({{0}}) % 1000 = 0 THEN {_MICROS} ELSE {_SECONDS} || strftime({{0}}, '.%n') END END"
)
"""The text of nanoseconds. DuckDB takes the first and the last one, which pandas has as times, for infinities."""
_TEXT = {
    "BOOLEAN": "CAST({0} AS VARCHAR)",
    "DATE": "strftime({0}, '%Y-%m-%d')",
    "TIMESTAMP": _MICROS,
    "TIMESTAMP WITH TIME ZONE": f"{_MICROS} || 'Z'",
    "TIMESTAMP_NS": _NANOS,
    "TIMESTAMPTZ_NS": _NANOS.replace("{0}", "CAST({0} AS TIMESTAMP_NS)") + " || 'Z'",
}
"""The text of dates, times and booleans in releases, as SQL by DuckDB's type."""


@interruptible()
def write(path: Path, columns: Iterable[tuple[str, object, str]], metadata: Mapping[str, str]) -> None:
    """Write columns and key-value metadata to a Parquet file, in the order of the rows.

    Raises:
        OSError: The disk fails.
    """
    import duckdb

    connection = connect(ordered=True)
    connection.register("released", ArrowColumns(list(columns)))
    try:
        pairs = ", ".join(f"{_quoted(key)}: {_quoted(value)}" for key, value in metadata.items())
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{pairs}}}"
        connection.execute(f"COPY (SELECT * FROM released) TO {_quoted(str(path))} ({options})")
    except duckdb.IOException:
        raise OSError from None


def _quoted(text: str) -> str:
    """Return text as a literal of SQL."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@interruptible()
def read(path: Path, key: str) -> tuple[dict[str, list[object] | NDArray[np.generic]], bytes | None]:
    """Return the columns of a Parquet file in the order of its rows, and the value of a key in its metadata, or None.

    Dates, times and booleans are text, as in the other formats.

    Raises:
        OSError: There is no such file.
        InputError: The file cannot be read, or exceeds the limits of `untrusted`.
    """
    untrusted.require_size(path)
    columns = _columns(path)
    query = "SELECT value FROM parquet_kv_metadata($1) WHERE key = $2::BLOB"
    try:
        found = connect().execute(query, [glob.escape(str(path)), key.encode()]).fetchone()
    except _damaged():
        raise_alone(InputError(f"cannot read {path} as Parquet"))
    return columns, None if found is None else bytes(found[0])


def _columns(path: Path) -> dict[str, list[object] | NDArray[np.generic]]:
    connection, given = connect(limit=_MEMORY, ordered=True), [glob.escape(str(path))]
    try:
        connection.execute("SET TimeZone = 'UTC'")
        table = connection.sql("SELECT * FROM read_parquet($1, hive_partitioning = false)", params=given)
        kinds = dict(zip(table.columns, map(str, table.types), strict=True))
        if any(kind.endswith("]") or kind.startswith(_NESTED) for kind in kinds.values()):
            raise InputError(f"cannot read {path}: a column of it is nested, and a release has no such column")
        # A few bytes of a file can hold millions of equal cells, so DuckDB counts them before Python reads them.
        lengths = [f"sum({BYTES[kind]}({quoted(name)}))" for name, kind in kinds.items() if kind in BYTES]
        query = f"SELECT {', '.join(['count(*)', *lengths])} FROM read_parquet($1, hive_partitioning = false)"
        rows, *sizes = connection.execute(query, given).fetchone() or (0,)
        untrusted.require_limits(path, rows * len(kinds), sum(size or 0 for size in sizes))
        cells = (f"{_TEXT.get(kind, '{0}').format(quoted(name))} AS {quoted(name)}" for name, kind in kinds.items())
        whole = (f"SELECT {', '.join(cells)} FROM read_parquet($1, hive_partitioning = false)", given)
        columns = {name: _plain(values) for name, values in connection.execute(*whole).fetchnumpy().items()}
        found = {name: values for name, values in columns.items() if values is not None}
        if len(found) == len(columns):
            return found
        # Rows take five times as long, but hold cells of all types, and None for a missing cell.
        result = connection.execute(*whole)
        names = [column[0] for column in result.description or ()]
        rows = result.fetchall()
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}
    except _damaged():
        raise_alone(InputError(f"cannot read {path} as Parquet"))


def _damaged() -> tuple[type[Exception], ...]:
    """Return the errors of DuckDB on a damaged file. Its binding cannot convert names of columns that are not UTF-8."""
    import duckdb

    return duckdb.Error, RuntimeError


def _plain(cells: NDArray[np.generic]) -> list[object] | NDArray[np.generic] | None:
    """Return an array without missing cells if its cells are 64-bit numbers, text or bytes."""
    if isinstance(cells, np.ma.MaskedArray):
        if np.any(np.ma.getmaskarray(cells)):
            return None
        cells = cells.data
    if cells.dtype in (np.int64, np.uint64, np.float64):
        return cells
    values = cells.tolist() if cells.dtype == object else [None]
    return values if {*map(type, values)} <= {str, bytes} else None
