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


def rows(content: bytes, keys: Sequence[str], floats: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Return the texts of some keys of all usable lines.

    The values of `floats` may be numbers with a point or exponent.
    """
    found = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        row = _object(line)
        cells = [_cell(row.get(key), key in floats) for key in keys]
        texts = [cell for cell in cells if cell is not None]
        if len(texts) == len(keys):
            found.append(tuple(texts))
    return found


def _object(line: bytes) -> dict[str, object]:
    """Return the object of a line; an empty one if the line is no object. Values of other keys may be anything."""
    try:
        made = json.loads(line.decode(), parse_int=_Integer, parse_float=_Float, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}
    # A key that is not Unicode cannot be compared with the requested ones.
    return made if isinstance(made, dict) and all(map(_is_text, made)) else {}


def _refuse(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python would read."""
    raise ValueError(name)


def _cell(value: object, is_float: bool) -> str | None:
    if isinstance(value, bool):
        return str(int(value)) if is_float else str(value).lower()
    if isinstance(value, _Float):
        return str(value) if is_float else None
    return str(value) if isinstance(value, str) and _is_text(value) else None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
