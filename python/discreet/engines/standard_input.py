"""A table on standard input, which is never written to a file with a name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.engines.csv_rows import CsvInput, Dialect
from discreet.engines.files import MemoryFile
from discreet.engines.first_bytes import LENGTH, is_parquet, require_content
from discreet.engines.memory import Memory, random_limit
from discreet.errors import InputError, ResourceError
from discreet.formats import CSV, PARQUET

__all__ = ["standard_input"]

_PIECE = 1 << 20


@contextmanager
def standard_input(memory: int | str | None = None, dialect: Dialect | None = None) -> Iterator[CsvInput | MemoryFile]:
    """Yield the table on standard input; its first bytes show whether it is Parquet, CSV, or CSV compressed by gzip.

    CSV is counted while it is read. Parquet needs random access, so it is kept in memory, in at most a quarter of
    `memory`. The exact limit is random, so that a refusal reveals little about a small row; see `random_limit`.

    Raises:
        InputError: Standard input is empty, cannot be read, or is Parquet on a system without files in memory.
        ResourceError: Parquet on standard input is larger than a quarter of `memory`.
    """
    dialect = dialect or Dialect()
    head = _first(LENGTH)
    if not is_parquet(head):
        is_empty = require_content(CsvInput.shown, head, CSV, dialect.encoding, is_file=False)
        if is_empty and dialect.header:
            raise InputError("cannot read standard input: it is empty")
        yield CsvInput(head, dialect)
        return
    if not hasattr(os, "memfd_create"):
        raise InputError("this system cannot keep Parquet from standard input in memory; give the file by its name")
    descriptor = os.memfd_create("discreet", os.MFD_CLOEXEC)
    try:
        size = _keep(descriptor, head, random_limit(Memory.of(memory).scan))
        yield MemoryFile(f"/proc/self/fd/{descriptor}", shown="standard input", form=PARQUET, size=size)
    finally:
        os.close(descriptor)


def _first(size: int) -> bytes:
    """Read up to `size` bytes and no more, so that the next reader gets the rest."""
    head = b""
    while len(head) < size and (piece := _read(size - len(head))):
        head += piece
    return head


def _read(size: int) -> bytes:
    try:
        return os.read(0, size)
    except OSError:
        raise InputError("cannot read standard input: it is closed or failed") from None


def _keep(descriptor: int, head: bytes, limit: int) -> int:
    """Write standard input to a file in memory; return its size in bytes."""
    piece, size = head, 0
    with os.fdopen(descriptor, "wb", closefd=False) as kept:
        while piece:
            size += len(piece)
            if size > limit:
                raise ResourceError(
                    "Parquet on standard input is kept in memory, and is larger than a quarter of it; give the file by "
                    "its name, or a larger `memory`"
                )
            try:
                kept.write(piece)
            except OSError:
                raise ResourceError("the system gave no memory for standard input; give the file by its name") from None
            piece = _read(_PIECE)
    return size
