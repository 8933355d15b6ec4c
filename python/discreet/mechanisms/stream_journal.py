"""What rounds a stream has released, in a file that only grows and that one process holds."""

from __future__ import annotations

import os
import re
import weakref
from pathlib import Path

from discreet.errors import StateError

__all__ = ["Journal", "failure_point"]

_AS_IT_IS = getattr(os, "O_BINARY", 0)
"""On Windows, that bytes are written as they are."""
_LINE = re.compile(rb"(begin|done) ([0-9]{1,15}) ([0-9a-f]{32})")


class Journal:
    """Lines "begin" and "done" with the number of a round and a digest of what it added.

    The file is locked while it is open, by a lock that other readers of it in this process do not break. A line that
    a crash cut short is left out: nothing was released after it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        new = not path.exists()
        try:
            self._handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR | _AS_IT_IS, 0o600)
        except OSError:
            raise StateError(f"the journal {path} cannot be opened; check that it may be written") from None
        try:
            _lock(self._handle, path)
            if new:
                _make_durable(path.parent)
            self.begun: dict[int, str] = {}
            self.done: dict[int, str] = {}
            self._size = self._read()
        except BaseException:
            os.close(self._handle)
            raise
        # Who forgets to close it, or is interrupted before, does not hold the lock for ever.
        self._closing = weakref.finalize(self, os.close, self._handle)

    def _read(self) -> int:
        """Takes in all whole lines and cuts off what follows them."""
        content = b""
        while part := os.read(self._handle, 1 << 20):
            content += part
        whole = content.rfind(b"\n") + 1
        for line in content[:whole].splitlines():
            found = _LINE.fullmatch(line)
            if found is None:
                raise StateError(f"the journal {self._path} is damaged; bring back a copy of it, with its stream")
            word, number, digest = found[1], int(found[2]), found[3].decode()
            (self.done if word == b"done" else self.begun)[number] = digest
        if whole < len(content):
            os.ftruncate(self._handle, whole)
        return whole

    def append(self, word: str, number: int, digest: str) -> None:
        """Adds a line, durably. Raises StateError where somebody else has written to the file, OSError where it cannot
        be written."""
        if os.fstat(self._handle).st_size != self._size:
            raise StateError(f"the journal {self._path} was changed by another process; open the stream again")
        line = f"{word} {number} {digest}\n".encode()
        left = line
        while left:
            left = left[os.write(self._handle, left) :]
        os.fsync(self._handle)
        self._size += len(line)
        (self.done if word == "done" else self.begun)[number] = digest

    def close(self) -> None:
        """Lets go of the file and its lock."""
        self._closing()


def failure_point(name: str) -> None:
    """Where a test may end the process: between the steps by which a round becomes durable."""


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


def _make_durable(folder: Path) -> None:
    """Has a new name in a folder outlast a power cut, where the system can do that."""
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
