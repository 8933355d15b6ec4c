"""Exact facts about a table, for the owner of the data alone. SENSITIVE: no release calls this module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet import _core
from discreet.engines import files
from discreet.engines.arrow_files import arrow_files
from discreet.engines.batches import BYTES, ArrowStream, Rows
from discreet.engines.csv_rows import CsvFiles, CsvRows, Dialect
from discreet.engines.files import quoted
from discreet.engines.local import scan
from discreet.engines.memory import Memory
from discreet.engines.selection import Names, columns_of, require_names
from discreet.engines.sql import connect, interruptible
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError, raise_alone
from discreet.private import Private
from discreet.wording import counted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Check", "check"]

_PERCENTILES = (0.5, 0.75, 0.9, 0.95, 0.99)
_MOST = 200
"""The most columns that are examined if no columns are given."""


@dataclass(frozen=True, kw_only=True)
class Check(Private):
    """Exact facts about the rows of a table. They are as sensitive as the rows."""

    rows: int
    """All rows that were read, with the dropped ones."""
    types: dict[str, str]
    """DuckDB's types of the columns. All columns of CSV are text."""
    dropped: dict[str, int]
    """The numbers of rows that a count leaves out, by reason. A row with several reasons counts for each."""
    unclosed: int
    """The number of CSV files that end in a quoted cell."""
    counted: int | None = None
    """The number of rows that a count reads; None without columns of users and items."""
    users: int | None = None
    items: int | None = None
    items_per_user: tuple[tuple[str, int], ...] = ()
    """Percentiles of the number of distinct items of a user."""

    def __repr__(self) -> str:
        return "Check(SENSITIVE)"

    def lines(self) -> Iterator[str]:
        """Yield the facts as sentences."""
        yield counted(self.rows, "row")
        for name, kind in self.types.items():
            yield f"column {name}: {kind}"
        for reason, number in self.dropped.items():
            yield f"{counted(number, 'row')} left out: {reason}"
        if self.unclosed:
            yield f"{counted(self.unclosed, 'file')} with an unclosed quote: the last cell holds the rest of the file"
        if self.counted is not None:
            yield f"{counted(self.counted, 'row')} counted"
            yield counted(self.users or 0, "user")
            yield counted(self.items or 0, "item")
            for name, number in self.items_per_user:
                yield f"items per user, {name}: {number:,}"


