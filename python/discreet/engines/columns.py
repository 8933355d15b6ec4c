"""Columns in memory, of any library: their types, and one or several as arrays that `_core` reads."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy import ma  # here, because a fork during numpy's own import on first use would hang the child

from discreet import _core
from discreet.engines.cells import cells_of_kind, encodable
from discreet.engines.pandas_columns import as_arrow, is_untyped, label_cells, plain_cells
from discreet.engines.typed_arrays import Foreign, digits_of, is_backed_by_arrow, of_polars, of_pyarrow
from discreet.errors import ParameterError, SchemaError
from discreet.privacy.validation import require_array

if TYPE_CHECKING:
    import polars
    from numpy.typing import NDArray

__all__ = [
    "column_of_kind",
    "has_type",
    "library",
    "list_of",
    "plain_column",
    "pyarrow_if_installed",
    "require_column",
    "require_ordered",
    "typed_cells",
    "typed_table",
    "without_masked",
    "without_objects",
]

_LIBRARIES = frozenset({"duckdb", "pandas", "polars", "pyarrow"})
_FINER = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s", "ps": "ns", "fs": "ns", "as": "ns"}
"""The units of times of NumPy that labels lack, and those in which their times are read."""


def library(value: object) -> str:
    """Return the name of the library whose class an object has or extends."""
    roots = [base.__module__.partition(".")[0].lstrip("_") for base in type(value).__mro__]
    return next((root for root in roots if root in _LIBRARIES), roots[0])


def require_column(column: Foreign, name: str) -> None:
    """Raise ParameterError for a table of a library, a MultiIndex or a relation."""
    kind = library(column)
    is_column = hasattr(column, "null_count") if kind == "pyarrow" else hasattr(column, "dtype")
    is_column = is_column and hasattr(column, "to_numpy") and getattr(column, "nlevels", 1) == 1
    if kind in _LIBRARIES and not is_column and not hasattr(column, "__next__"):
        raise ParameterError(f"{name} must be a Series, a list or an array, not a {type(column).__name__}")


def require_ordered(name: str, column: Foreign) -> None:
    """Raise ParameterError for a column, called `name`, without cells in a fixed order, such as a mapping or a set."""
    if isinstance(column, Mapping):
        raise ParameterError(f'{name} is a mapping; give a list or an array, such as frame.to_dict("list") has')
    require_array(name, column)
    require_column(column, name)


def plain_column(column: Foreign, name: str = "a column") -> Foreign:
    """Return an array of any library in a form that `_core` takes, with None for missing cells.

    Raises:
        ParameterError: The column, called `name`, has no cells in a fixed order, such as a mapping or a set.
        SchemaError: The column is a list of Python objects that are no labels.
    """
    require_ordered(name, column)
    if isinstance(column, array):
        return np.asarray(column)
    if getattr(getattr(column, "dtype", None), "kind", "") == "M" and isinstance(column, np.ndarray):
        # `tolist` of a masked array returns nanoseconds as integers.
        return _plain_times(ma.filled(column, np.datetime64("NaT")))
    if isinstance(column, ma.MaskedArray) or getattr(getattr(column, "dtype", None), "kind", "") == "T":
        return plain_cells(column.tolist(), name)
    if hasattr(column, "to_pylist"):
        if library(column) != "pyarrow":
            return column.to_pylist()
        return plain_cells(of_pyarrow(column, name), name, digits=digits_of(column.type))
    if library(column) == "polars":
        return plain_cells(of_polars(column, name), name, digits=digits_of(column.dtype))
    if library(column) == "pandas":
        return label_cells(column, name)
    return plain_cells(column, name)


def column_of_kind(cells: list[object], name: str, kind: str) -> Foreign:
    """Return a list as a column of a kind of `kind_of_most`, which it keeps whatever its cells are."""
    found = cells_of_kind(cells, kind)
    if kind == "nsZ" or (kind == "usZ" and not any(cell is not None for cell in found)):
        pyarrow = pyarrow_if_installed()  # NumPy has no zones
        return found if pyarrow is None else _arrow_column(found, name, pyarrow, is_label=True, kind=kind)
    return found


def list_of(column: Foreign, name: str) -> list[object] | None:
    """Return the cells of a list or an array of objects, whose column has no type; None for another column.

    An array of float64 without cells is a list: NumPy makes it of an empty one.

    Raises:
        ParameterError: The column, called `name`, has no cells in a fixed order, such as a mapping or a set.
    """
    require_ordered(name, column)
    if isinstance(column, np.ndarray):
        is_open = column.ndim == 1 and (column.dtype.kind in "OT" or (column.dtype == np.float64 and not len(column)))
        return column.tolist() if is_open else None
    has_own = hasattr(column, "dtype") or hasattr(column, "to_pylist") or isinstance(column, array)
    return None if has_own or library(column) in _LIBRARIES else column if isinstance(column, list) else [*column]


def _plain_times(column: NDArray[np.datetime64]) -> NDArray[np.datetime64]:
    """Return times of NumPy in days, seconds, milliseconds, microseconds or nanoseconds.

    Times that the years 1 to 9999 or nanoseconds do not have are missing.
    """
    unit, parts = np.datetime_data(column.dtype)
    finer = _FINER.get(unit, unit)
    if (parts == 1 and finer == unit) or unit == "generic":
        return column
    if unit in ("ps", "fs", "as"):
        return column.astype(f"M8[{finer}]")
    ends = ("1678", "2262") if unit == "ns" else ("0001", "9999")
    first, last = (np.datetime64(year, "Y").astype(f"M8[{finer}]").astype(column.dtype) for year in ends)
    within = (column >= first) & (column <= last)
    return np.where(within, column, np.datetime64("NaT")).astype(f"M8[{finer}]")


def typed_table(
    columns: dict[str, Foreign],
    labels: Sequence[str] | None = None,
    values: Callable[[str, Foreign], Foreign] = lambda _, column: column,
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> Foreign:
    """Return columns as a table of pyarrow or polars, if one has a type of these, of pandas or of a masked array.

    If cells decided the type, one row could change the schema of a release, or make it an error. Only lists have no
    other type. Returns None for lists and arrays of numpy, which `_core` reads, and without pyarrow for arrays of
    pandas and masked arrays, which `typed_cells` reads.

    `labels` names the columns of users and items, by default all. `values` converts each other column.

    Raises:
        ParameterError: The columns have different lengths, or one is no column.
        SchemaError: The type of an array is one that no label has, or polars without pyarrow cannot read the array.
    """
    for name, column in columns.items():
        require_column(column, f"column {name!r}")
    if not any(map(has_type, columns.values())):
        return None
    pyarrow = pyarrow_if_installed()
    if pyarrow is None and not any(library(column) == "polars" for column in columns.values()):
        return None
    for name, column in columns.items():
        require_array(f"column {name!r}", column)
    if len({len(column) for column in columns.values()}) > 1:
        raise ParameterError("the columns, such as users and items, must have the same length")
    if labels is not None:
        columns = {name: column if name in labels else values(name, column) for name, column in columns.items()}
    if pyarrow is None:
        import polars

        return without_objects(
            polars.DataFrame([_series(column, name, kinds.get(name)) for name, column in columns.items()])
        )
    return pyarrow.table(
        {
            name: _arrow_column(column, name, pyarrow, is_label=labels is None or name in labels, kind=kinds.get(name))
            for name, column in columns.items()
        }
    )


def has_type(column: Foreign) -> bool:
    """Return whether an array of another library than numpy, or a masked array, has one type for all cells."""
    if isinstance(column, ma.MaskedArray):
        return column.dtype.kind not in "OUT"
    kind = library(column)
    is_open = kind == "pandas" and (isinstance(column.dtype, np.dtype) or is_untyped(column.dtype))
    if is_open and is_backed_by_arrow(column.dtype):
        return True  # text, of which Arrow keeps cells that are not UTF-8
    return kind in ("pandas", "polars", "pyarrow") and not is_open


def typed_cells(column: Foreign, name: str) -> Foreign:
    """Return `plain_column`, or a masked array if the type is one of pandas or of a masked array, without pyarrow.

    Raises:
        SchemaError: The column is one of pandas with zoned times. NumPy has none, and cells would decide their unit.
            Or its type is one of NumPy that no label has.
    """
    if isinstance(column, ma.MaskedArray) and column.dtype.kind not in "OUTMmcV":
        return column
    if library(column) == "pandas" and hasattr(column, "dtype") and not is_untyped(column.dtype):
        import pandas

        if isinstance(column.dtype, pandas.DatetimeTZDtype):
            raise SchemaError(
                f"{name} has times with a zone, which need pyarrow: install it, or make them times in UTC without a "
                "zone, by series.dt.tz_convert('UTC').dt.tz_localize(None)"
            )
        series = pandas.Series(column)
        missing = series.isna().to_numpy()
        if hasattr(series.dtype, "categories"):
            values = series.cat.categories.to_numpy()
            if values.dtype.kind in "iubM":
                places = np.where(missing, 0, series.cat.codes.to_numpy())
                return ma.MaskedArray(values[places] if len(values) else np.zeros(len(missing), values.dtype), missing)
        elif (own := getattr(series.dtype, "numpy_dtype", np.dtype(object))).kind in "iub":
            return ma.MaskedArray(series.to_numpy(own, na_value=0), missing)
    return _with_labels(plain_column(column, name), name)


def _with_labels(column: Foreign, name: str) -> Foreign:
    """Return a plain column, or raise SchemaError if its type is one of NumPy that no label has."""
    if getattr(column, "ndim", 1) != 1:
        raise SchemaError(f"{name} must be a one-dimensional array")
    if getattr(getattr(column, "dtype", None), "kind", "O") in "cmV":
        raise SchemaError(
            f"{name} must hold integers of 64 bits, text, bytes, dates, times or booleans; cast it, and round floats "
            "first"
        )
    return column


def without_masked(table: dict[str, Foreign]) -> dict[str, Foreign]:
    """Return the rows of a dict of arrays and lists of which no cell is masked, so that arrays keep their types."""
    masks = [ma.getmaskarray(column) for column in table.values() if isinstance(column, ma.MaskedArray)]
    if not masks:
        return table
    if len({len(column) for column in table.values()}) > 1:
        raise ParameterError("the columns, such as users and items, must have the same length")
    kept = ~np.logical_or.reduce(masks)
    return {
        name: ma.getdata(column)[kept]
        if isinstance(column, np.ndarray)
        else [cell for cell, is_kept in zip(column, kept, strict=True) if is_kept]
        for name, column in table.items()
    }


def pyarrow_if_installed() -> Foreign:
    """Return pyarrow, or None if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def _arrow_column(column: Foreign, name: str, pyarrow: Foreign, *, is_label: bool, kind: str | None) -> Foreign:
    """Return a column as an array of pyarrow."""
    own = library(column)
    if own == "pyarrow":
        return column
    if own == "polars":
        return without_objects(column.alias(name).to_frame()).to_series().alias("").to_arrow()
    if own == "pandas":
        import pandas

        series = pandas.Series(column).rename(name)
        return as_arrow(series.to_frame(), [name] if is_label else []).column(0)
    if isinstance(column, ma.MaskedArray) and column.dtype.kind in "iubf":
        native = column.dtype.newbyteorder("=")
        return pyarrow.array(ma.getdata(column).astype(native), mask=ma.getmaskarray(column))
    cells, (stem, *unit) = _list_cells(column, f"column {name!r}", kind)
    if stem == "numpy":
        return pyarrow.array(cells)
    types = {"text": pyarrow.large_string, "binary": pyarrow.large_binary, "bool": pyarrow.bool_}
    types |= {"date": pyarrow.date32, "int64": pyarrow.int64, "uint64": pyarrow.uint64, "time": pyarrow.timestamp}
    types["null"] = pyarrow.null
    stored = {"date": pyarrow.int32(), "time": pyarrow.int64()}.get(stem)
    found = types[stem](*unit)
    return pyarrow.array(cells, found) if stored is None else pyarrow.array(cells, stored).cast(found)


