"""Conversion of columns of Python objects: of pandas to text, cell by cell, and of lists to the type of a cell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from discreet.engines.typed_arrays import Foreign, digits_of, is_backed_by_arrow, of_pandas_zone, of_pyarrow
from discreet.errors import SchemaError
from discreet.imports import importing

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from numpy.typing import NDArray

__all__ = [
    "as_arrow",
    "encodable",
    "is_missing",
    "is_untyped",
    "label_cells",
    "object_cells",
    "plain_cells",
    "text_cells",
]

_DIGITS = 18
"""The most digits of a decimal that always fits 64 bits."""
_MOST_OFFSET = timedelta(hours=18)
"""The largest offset from UTC that text of a time may have."""


def text_cells(cells: Iterable[object], name: str) -> list[str | None]:
    """Return each cell as text by a rule for its own type, or None if there is no rule.

    Text is unchanged, a 64-bit integer becomes its digits, a decimal without places too, a boolean becomes "true" or
    "false", bytes are decoded as UTF-8, a date or a date with a time becomes ISO 8601, and a UUID or `pandas.Period`
    is converted by `str`. A missing cell and a cell of any other type become None. So no cell can raise an error or
    change how other cells are read.

    Raises:
        SchemaError: No cell is of a type with a rule, and not all are missing. The text calls the column `name`.
    """
    given = [*cells]
    texts = [_text(cell) for cell in given]
    if all(text is None for text in texts):
        present = [cell for cell in given if not is_missing(cell)]
        if present and not any(map(_is_label, present)):
            raise _no_labels(name, present[0])
    return texts


_LABELS = str | bool | np.bool_ | int | np.integer | bytes | bytearray | memoryview | date | UUID | np.datetime64
"""The types of labels. NumPy registers timedelta64 as an integer."""


def _is_label(cell: object) -> bool:
    """Return whether the type of a cell, with the places of a decimal, has a rule in `text_cells`."""
    if isinstance(cell, Decimal):
        return _is_whole(cell)
    return (isinstance(cell, _LABELS) and not isinstance(cell, np.timedelta64)) or type(cell).__name__ == "Period"


def _is_whole(cell: Decimal) -> bool:
    """Return whether a decimal has no places, as DECIMAL(p, 0) in a database. 5.00 has two."""
    exponent = cell.as_tuple().exponent
    return isinstance(exponent, int) and 0 <= exponent <= 20


def is_missing(cell: object) -> bool:
    """Return whether a cell is None, NaN, NaT or NA."""
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return cell is None or type(cell).__name__ in ("NaTType", "NAType")


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
    if isinstance(first, datetime) and first.tzinfo is not None:
        return [_with_short_offset(cell) if isinstance(cell, datetime) else cell for cell in column]
    if not isinstance(first, Decimal | UUID | np.datetime64):
        return column
    kind = next(kind for kind in (Decimal, UUID, np.datetime64) if isinstance(first, kind))
    cells = [None if is_missing(cell) else cell for cell in column]
    if not all(cell is None or isinstance(cell, kind) for cell in cells):
        raise SchemaError(f"{name} must hold cells of one type; cast it")
    if kind is np.datetime64:
        return np.array([np.datetime64("NaT") if cell is None else cell for cell in cells])
    if any(isinstance(cell, Decimal) and not _is_whole(cell) for cell in cells):
        raise _no_labels(name, first)
    if kind is UUID or (digits or 0) > _DIGITS:
        return [None if cell is None else f"{cell:f}" if kind is Decimal else str(cell) for cell in cells]
    whole = [None if cell is None else int(cell) for cell in cells]
    return whole if digits is None else [cell if cell is None or -(2**63) <= cell < 2**63 else None for cell in whole]


def _text(cell: object) -> str | None:
    if isinstance(cell, str):
        return encodable(str.__str__(cell))
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return _moment(cell)
    if isinstance(cell, int | np.integer) or (isinstance(cell, Decimal) and _is_whole(cell)):
        number = int(cell)
        return str(number) if -(2**63) <= number < 2**64 else None
    if isinstance(cell, bytes | bytearray | memoryview):
        return _decoded(cell)
    if isinstance(cell, datetime):
        cell = _with_short_offset(cell)
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, UUID) or type(cell).__name__ == "Period":
        return str(cell)
    return None


def _with_short_offset(moment: datetime) -> datetime | None:
    """Return a time whose offset from UTC has whole minutes, as that of text must have; None if there is none.

    The local mean time of a zone before about 1900 has seconds: 1890 in Amsterdam is at +00:19:32. Other libraries
    convert times to UTC, which has no offset.
    """
    if is_missing(moment):
        return None
    try:
        offset = moment.utcoffset()
        if offset is None or (abs(offset) <= _MOST_OFFSET and not offset % timedelta(minutes=1)):
            return moment
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # outside the years 1 to 9999
        return None


def _moment(cell: np.datetime64 | np.timedelta64) -> str | None:
    """Return a time of NumPy as `isoformat` of pandas writes it, or None for a duration or a year out of range."""
    import pandas

    if isinstance(cell, np.timedelta64) or np.isnat(cell):
        return None
    if np.datetime_data(cell.dtype)[0] == "D":
        day: object = cell.item()
        return day.isoformat() if isinstance(day, date) else None
    try:
        text: str = pandas.Timestamp(cell).isoformat()
        return text
    except ValueError:
        return None


def encodable(text: str) -> str | None:
    """Return text, or None if UTF-8 cannot encode it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _decoded(cell: bytes | bytearray | memoryview) -> str | None:
    try:
        return bytes(cell).decode()
    except ValueError:  # not UTF-8, or a view that was released
        return None


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
    """Raise SchemaError for floats: pandas converts integers to them if a cell is missing."""
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
    with importing():
        import pyarrow

    columns = {}
    for name in frame.columns:
        column = _dense(frame[name])
        if name in labels:
            _require_no_floats(column, f"column {name!r}")
        if name in labels and is_untyped(column.dtype):
            columns[name] = _text_array(column)
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
    return pyarrow.array(text_cells(object_cells(column), f"column {column.name!r}"), kind)


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
    if is_untyped(series.dtype):
        cells = np.array([*text_cells(object_cells(series), name), None], object)[:-1]
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
