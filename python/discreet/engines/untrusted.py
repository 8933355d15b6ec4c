"""Limits of files from others: released rows and certificates. They bound the memory that reading takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

from discreet.engines.files import require_regular
from discreet.errors import InputError

__all__ = ["CERTIFICATE", "MOST_BYTES", "MOST_CELLS", "Cells", "Fields", "content", "require_limits", "require_size"]

Cells: TypeAlias = list[Any]
"""The cells of a column from a file. Its reader checks their types."""
Fields: TypeAlias = dict[str, Any]
"""The fields of a JSON object from a file. Its reader checks their types."""
MOST_BYTES = 1 << 28
"""The most bytes of a file of rows, and of the text in a Parquet file."""
MOST_CELLS = 1 << 24
"""The most cells of a table. As Python objects they take at most about 2 GiB."""
CERTIFICATE = 1 << 20
"""The most bytes of a certificate."""
_SEPARATORS = b",\n[{:"
"""Each cell of CSV, and each object of JSON, has one of these before or after it."""


def require_size(path: str | os.PathLike[str], limit: int | None = MOST_BYTES) -> None:
    """Raise InputError unless a file is regular and has at most `limit` bytes; None for any number.

    Raises:
        OSError: There is no such file.
    """
    size = require_regular(path).st_size
    if limit is not None and size > limit:
        raise InputError(f"cannot read {os.fspath(path)}: it has {size:,} bytes, and at most {limit:,} are read")


def content(path: Path, limit: int = MOST_BYTES) -> bytes:
    """Return the bytes of a text file within the limits. Raises the errors of `require_size` and `require_limits`."""
    require_size(path, limit)
    with path.open("rb") as file:
        found = file.read(limit)
    require_limits(path, sum(found.count(separator) for separator in _SEPARATORS), len(found))
    return found


def require_limits(path: Path, cells: int, size: int) -> None:
    """Raise InputError if a table has more cells, or more bytes of text, than are read."""
    if cells > MOST_CELLS or size > MOST_BYTES:
        raise InputError(
            f"cannot read {path}: it has more than {MOST_CELLS:,} cells or {MOST_BYTES:,} bytes of text, the "
            "limits that keep a file from filling the memory; read the rows with another library"
        )