def check(
    data: str | os.PathLike[str] | CsvFiles | ArrowStream,
    user: Names | None = None,
    item: Names | None = None,
    *,
    memory: int | str | None = None,
) -> Check:
    """Return exact facts about a table: rows, rows that a count leaves out and why, types, users and items.

    Raises:
        ParameterError: Only one of user and item is given.
        SchemaError: A column is missing.
        InputError: The data cannot be read.
        ResourceError: The facts need more memory.
    """
    if (user is None) != (item is None):
        raise ParameterError("give both user and item, or neither")
    room = Memory.of(memory)
    try:
        with interruptible():
            if user is None or item is None:
                return _of(data, None, None, room)
            return _of(data, *require_names(user, item), room)
    except (MemoryError, ImportError, DiscreetError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":
            raise_alone(ResourceError("the check needs more memory; give a larger `memory`"))
        raise_alone(InputError("cannot check the data; check the file and its format"))


def _of(data: Any, user: Names | None, item: Names | None, room: Memory) -> Check:
    wanted = None if user is None or item is None else columns_of(user, item)
    dropped: dict[str, int] = {}
    unclosed = 0
    table, columns = _opened(data, wanted, room, careful=False)
    if isinstance(table, CsvRows):
        short, long, not_text, unclosed = table.dropped()
        dropped |= {"too few cells": short, "a cell is not UTF-8": not_text, _LONG: long}
    connection = connect(room)
    try:
        connection.register("given", Rows(table))
        facts = _facts(connection, columns, user, item)
    except Exception as error:
        is_path = isinstance(data, str | os.PathLike)
        if not is_path or files.find([data]).form != "parquet" or "Memory" in type(error).__name__:
            raise
        # Text of a Parquet file that is not UTF-8 ends a scan.
        table, columns = _opened(data, wanted, room, careful=True)
        connection.register("given", Rows(table))
        facts = _facts(connection, columns, user, item)
        asked = "SELECT sum(num_rows) FROM parquet_file_metadata($1)"
        (total,) = connection.execute(asked, [files.find([data]).escaped]).fetchone() or (0,)
        dropped["a cell is not UTF-8"] = int(total) - facts["rows"]
    rows = facts.pop("rows") + sum(dropped.values())
    dropped |= facts.pop("dropped")
    return Check(rows=rows, dropped={reason: n for reason, n in dropped.items() if n}, unclosed=unclosed, **facts)


_LONG = f"a cell has more than {_core.LONGEST:,} bytes"


def _opened(data: Any, wanted: list[str] | None, room: Memory, *, careful: bool) -> tuple[Any, list[str]]:
    """Return the table with an Arrow stream, and the names of its columns."""
    if isinstance(data, str | os.PathLike):
        source = files.find([data])
        if source.form == "Arrow":
            tables = arrow_files(source)
            columns = wanted or [*tables[0].schema.names]
            batches = [batch for table in tables for batch in table.to_batches(columns=columns)]
            empty = tables[0].head(0, columns=columns)
            return type(empty).from_batches(batches, empty.schema), columns
        if source.form == "CSV":
            data = CsvFiles(path=data)
        else:
            columns = wanted or connect().read_parquet(source.escaped[0]).columns[:_MOST]
            return scan([data], columns, room, careful=careful, keeps_long=True), columns
    if isinstance(data, CsvFiles):
        columns = wanted or _header(data)
        return CsvRows.of_files(data, columns), columns
    columns = wanted or [*data.columns][:_MOST]
    return data.project(", ".join(map(quoted, columns))), columns


def _header(data: CsvFiles) -> list[str]:
    source, dialect = files.find(data.paths), data.dialect or Dialect()
    if not dialect.header:
        raise ParameterError("a file without a header has no names of columns: give user and item as numbers")
    cells = _core.csv_header(source.paths[0], ord(dialect.delimiter or source.delimiter), encoding=dialect.encoding)
    return [cell.decode("utf-8", "replace") for cell in cells][:_MOST]


def _facts(
    connection: DuckDBPyConnection, columns: list[str], user: Names | None, item: Names | None
) -> dict[str, Any]:
    types = dict(zip(columns, map(str, connection.table("given").types), strict=True))
    # Columns by number, so that all names work.
    named = ", ".join(f"{quoted(name)} AS c{place}" for place, name in enumerate(columns))
    connection.execute(f"CREATE OR REPLACE TEMP VIEW cells AS SELECT {named} FROM given")
    aliases = {name: f"c{place}" for place, name in enumerate(columns)}
    nulls = [f"count(*) FILTER ({alias} IS NULL)" for alias in aliases.values()]
    long = {name: f"{BYTES[kind]}({aliases[name]}) > {_core.LONGEST}" for name, kind in types.items() if kind in BYTES}
    longs = [f"count(*) FILTER ({condition})" for condition in long.values()]
    row = connection.execute(f"SELECT {', '.join(['count(*)', *nulls, *longs])} FROM cells").fetchone() or ()
    rows, *numbers = map(int, row)
    dropped = {f"{name} is NULL": number for name, number in zip(columns, numbers, strict=False)}
    for name, number in zip(long, numbers[len(columns) :], strict=True):
        dropped[f"{name} has more than {_core.LONGEST:,} bytes"] = number
    facts: dict[str, Any] = {"rows": rows, "types": types, "dropped": dropped}
    if user is None or item is None:
        return facts
    parts = [f"{aliases[name]} IS NOT NULL" for name in columns]
    parts += [f"NOT coalesce({condition}, false)" for condition in long.values()]

    def value(names: Names) -> str:
        cells = [aliases[name] for name in ([names] if isinstance(names, str) else names)]
        return f"row({', '.join(cells)})"

    kept = f"SELECT {value(user)} AS u, {value(item)} AS i FROM cells WHERE {' AND '.join(parts)}"
    # A relation of another connection can be read only once in a query.
    connection.execute(f"CREATE TEMP TABLE pairs AS SELECT u, i, count(*) AS r FROM ({kept}) GROUP BY u, i")
    levels = ", ".join(f"quantile_disc(n, {level})" for level in _PERCENTILES)
    rows_and_items = "(SELECT sum(r) FROM pairs), (SELECT count(DISTINCT i) FROM pairs)"
    of_users = "SELECT count(*) AS n FROM pairs GROUP BY u"
    asked = f"SELECT {rows_and_items}, count(*), max(n), {levels} FROM ({of_users})"
    found = connection.execute(asked).fetchone() or ()
    rows, items, users, most, *percentiles = (int(number or 0) for number in found)
    named_levels = [f"{level:.0%}" for level in _PERCENTILES]
    facts |= {"counted": rows, "users": users, "items": items}
    facts["items_per_user"] = (*zip(named_levels, percentiles, strict=True), ("most", most))
    return facts
