"""The paths of a stream's files, and functions that open, write and erase them without following links."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from discreet.errors import StateError
from discreet.privacy.validation import require_path

__all__ = ["beside", "erase", "make_durable", "open_plain", "real", "unusable", "write_all"]

_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""O_NONBLOCK: a named pipe must not block; O_BINARY: Windows writes bytes unchanged."""


def real(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a stream's file with links resolved, so that one file has one key and one journal.

    Raises:
        StateError: The path is in a missing folder, a link to a missing file, or too long.
        ParameterError: It is no path.
    """
    file = Path(require_path(path))
    if not os.path.isdir(file.parent):  # noqa: PTH112 - it raises nothing for a name that is too long
        raise unusable(file)  # `resolve` drops "nosuch/.."
    try:
        if not file.is_symlink() or file.exists():
            return file.resolve()
    except OSError:  # a name that is too long
        raise unusable(file) from None
    raise StateError(f"{path} is a link to a file that is missing; use another name")


def beside(path: str | os.PathLike[str]) -> dict[str, Path]:
    """Return the paths of a stream's other files, by purpose: its key, its journal and SQLite's rollback journal.

    Links are resolved, so that every name of a stream leads to the same files.
    """
    own = os.path.realpath(path)  # unlike `Path.resolve`, it raises nothing for a link to itself
    return {name: Path(f"{own}-{name}") for name in ("key", "rounds", "journal")}


def open_plain(path: Path, flags: int = 0) -> int:
    """Open a regular file for reading and writing. A new file is readable by its owner only.

    Raises:
        OSError: The file is a symbolic link, a folder, a pipe or a device, or the system refuses.
    """
    handle = os.open(path, _FLAGS | flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("no regular file")
    except BaseException:
        os.close(handle)
        raise
    return handle


def write_all(handle: int, content: bytes) -> None:
    """Write all bytes and sync the file."""
    while content:
        content = content[os.write(handle, content) :]
    os.fsync(handle)


def erase(handle: int) -> None:
    """Overwrite the whole file with zeros and sync it."""
    os.lseek(handle, 0, os.SEEK_SET)
    left = os.fstat(handle).st_size
    while left:
        left -= os.write(handle, bytes(min(left, 1 << 20)))
    os.fsync(handle)


def make_durable(folder: Path) -> None:
    """Sync a folder, so that the names in it survive a power cut. Does nothing if the system cannot do that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def unusable(path: Path, code: int = sqlite3.SQLITE_OK) -> StateError:
    """Return the error for a stream's file that cannot be used; `code` is SQLite's.

    Messages of SQLite and of the operating system may contain parts of the path, so they are not repeated.
    """
    code &= 0xFF  # without what an extended code adds
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StateError(f"{path} is open elsewhere; a stream has one writer at a time")
    if not os.path.isdir(path.parent):  # noqa: PTH112 - it raises nothing for a name that is too long
        return StateError(f"{path} cannot be created: make its folder first")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StateError(f"{path} is corrupt or no stream; restore a copy of it, or use another name")
    return StateError(f"{path} cannot be used; check that it is a writable file and that the disk is not full")
