"""The journal of a stream: an append-only file of released rounds, locked by one process."""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from discreet import _core
from discreet.errors import StateError
from discreet.streams.paths import make_durable, open_plain, write_all

__all__ = ["Journal", "Lines", "failure_point", "read_lines"]

_LINE = re.compile(rb"(begin|done|closed) ([0-9]{1,15}) ([0-9a-f]{32})")
_BEGINNING = re.compile(rb"[a-z0-9 \0]{0,60}")
"""A line that a crash has cut short. It may contain zeros in the place of bytes that were never written."""


@dataclass
class Lines:
    """The digests of rounds by number, from the lines of a journal."""

    begun: dict[int, str] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    """Not empty after the stream was closed for good."""
    size: int = 0
    """The number of bytes in complete lines."""

    def add(self, word: str, number: int, digest: str) -> None:
        """Add the digest of a line."""
        {"begin": self.begun, "done": self.done, "closed": self.closed}[word][number] = digest


class Journal:
    """A locked file with a line "begin" and a line "done" for each round, and "closed" at the end.

    Each line has the number of the round and a digest of what the round added. The file is locked while it is open. The
    lock is one that other readers of the file in this process do not release. A line that a crash has cut short is
    ignored: no release follows a line before the line is complete on the disk.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the journal. Raises StateError if it is a link, locked elsewhere or damaged."""
        self._path = path
        try:
            self._handle = open_plain(path, os.O_CREAT | os.O_APPEND)
        except OSError:
            raise StateError(
                f"the journal {path} cannot be opened; it must be a writable file and not a link"
            ) from None
        # Releases the lock if the caller forgets to close the journal, or is interrupted before it does.
        self._closing = weakref.finalize(self, os.close, self._handle)
        self._process = _core.process()
        try:
            _lock(self._handle, path)
            self.lines = self._read()
        except BaseException:
            self._closing()
            raise
        if not self.lines.size:
            make_durable(path.parent)

    def _read(self) -> Lines:
        """Read all complete lines."""
        content = b""
        while part := os.read(self._handle, 1 << 20):
            content += part
        try:
            lines = read_lines(content)
        except ValueError:
            raise StateError(f"the journal {self._path} is damaged; restore a copy of it, with its stream") from None
        return lines

    def cut(self) -> None:
        """Remove a last line that a crash has cut short. The caller has checked that the journal is its own."""
        if os.fstat(self._handle).st_size > self.lines.size:
            os.ftruncate(self._handle, self.lines.size)

    def append(self, word: str, number: int, digest: str) -> None:
        """Append a line and sync it to the disk.

        Raises StateError if another process has written to the file or has replaced it, which the lock does not
        prevent. Raises OSError if the file cannot be written.
        """
        held = os.fstat(self._handle)
        try:
            named = os.lstat(self._path)
        except FileNotFoundError:
            named = None
        if named is None or not os.path.samestat(held, named):
            raise StateError(f"the journal {self._path} was replaced by another file; open the stream again")
        if held.st_size != self.lines.size:
            raise StateError(f"the journal {self._path} was changed by another process; open the stream again")
        line = f"{word} {number} {digest}\n".encode()
        write_all(self._handle, line)
        self.lines.size += len(line)
        self.lines.add(word, number, digest)

    def clear(self) -> None:
        """Remove all lines of a stream whose creation was interrupted, and sync the file."""
        os.ftruncate(self._handle, 0)
        os.fsync(self._handle)
        self.lines = Lines()

    def close(self) -> None:
        """Unlock and close the file.

        A forked process shares the lock and would keep it until it ends. So the owner unlocks the file before it closes
        it. If that is interrupted, the file is closed when this object is deleted.
        """
        if self._closing.alive and self._process == _core.process():
            _unlock(self._handle)
        self._closing()


def read_lines(content: bytes) -> Lines:
    """Return the complete lines of a journal.

    Raises:
        ValueError: A complete line is invalid, or the rest cannot be the beginning of a line.
    """
    lines = Lines(size=content.rfind(b"\n") + 1)
    if not _BEGINNING.fullmatch(content, lines.size):
        raise ValueError("no beginning of a line of a journal")
    for line in content[: lines.size].split(b"\n")[:-1]:
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError("no line of a journal")
        lines.add(found[1].decode(), int(found[2]), found[3].decode())
    return lines


def failure_point(name: str) -> None:
    """Do nothing. Tests end the process here, between the steps that make a change durable."""


def _lock(handle: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # on Windows SQLite's lock of the stream's file is enough: readers do not release it
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream = str(path).removesuffix("-rounds")
        raise StateError(f"{stream} is open elsewhere; a stream has one writer at a time") from None


def _unlock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
