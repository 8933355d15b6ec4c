"""Tables in memory, of any library: their column names, and two columns as an Arrow stream or as arrays."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy import ma  # here, because a fork during numpy's own import on first use would hang the child

from discreet import _core
from discreet.engines import files
from discreet.engines.batches import ArrowStream, Rows, without_long_labels
from discreet.engines.pandas_columns import as_arrow, is_untyped, label_cells, plain_cells
from discreet.engines.selection import Names, Period, columns_of
from discreet.engines.sql import require_whole_csv
from discreet.engines.typed_arrays import digits_of, of_polars, of_pyarrow
from discreet.engines.validated import validated
from discreet.errors import ParameterError, SchemaError
from discreet.imports import importing
from discreet.privacy.validation import require_array

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

__all__ = [
    "frame",
    "is_read_once",
    "library",
    "name_column",
    "names",
    "pair_columns",
    "plain_column",
    "require_types",
    "selected",
    "without_rows",
]


_TABLES = 1000
"""The most entries of a list that are checked for readers. A list may be a column of millions of cells."""
_LIBRARIES = frozenset({"duckdb", "pandas", "polars", "pyarrow"})
_LEVELS = "; columns have several levels: flatten them first, by frame.columns = map('_'.join, frame.columns)"
_UNREADABLE = frozenset({"BIT", "BIGNUM", "TIME WITH TIME ZONE"})
"""The types that DuckDB exports as its own bytes, or not at all."""
_FRAMES = frozenset({"DataFrame", "LazyFrame"})
"""The classes of tables in pandas and polars. Other objects of these libraries are columns or unfinished queries."""


def is_read_once(data: object) -> bool:
    """Return whether a table can be read only once: a reader, a generator, or a container of one."""
    if isinstance(data, dict):
        return any(map(is_read_once, data.values()))
    if isinstance(data, list | tuple):
        return any(
            is_read_once(table) for table in data[:_TABLES] if not isinstance(table, str | bytes | numbers.Number)
        )
    return type(data).__name__ in ("RecordBatchReader", "CsvInput") or hasattr(data, "__next__")


def selected(data: Any, columns: list[str], labels: list[str] | None = None) -> object:
    """Return these columns of a frame; `labels` are the columns of users and items, all by default.

    Libraries whose columns are not known before reading return the frame unchanged.
    """
    kind = library(data)
    if kind in ("pandas", "polars") and _FRAMES.isdisjoint(base.__name__ for base in type(data).__mro__):
        raise _no_table(data)
    if kind == "polars":
        from polars.selectors import by_name as named  # a plain name such as ^user.*$ would be a pattern
    if kind == "polars" and hasattr(data, "collect"):
        files.require_columns(data.collect_schema().names(), columns)
        data = data.select(named(columns)).collect()
    if (known := names(data)) is not None:
        files.require_columns(known, columns, instead=_remedy(data, {*columns} - {*known}) if kind == "pandas" else "")
    if kind == "polars":
        return _without_objects(data.select(named(columns)))
    if kind == "duckdb":
        require_whole_csv(data)
        _require_readable(data, columns)
        return without_long_labels(data, columns)
    if kind == "pyarrow":
        return _validated(data, columns)
    return _of_pandas(data[columns], columns if labels is None else labels) if kind == "pandas" else data


def _validated(data: object, columns: list[str]) -> object:
    """Return these columns of a pyarrow object, validated if it is a table or a reader."""
    if hasattr(data, "scanner"):
        data = data.scanner(columns=columns).to_reader()
    elif hasattr(data, "select"):
        data = data.select(columns)
    is_table = hasattr(data, "read_next_batch") or hasattr(data, "validate")
    return validated(data) if is_table and hasattr(data, "schema") else data


def _of_pandas(data: pandas.DataFrame, labels: list[str]) -> pyarrow.Table | pandas.DataFrame:
    """Return a pandas frame as a pyarrow table, or the frame itself if pyarrow is not installed."""
    try:
        return validated(as_arrow(data, labels))
    except ImportError:
        return data


def frame(data: object, columns: list[str]) -> object:
    """Return columns of a table in memory, as an Arrow stream or as a dict of arrays."""
    if isinstance(data, dict):
        files.require_columns(data, columns)
        for name in columns:
            if isinstance(data[name], str | bytes | numbers.Number):
                raise ParameterError(
                    f"column {name!r} is one value; give a list or an array for each column, not a dict for each row"
                )
        return {name: plain_column(data[name], f"column {name!r}") for name in columns}
    table = selected(data, columns)
    if _is_pandas(table):
        return {name: label_cells(table[name], f"column {name!r}") for name in columns}
    if hasattr(table, "__arrow_c_stream__"):
        return Rows(table).__arrow_c_stream__()
    raise _no_table(table)


def _is_pandas(table: object) -> TypeGuard[pandas.DataFrame]:
    return library(table) == "pandas"


def _no_table(data: object) -> ParameterError:
    text = (
        "data must be a path, a frame or relation with __arrow_c_stream__, a dict of arrays, or a list of these, "
        f"not {type(data).__name__}"
    )
    if isinstance(data, list | tuple | set | frozenset) or hasattr(data, "__next__"):
        text += '; of pairs make a dict: users, items = zip(*pairs), then {"user": users, "item": items}'
    return ParameterError(text)


def _require_readable(data: duckdb.DuckDBPyRelation, columns: list[str]) -> None:
    """Raise SchemaError for columns that DuckDB cannot export."""
    for name, kind in zip(data.columns, data.types, strict=True):
        if name in columns and str(kind) in _UNREADABLE:
            raise SchemaError(f"column {name!r} has the type {kind}; cast it to text or to integers")


def _without_objects(data: polars.DataFrame) -> polars.DataFrame:
    """Return a polars frame, or raise SchemaError for columns of Python objects.

    Of such columns, polars exports only addresses in memory.
    """
    for name, kind in data.schema.items():
        if str(kind) == "Object":
            raise SchemaError(
                f"column {name!r} holds Python objects, such as UUIDs; make them text or integers before polars reads "
                f"them, or cast the column: frame.with_columns(polars.Series({name!r}, map(str, frame[{name!r}])))"
            )
        if str(kind) in ("Int128", "UInt128"):
            raise SchemaError(
                f"column {name!r} has the type {kind}, which does not fit 64 bits; cast it to Int64, UInt64 or String"
            )
    return data


def _remedy(data: pandas.DataFrame, missing: set[str]) -> str:
    """Return how to make missing columns of pandas available, if they are in the index or in a MultiIndex."""
    if missing & {*data.index.names}:
        return "; it is in the index: reset_index() first"
    return _LEVELS if data.columns.nlevels > 1 else ""


def require_types(table: dict[str, Any], user: Names, item: Names, period: Period | None = None) -> None:
    """Raise the SchemaError of a frame for arrays of a dict whose types cannot be those of users, items or times.

    Cells do not decide it, because all of them may be missing. Arrays without a type have none to refuse.
    """
    users = [user] if isinstance(user, str) else user
    for name in columns_of(user, item, period):
        others = f"{name}.", f"{name}.."
        empty = without_rows(table[name], name, others) if name in table else None
        if empty is None:
            continue
        if period is not None and name == period.column:
            _core.count_distinct(empty, *others, times=(name, "1d", None, None), threads=1)
        else:
            _core.count_distinct(empty, *((name, others[0]) if name in users else (others[0], name)), threads=1)


def without_rows(column: Any, name: str, others: Sequence[str] = ()) -> ArrowStream | None:
    """Return an Arrow table without rows, with a typed array as a column and `others` of integers.

    Returns None for lists, and for columns of pandas whose type is one of numpy or is open: `label_cells` reads these.
    """
    kind = library(column)
    is_array = hasattr(column, "to_numpy") and (hasattr(column, "dtype") or hasattr(column, "type"))
    if kind not in ("pandas", "polars", "pyarrow") or not is_array:
        return None
    if kind == "polars":
        import polars

        empty = column[:0].alias(name).to_frame()
        return _without_objects(empty.with_columns(polars.lit(0).alias(other) for other in others))
    if kind == "pandas" and (isinstance(column.dtype, np.dtype) or is_untyped(column.dtype)):
        return None
    try:
        with importing():
            import pyarrow
    except ImportError:
        return None
    if kind == "pandas":
        import pandas

        try:
            column = as_arrow(pandas.Series(column[:0], name=name).to_frame(), []).column(0)
        except pyarrow.ArrowException:
            return None
    cells = [column[:0], *(pyarrow.array([], pyarrow.int64()) for _ in others)]
    return pyarrow.table(cells, [name, *others])  # type: ignore[no-any-return]


def name_column(table: dict[str, Any], columns: list[str], error: SchemaError) -> None:
    """Raise SchemaError with the name of the column that raises the same error by itself, if there is one."""
    for name in columns:
        try:
            if name in table:
                # Other names, so that an error that has the name of a column is another one.
                alone = frame({"\0": table[name], "\1": table[name]}, ["\0", "\1"])
                _core.count_distinct([alone], "\0", "\1")
        except SchemaError as own:
            if own.args != error.args:
                continue
            raise SchemaError(
                f"column {name!r} must hold integers of 64 bits, text, bytes, dates, times or booleans, all of one "
                "type; cast it, and round floats first"
            ) from None
        except Exception:  # users may repeat and be missing; other errors may quote cells
            continue


def pair_columns(users: Any, items: Any) -> tuple[Any, Any]:
    """Return arrays of users and items in a form that `_core` takes; see `plain_column`."""
    require_types({"users": users, "items": items}, "users", "items")
    return plain_column(users, "users"), plain_column(items, "items")


def plain_column(column: Any, name: str = "a column") -> Any:
    """Return an array of any library in a form that `_core` takes, with None for missing cells.

    Raises:
        ParameterError: The column, called `name`, has no cells in a fixed order, such as a mapping or a set.
        SchemaError: The column is a list of Python objects that are no labels.
    """
    if isinstance(column, Mapping):
        raise ParameterError(f'{name} is a mapping; give a list or an array, such as frame.to_dict("list") has')
    require_array(name, column)
    if isinstance(column, ma.MaskedArray) or getattr(getattr(column, "dtype", None), "kind", "") == "T":
        return column.tolist()
    if hasattr(column, "to_pylist"):
        if library(column) != "pyarrow":
            return column.to_pylist()
        return plain_cells(of_pyarrow(column, name), name, digits=digits_of(column.type))
    if library(column) in ("pandas", "polars") and not (hasattr(column, "dtype") and hasattr(column, "to_numpy")):
        raise ParameterError(f"a {type(column).__name__} is no column; give a Series, a list or an array instead")
    if library(column) == "polars":
        return plain_cells(of_polars(column, name), name, digits=digits_of(column.dtype))
    if library(column) == "pandas":
        return label_cells(column, name)
    return plain_cells(column, name)


def library(value: object) -> str:
    """Return the name of the library whose class an object has or extends."""
    roots = [base.__module__.partition(".")[0].lstrip("_") for base in type(value).__mro__]
    return next((root for root in roots if root in _LIBRARIES), roots[0])


def names(data: object) -> list[str] | None:
    """Return the column names of a frame, or None if they are unknown."""
    # A pandas frame may have a column named "column_names", and `columns` of pyarrow are arrays instead of names.
    found = None if library(data) == "pandas" else getattr(data, "column_names", None)
    found = getattr(data, "columns", None) if found is None else found
    if found is None:
        found = getattr(getattr(data, "schema", None), "names", None)
    return found if found is None else [name for name in found if isinstance(name, str)]
