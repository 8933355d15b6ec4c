"""Connections to the file of a ledger: one for each operation, none across a fork, errors in our own words."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from discreet.errors import LedgerError

__all__ = ["Connections", "corrupt", "errors"]

_pools: weakref.WeakSet[Connections] = weakref.WeakSet()
_inherited: list[sqlite3.Connection] = []


def _close_before_fork() -> None:
    for pool in list(_pools):
        pool.close()


def _forget_after_fork() -> None:
    for pool in list(_pools):
        pool._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork, after_in_child=_forget_after_fork)


class Connections:
    """Connections to one file, each used by one operation at a time and kept for the next.

    Nothing else in this process may open the file: closing it would drop SQLite's locks.
    """

    __slots__ = ("__weakref__", "_idle", "_path", "_require", "_taken", "_timeout")

    def __init__(self, path: Path, timeout: float, require: Callable[[sqlite3.Connection], None]) -> None:
        """`require` refuses what is another file and writes nothing; `timeout`: how many seconds to wait."""
        self._path = path
        self._timeout = timeout
        self._require = require
        self._idle: list[tuple[tuple[int, int], sqlite3.Connection]] = []
        # By thread: what an interrupt left in a transaction is closed by the thread's next operation.
        self._taken: dict[int, sqlite3.Connection] = {}
        _pools.add(self)

    def close(self) -> None:
        """Closes the connections that are not in use; the last one to close leaves no log beside the file."""
        while self._idle:
            self._idle.pop()[1].close()

    def _forget(self) -> None:
        """In a forked process: leaves the parent's connections alone, without closing them."""
        _inherited.extend(db for _, db in self._idle)
        _inherited.extend(self._taken.values())
        self._idle, self._taken = [], {}

    @contextmanager
    def transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction; what is not committed is undone."""
        file = self._require_file()
        with errors(self._path):
            db = self._begun(begin, file)
            try:
                yield db
                if db.in_transaction:
                    db.execute("ROLLBACK")
            except BaseException:
                db.close()
                raise
            self._give_back(file, db)

    def _require_file(self) -> tuple[int, int]:
        """Which file is there; what cannot be a ledger is refused without opening it."""
        try:
            status = self._path.stat()
        except OSError:
            raise LedgerError(
                f"there is no ledger {self._path}; make one with `discreet budget init` or Ledger.open"
            ) from None
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"the ledger {self._path} is not a file")
        if not status.st_mode & 0o222 or not os.access(self._path, os.R_OK | os.W_OK):
            raise LedgerError(f"the ledger {self._path} is read-only")
        if not status.st_size:
            raise LedgerError(corrupt(self._path))
        return status.st_dev, status.st_ino

    def _begun(self, begin: str, file: tuple[int, int]) -> sqlite3.Connection:
        """A connection with a transaction begun, waiting while others write; a wait can be interrupted."""
        import random

        deadline = time.monotonic() + self._timeout
        interrupted = self._taken.pop(threading.get_ident(), None)
        if interrupted is not None:
            interrupted.close()
        while True:
            try:
                db = self._waiting(file) or self._connect()
                self._taken[threading.get_ident()] = db
                db.execute(begin)
                return db
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
            if threading.get_ident() in self._taken:
                self._give_back(file, db)
            time.sleep(random.uniform(0.001, 0.02))

    def _give_back(self, file: tuple[int, int], db: sqlite3.Connection) -> None:
        """Lets others use a connection that has no transaction."""
        self._taken.pop(threading.get_ident(), None)
        self._idle.append((file, db))

    def _waiting(self, file: tuple[int, int]) -> sqlite3.Connection | None:
        """A connection to this file that nobody uses, if there is one; those to another that lay here are closed."""
        while True:
            try:
                opened, db = self._idle.pop()
            except IndexError:
                return None
            if opened == file:
                return db
            db.close()

    def _connect(self) -> sqlite3.Connection:
        address = f"file:{quote(str(self._path.absolute()))}?mode=rw"
        db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=0.05, check_same_thread=False)
        try:
            self._require(db)
            for setting in ("trusted_schema = OFF", "cell_size_check = ON", "recursive_triggers = ON"):
                db.execute(f"PRAGMA {setting}")
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerError(
                    f"the ledger {self._path} must lie on a local disk: its folder allows no shared memory"
                )
            db.execute("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def errors(path: Path) -> Iterator[None]:
    """What SQLite refuses, as a LedgerError."""
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerError(_refusal(path, error)) from None
    except UnicodeDecodeError:  # SQLite may quote the damage
        raise LedgerError(corrupt(path)) from None


def corrupt(path: Path) -> str:
    """What is said of a damaged file."""
    return f"the ledger {path} is corrupt: restore a whole copy, and charge to it what was released since that was made"


def _refusal(path: Path, error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if _is_busy(error):
        return f"the ledger {path} is locked by another process; try again when it has finished"
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return f"the ledger {path} cannot be opened for writing; its folder must be writable, too"
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return f"the ledger {path} cannot be written: the disk is full or fails"
    if name == "SQLITE_NOTADB":
        return f"{path} is not a ledger, or it is corrupt: then restore a whole copy"
    return corrupt(path)


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"))
