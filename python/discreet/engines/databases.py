"""A table of a DuckDB or SQLite database in a file, opened for reading."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines import files
from discreet.engines.memory import Memory
from discreet.engines.sql import connect, require_whole_csv
from discreet.engines.validated import interruptible
from discreet.errors import DiscreetError, InputError, SchemaError, needs, raise_alone
from discreet.privacy.validation import require_path, require_text
from discreet.wording import meant

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation
    from ibis.expr.types import Table

__all__ = ["open_database"]

_SQLITE = b"SQLite format 3\0"
_SIDE_FILES = ("-wal", "-journal", "-shm")
"""The ends of the names of files beside a SQLite database that a program has open, or left when it stopped."""
_TABLES = """
    SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'given'
    UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'given' AND NOT internal
"""


@interruptible()
def open_database(
    path: str | os.PathLike[str], table: str, *, memory: int | str | None = None
) -> DuckDBPyRelation | Table:
    """Return a table or view of a database in a file, to be counted.

    The database is opened for reading only. A view is a query of the database's owner, and may fail on a value.

    Args:
        path: The file of a DuckDB or SQLite database. SQLite needs Ibis.
        table: The name of the table, also with its schema, such as "logs.visits".
        memory: Bytes, or text such as "2GB", of which DuckDB may use a quarter.

    Returns:
        A DuckDB relation or an Ibis table.

    Raises:
        ParameterError: `path` is no path, `table` is no text, or `memory` is no size.
        InputError: The file cannot be read or is no database.
        SchemaError: There is no such table.

    Example:
        >>> import discreet as dp, duckdb, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = str(pathlib.Path(folder, "logs.duckdb"))
        ...     with duckdb.connect(path) as database:
        ...         _ = database.sql("CREATE TABLE visits AS SELECT range AS user, 'home' AS page FROM range(5000)")
        ...     visits = dp.tables.open_database(path, "visits")
        ...     dp.count(visits, user="user", item="page", rho=1, delta=1e-6).items
        ['home']
    """
    file = Path(require_path(path))
    room = Memory.of(memory)
    require_text("table", table)
    try:
        files.require_regular(file)
        with file.open("rb") as opened:
            head = opened.read(len(_SQLITE))
    except OSError as error:
        raise files.unreadable(path, error) from None
    try:
        return _of_sqlite(file, table) if head == _SQLITE else _of_duckdb(file, table, room)
    except (DiscreetError, MemoryError, ImportError):
        raise
    except Exception:  # the text may quote cells
        raise_alone(InputError(f"cannot read {path}: it must be a DuckDB or SQLite database that no program writes to"))


def _of_duckdb(path: Path, table: str, room: Memory) -> DuckDBPyRelation:
    connection = connect(room, limit=room.scan)
    literal = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{literal}' AS given (READ_ONLY)")
    found = connection.execute(_TABLES).fetchall()
    names = {f"{schema}.{name}": (schema, name) for schema, name in found}
    names |= {name: (schema, name) for schema, name in found if schema == "main"}
    _require_table(names, table, path)
    schema, name = names[table]
    relation = connection.sql(f"SELECT * FROM given.{files.quoted(schema)}.{files.quoted(name)}")
    try:
        require_whole_csv(relation)
    except SchemaError:
        raise SchemaError(
            f"{table!r} is a view that reads CSV files; count the files themselves, or make a table of the rows"
        ) from None
    return relation


def _of_sqlite(path: Path, table: str) -> Table:
    with needs("ibis-framework[sqlite]"):
        import ibis
    # SQLite reads a URI only if the name begins with file:. Beside a database with a write-ahead log, SQLite makes
    # files even if it only reads, unless it may take the database as immutable.
    connection = ibis.sqlite.connect()
    mode = "mode=ro" if any(Path(f"{path.resolve()}{end}").exists() for end in _SIDE_FILES) else "immutable=1"
    connection.con.execute("ATTACH DATABASE ? AS given", [f"{path.resolve().as_uri()}?{mode}"])
    names = {name: ("given", name) for name in connection.list_tables(database="given")}
    _require_table(names, table, path)
    found: Table = connection.table(table, database="given")
    return found


def _require_table(names: dict[str, tuple[str, str]], table: str, path: Path) -> None:
    if table not in names:
        raise SchemaError(f"{path} has no table {table!r}{meant(table, names)}")
