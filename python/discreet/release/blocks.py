"""Published columns as CSV and JSON text, a block of rows at a time."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO, TypeAlias

import numpy as np

from discreet import _core
from discreet.engines.untrusted import Fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Column", "Values", "blocks", "csv_of", "distinct_keys", "escapes", "header_of"]

Values: TypeAlias = "Sequence[object] | NDArray[np.generic] | _core.Labels"
Column: TypeAlias = "tuple[str, Values, str]"
"""The name, values and Arrow type of a column."""

_BLOCK = 1 << 14
"""The rows of a block. Its text, about half a megabyte, stays in cache until it is hashed and written."""
_INVISIBLE = (
    r"\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Spaces, control characters and characters that Unicode lets programs ignore if they cannot display them."""
_SIGNS = r"=+\-@\u207a-\u207c\u208a-\u208c\u2212\u2a75\u2a76\ufb29\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20"
"""The signs that begin formulas, and the characters that compatibility normalisation turns into them."""
_ESCAPED = re.compile(rf"'|[\x00-\x1f\x7f-\x9f\u2028\u2029]|[{_INVISIBLE}]*[{_SIGNS}]")
"""The beginning of text cells that CSV prefixes with an apostrophe.

Text that begins with an apostrophe is prefixed too. So a leading apostrophe always marks an escaped cell, and
different labels stay different. The characters are listed here because the digest of a release must not depend on
Python's Unicode version. The engine has the same list."""
_END = "\r\n"
_OBJECT = "  {\n   "
_ROWS, _JSON_END = b'\n "rows": [', b"\n ]\n}\n"
_NUMBERS = (np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.float64))


def blocks(
    columns: Sequence[Column], header: Mapping[str, object], form: str, *, errors: str = "strict"
) -> Iterator[bytes]:
    """Yield the columns in one of the text formats, in UTF-8.

    The engine writes rows of text, bytes and numbers. Python writes blocks with other cells, ten times as slowly.

    Raises:
        ValueError: The columns differ in length.
        UnicodeEncodeError: A cell is not Unicode.
    """
    names, values = [name for name, _, _ in columns], [_plain(values) for _, values, _ in columns]
    lengths = {len(column) if not isinstance(column, _core.Labels) else column.items() for column in values}
    if len(lengths) > 1:
        raise ValueError("the columns must be equally long")
    rows = max(lengths, default=0)
    begin, end = "", ""
    if form == "csv":
        begin = _csv_lines([map(_cell, names)])
    elif form == "json":
        begin = json.dumps({**header, "rows": []}, ensure_ascii=False, indent=1).removesuffix("]\n}")
        end = _JSON_END.decode() if rows else "]\n}\n"
    yield begin.encode("utf-8", errors)
    pieces = [piece.encode("utf-8", errors) for piece in _pieces(names, form)]
    # A dict has no two equal names.
    is_plain = form == "csv" or len({*names}) == len(names)
    for start in range(0, rows, _BLOCK):
        stop = min(start + _BLOCK, rows)
        block = _core.text_rows(values, pieces, form != "csv", start, stop) if is_plain else None
        if block is None:
            block = _text(names, _rows(values, start, stop), form).encode("utf-8", errors)
        yield block[1:] if form == "json" and start == 0 else block
    yield end.encode()


def csv_of(content: bytes, names: list[str], form: str) -> bytes | None:
    """Return the CSV of rows that `blocks` wrote as JSON or JSON lines; None if another program changed the file.

    Raises:
        ValueError: The metadata is not JSON.
    """
    if not names or len({*names}) < len(names):
        return None
    start, stop, skipped = 0, len(content), 0
    if form == "json":
        start, stop, skipped = content.find(_ROWS) + len(_ROWS), stop - len(_JSON_END), 1
        if not start < stop or not content.startswith(_ROWS, start - len(_ROWS)) or not content.endswith(_JSON_END):
            return None
        header_of(content)
    pieces = [piece.encode() for piece in _pieces(names, form)]
    rows = _core.csv_of_json(content, pieces, skipped, start, stop)
    return None if rows is None else _csv_lines([map(_cell, names)]).encode() + rows


