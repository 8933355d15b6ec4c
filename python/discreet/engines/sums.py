"""Queries about given items by DuckDB: sums over users of clipped values, and the number of items of each user."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.engines import files
from discreet.engines.batches import ArrowStream, Rows, is_relation, without_long_labels
from discreet.engines.columns import has_type, library, pyarrow_if_installed, typed_cells, typed_table
from discreet.engines.csv_rows import CsvFiles, CsvRows
from discreet.engines.entropy import fresh_key
from discreet.engines.files import quoted
from discreet.engines.frames import names, selected, without_rows
from discreet.engines.local import REMEDIES, retried_carefully, scan
from discreet.engines.memory import Memory
from discreet.engines.pandas_columns import is_missing, is_untyped, object_cells
from discreet.engines.selection import one_name
from discreet.engines.sql import Columns, connect, interruptible
from discreet.engines.table import Table
from discreet.engines.typed_arrays import is_backed_by_arrow, of_polars, of_pyarrow
from discreet.engines.validated import validated
from discreet.engines.weighing import LocalLists
from discreet.errors import (
    DiscreetError,
    InputError,
    ItemTypeError,
    ParameterError,
    ResourceError,
    SchemaError,
    raise_alone,
)
from discreet.privacy.validation import require_array, require_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

__all__ = [
    "as_number",
    "clipped_sums",
    "items_per_user",
    "label_kind",
    "require_distinct_columns",
    "require_summable",
    "summed_columns",
]

Result = TypeVar("Result")

_MOST = 2**53
"""The largest absolute value of a row, in units. Larger sums are clipped anyway, to at most 2^30."""
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_OTHER = frozenset("MmcSV")
"""Kinds of numpy for dates, durations, complex numbers, bytes and structures."""
_NUMBERS = _WHOLE | {"HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "BOOLEAN", '"NULL"'}
_TEXT = {"VARCHAR", "JSON"}
_NUMBER = "[ \\t\\n\\r\\f]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \\t\\n\\r\\f]*"
"""The text of a number."""


def clipped_sums(
    table: Table,
    *,
    items: list[object],
    bounds: tuple[int, int],
    resolution: float,
    l0: int | None = None,
) -> list[int]:
    """Return for each item the sum over users of their clipped sums, in whole units of the resolution.

    Rows with a missing user or item, or with a value that is not a finite number, are dropped.

    Args:
        table: The rows, with one column each of users, items and values.
        items: The items to sum.
        bounds: The least and the largest sum of one user for one item, in units.
        resolution: The unit of the values.
        l0: The most items that one user contributes to, chosen uniformly among the user's items in `items`; None for
            any number. The choice is by the least SHA-256 of a new key, the item and the user.

    Raises:
        SchemaError: A column is missing or of another type.
        InputError: The data cannot be read.
        ParameterError: Two columns have the same name, or the data is of another type.
    """
    columns = summed_columns(table)
    return _answered(table.data, columns, items, lambda found: _summed(found, len(items), bounds, resolution, l0))


def summed_columns(table: Table) -> tuple[str, str, str]:
    """Return the names of the columns of users, items and values of a sum.

    Raises:
        ParameterError: There is no column to sum, users or items have several columns, two names are the same, or the
            table has parameters that sums have no use for.
    """
    if isinstance(table.data, LocalLists):
        raise ParameterError("a sum needs the rows: give the Table itself, not what its read() returned")
    if table.value is None:
        raise ParameterError("a sum needs a column to sum: give value=, its name")
    columns = one_name("user", table.user, "a sum"), one_name("item", table.item, "a sum"), table.value
    require_distinct_columns(columns)
    _require_one_query(table, "a sum")
    return columns


def require_distinct_columns(columns: tuple[str, str, str]) -> None:
    """Raise ParameterError unless these are the names of three different columns."""
    if len(set(columns)) < len(columns) or not all(isinstance(name, str) for name in columns):
        raise ParameterError(
            "user, item and value must be the names of three different columns", names="user item value"
        )
    for name in columns:
        require_text("the name of a column", name)


def _require_one_query(table: Table, what: str) -> None:
    """Raise ParameterError for parameters that a query of all rows has no use for."""
    if table.period is not None:
        raise ParameterError(f"{what} reads all rows of a table: leave out time, every, since and until")
    if table.memory is not None or table.progress is not None:
        raise ParameterError(f"{what} reads the rows in one query: leave out memory and progress")


def require_summable(table: Table) -> None:
    """Raise the errors of `clipped_sums` for rows and columns that cannot be summed, whatever the items are.

    The function reads all rows. DuckDB computes a column of a query only when it is read, and one cell can fail it.

    Raises:
        SchemaError: A column is missing or of another type.
        InputError: The data cannot be read.
        ParameterError: Two columns have the same name, or the data is of another type.
    """
    columns = summed_columns(table)
    query = "SELECT count(u), count(i), count(*) FILTER (isfinite(v)) FROM g"
    _answered(table.data, columns, [], lambda found: found.sql(query).fetchall())


def items_per_user(table: Table, items: list[object]) -> NDArray[np.int64]:
    """Return the number of distinct items in `items` of each user who has any of them, in any order of the users.

    Raises:
        SchemaError: A column is missing or of another type than integers, text and bytes.
        InputError: The data cannot be read.
        ParameterError: The data is of another type, or users or items have several columns.
    """
    if isinstance(table.data, LocalLists):
        return table.data.sizes(items)
    what = "a number of listed items"
    _require_one_query(table, what)
    columns = one_name("user", table.user, what), one_name("item", table.item, what)
    query = """SELECT count(DISTINCT w.place) AS n FROM g JOIN w ON g.i = w.label
        WHERE g.u IS NOT NULL GROUP BY g.u"""
    return _answered(table.data, columns, items, lambda found: np.asarray(found.sql(query).fetchnumpy()["n"], np.int64))


@interruptible()
def _answered(
    data: object, columns: tuple[str, ...], items: list[object], query: Callable[[DuckDBPyConnection], Result]
) -> Result:
    """Return the answer of a query about the rows `g` (columns u, i and v) and the items `w` (place, label)."""

    if {base.__module__.partition(".")[0] for base in type(data).__mro__} & {"pyspark", "ibis"}:
        raise ParameterError(
            "sums, and the items of a user among listed ones, need the rows on this machine: give the table as "
            "toArrow() of Spark or to_pyarrow() of Ibis returns it"
        )

    def attempt(careful: bool) -> Result:
        connection = connect(limit=Memory.of(None).total)
        if isinstance(data, dict):
            _require_types(connection, data, columns, items)
        rows = _rows(data, list(columns), careful)
        _register(connection, rows, columns, is_here=not isinstance(data, str | os.PathLike) and not is_relation(data))
        short = without_long_labels(connection.table("given")).project(", ".join(map(quoted, columns)))
        kinds = [str(kind) for kind in short.types]
        connection.register("w", _wanted(items, label_kind(columns[1], kinds[1])))
        label_kind(columns[0], kinds[0])
        values = [as_number(name, kind) for name, kind in zip(columns[2:], kinds[2:], strict=True)]
        cells = [*map(quoted, columns[:2]), *values]
        short.project(", ".join(f"{cell} AS {own}" for cell, own in zip(cells, "uiv", strict=False))).create_view("g")
        return query(connection)

    try:
        return retried_carefully([data] if isinstance(data, str | os.PathLike) else [], attempt)
    except (MemoryError, ImportError, DiscreetError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":
            raise_alone(ResourceError("the sums need more than half of this machine's memory; use a machine with more"))
        # Exceptions of other libraries are never passed on: their texts may quote cells.
        shown = files.shown(data) if isinstance(data, str | os.PathLike) else "this data"
        remedy = REMEDIES.get(library(data), "")
        raise_alone(InputError(f"cannot read {shown}; check the data and its source{remedy}"))


def _register(
    connection: DuckDBPyConnection, rows: ArrowStream, columns: Sequence[str], *, is_here: bool = True
) -> None:
    """Register rows as the table `given`.

    Raises:
        SchemaError: DuckDB cannot read the type of a column, and the rows are in memory (`is_here`).
    """
    import duckdb

    try:
        connection.register("given", Rows(rows))
    except (duckdb.NotImplementedException, duckdb.InternalException):
        # DuckDB reads the schema of a table in memory here, and no row. A relation may read rows.
        if not is_here:
            raise
        named = f"the column {columns[0]!r} has" if len(columns) == 1 else f"one of the columns {[*columns]} has"
        raise_alone(
            SchemaError(f"{named} a type that a sum cannot read; cast it to integers, floats of 64 bits or text")
        )


def _require_types(
    connection: DuckDBPyConnection, table: dict[str, Any], columns: tuple[str, ...], items: list[object]
) -> None:
    """Raise the SchemaError of a frame for arrays of a dict whose types cannot be those of the columns.

    Cells do not decide it, because all of them may be missing.
    """
    for place, name in enumerate(columns):
        column = table.get(name)
        if (empty := without_rows(column, name)) is None:
            continue
        _register(connection, _with_floats(empty, [name] if place > 1 else []), [name])
        found = (label_kind if place < 2 else as_number)(name, str(connection.table("given").types[0]))
        if place == 1:
            _wanted(items, found)


def _summed(
    connection: DuckDBPyConnection, items: int, bounds: tuple[int, int], resolution: float, l0: int | None
) -> list[int]:
    low, high = bounds
    kept = ""
    if l0 is not None and l0 < items:
        chosen = f"sha256('{fresh_key()}' || w.place || ':' || CAST(g.u AS VARCHAR))"
        kept = f"QUALIFY row_number() OVER (PARTITION BY g.u ORDER BY {chosen}) <= {l0}"
    # Floats hold whole numbers exactly up to 2^53. Each row is rounded to whole units before the rows are summed.
    units = f"least({_MOST}, greatest(-{_MOST}, round(g.v / {resolution!r})))"
    totals = connection.sql(
        f"""SELECT own.place, CAST(sum(greatest({low}, least({high}, own.total))) AS BIGINT) FROM (
            SELECT w.place AS place, sum(CAST({units} AS HUGEINT)) AS total
            FROM g JOIN w ON g.i = w.label
            WHERE g.u IS NOT NULL AND isfinite(g.v)
            GROUP BY w.place, g.u {kept}) AS own
        GROUP BY own.place"""
    )
    found = dict(totals.fetchall())
    return [int(found.get(place, 0)) for place in range(items)]


def label_kind(name: str, duckdb_type: str) -> str:
    """Return the Arrow type for a column of users or items."""
    if duckdb_type in _WHOLE:
        return "int64"
    if duckdb_type == "VARCHAR" or duckdb_type.startswith("ENUM"):
        return "string"
    if duckdb_type == "BLOB":
        return "binary"
    raise SchemaError(f"the column {name!r} must hold integers, text or bytes")


def as_number(name: str, duckdb_type: str) -> str:
    """Return the SQL of a column's cells as floats, NULL for a cell that is no number.

    Text is a number if it is a decimal in ASCII digits, with a point and an exponent, and spaces around it. A cast
    alone would also read 1_0 as 10.

    Raises:
        SchemaError: DuckDB cannot read the type as numbers. The sums would be noise alone.
    """
    cell = quoted(name)
    if duckdb_type in _TEXT or duckdb_type.startswith("ENUM("):
        text = f"CAST({cell} AS VARCHAR)"
        return f"CASE WHEN regexp_full_match({text}, '{_NUMBER}') THEN TRY_CAST({text} AS DOUBLE) END"
    if duckdb_type not in _NUMBERS and not duckdb_type.startswith("DECIMAL("):
        raise _no_numbers(name)
    return f"TRY_CAST({cell} AS DOUBLE)"


def _no_numbers(name: str) -> SchemaError:
    return SchemaError(
        f"the column {name!r} must hold numbers, booleans, or text that holds numbers; cast dates, times and other "
        "types to numbers first"
    )


def _wanted(items: Sequence[Any], kind: str) -> Columns:
    """Return the items with their indices, in the type of the column of items."""
    python: dict[str, tuple[type, ...]] = {"int64": (int, np.integer), "string": (str,), "binary": (bytes,)}
    if not all(isinstance(label, python[kind]) for label in items):
        raise ItemTypeError("the items must be of the type of the column of items")
    labels: object = items
    if kind == "int64":
        kind = "uint64" if all(label >= 0 for label in items) else "int64"
        labels = np.array(items, kind)
    return Columns([("place", np.arange(len(items)), "int64"), ("label", labels, kind)])


def _rows(data: object, columns: list[str], careful: bool) -> ArrowStream:
    """Return the columns as an object with an Arrow stream."""
    if isinstance(data, str | os.PathLike):
        return scan([data], columns, careful=careful, floats=columns[2:])
    if isinstance(data, CsvFiles):
        return CsvRows.of_files(data, columns)
    if isinstance(data, dict):
        files.require_columns(data, columns)
        _require_distinct_case(columns)
        table = typed_table({name: data[name] for name in columns}, columns[:2], _plain_values)
        if table is None:
            return _typed([data[name] for name in columns], columns)
        data = table
    frame = _with_floats(selected(_with_values(data, columns), columns, columns[:2]), columns[2:])
    if not hasattr(frame, "__arrow_c_stream__"):
        raise ParameterError(
            "data must be a path, a frame or relation with __arrow_c_stream__, or a dict of arrays, "
            f"not {type(data).__name__}"
        )
    _require_distinct_case(names(frame) or [])
    if library(frame) not in ("duckdb", "polars", "pyarrow") and (pyarrow := pyarrow_if_installed()) is not None:
        return validated(pyarrow.RecordBatchReader.from_stream(frame))  # type: ignore[no-any-return]
    return frame  # type: ignore[no-any-return]


def _with_values(data: Any, columns: list[str]) -> Any:
    """Return a pandas frame whose column of values has a type. An object column is read as a list is."""
    if library(data) != "pandas" or not hasattr(data, "columns") or [*data.columns].count(columns[-1]) != 1:
        return data
    for name in columns[2:]:
        if is_untyped(data.dtypes[name]):
            cells = object_cells(data[name])
            _require_values(name, cells)
            _, values, kind = _value_column(name, cells)
            data = data.assign(**{name: np.array(values, object if kind == "string" else np.float64)})
        elif str(data.dtypes[name]) == "float16":
            data = data.astype({name: "float32"})
    return data


def _with_floats(frame: Any, names: list[str]) -> Any:
    """Return a frame without floats of 16 bits and large decimals in these columns, because DuckDB reads neither."""
    for name in names:
        if library(frame) == "polars" and str(frame.schema[name]) in ("Float16", "Null"):
            frame = frame.with_columns(frame[name].cast(float))
        elif library(frame) == "pyarrow" and hasattr(frame, "cast"):
            import pyarrow

            for place, field in enumerate(frame.schema):
                kind = field.type
                is_large = pyarrow.types.is_decimal256(kind) or (pyarrow.types.is_decimal(kind) and kind.scale < 0)
                if field.name == name and (is_large or pyarrow.types.is_float16(kind)):
                    frame = frame.cast(frame.schema.set(place, field.with_type(pyarrow.float64())))
    return frame


def _require_distinct_case(known: list[str]) -> None:
    """Raise SchemaError if DuckDB would read the first of several columns for all of them."""
    if len({name.lower() for name in known}) < len(known):
        raise SchemaError("the table has columns whose names differ by case alone; rename or remove them")


def _typed(given: list[Sequence[object]], names: list[str]) -> Columns:
    """Return lists or arrays as columns, without rows whose user or item is None."""
    for name, column in zip(names, given, strict=True):
        require_array(f"column {name!r}", column)
    if len({len(column) for column in given}) > 1:
        raise ParameterError("the columns must be equally long")
    arrays = [typed_cells(column, f"column {name!r}") for name, column in zip(names, given[:2], strict=False)]
    for name, array in zip(names, arrays, strict=False):
        if getattr(getattr(array, "dtype", None), "kind", "O") not in "iuOSUT":
            raise SchemaError(f"the column {name!r} of a sum must hold integers, text or bytes; cast it to text")
    users, items = (column.tolist() if hasattr(column, "tolist") else list(column) for column in arrays)
    whole = [_is_label(user) and _is_label(item) for user, item in zip(users, items, strict=True)]
    columns = [
        _label_column(name, [cell for cell, kept in zip(cells, whole, strict=True) if kept], array)
        for name, cells, array in zip(names, (users, items), arrays, strict=False)
    ]
    for name, cells in zip(names[2:], given[2:], strict=True):
        _require_values(name, cells)
        columns.append(_value_column(name, [cell for cell, kept in zip(_plain(cells), whole, strict=True) if kept]))
    return Columns(columns)


def _is_label(cell: object) -> bool:
    """Return whether a cell is present and, if text, can be encoded as UTF-8."""
    if not isinstance(cell, str) or cell.isascii():
        return cell is not None
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label_column(name: str, cells: Sequence[Any], array: object) -> tuple[str, object, str]:
    kinds = {type(cell) for cell in cells}
    if not kinds:
        # An empty array still has a type.
        kind = {"i": "int64", "u": "uint64", "S": "binary"}.get(
            getattr(getattr(array, "dtype", None), "kind", ""), "string"
        )
        return name, np.empty(0, kind) if kind.endswith("64") else [], kind
    if kinds <= {str}:
        return name, cells, "string"
    if kinds == {bytes}:
        return name, cells, "binary"
    if kinds == {int} and max(cells) < 2**64 and min(cells) >= (0 if max(cells) >= 2**63 else -(2**63)):
        kind = "uint64" if max(cells) >= 2**63 else "int64"
        return name, np.array(cells, kind), kind
    raise SchemaError(f"the column {name!r} must hold integers, text or bytes, all of one type")


def _plain_values(name: str, cells: Any) -> Any:
    """Return values of a list, or of an array of numpy or of objects, as an array of floats or as text."""
    if has_type(cells) and not isinstance(cells, np.ma.MaskedArray):
        return cells
    _require_values(name, cells)
    return _value_column(name, _plain(cells))[1]


def _require_values(name: str, cells: Sequence[object]) -> None:
    """Raise SchemaError for an array of another type than numbers or text, or a list without such a cell."""
    if getattr(getattr(cells, "dtype", None), "kind", "") in _OTHER:
        raise _no_numbers(name)
    present = [cell for cell in _plain(cells) if not is_missing(cell)]
    if present and not any(map(_is_value, present)):
        raise _no_numbers(name)


def _is_value(cell: object) -> bool:
    # numpy registers timedelta64 as a number.
    return isinstance(cell, numbers.Real | Decimal | np.bool_ | str) and not isinstance(cell, np.timedelta64)


def _plain(cells: Any) -> Sequence[object]:
    """Return the cells of an array of any library, with None for masked and missing ones."""
    if hasattr(cells, "to_pylist"):
        return of_pyarrow(cells, "the column")  # type: ignore[no-any-return]
    if library(cells) == "polars":
        return of_polars(cells, "the column")  # type: ignore[no-any-return]
    if library(cells) == "pandas" and (is_untyped(cells.dtype) or is_backed_by_arrow(cells.dtype)):
        return object_cells(cells)
    return cells.tolist() if isinstance(cells, np.ma.MaskedArray) else cells  # type: ignore[no-any-return]


def _value_column(name: str, cells: Sequence[object]) -> tuple[str, object, str]:
    """Return values as a column of floats, or of text for DuckDB to parse.

    Python parses digits of all scripts, and DuckDB parses ASCII digits only. The same text must be the same number in
    every table, so DuckDB parses all text.
    """
    if any(isinstance(cell, str) for cell in cells):
        return name, [_text(cell) if isinstance(cell, str) else repr(_number(cell)) for cell in cells], "string"
    return name, np.array([_number(cell) for cell in cells], np.float64), "float64"


def _text(cell: str) -> str:
    """Return text, or no text if it cannot be encoded as UTF-8."""
    return str(cell) if _is_label(cell) else ""


def _number(cell: Any) -> float:
    """Return a value as a float, or NaN if it is not a number."""
    if not _is_value(cell):
        return float("nan")
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
