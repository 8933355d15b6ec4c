"""Cells of Python objects: of lists, of columns of objects and of events. A cell that does not fit is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard
from uuid import UUID

import numpy as np
from numpy import ma

__all__ = [
    "cells_of_kind",
    "encodable",
    "is_missing",
    "is_whole_decimal",
    "kind_of_most",
    "text_of",
    "with_short_offset",
]

_MOST_OFFSET = timedelta(hours=18)
"""The largest offset from UTC that text of a time may have."""
_SURE = {str: "text", int: "int64", bool: "bool", bytes: "binary"}
"""The classes of cells that need no closer look, and their kinds."""
_PARTS = 8
"""Integers are unsigned if more than an eighth of them are at least 2^63. Times have nanoseconds if more than an
eighth have some. Half of all hashes of 64 bits are so large, and nearly all times in nanoseconds have some, so fewer
are odd cells."""
_PLAIN = {*_SURE, type(None)}
_DAYS = ("Y", "M", "W", "D")
"""The units of NumPy's dates; those of times are shorter."""
_EMPTY = {"int64": "i8", "binary": "S1", "bool": "?", "date": "M8[D]", "us": "M8[us]"}
"""The type of an array for a list of a kind that has no cell."""


def text_of(cell: object) -> str | None:
    """Return a cell as text by a rule for its own type, or None if there is no rule.

    Text is unchanged, a 64-bit integer becomes its digits, a decimal without places too, a boolean becomes "true" or
    "false", bytes are decoded as UTF-8, a date or a date with a time becomes ISO 8601, and a UUID or `pandas.Period`
    is converted by `str`. A missing cell and a cell of any other type become None. So no cell can raise an error or
    change how other cells are read.
    """
    if isinstance(cell, str):
        return encodable(str.__str__(cell))
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, np.datetime64):
        return _moment(cell)
    if (isinstance(cell, int | np.integer) and not isinstance(cell, np.timedelta64)) or is_whole_decimal(cell):
        return str(int(cell)) if -(2**63) <= cell < 2**64 else None
    if isinstance(cell, bytes | bytearray | memoryview):
        return _decoded(cell)
    if isinstance(cell, datetime):
        cell = with_short_offset(cell)
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, UUID) or type(cell).__name__ == "Period":
        return str(cell)
    return None


def kind_of_most(columns: Iterable[Sequence[object]]) -> str:
    """Return the kind that most cells of lists have: the type of their column, which no single cell decides.

    A kind is "text", "int64", "uint64", "bool", "binary", "date", or the unit of times, "us" or "ns", with a Z in UTC.
    It is "text" without cells of any kind.
    """
    columns, kinds = [*columns], Counter[str]()
    for column in columns:
        classes = Counter(map(type, column))
        kinds.update({_SURE[own]: number for own, number in classes.items() if own in _SURE})
        if not classes.keys() <= _PLAIN:
            kinds.update(kind for cell in column if type(cell) not in _SURE and (kind := _kind(cell)) is not None)
    # Ties are broken by the kind, and not by the order of the cells.
    found = max(kinds, key=lambda kind: (kinds[kind], kind), default="text")
    larger = {"int64": ("uint64", _is_large), "us": ("ns", _nanoseconds), "usZ": ("nsZ", _nanoseconds)}
    if found not in larger:
        return found
    other, is_of_other = larger[found]
    number = sum(1 for column in columns for cell in column if is_of_other(cell) and _kind(cell) == found)
    return other if _PARTS * number > kinds[found] else found


def cells_of_kind(column: Sequence[object], kind: str) -> Any:
    """Return a list with None for cells that are missing or do not fit a kind of `kind_of_most`.

    A list becomes an array if its cells alone would not show the kind, as one without any cell.
    """
    classes = {*map(type, column)}
    if kind == "text":
        return column if classes <= {str, type(None)} else [*map(text_of, column)]
    if _is_plain(column, classes, kind):
        return column
    if kind == "ns" or (kind == "us" and any(issubclass(own, np.datetime64) for own in classes)):
        return np.array([_numpy_moment(cell, kind) for cell in column], f"M8[{kind}]")
    cells = [_as(kind, cell) for cell in column]
    missing = [cell is None for cell in cells]
    if kind == "uint64":
        return ma.MaskedArray(np.array([cell or 0 for cell in cells], np.uint64), missing)
    return ma.MaskedArray(np.zeros(len(cells), _EMPTY[kind]), missing) if kind in _EMPTY and all(missing) else cells


def _is_plain(column: Sequence[object], classes: set[type], kind: str) -> bool:
    """Return whether a list holds plain cells of a kind and None alone, at a tenth of the time of a look at each."""
    own = {one for one in classes if _SURE.get(one) == kind}
    if not own or classes - own - {type(None)}:
        return False
    present = [cell for cell in column if cell is not None] if type(None) in classes else column
    return kind != "int64" or (min(present) >= -(2**63) and max(present) < 2**63)  # type: ignore[type-var, operator]