def _series(column: Foreign, name: str, kind: str | None) -> polars.Series:
    """Return a column as a Series of polars, without pyarrow."""
    import polars

    if library(column) == "polars":
        return column.alias(name)  # type: ignore[no-any-return]
    if isinstance(column, ma.MaskedArray) and column.dtype.kind in "iu":
        kept = polars.Series(ma.getdata(column).astype(column.dtype.newbyteorder("=")))
        return polars.Series(name, column.tolist(), kept.dtype)
    if library(column) == "pandas" or isinstance(column, ma.MaskedArray):
        raise SchemaError(
            f"column {name!r} is an array of {library(column)} beside one of polars: install pyarrow, or give all "
            "columns in a frame of polars"
        )
    cells, (stem, *unit) = _list_cells(column, f"column {name!r}", kind)
    if stem == "numpy":
        return polars.Series(name, cells)
    types: dict[str, Foreign] = {"text": polars.String, "binary": polars.Binary, "bool": polars.Boolean}
    types |= {"date": polars.Date, "int64": polars.Int64, "uint64": polars.UInt64}
    types |= {"time": polars.Datetime, "null": polars.Null}
    found = types[stem](*unit)
    return polars.Series(name, cells, {"date": polars.Int32, "time": polars.Int64}.get(stem, found)).cast(found)


