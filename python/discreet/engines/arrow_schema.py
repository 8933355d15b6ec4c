"""Columns of durations in Parquet files. Parquet has no such type: writers of Arrow name it in the file's metadata."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["durations"]

_DURATION = 18
"""The number of the type in Arrow's Schema.fbs."""


def durations(connection: DuckDBPyConnection, paths: Sequence[str]) -> set[str]:
    """Return the columns of Parquet files whose cells are durations."""
    asked = "SELECT DISTINCT value FROM parquet_kv_metadata($1) WHERE key = 'ARROW:schema'::BLOB"
    found = set[str]()
    for (encoded,) in connection.execute(asked, [[*paths]]).fetchall():
        try:
            found |= {name for name, kind in _fields(base64.b64decode(encoded)) if kind == _DURATION}
        except (struct.error, IndexError, UnicodeDecodeError, binascii.Error):  # damaged, or of another program
            continue
    return found


def _fields(message: bytes) -> Iterator[tuple[str, int]]:
    """Yield the names and the numbers of the types in a schema of Arrow, which is a table of FlatBuffers."""

    def number(form: str, place: int) -> int:
        found: int
        (found,) = struct.unpack_from(form, message, place)
        return found

    def target(place: int) -> int:
        return place + number("<I", place)

    def member(table: int, slot: int) -> int:
        return table + number("<H", table - number("<i", table) + 4 + 2 * slot)

    start = 8 if message[:4] == b"\xff\xff\xff\xff" else 4
    fields = target(member(target(member(target(start), 2)), 1))
    for place in range(fields + 4, fields + 4 + 4 * number("<I", fields), 4):
        field = target(place)
        name = target(member(field, 0))
        yield message[name + 4 : name + 4 + number("<I", name)].decode(), number("<B", member(field, 2))
