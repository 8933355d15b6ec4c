"""Conversion of pandas columns of Python objects to text, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from discreet.errors import SchemaError

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from numpy.typing import NDArray

__all__ = ["as_arrow", "label_cells", "text_cells"]


def text_cells(cells: Iterable[object]) -> list[str | None]:
    """Return each cell as text by a rule for its own type, or None if there is no rule.

    Text is unchanged, a 64-bit integer becomes its digits, a boolean becomes "true" or "false", bytes are decoded as
    UTF-8, a date or time becomes ISO 8601, and a UUID or `pandas.Period` is converted by `str`. A missing cell and a
    cell of any other type become None. So no cell can raise an error or change how other cells are read.
    """
    return [_text(cell) for cell in cells]


def _text(cell: object) -> str | None:
    if isinstance(cell, str):
        return _utf8(str.__str__(cell))
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, int | np.integer):
        number = int(cell)
        return str(number) if -(2**63) <= number < 2**64 else None
    if isinstance(cell, bytes):
        return _decoded(cell)
    if isinstance(cell, date):
        return cell.isoformat() if cell == cell else None
    if isinstance(cell, UUID) or type(cell).__name__ == "Period":
        return str(cell)
    return None


def _utf8(text: str) -> str | None:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _decoded(cell: bytes) -> str | None:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


def _is_untyped(dtype: object) -> bool:
    """Return whether a pandas type leaves the type, or the text, of each cell open."""
    dtype = getattr(dtype, "subtype", dtype)
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return _is_untyped(categories.dtype)
    return dtype == np.dtype(object) or type(dtype).__name__ in ("StringDtype", "PeriodDtype")


def _dense(column: pandas.Series[object]) -> pandas.Series[object]:
    """Return the column in dense form."""
    if type(column.dtype).__name__ == "SparseDtype":
        return column.astype(column.dtype.subtype)
    return column


def _require_no_floats(column: pandas.Series[object]) -> None:
    """Raise SchemaError for floats: pandas converts integers to them if a cell is missing."""
    if getattr(column.dtype, "kind", "") in ("f", "c"):
        raise SchemaError(
            f"column {column.name!r} has the type {column.dtype}; floats are no labels, because equal numbers can "
            'differ in their last bits; cast it to text or to integers (with missing cells by .astype("Int64"))'
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
            _require_no_floats(column)
        if name in labels and _is_untyped(column.dtype):
            columns[name] = _text_array(column)
        else:
            columns[name] = pyarrow.Table.from_pandas(column.to_frame(), preserve_index=False).column(0)
    return pyarrow.table(columns)


def _text_array(column: pandas.Series[object]) -> pyarrow.Array:
    import pyarrow

    if hasattr(column.dtype, "categories"):
        codes = column.cat.codes.to_numpy()
        values = _text_array(column.cat.categories.to_series())
        if isinstance(values, pyarrow.ChunkedArray):
            values = values.combine_chunks()
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, mask=codes < 0), values)
    kind = pyarrow.large_string()
    if type(column.dtype).__name__ != "PeriodDtype":
        try:
            return pyarrow.array(column, kind, from_pandas=True)
        except (pyarrow.ArrowException, UnicodeError, ValueError, TypeError):  # a cell that is neither text nor missing
            pass
    return pyarrow.array(text_cells(column.astype(object)), kind)


def label_cells(column: object) -> NDArray[np.generic]:
    """Return a column of labels as an array for `_core`, without pyarrow.

    Args:
        column: A Series, an Index or an array of pandas.

    Raises:
        SchemaError: The column holds floats.
    """
    import pandas

    series = _dense(pandas.Series(column))
    _require_no_floats(series)
    cells: NDArray[np.generic]
    if _is_untyped(series.dtype):
        cells = np.array([*text_cells(series.astype(object)), None], object)[:-1]
    elif isinstance(series.dtype, np.dtype):
        cells = series.to_numpy()
    else:
        cells = series.astype(object).where(series.notna(), None).to_numpy()
    return cells
