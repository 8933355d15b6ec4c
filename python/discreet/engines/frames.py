"""Tables in memory, of any library: their column names, and two columns as an Arrow stream or as arrays."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from numpy import ma  # here, because a fork during numpy's own import on first use would hang the child

from discreet import _core
from discreet.engines import files
from discreet.engines.batches import Rows, without_long_labels
from discreet.engines.pandas_columns import as_arrow, label_cells, plain_cells
from discreet.engines.sql import require_whole_csv
from discreet.engines.typed_arrays import of_polars, of_pyarrow
from discreet.engines.validated import validated
from discreet.errors import ParameterError, SchemaError
from discreet.privacy.validation import require_array

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

__all__ = ["frame", "is_read_once", "library", "name_column", "names", "plain_column", "selected"]


_LIBRARIES = frozenset({"duckdb", "pandas", "polars", "pyarrow"})
_LEVELS = "; columns have several levels: flatten them first, by frame.columns = map('_'.join, frame.columns)"
_FRAMES = frozenset({"DataFrame", "LazyFrame"})
"""The classes of tables in pandas and polars. Other objects of these libraries are columns or unfinished queries."""


def is_read_once(data: object) -> bool:
    """Return whether a table can be read only once: a reader, a generator, or a container of one."""
    if isinstance(data, dict):
        return any(map(is_read_once, data.values()))
    if isinstance(data, list | tuple):
        return any(is_read_once(table) for table in data[:1000] if not isinstance(table, str | bytes | numbers.Number))
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
        _require_no_bits(data, columns)
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


def _require_no_bits(data: duckdb.DuckDBPyRelation, columns: list[str]) -> None:
    """Raise SchemaError for columns of bits and of large numbers: DuckDB exports its own bytes for these."""
    for name, kind in zip(data.columns, data.types, strict=True):
        if name in columns and str(kind) in ("BIT", "BIGNUM"):
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
        return of_pyarrow(column, name) if library(column) == "pyarrow" else column.to_pylist()
    if library(column) in ("pandas", "polars") and not (hasattr(column, "dtype") and hasattr(column, "to_numpy")):
        raise ParameterError(f"a {type(column).__name__} is no column; give a Series, a list or an array instead")
    if library(column) == "polars":
        return of_polars(column, name)
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