def without_objects(data: polars.DataFrame) -> polars.DataFrame:
    """Return a polars frame, or raise SchemaError for columns of Python objects.

    polars exports a column of objects as addresses in memory.
    """
    for name, kind in data.schema.items():
        if "\0" in name:  # polars would panic
            raise SchemaError(f"the name of the column {name!r} has a NUL character; rename the column")
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


def _list_cells(column: Foreign, name: str, kind: str | None) -> tuple[Foreign, tuple[str, ...]]:
    """Return the cells of a list of this kind as `_core` reads them, None for missing ones, and their type.

    Arrays of numpy have no `kind`, and are returned as they are, with the type "numpy". Dates are days since
    1970, and times are microseconds or nanoseconds.

    Raises:
        SchemaError: The type of an array is one that no label has.
    """
    is_bytes = getattr(getattr(column, "dtype", None), "kind", "O") == "S"
    column = _with_labels(plain_column(column, name), name)
    dtype: Foreign = getattr(column, "dtype", np.dtype(object))
    if dtype.name == "datetime64[D]":
        days = column.astype(np.int64).tolist()
        return [day if -(2**31) <= day < 2**31 else None for day in days], ("date",)
    if dtype.kind in "iubfM":
        return np.asarray(column).astype(float if dtype.kind == "f" else dtype.newbyteorder("=")), ("numpy",)
    cells = column.tolist() if hasattr(column, "tolist") else list(column)
    is_list, kind = kind is not None, kind or ("binary" if is_bytes else "text")
    if kind == "text":
        is_typed = not is_list or any(cell is not None for cell in cells)
        return [cell if cell is None else encodable(cell) for cell in cells], ("text" if is_typed else "null",)
    if kind in ("int64", "uint64", "bool", "binary"):
        return cells, (kind,)
    moments = [None if cell is None else _core.moment_of(cell.isoformat()) for cell in cells]
    if kind == "date":
        return [None if moment is None else moment // 86_400_000_000 for moment in moments], ("date",)
    unit, zone = kind[:2], ("UTC",) if kind.endswith("Z") else ()
    if unit == "us":
        return moments, ("time", "us", *zone)
    parts = [getattr(cell, "nanosecond", 0) for cell in cells]  # of times of pandas
    moments = [None if moment is None else moment * 1000 + part for moment, part in zip(moments, parts, strict=True)]
    return [moment if moment is None or abs(moment) < 2**63 else None for moment in moments], ("time", "ns", *zone)
