"""The file of a ledger, opened and locked for one operation at a time."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import LedgerError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["LedgerFile", "create", "opened", "require_file"]

_held: dict[int, io.FileIO] = {}
"""The open file of each thread. If an interrupt leaves a file open, the thread's next operation closes it."""

_LOCKED_BYTE = 2**31 - 2
"""The byte that is locked on Windows. It is past the end of the file: other processes cannot read locked bytes."""

_READ_ONLY = "the ledger {} is read-only; make it writable"
_BUSY = {errno.EAGAIN, errno.EWOULDBLOCK}
"""The errors of a lock that another process or thread holds. On Windows EACCES is one of them. Elsewhere it says that a
permission is missing."""
if sys.platform == "win32":
    _BUSY |= {errno.EACCES, errno.EDEADLK}


def _close_in_child() -> None:
    """Close the files that a forked process inherits from its parent's threads. The parent keeps its locks."""
    for raw in list(_held.values()):
        raw.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class LedgerFile:
    """A ledger's file that this operation has locked. All links to the file, in all mounts, share one lock."""

    __slots__ = ("_path", "_raw")

    def __init__(self, path: Path, raw: io.FileIO) -> None:
        self._path = path
        self._raw = raw

    def read(self, start: int, size: int = -1) -> bytes:
        """Return `size` bytes from the offset `start`, or fewer if the file is shorter. A negative size means all."""
        with _failures(self._path):
            self._raw.seek(start)
            return self._raw.readall() if size < 0 else self._raw.read(size) or b""

    def append(self, end: int, line: bytes) -> None:
        """Write a line at `end` and sync it to the disk. First remove bytes that an unfinished append left there.

        Raises LedgerError if the disk is full or fails, after truncating the file to `end`.
        """
        with _failures(self._path):
            try:
                if self._raw.seek(0, os.SEEK_END) > end:
                    self._raw.truncate(end)
                _write(self._raw, end, line)
                _sync(self._raw.fileno())
            except OSError:
                with suppress(OSError):
                    self._raw.truncate(end)
                raise

    def overwrite(self, place: int, line: bytes) -> None:
        """Overwrite a line with another one of the same size, and sync it to the disk."""
        with _failures(self._path):
            _write(self._raw, place, line)
            _sync(self._raw.fileno())

    def require_name(self) -> None:
        """Raise LedgerError if the path no longer leads to this file. Other operations would not find its charges."""
        with _failures(self._path):
            if not _has_name(self._raw, self._path):
                raise LedgerError(f"the ledger {self._path} was removed or replaced by another file; charge again")


@contextmanager
def opened(path: Path, timeout: float, *, writable: bool = False) -> Iterator[LedgerFile]:
    """Open and lock the file. Raises LedgerError if another process or thread keeps the lock for `timeout` seconds.

    Every operation opens the file itself, so the lock excludes other threads as well as other processes. Without
    `writable` the file may be read-only.
    """
    raw = _locked(path, timeout, writable)
    try:
        yield LedgerFile(path, raw)
    finally:
        _release(raw)


def create(path: Path, content: bytes) -> None:
    """Create a file with this content atomically. If another process creates the file first, keep that file.

    If the system supports it, the file has no name until it is complete, so kill -9 leaves no temporary file.
    """
    folder = path.parent
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):  # noqa: PTH112 - as in `verify`
        raise LedgerError(
            f"cannot create the ledger {path}: its folder is missing, or this user may not search it or write to it"
        )
    try:
        if not _linked_from_nameless(path, content):
            _linked_from_draft(path, content)
        if hasattr(os, "O_DIRECTORY"):
            descriptor = os.open(folder, os.O_DIRECTORY)
            try:
                _sync(descriptor)
            finally:
                os.close(descriptor)
    except OSError:
        raise LedgerError(f"cannot create the ledger {path}: the disk is full or does not support hard links") from None


def _linked_from_nameless(path: Path, content: bytes) -> bool:
    """Create the file without a name and link it to its path; return False if the system does not support it."""
    kind = getattr(os, "O_TMPFILE", None)
    if kind is None:
        return False
    try:
        descriptor = os.open(path.parent, kind | os.O_RDWR, 0o600)
    except OSError:
        return False
    with io.FileIO(descriptor, "r+") as raw:
        try:
            _write(raw, 0, content)
            _sync(descriptor)
            # With `src_dir_fd` Python calls linkat, and only linkat can link a file without a name.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
        except FileExistsError:
            pass
        except OSError:
            return False
    return True


