"""Conversion of columns of Python objects: of pandas to text, cell by cell, and of lists to the type of a cell."""

from __future__ import annotations

from datetime import time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from discreet.engines.cells import is_missing, is_whole_decimal, text_of
from discreet.engines.typed_arrays import Foreign, digits_of, is_backed_by_arrow, of_pandas_zone, of_pyarrow
from discreet.errors import SchemaError

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from numpy.typing import NDArray

__all__ = [
    "as_arrow",
    "is_untyped",
    "label_cells",
    "object_cells",
    "plain_cells",
]

_DIGITS = 18
"""The most digits of a decimal that always fits 64 bits."""


def _no_labels(column: str, cell: object) -> SchemaError:
    # The type of a cell is no more than the type of a column.
    kind = "decimals with places" if isinstance(cell, Decimal) else f"cells of the type {type(cell).__name__}"
    return SchemaError(f"{column} holds {kind}, which are no labels; cast it to text or to integers")


def plain_cells(column: Foreign, name: str, *, digits: int | None = None) -> Foreign:
    """Return a list or an array of objects whose first cell is a decimal, a UUID or a time as plain labels.

    Columns other than lists, tuples and arrays of objects are returned as they are. `digits` is the most digits of a
    type of decimals: if their integers may exceed 64 bits, decimals become text. Otherwise those that do, after an
    unsafe cast, are missing.

    Raises:
        SchemaError: The cells are of several types, decimals have places, or times have no date.
    """
    if not isinstance(column, list | tuple) and getattr(getattr(column, "dtype", None), "kind", "") != "O":
        return column
    first = next((cell for cell in column if not is_missing(cell)), None)
    if isinstance(first, time | timedelta):
        raise _no_labels(name, first)
    if not isinstance(first, Decimal | UUID | np.datetime64):
        return column
    kind = next(kind for kind in (Decimal, UUID, np.datetime64) if isinstance(first, kind))
    cells = [None if is_missing(cell) else cell for cell in column]
    if not all(cell is None or isinstance(cell, kind) for cell in cells):
        raise SchemaError(f"{name} must hold cells of one type; cast it")
    if kind is np.datetime64:
        return np.array([np.datetime64("NaT") if cell is None else cell for cell in cells])
    if any(isinstance(cell, Decimal) and not is_whole_decimal(cell) for cell in cells):
        raise _no_labels(name, first)
    if kind is UUID or (digits or 0) > _DIGITS:
        return [None if cell is None else f"{cell:f}" if kind is Decimal else str(cell) for cell in cells]
    whole = [None if cell is None else int(cell) for cell in cells]
    return whole if digits is None else [cell if cell is None or -(2**63) <= cell < 2**63 else None for cell in whole]


def is_untyped(dtype: object) -> bool:
    """Return whether a pandas type leaves the type, or the text, of each cell open."""
    dtype = getattr(dtype, "subtype", dtype)
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return is_untyped(categories.dtype)
    return dtype == np.dtype(object) or type(dtype).__name__ in ("StringDtype", "PeriodDtype")


def _dense(column: pandas.Series[object]) -> pandas.Series[object]:
    """Return the column in dense form and, because pyarrow needs it, with the bytes of its numbers in native order."""
    if type(column.dtype).__name__ == "SparseDtype":
        column = column.astype(column.dtype.subtype)
    if isinstance(column.dtype, np.dtype) and not column.dtype.isnative:
        column = column.astype(column.dtype.newbyteorder("="))
    return column


def _require_no_floats(column: pandas.Series[object], name: str) -> None:
    """Raise SchemaError for floats: pandas converts integers to them if a cell is missing.

    A column of float64 without rows passes, because a frame that is made of empty lists has this type.
    """
    if not len(column) and column.dtype == np.float64:
        return
    if getattr(column.dtype, "kind", "") in ("f", "c"):
        raise SchemaError(
            f"{name} has the type {column.dtype}; floats are no labels, because equal numbers can "
            "differ in their last bits; round it, and cast it to text or to integers, such as by "
            '.round().astype("Int64"), which keeps missing cells, or seconds since 1970 to times: '
            'pandas.to_datetime(..., unit="s")'
        )


def as_arrow(frame: pandas.DataFrame, labels: list[str]) -> pyarrow.Table:
    """Return a frame as a pyarrow table, with untyped columns of labels as text.

    Raises:
        SchemaError: A column of labels holds floats.
        ImportError: pyarrow is not installed.
    """
    import pyarrow

    columns = {}
    for name in frame.columns:
        column = _dense(frame[name])
        if name in labels:
            _require_no_floats(column, f"column {name!r}")
        if name in labels and not len(column) and column.dtype in (np.dtype(object), np.float64):
            columns[name] = pyarrow.nulls(0)  # made of an empty list, which has no type
        elif name in labels and (is_untyped(column.dtype) or column.dtype == np.float64):
            columns[name] = _text_array(column.astype(object) if column.dtype == np.float64 else column)
        else:
            columns[name] = pyarrow.Table.from_pandas(column.to_frame(), preserve_index=False).column(0)
    return pyarrow.table(columns)


def _text_array(column: pandas.Series[object]) -> pyarrow.Array:
    import pyarrow

    if hasattr(column.dtype, "categories"):
        codes = column.cat.codes.to_numpy()
        values = _text_array(column.cat.categories.to_series(name=column.name))
        if isinstance(values, pyarrow.ChunkedArray):
            values = values.combine_chunks()
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, mask=codes < 0), values)
    kind = pyarrow.large_string()
    if type(column.dtype).__name__ != "PeriodDtype":
        try:
            return pyarrow.array(column, kind, from_pandas=True)
        except (pyarrow.ArrowException, UnicodeError, ValueError, TypeError):  # a cell that is neither text nor missing
            pass
    return pyarrow.array([*map(text_of, object_cells(column))], kind)


def object_cells(column: pandas.Series[object]) -> list[object]:
    """Return the cells of an untyped column as Python objects."""
    if is_backed_by_arrow(column.dtype):
        import pyarrow

        cells: list[object] = of_pyarrow(pyarrow.array(column.array), "a column")
        return cells
    return [*column.astype(object)]


def label_cells(column: object, name: str) -> NDArray[np.generic]:
    """Return a column of labels as an array for `_core`, without pyarrow.

    Raises:
        SchemaError: The column holds floats, or objects that are no labels.
    """
    import pandas

    series = _dense(pandas.Series(column))
    _require_no_floats(series, name)
    cells: NDArray[np.generic]
    if is_untyped(series.dtype) or series.dtype == np.float64:
        cells = np.array([*map(text_of, object_cells(series)), None], object)[:-1]
    elif isinstance(series.dtype, np.dtype):
        cells = series.to_numpy()
    elif isinstance(series.dtype, pandas.DatetimeTZDtype):
        cells = np.array([*of_pandas_zone(series, name), None], object)[:-1]
    elif is_backed_by_arrow(series.dtype):
        import pyarrow

        typed = pyarrow.array(series.array)
        found = plain_cells(of_pyarrow(typed, name), name, digits=digits_of(typed.type))
        cells = found if isinstance(found, np.ndarray) else np.array([*found, None], object)[:-1]
    else:
        cells = series.astype(object).where(series.notna(), None).to_numpy()
    return cells
