"""Columns to sum, of tables in memory and of DuckDB: numbers, booleans, or text that holds numbers."""

from __future__ import annotations

import numbers
from array import array
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from discreet.engines.cells import encodable
from discreet.engines.columns import has_type, library, require_ordered, typed_cells
from discreet.engines.files import quoted
from discreet.engines.pandas_columns import is_untyped, object_cells
from discreet.engines.typed_arrays import Foreign, of_polars, of_pyarrow
from discreet.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    from duckdb import DuckDBPyRelation
    from numpy.typing import NDArray

__all__ = ["of_duckdb", "of_pandas", "plain_values", "typed_values"]

_OTHER = frozenset("MmcSV")
"""Kinds of numpy for dates, durations, complex numbers, bytes and structures."""
_WIDE = frozenset({"HUGEINT", "UHUGEINT", "BIGNUM"})
"""DuckDB's integers beyond 64 bits, which Arrow does not have."""


def of_duckdb(rows: DuckDBPyRelation, value: str) -> DuckDBPyRelation:
    """Return a relation whose column of values has a type of Arrow.

    Raises:
        SchemaError: The type is exported as text, but has no numbers.
    """
    kind = str(dict(zip(rows.columns, rows.types, strict=True))[value])
    if kind in ("UUID", "BIT"):
        raise no_numbers(value)
    if kind not in _WIDE:
        return rows
    cells = [
        f"TRY_CAST({quoted(name)} AS DOUBLE) AS {quoted(name)}" if name == value else quoted(name)
        for name in rows.columns
    ]
    return rows.project(", ".join(cells))


def of_pandas(data: pandas.DataFrame, value: str) -> pandas.DataFrame:
    """Return a frame whose column of values has a type. An object column is read as a list is.

    Raises:
        SchemaError: The column has no numbers.
    """
    column = data[value]
    if getattr(column.dtype, "kind", "") in _OTHER:
        raise no_numbers(value)
    if is_untyped(column.dtype):
        values = _plain(object_cells(column))
        data = data.copy(deep=False)
        data[value] = values if isinstance(values, np.ndarray) else np.array([*values, None], object)[:-1]
    return data


def typed_values(name: str, column: object) -> object:
    """Return a typed array of another library as it is, and another column as `plain_values`.

    Raises:
        ParameterError: The column has no cells in a fixed order.
        SchemaError: The column has no numbers.
    """
    is_typed = has_type(column) and not isinstance(column, np.ma.MaskedArray)
    return column if is_typed else plain_values(name, column)


def plain_values(name: str, column: object) -> NDArray[np.number] | list[str]:
    """Return a column as an array of numbers or as text, in which a cell that is no number is no text of a number.

    Integers with a type are kept, because floats do not have all of them; missing ones are masked.

    Python parses digits of all scripts, and the engine parses ASCII digits only. The same text must be the same number
    in every table, so the engine parses all text.

    Raises:
        ParameterError: The column has no cells in a fixed order, such as a mapping or a set.
        SchemaError: The column has another type than numbers or text. A list has none.
    """
    require_ordered(f"column {name!r}", column)
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if kind in _OTHER:
        raise no_numbers(name)
    if kind in ("i", "u") or (isinstance(column, array) and column.typecode in "bBhHiIlLqQ"):
        return typed_cells(column, f"column {name!r}")  # type: ignore[no-any-return]
    if isinstance(column, np.ndarray) and kind in "bf":
        return np.ma.filled(np.ma.asarray(column).astype(np.float64), np.nan)
    return _plain(_cells(column))


def _plain(cells: Sequence[object]) -> NDArray[np.float64] | list[str]:
    if any(isinstance(cell, str) for cell in cells):
        return [(encodable(str(cell)) or "") if isinstance(cell, str) else repr(_number(cell)) for cell in cells]
    return np.array([_number(cell) for cell in cells], np.float64)


def no_numbers(name: str) -> SchemaError:
    """Return the error for a column without numbers."""
    return SchemaError(
        f"the column {name!r} must hold numbers, booleans, or text that holds numbers; cast dates, times and other "
        "types to numbers first"
    )


def _cells(column: Foreign) -> Sequence[object]:
    """Return the cells of an array of any library, with None for masked and missing ones."""
    if hasattr(column, "to_pylist"):
        return of_pyarrow(column, "the column")  # type: ignore[no-any-return]
    if library(column) == "polars":
        return of_polars(column, "the column")  # type: ignore[no-any-return]
    if library(column) == "pandas":
        import pandas

        return object_cells(pandas.Series(column))
    return column.tolist() if isinstance(column, np.ma.MaskedArray) else column  # type: ignore[no-any-return]


def _is_value(cell: object) -> bool:
    # numpy registers timedelta64 as a number.
    return isinstance(cell, numbers.Real | Decimal | np.bool_ | str) and not isinstance(cell, np.timedelta64)


def _number(cell: Foreign) -> float:
    """Return a value as a float, or NaN if it is not a number."""
    if not _is_value(cell):
        return float("nan")
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