def _linked_from_draft(path: Path, content: bytes) -> None:
    """Create the file under a temporary name in its folder and link it to its path."""
    import tempfile

    descriptor, draft = tempfile.mkstemp(prefix=".discreet-", dir=path.parent)
    try:
        with io.FileIO(descriptor, "r+") as raw:
            _write(raw, 0, content)
            _sync(descriptor)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        Path(draft).unlink()


def _locked(path: Path, timeout: float, writable: bool) -> io.FileIO:
    """Open and lock the file at this path, and return it."""
    import random

    thread = threading.get_ident()
    interrupted = _held.pop(thread, None)
    if interrupted is not None:
        _release(interrupted)
    deadline = time.monotonic() + timeout
    while True:
        # Network file systems lock only files that are open for writing, so "r+" comes first.
        mode = "r+" if require_file(path, writable=writable) else "r"
        with _failures(path):
            raw = _held[thread] = io.FileIO(path, mode)
        try:
            with _failures(path):
                locked = _lock(raw, path)
                if locked and _has_name(raw, path):
                    return raw
        except BaseException:
            _release(raw)
            raise
        _release(raw)
        if not locked:
            if time.monotonic() > deadline:
                raise LedgerError(
                    f"the ledger {path} is locked by another process or thread; try again after it has finished"
                )
            time.sleep(random.uniform(0.001, 0.02))


def _release(raw: io.FileIO) -> None:
    """Unlock and close a file.

    Closing is not enough: a process that was forked while the file was open has a copy of the handle, which keeps the
    lock.
    """
    with suppress(OSError, ValueError):
        _unlock(raw)
    raw.close()
    if _held.get(threading.get_ident()) is raw:
        _held.pop(threading.get_ident(), None)  # a signal handler may have removed it meanwhile


def _lock(raw: io.FileIO, path: Path) -> bool:
    """Try to lock the file; return whether the lock was free."""
    try:
        if sys.platform == "win32":
            raw.seek(_LOCKED_BYTE)
            msvcrt.locking(raw.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(raw.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM) and error.errno not in _BUSY:
            raise LedgerError(_forbidden(path)) from None
        if error.errno not in _BUSY:
            raise LedgerError(
                f"the ledger {path} is on a file system without file locks; move it to a local disk"
            ) from None
        return False
    return True


def _unlock(raw: io.FileIO) -> None:
    if sys.platform == "win32":
        raw.seek(_LOCKED_BYTE)
        msvcrt.locking(raw.fileno(), msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(raw.fileno(), fcntl.LOCK_UN)


def _write(raw: io.FileIO, place: int, line: bytes) -> None:
    """Write a whole line. If a disk is nearly full, one call may write only a part of the line."""
    raw.seek(place)
    while line:
        line = line[raw.write(line) :]


def _sync(descriptor: int) -> None:
    """Wait until the file is on the disk. On macOS fsync leaves data in the disk's cache, which a power cut clears."""
    if sys.platform == "darwin":
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _has_name(raw: io.FileIO, path: Path) -> bool:
    """Return whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(raw.fileno()), path.stat())
    except FileNotFoundError:
        return False


def require_file(path: Path, *, writable: bool) -> bool:
    """Return whether the path is a writable file. Do not open it: opening a pipe would block.

    Raises:
        LedgerError: The path is no regular file that can be read, or it must be `writable` and is not.
    """
    try:
        mode = path.stat().st_mode
    except PermissionError:
        raise LedgerError(_forbidden(path)) from None
    except OSError:
        raise LedgerError(f"there is no ledger {path}; create one with `discreet budget init` or Ledger.open") from None
    if not stat.S_ISREG(mode):
        raise LedgerError(f"the ledger {path} is not a file; give the path of a file")
    if not os.access(path, os.R_OK):
        raise LedgerError(_forbidden(path))
    can_write = bool(mode & 0o222) and os.access(path, os.W_OK)
    if writable and not can_write:
        raise LedgerError(_READ_ONLY.format(path))
    return can_write


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    """Raise LedgerError in place of OSError, and of the ValueError of a file that a fork or signal handler closed."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise LedgerError(_forbidden(path)) from None
        if error.errno == errno.EROFS:
            raise LedgerError(_READ_ONLY.format(path)) from None
        raise LedgerError(_unwritable(path)) from None
    except ValueError:
        raise LedgerError(f"the ledger {path} was closed by a fork or a signal handler meanwhile; try again") from None


def _forbidden(path: Path) -> str:
    return f"permission denied for the ledger {path}; allow this user to read and write it"


def _unwritable(path: Path) -> str:
    return f"the ledger {path} cannot be read or written: the disk is full or fails, or too many files are open"
