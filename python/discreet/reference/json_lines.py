"""The rows of a JSON lines file, by Python's `json`; the reference implementation of `rust/json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["rows"]


class _Integer(str):
    """The digits of an integer as they are written."""


class _Float(str):
    """A number with a point or exponent as it is written."""


def rows(content: bytes, keys: Sequence[str], value: str | None = None) -> list[tuple[str | None, ...]]:
    """Return the texts of some keys of all usable lines.

    The key `value` is summed: it has numbers with a point or exponent too, and does not decide whether a line is
    usable. Its text is None if the key is missing or null, and empty if it is no cell.
    """
    found = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        row = _object(line)
        if row is None:
            continue
        cells = {key: _cell(row.get(key), key == value) for key in keys}
        if value is not None and cells[value] is None and row.get(value) is not None:
            cells[value] = ""
        if all(cell is not None for key, cell in cells.items() if key != value):
            found.append(tuple(cells.values()))
    return found


def _object(line: bytes) -> dict[str, object] | None:
    """Return the object of a line; None if the line is no object. Values of other keys may be anything."""
    try:
        made = json.loads(line.decode(), parse_int=_Integer, parse_float=_Float, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    # A key that is not Unicode cannot be compared with the requested ones.
    return made if isinstance(made, dict) and all(map(_is_text, made)) else None


def _refuse(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python would read."""
    raise ValueError(name)


def _cell(value: object, is_value: bool) -> str | None:
    if isinstance(value, bool):
        return str(int(value)) if is_value else str(value).lower()
    if isinstance(value, _Float):
        return str(value) if is_value else None
    return str(value) if isinstance(value, str) and _is_text(value) else None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
