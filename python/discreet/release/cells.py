"""The cells of a file of rows, read as untrusted input in each of the formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from discreet.engines import parquet, untrusted
from discreet.release.blocks import distinct_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RANGES", "Cells", "CellsByColumn", "Damaged", "converted", "json_object", "stored"]

Cells: TypeAlias = untrusted.Cells
CellsByColumn: TypeAlias = dict[str, Cells]
"""The cells of each column of a file, by the name of the column."""
RANGES = {"int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}
"""The least and the largest integer of each type."""
_CELL = r'(?:"([^"]*(?:""[^"]*)*)"|([^",\n]*))([,\n])'
_ESCAPE = r"\\(?:\\|x([0-9a-f]{2}))"


class Damaged(ValueError):
    """A file that `Release.write` did not write, or that was changed. The text says what is wrong with it."""


def stored(source: Path, form: str, *, agreeing: bool) -> tuple[CellsByColumn, untrusted.Fields | None]:
    """Return the cells of a file, and the header if the format has one."""
    if form == "parquet":
        read, found = parquet.read(source, "discreet")
        columns = {name: _plain(cells) for name, cells in read.items()}
        if found is None and agreeing:
            return columns, None
        if found is None or len(found) > untrusted.CERTIFICATE:
            raise Damaged("it is a Parquet file without the metadata of a release")
        return columns, json_object(json.loads(found))
    content = untrusted.content(source).decode()
    if form == "csv":
        return _of_csv(content), None
    if form == "jsonl":
        # `splitlines` would also split labels at the line separators of Unicode.
        return _of_rows(json.loads(line) for line in content.split("\n") if line), None
    header = json_object(json.loads(content, object_pairs_hook=distinct_keys))
    rows = header.pop("rows")
    if not isinstance(rows, list):
        raise Damaged("its rows are not a list")
    return _of_rows(rows), header


def _plain(cells: Cells | NDArray[np.generic]) -> Cells:
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def json_object(value: object) -> untrusted.Fields:
    """Return a header that is a JSON object; raise Damaged for other values."""
    if not isinstance(value, dict):
        raise Damaged("its header is not a JSON object")
    return value


def _of_csv(content: str) -> CellsByColumn:
    """Return the cells of a CSV file as text. It ends with a line feed, as `blocks` writes it."""
    rows = list(_quoted_rows(content) if '"' in content else (line.split(",") for line in content.split("\n")))
    names = [name.removeprefix("'") for name in rows[0]]
    if rows.pop() == [""] and rows and {*map(len, rows)} == {len(names)}:
        columns = zip(*rows, strict=True)
        return {name: [*column[1:]] for name, column in zip(names, columns, strict=True)}
    raise Damaged("it is not CSV as Release.write writes it")


def _quoted_rows(content: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV file with quoted cells, and what follows the last row as one more row."""
    row: list[str] = []
    end, cell = 0, re.compile(_CELL)
    # Not `finditer`: after a cell that does not end, it would search on from each of its characters.
    while (found := cell.match(content, end)) is not None:
        quoted, plain, after = found.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"'))
        if after == "\n":
            yield row
            row = []
        end = found.end()
    yield [*row, content[end:]]


def _of_rows(rows: Iterable[untrusted.Fields]) -> CellsByColumn:
    """Return the cells of JSON objects."""
    cells: CellsByColumn = {}
    for row in rows:
        if not cells:
            cells = {name: [] for name in row}
        if not row or [*row] != [*cells]:
            raise Damaged("its rows have different names")
        for name, cell in row.items():
            cells[name].append(cell)
    return cells


def converted(cells: CellsByColumn, form: str, own: dict[str, str], more: dict[str, str]) -> CellsByColumn:
    """Return text cells as values. `own` and `more` have the types of columns: of items, and of aggregates."""
    if form in ("json", "jsonl"):
        raw = {name: [_decoded(cell) for cell in cells[name]] for name, kind in own.items() if kind == "binary"}
        return {**cells, **raw}
    if form != "csv":
        return cells
    kinds: dict[str, Callable[[str], object]] = {"rank": int, "count": int, "sigma": float, "method": str}
    numbers: dict[str, Callable[[str], object]] = {"int64": int, "sum": _sum}
    kinds |= {name: numbers.get(kind, float) for name, kind in more.items()}
    for name, kind in own.items():
        kinds[name] = int if kind in RANGES else _bytes if kind == "binary" else _unescaped
    return {name: [kinds[name](cell) for cell in column] for name, column in cells.items()}


def _sum(cell: str) -> int | float:
    return int(cell) if cell.removeprefix("-").isdigit() else float(cell)


def _unescaped(cell: str) -> str:
    return cell.removeprefix("'")


def _bytes(cell: str) -> bytes:
    return _decoded(_unescaped(cell))


def _decoded(text: str) -> bytes:
    r"""Return the bytes of a text in which `\xff` is a byte, and two backslashes are one."""
    parts = re.split(_ESCAPE, text)
    escapes = [found[0] for found in re.finditer(_ESCAPE, text)]
    plain = [part.encode() for part in parts[::2]]
    joined = plain[0]
    for escape, rest in zip(escapes, plain[1:], strict=True):
        joined += (b"\\" if escape == r"\\" else bytes.fromhex(escape[2:])) + rest
    return joined
