"""Cells of typed arrays of pyarrow, polars and pandas. A cell that Python cannot hold is missing, and never raises."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.errors import SchemaError

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from numpy.typing import NDArray

__all__ = ["Foreign", "digits_of", "is_backed_by_arrow", "of_pandas_zone", "of_polars", "of_pyarrow"]

Foreign: TypeAlias = Any
"""An array, a table or a module of another library, which need not be installed: no class can be named."""
_FIRST, _LAST = np.datetime64("0001-01-01T00:00:00", "s"), np.datetime64("9999-12-31T23:59:59", "s")


def of_pyarrow(column: pyarrow.Array, name: str) -> Foreign:
    """Return the cells of a pyarrow array. Text that is not UTF-8, and times beyond the year 9999, are missing.

    Raises:
        SchemaError: The column, called `name`, has zoned times in nanoseconds, and pandas is not installed.
    """
    import pyarrow
    from pyarrow import types

    if isinstance(column.type, pyarrow.BaseExtensionType) and column.type.extension_name != "arrow.uuid":
        column = column.cast(column.type.storage_type)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_date(kind) or types.is_timestamp(kind):
        values = _to_numpy(column).astype("datetime64[D]") if types.is_date(kind) else _to_numpy(column)
        return _moments(values, name) if getattr(kind, "tz", None) else values
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        try:
            return column.to_pylist()
        except UnicodeDecodeError:
            cells = column.cast(pyarrow.binary_view() if types.is_string_view(kind) else pyarrow.large_binary())
            return [None if cell is None else _made(cell.decode) for cell in cells.to_pylist()]
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_made(cell.as_py) for cell in column]


def of_polars(column: Foreign, name: str) -> Foreign:
    """Return the cells of a polars Series. Text that is not UTF-8, and times beyond the year 9999, are missing.

    Raises:
        SchemaError: The column, called `name`, has integers of 128 bits; or it has zoned times in nanoseconds, and
            pandas is not installed.
    """
    kind = str(column.dtype.base_type())
    if kind in ("Int128", "UInt128"):
        raise SchemaError(f"{name} has the type {kind}, which does not fit 64 bits; cast it to Int64, UInt64 or String")
    if kind == "Date":
        return column.to_numpy()
    if kind == "Datetime":
        return _moments(column.to_numpy(), name) if column.dtype.time_zone else column.to_numpy()
    if kind in ("String", "Categorical", "Enum"):
        import polars

        # Polars panics at text that is not UTF-8, and prints it.
        cells = column.cast(polars.String).cast(polars.Binary).to_list()
        return [None if cell is None else _made(cell.decode) for cell in cells]
    return column.to_list()


def of_pandas_zone(series: pandas.Series[object], name: str) -> list[object]:
    """Return the cells of a pandas Series of zoned times. Times beyond the year 9999 are missing."""
    return _moments(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), name)


def digits_of(kind: object) -> int | None:
    """Return the most digits of a type of decimals of pyarrow or polars, or None for other types."""
    return getattr(getattr(kind, "value_type", kind), "precision", None)


def is_backed_by_arrow(dtype: object) -> bool:
    """Return whether a pandas type keeps its cells in an array of pyarrow, and pyarrow can be imported."""
    if not hasattr(dtype, "pyarrow_dtype") and getattr(dtype, "storage", "") != "pyarrow":
        return False
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _to_numpy(column: pyarrow.Array) -> NDArray[np.datetime64]:
    found: NDArray[np.datetime64]
    found = column.to_numpy(zero_copy_only=False)
    return found


def _moments(values: NDArray[np.datetime64], name: str) -> list[object]:
    """Return times in UTC as times of Python with a zone; of nanoseconds, as times of pandas."""
    if np.datetime_data(values.dtype)[0] == "ns":
        try:
            import pandas
        except ImportError:
            raise SchemaError(
                f"{name} has times with a zone in nanoseconds; cast it to microseconds, or install pandas"
            ) from None
        index = pandas.DatetimeIndex(values).tz_localize("UTC")
        return [None if missing else moment for moment, missing in zip(index, index.isna(), strict=True)]
    seconds = values.astype("datetime64[s]")
    within = (seconds >= _FIRST) & (seconds <= _LAST)
    moments = np.where(within, values, np.datetime64("NaT")).astype("datetime64[us]").tolist()
    return [None if moment is None else moment.replace(tzinfo=UTC) for moment in moments]


def _made(make: Callable[[], object]) -> object:
    try:
        return make()
    except (ValueError, OverflowError):
        return None
