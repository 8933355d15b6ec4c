"""A private DuckDB connection, and the check that a curator's query only reads."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from discreet import _core
from discreet.engines.memory import Memory, random_limit
from discreet.engines.validated import interrupted_with_call, interruptible
from discreet.engines.versions import require_version
from discreet.errors import InputError, SchemaError, raise_alone

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["ArrowColumns", "connect", "files_of", "query", "reads_files", "require_whole_csv"]

_CSV_ARGUMENTS = """
    SELECT value -> 'arguments' FROM json_tree(json_serialize_sql($1))
    WHERE key = 'function' AND lower(value ->> 'function_name') LIKE 'read_csv%'
"""
_FILES = """
    SELECT coalesce(value -> 'function' -> 'arguments' -> 0 -> 'expression', to_json({
        'literal': {'kind': 'STRING', 'text': concat_ws(
            '.', nullif(value ->> 'catalog_name', ''), nullif(value ->> 'schema_name', ''), value ->> 'table_name'
        )}
    }))
    FROM json_tree(json_serialize_sql($1)) WHERE json_exists(value, '$.table_name')
    OR (value ->> 'type' = 'TABLE_FUNCTION' AND NOT list_contains($2, lower(value -> 'function' ->> 'function_name')))
"""
"""The files that tables and table functions of a query read, as expressions. DuckDB reads unquoted logs.csv as the
table `csv` of the schema `logs`, and then reads the file."""
_READS_NO_FILE = frozenset(["generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"])
"""Table functions that read no files."""
_SCAN = re.compile('"Function": "(?:READ_CSV|JSON_EXECUTE_SERIALIZED_SQL)')
"""What a bound plan as JSON has once for each scan of CSV, and for a query whose scans it does not show.