def is_missing(cell: object) -> bool:
    """Return whether a cell is None, NaN, NaT or NA."""
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return cell is None or type(cell).__name__ in ("NaTType", "NAType")


def is_whole_decimal(cell: object) -> TypeGuard[Decimal]:
    """Return whether a cell is a decimal without places, as DECIMAL(p, 0) in a database has. 5.00 has two."""
    exponent = cell.as_tuple().exponent if isinstance(cell, Decimal) else None
    return isinstance(exponent, int) and 0 <= exponent <= 20


def encodable(text: str) -> str | None:
    """Return text, or None if UTF-8 cannot encode it."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def with_short_offset(moment: datetime) -> datetime | None:
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


def _kind(cell: object) -> str | None:
    """Return the kind of a cell. That of integers is "int64", and times have microseconds."""
    if (sure := _SURE.get(type(cell))) is not None:
        return sure
    if type(cell) is datetime:  # first, because most times are such
        return "us" if cell.tzinfo is None else "usZ"
    if is_missing(cell) or isinstance(cell, np.timedelta64):
        return None
    if isinstance(cell, np.datetime64):
        return "date" if np.datetime_data(cell.dtype)[0] in _DAYS else "us"
    if isinstance(cell, datetime):
        return "us" if cell.tzinfo is None else "usZ"
    if isinstance(cell, date):
        return "date"
    if isinstance(cell, np.bool_):
        return "bool"
    if isinstance(cell, str | UUID) or type(cell).__name__ == "Period":
        return "text"
    if isinstance(cell, bytes | bytearray | memoryview):
        return "binary"
    return "int64" if isinstance(cell, int | np.integer) or is_whole_decimal(cell) else None


def _as(kind: str, cell: Any) -> object:
    """Return a cell as a plain cell of a kind, or None if it has another kind or does not fit."""
    own = _kind(cell)
    if own == "int64":
        least, end = {"int64": (-(2**63), 2**63), "uint64": (0, 2**64)}.get(kind, (0, 0))
        return int(cell) if least <= cell < end else None
    if own is None or own != kind.replace("ns", "us"):
        return None
    if own == "binary":
        return _bytes(cell)
    if own == "date":
        day = cell.item() if isinstance(cell, np.datetime64) else cell
        return day if isinstance(day, date) else None
    if own == "bool":
        return bool(cell)
    cell = with_short_offset(cell)
    return cell.replace(nanosecond=0) if cell is not None and not kind.startswith("ns") and _nanoseconds(cell) else cell


def _is_large(cell: object) -> bool:
    return isinstance(cell, int | np.uint64) and 2**63 <= int(cell) < 2**64


def _nanoseconds(cell: object) -> int:
    """Return the nanoseconds of a time beyond its microseconds."""
    if type(cell) is datetime or not isinstance(cell, datetime | np.datetime64) or is_missing(cell):
        return 0
    if isinstance(cell, datetime):
        return int(getattr(cell, "nanosecond", 0))  # of pandas
    is_fine = np.datetime_data(cell.dtype)[0] in ("ns", "ps", "fs", "as")
    return int(cell.astype("M8[ns]").astype(np.int64)) % 1000 if is_fine and not np.isnat(cell) else 0


def _python_moment(cell: np.datetime64) -> date | None:
    """Return a time of NumPy as a date or a time of Python, or None outside the years 1 to 9999."""
    is_fine = np.datetime_data(cell.dtype)[0] in ("ns", "ps", "fs", "as")
    moment = (cell.astype("M8[us]") if is_fine else cell).item()
    return moment if isinstance(moment, date) else None


def _numpy_moment(cell: object, unit: str) -> np.datetime64:
    """Return a time without a zone as one of NumPy, or NaT for another cell and for one that the unit has not."""
    moment = _python_moment(cell) if isinstance(cell, np.datetime64) else cell
    if _kind(cell) != "us" or not isinstance(moment, datetime):
        return np.datetime64("NaT")
    micros = int(np.datetime64(moment.replace(tzinfo=None), "us").astype(np.int64))
    if unit == "us":
        return np.datetime64(micros, "us")
    number = micros * 1000 + _nanoseconds(cell)
    return np.datetime64(number, "ns") if abs(number) < 2**63 else np.datetime64("NaT")


def _moment(cell: np.datetime64) -> str | None:
    """Return a time of NumPy as `isoformat` of pandas writes it, or None if there is none."""
    moment, nanoseconds = _python_moment(cell), _nanoseconds(cell)
    if isinstance(moment, datetime) and nanoseconds:
        return f"{moment.isoformat(timespec='microseconds')}{nanoseconds:03}"
    return None if moment is None else moment.isoformat()


def _bytes(cell: object) -> bytes | None:
    try:
        return bytes(cell) if isinstance(cell, bytes | bytearray | memoryview) else None
    except ValueError:  # a view that was released
        return None


def _decoded(cell: object) -> str | None:
    try:
        return None if (found := _bytes(cell)) is None else found.decode()
    except ValueError:  # not UTF-8
        return None
