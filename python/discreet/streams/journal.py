"""What rounds a stream has released, in a file that only grows and that one process holds."""

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
"""The beginning of a line that a crash cut short, which may hold zeros that were never written."""


@dataclass
class Lines:
    """The digests of rounds by number, from the lines of a journal."""

    begun: dict[int, str] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)
    closed: dict[int, str] = field(default_factory=dict)
    """Not empty once the stream was closed for good."""
    size: int = 0
    """How many bytes the whole lines have."""

    def add(self, word: str, number: int, digest: str) -> None:
        """Take in a line."""
        {"begin": self.begun, "done": self.done, "closed": self.closed}[word][number] = digest


class Journal:
    """Lines "begin" and "done" with the number of a round and a digest of what it added, and "closed" at the end.

    The file is locked while it is open, by a lock that other readers of it in this process do not break. A line that
    a crash cut short is left out: nothing was released after it.
    """

    def __init__(self, path: Path) -> None:
        """Open the journal, or make it. Raises StateError where it is a link, locked elsewhere or damaged."""
        self._path = path
        try:
            self._handle = open_plain(path, os.O_CREAT | os.O_APPEND)
        except OSError:
            raise StateError(f"the journal {path} cannot be opened; it must be a file, no link, and writable") from None
        # Who forgets to close it, or is interrupted before, does not hold the lock for ever.
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
        """Read all whole lines."""
        content = b""
        while part := os.read(self._handle, 1 << 20):
            content += part
        try:
            lines = read_lines(content)
        except ValueError:
            raise StateError(f"the journal {self._path} is damaged; bring back a copy of it, with its stream") from None
        return lines

    def cut(self) -> None:
        """Remove a last line that a crash cut short. The caller knows that the journal is its own."""
        if os.fstat(self._handle).st_size > self.lines.size:
            os.ftruncate(self._handle, self.lines.size)

    def append(self, word: str, number: int, digest: str) -> None:
        """Add a line, durably.

        Raises StateError if somebody else has written to the file, or has put another one in its place, which the lock
        does not cover; OSError if the file cannot be written.
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
        """Remove all lines, durably: those of a stream that was never made."""
        os.ftruncate(self._handle, 0)
        os.fsync(self._handle)
        self.lines = Lines()

    def close(self) -> None:
        """Let go of the file and its lock.

        A forked process shares the lock and would keep it until it ends, so its owner unlocks. Where that is
        interrupted, the file is closed when this object is gone.
        """
        if self._closing.alive and self._process == _core.process():
            _unlock(self._handle)
        self._closing()


def read_lines(content: bytes) -> Lines:
    """Return the lines of a journal, without a last one that was cut short.

    Raises:
        ValueError: Where a whole line is not one of a journal, or the rest cannot be the beginning of one.
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
    """Do nothing: a test ends the process here, between the steps by which a change becomes durable."""


def _lock(handle: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows, where the lock of the stream's own file is not broken by readers
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream = str(path).removesuffix("-rounds")
        raise StateError(f"{stream} is open elsewhere; a stream has one writer") from None


def _unlock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