Quotes inside a text of the plan are escaped."""
_UNLIMITED = 2**62
_FALSE = {"kind": "BOOLEAN", "text": "false"}
_NO_QUOTE = {"kind": "STRING", "text": ""}


class ArrowColumns:
    """Columns as an object that DuckDB can scan."""

    def __init__(self, columns: list[tuple[str, object, str]]) -> None:
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core.arrow_stream(self._columns)


def connect(room: Memory | None = None, *, limit: int | None = None, ordered: bool = False) -> DuckDBPyConnection:
    """Return a private in-memory DuckDB connection that loads no extensions and writes no temporary files.

    A scan of files has no limit of memory: it holds a page of each column at a time, and one cell can make a page of
    2 GiB. A limit would let this cell decide whether there is a release.

    `room` sets the number of threads. `limit` is the most bytes for aggregates and joins; the exact limit is random, as
    in `random_limit`. `ordered` keeps the order of rows, which needs more memory.

    Raises:
        ImportError: DuckDB is older than 2.0. Such a version fails at Parquet text that is not UTF-8, so one cell would
            decide whether there is a release.
    """
    import duckdb

    if duckdb.__version__ < "2":  # the usual case needs no search for the package
        require_version("duckdb")
    options: dict[str, bool | int | float | str | list[str]] = {"autoinstall_known_extensions": "false"}
    options |= {"autoload_known_extensions": "false"}
    options |= {"python_enable_replacements": "false", "temp_directory": ""}
    options |= {"memory_limit": f"{_UNLIMITED if limit is None else random_limit(limit)}B"}
    if room is not None:
        options |= {"threads": room.scan_threads}
    connection = duckdb.connect(config=options)
    interrupted_with_call(connection)
    connection.execute(f"SET preserve_insertion_order = {str(ordered).lower()}")
    # Without ipywidgets the progress bar of a notebook is off, and DuckDB refuses every change of it.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    # A small compressed file may hold more than 2 GiB of text, which exceeds the 32-bit offsets of small buffers.
    connection.execute("SET arrow_large_buffer_size = true")
    return connection


@interruptible()
def query(sql: str, memory: int | str | None = None) -> DuckDBPyRelation:
    """Return the relation of a SQL query over files, which DuckDB runs lazily.

    Its joins and aggregates may take `memory`, or half of the machine's memory if that is more: one cell of a Parquet
    file can need 2 GiB, and must not decide whether there is a release.

    A query is the curator's code: it defines the users, and it may fail on a value. It may only read.

    Raises:
        SchemaError: The query is invalid or does not only read. The text quotes DuckDB's if that is about the query
            only.
        InputError: A file cannot be read. DuckDB's text is withheld, because it may quote cells.
    """
    import duckdb

    room = Memory.of(memory)
    connection = connect(room, limit=max(room.total, Memory.of(None).total))
    try:
        _require_reading(connection, sql)
        relation = connection.sql(sql)
        require_whole_csv(relation)
        return relation
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        reason = str(error).splitlines()[0]
        # DuckDB may take the first line of a file, which may be data, for names of columns.
        quotes = [place for place, letter in enumerate(reason) if letter in "\"'"]
        named = reason[quotes[0] + 1 : quotes[-1] if len(quotes) > 1 else None] if quotes else ""
        if named.lower() not in sql.lower():
            reason = "its names or types do not fit the columns of its tables"
        raise_alone(SchemaError(f"the query is not valid, or does not only read: {reason}"))
    except duckdb.Error:
        text = "the query could not be run; check that its files exist and can be read"
        remote = (
            ". For an address such as s3:// or https://, download the file first, or in Python give the relation of "
            "a DuckDB connection that has loaded httpfs; discreet loads no extension"
        )
        raise_alone(InputError(text + remote if "://" in sql else text))


def _require_reading(connection: DuckDBPyConnection, sql: str) -> None:
    """Raise SchemaError, or DuckDB's error, unless the query is one SELECT that changes no table and writes no file.

    In DuckDB 2 a common table expression may be COPY, INSERT, UPDATE or DELETE, but only at the top level. So DuckDB
    itself refuses each of them as soon as it binds the query as a subquery, which runs nothing.
    """
    import duckdb

    statements = connection.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise SchemaError("the query must be one SELECT")
    connection.sql(f"SELECT 1 FROM (\n{sql.strip().rstrip(';')}\n)")


def files_of(sql: str) -> list[str] | None:
    """Return the files that a query names, or None unless it names all of them by texts or lists of texts."""
    connection, found = connect(), list[str]()
    for (expression,) in connection.execute(_FILES, [sql, [*_READS_NO_FILE]]).fetchall():
        part = json.loads(expression)
        parts = (
            [one["expression"] for one in part["arguments"]] if part.get("function_name") == "list_value" else [part]
        )
        texts = [one.get("literal") or {} for one in parts]
        if not all(text.get("kind") == "STRING" for text in texts):
            return None
        found += [text["text"] for text in texts]
    return [name for given in found for (name,) in connection.execute("SELECT file FROM glob($1)", [given]).fetchall()]


def reads_files(relation: DuckDBPyRelation) -> bool:
    """Return whether a relation reads files other than its database, by its bound plan."""
    functions = re.findall(r'"Function": "([^"]*)"', relation.explain(format="json"))
    return any(name.lower() not in _READS_NO_FILE for name in functions)


def require_whole_csv(relation: DuckDBPyRelation) -> None:
    """Raise SchemaError if a relation reads CSV and DuckDB guesses where rows begin.

    A parallel scan, which is DuckDB's default, guesses it in the middle of a file. A scan that detects the quote from
    the first rows may take none. Each lets a quoted cell with line breaks forge or erase rows of other users
    (`tests/engines/test_csv_attacks.py`). The bound plan says whether CSV is read, also by a view or a macro. It
    does not say how, so every scan must be a call in the text of the query.
    """
    scans = len(_SCAN.findall(relation.explain(format="json")))
    if not scans:
        return
    text, connection = relation.sql_query(), connect()
    calls = connection.execute(_CSV_ARGUMENTS, [text]).fetchall()
    # A common table expression that is read twice has one call and two scans, unless it is materialized.
    if scans > len(calls) or not all(_is_whole(json.loads(arguments)) for (arguments,) in calls):
        raise SchemaError(
            "the query reads CSV, and DuckDB would guess where its rows begin: read each CSV file by a call such as "
            """read_csv('FILE', parallel = false, quote = '"', escape = '"') in the query itself, not by its name, a """
            "view or a macro, and a common table expression that is read twice AS MATERIALIZED; or count the files "
            "without a query"
        )


def _is_whole(arguments: list[dict[str, Any]]) -> bool:
    """Return whether read_csv with these arguments, in DuckDB's JSON, guesses neither rows nor quotes."""
    said: dict[str, list[object]] = {}
    for argument in arguments:
        name, value = argument["name"], argument["expression"]
        if not name and value["type"] == "COMPARE_EQUAL" and value["left"]["type"] == "COLUMN_REF":
            name, value = value["left"]["column_names"][-1], value["right"]
        said.setdefault(name.lower(), []).append(value.get("literal"))
    is_quoting_said = "quote" in said and ("escape" in said or said["quote"] == [_NO_QUOTE])
    return said.get("parallel") == [_FALSE] and (is_quoting_said or said.get("auto_detect") == [_FALSE])