def header_of(content: bytes) -> Fields:
    """Return the metadata in a JSON file that `blocks` wrote.

    Raises:
        ValueError: The metadata is not JSON, or has a key twice.
    """
    start = content.find(_ROWS) + len(_ROWS)
    found: Fields = json.loads(content[:start] + b"]}", object_pairs_hook=distinct_keys)
    del found["rows"]
    return found


def distinct_keys(pairs: list[tuple[str, object]]) -> Fields:
    """Return the pairs of a JSON object as a dict; raise ValueError if it has a key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a JSON object has a key twice")
    return found


def escapes(columns: Sequence[Column]) -> bool:
    """Return whether CSV escapes a cell of the columns."""
    return any(_escapes(_plain(values)) for _, values, _ in columns)


def _escapes(values: Values) -> bool:
    found = _core.csv_escapes(values)
    if found is not None:
        return found
    assert not isinstance(values, _core.Labels)
    return any(_cell(cell) is not cell for (cell,) in _rows([values], 0, len(values)))


def _plain(values: Values) -> Values:
    """Return labels, lists and arrays of 64-bit numbers unchanged, and other sequences as lists."""
    if isinstance(values, _core.Labels | list):
        return values
    if isinstance(values, np.ndarray):
        return values if values.dtype in _NUMBERS else values.tolist()
    return list(values)


def _pieces(names: list[str], form: str) -> list[str]:
    """Return the text before each cell of a row, and the text after the last cell. JSON rows begin with a comma."""
    if form == "csv":
        return ["", *[","] * (len(names) - 1), "\n"]
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    if form == "jsonl":
        return [f"{', ' if place else '{'}{key}: " for place, key in enumerate(keys)] + ["}\n"]
    return [f",\n{'   ' if place else _OBJECT}{key}: " for place, key in enumerate(keys)] + ["\n  }"]


def _text(names: list[str], rows: Iterator[tuple[object, ...]], form: str) -> str:
    """Return rows as text."""
    if form == "csv":
        return _csv_lines([_cell(cell) for cell in row] for row in rows)
    objects = (dict(zip(names, row, strict=True)) for row in rows)
    if form == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)
    indented = (json.dumps(row, ensure_ascii=False, indent=1).replace("\n", "\n  ") for row in objects)
    return "".join(f",\n  {row}" for row in indented)


def _rows(columns: Sequence[Values], start: int, stop: int) -> Iterator[tuple[object, ...]]:
    for row in zip(*(_cells(values, start, stop) for values in columns), strict=True):
        yield tuple(_decoded(cell) if isinstance(cell, bytes) else cell for cell in row)


def _cells(values: Values, start: int, stop: int) -> list[object]:
    if isinstance(values, _core.Labels):
        return values.take(np.arange(start, stop))
    cells = values[start:stop]
    return cells.tolist() if isinstance(cells, np.ndarray) else list(cells)


def _decoded(label: bytes) -> str:
    r"""Return bytes as text, injectively: a byte that is not UTF-8 as `\xff`, and a backslash as two."""
    return label.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def _csv_lines(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as RFC 4180, with line feeds."""
    # Before Python 3.13 a writer quotes only characters of its own line terminator. With "\n" alone, a carriage
    # return in a cell would stay unquoted and forge a row.
    out = io.StringIO(newline="")
    writer = csv.writer(_Lines(out), lineterminator=_END)
    writer.writerows(rows)
    return out.getvalue()


class _Lines:
    """A file that ends lines with a line feed instead of CRLF."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, line: str) -> object:
        return self._out.write(line.removesuffix(_END) + "\n")


def _cell(cell: object) -> object:
    """Return a cell, prefixed with an apostrophe if a spreadsheet might run or change it."""
    return f"'{cell}" if isinstance(cell, str) and _ESCAPED.match(cell) else cell
