"""The file of a ledger: a SQLite table that only grows, each row sealed with a hash of all before it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import copy
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from discreet.budgets.book import Book
from discreet.budgets.charge import Charge
from discreet.budgets.record import Event
from discreet.errors import BudgetExceeded, LedgerError

__all__ = ["Chain"]

_APPLICATION = 0x64_63_72_74
_FORMAT = 1
_COLUMNS = "number, time, kind, dataset, of, rho, delta, mechanism, parameters, version, digest, hash"
_WHOLE = "TEXT NOT NULL CHECK ({0} NOT GLOB '*[^0-9]*' AND length({0}) BETWEEN 1 AND 40)"
_SCHEMA = (
    f"""CREATE TABLE event (
 number INTEGER PRIMARY KEY AUTOINCREMENT,
 time TEXT NOT NULL,
 kind TEXT NOT NULL CHECK (kind IN ('created', 'opened', 'reserved', 'charged', 'released')),
 dataset TEXT NOT NULL,
 of INTEGER CHECK ((of IS NOT NULL) = (kind = 'released')),
 rho {_WHOLE.format("rho")},
 delta {_WHOLE.format("delta")},
 mechanism TEXT NOT NULL,
 parameters TEXT NOT NULL,
 version TEXT NOT NULL,
 digest TEXT NOT NULL,
 hash TEXT NOT NULL CHECK (length(hash) = 64))""",
    "CREATE UNIQUE INDEX released_once ON event (of) WHERE of IS NOT NULL",
    "CREATE TRIGGER no_change BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'append only'); END",
    "CREATE TRIGGER no_removal BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'append only'); END",
    """CREATE TRIGGER no_replacement BEFORE INSERT ON event
 WHEN EXISTS (SELECT 1 FROM event WHERE number = new.number OR of = new.of)
 BEGIN SELECT RAISE(ABORT, 'append only'); END""",
    """CREATE VIEW release AS SELECT
 first.number, first.time, first.dataset, first.mechanism, first.parameters, first.version,
 first.rho, first.delta, coalesce(last.kind, first.kind) AS status, last.digest
 FROM event AS first LEFT JOIN event AS last ON last.of = first.number
 WHERE first.kind IN ('reserved', 'charged')""",
)
_CORRUPT = "the ledger {} is corrupt: restore a whole copy, and charge to it what was released since that was made"
_RESTORED = "the ledger {} is older than this process has seen it: it was rolled back, and what was spent is not in it"

_chains: weakref.WeakSet[Chain] = weakref.WeakSet()
_inherited: list[sqlite3.Connection] = []


def _close_before_fork() -> None:
    for chain in list(_chains):
        chain.close()


def _forget_after_fork() -> None:
    for chain in list(_chains):
        chain._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork, after_in_child=_forget_after_fork)


class Chain:
    """A ledger's file, which many processes and threads append to at once.

    Every operation takes a connection that no other uses, and none crosses a fork. What was verified once is
    remembered, and every operation verifies what was appended since. Nothing else in this process may open
    the file: closing it would drop SQLite's locks.
    """

    __slots__ = ("__weakref__", "_idle", "_seen", "_taken", "_timeout", "path")

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(path)
        self._timeout = timeout
        self._seen = Book()
        self._idle: list[tuple[tuple[int, int], sqlite3.Connection]] = []
        # By thread: what an interrupt left in a transaction is closed by the thread's next operation.
        self._taken: dict[int, sqlite3.Connection] = {}
        _chains.add(self)

    def __reduce__(self) -> tuple[type[Chain], tuple[Path, float]]:
        return Chain, (self.path, self._timeout)

    def close(self) -> None:
        """Closes the connections that are not in use; the last one to close leaves no log beside the file."""
        while self._idle:
            self._idle.pop()[1].close()

    def _forget(self) -> None:
        """In a forked process: leaves the parent's connections alone, without closing them."""
        _inherited.extend(db for _, db in self._idle)
        _inherited.extend(self._taken.values())
        self._idle, self._taken = [], {}

    def exists(self) -> bool:
        """Whether there is anything at the path."""
        return os.path.lexists(self.path)

    def create(self) -> None:
        """Makes an empty ledger, whole or not at all; what another process made meanwhile is kept."""
        folder = self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
            raise LedgerError(f"cannot make the ledger {self.path}: its folder is missing or read-only")
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".discreet-") as drafts:
                draft = Path(drafts) / "ledger"
                with self._errors(), closing(sqlite3.connect(draft, isolation_level=None)) as db:
                    db.execute("PRAGMA journal_mode = WAL")
                    db.execute("PRAGMA synchronous = FULL")
                    db.execute("BEGIN IMMEDIATE")
                    for statement in _SCHEMA:
                        db.execute(statement)
                    db.execute(f"PRAGMA application_id = {_APPLICATION}")
                    db.execute(f"PRAGMA user_version = {_FORMAT}")
                    identity = json.dumps({"ledger": os.urandom(16).hex()})
                    self._insert(db, Book(), Event(kind="created", parameters=identity))
                    db.execute("COMMIT")
                self._publish(draft)
        except OSError:
            raise LedgerError(f"cannot make the ledger {self.path}: the disk is full or read-only") from None

    def _publish(self, draft: Path) -> None:
        """Gives a finished file its name, unless another process did so meanwhile."""
        try:
            os.link(draft, self.path)
        except FileExistsError:
            return
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(self.path.parent, os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def append(self, decide: Callable[[Book], Event | None]) -> int:
        """Adds the event that `decide` makes of what is there, durably, and returns its number; 0 where it makes none.

        Raises BudgetExceeded where the event does not fit.
        """
        with self._transaction("BEGIN IMMEDIATE") as (db, book):
            event = decide(book)
            if event is None:
                return 0
            self._insert(db, book, event)
            db.execute("COMMIT")
            self._seen = book
            return book.number

    def read(self) -> Book:
        """What the ledger says now."""
        with self._transaction("BEGIN") as (_, book):
            self._seen = book
            return book

    def events(self) -> list[tuple[int, Event]]:
        """Every event with its number, all verified anew."""
        with self._transaction("BEGIN", whole=True) as (db, book):
            found = [(row[0], _event(row)) for row in db.execute(f"SELECT {_COLUMNS} FROM event ORDER BY number")]
            self._seen = book
            return found

    def check(self) -> None:
        """Verifies every page and every row; LedgerError where anything is wrong."""
        with self._transaction("BEGIN", whole=True) as (db, book):
            if [row[0] for row in db.execute("PRAGMA integrity_check(1)")] != ["ok"]:
                raise LedgerError(_CORRUPT.format(self.path))
            self._seen = book

    @contextmanager
    def _transaction(self, begin: str, *, whole: bool = False) -> Iterator[tuple[sqlite3.Connection, Book]]:
        """A connection in a transaction and a book of all that it sees; what is not committed is undone."""
        file = self._require_file()
        with self._errors():
            db = self._begun(begin, file)
            try:
                yield db, self._verified(db, whole)
                if db.in_transaction:
                    db.execute("ROLLBACK")
            except BaseException:
                db.close()
                raise
            self._give_back(file, db)

    def _require_file(self) -> tuple[int, int]:
        """Which file is there; what cannot be a ledger is refused without opening it."""
        try:
            status = self.path.stat()
        except OSError:
            raise LedgerError(f"there is no ledger {self.path}") from None
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"the ledger {self.path} is not a file")
        if not status.st_mode & 0o222 or not os.access(self.path, os.R_OK | os.W_OK):
            raise LedgerError(f"the ledger {self.path} is read-only")
        if not status.st_size:
            raise LedgerError(_CORRUPT.format(self.path))
        return status.st_dev, status.st_ino

    def _begun(self, begin: str, file: tuple[int, int]) -> sqlite3.Connection:
        """A connection with a transaction begun, waiting while others write; a wait can be interrupted."""
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
        address = f"file:{quote(str(self.path.absolute()))}?mode=rw"
        db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=0.05, check_same_thread=False)
        try:
            self._require_format(db)
            for setting in ("trusted_schema = OFF", "cell_size_check = ON", "recursive_triggers = ON"):
                db.execute(f"PRAGMA {setting}")
            if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerError(
                    f"the ledger {self.path} must lie on a local disk: its folder allows no shared memory"
                )
            db.execute("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What SQLite refuses, as a LedgerError."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(self._refusal(error)) from None
        except UnicodeDecodeError:  # SQLite may quote the damage
            raise LedgerError(_CORRUPT.format(self.path)) from None

    def _refusal(self, error: sqlite3.Error) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if _is_busy(error):
            return f"the ledger {self.path} is locked by another process; try again when it has finished"
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return f"the ledger {self.path} cannot be opened for writing; its folder must be writable, too"
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return f"the ledger {self.path} cannot be written: the disk is full or fails"
        return _CORRUPT.format(self.path)

    def _verified(self, db: sqlite3.Connection, whole: bool) -> Book:
        """The book of all rows, of which only those that nobody here has verified are read, unless `whole`."""
        self._require_format(db)
        if _described(db) != _expected():
            raise LedgerError(_CORRUPT.format(self.path))
        seen = self._seen
        if seen.number:
            row = db.execute("SELECT hash FROM event WHERE number = ?", (seen.number,)).fetchone()
            if row != (seen.hash,):
                raise LedgerError(_RESTORED.format(self.path))
        book = Book() if whole else copy(seen)
        for row in db.execute(f"SELECT {_COLUMNS} FROM event WHERE number > ? ORDER BY number", (book.number,)):
            try:
                book.add(_event(row))
                seal = _sealed(book, row[:-1])
            except (BudgetExceeded, ValueError, TypeError, KeyError):
                raise LedgerError(_CORRUPT.format(self.path)) from None
            if (row[0], row[-1]) != (book.number, seal):
                raise LedgerError(_CORRUPT.format(self.path))
            book.hash = seal
        if db.execute("SELECT name, seq FROM sqlite_sequence").fetchall() != [("event", book.number)]:
            raise LedgerError(_CORRUPT.format(self.path))
        return book

    def _require_format(self, db: sqlite3.Connection) -> None:
        """Refuses another file than a ledger of this format; it changes nothing."""
        if db.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
            raise LedgerError(f"{self.path} is not a ledger, or it is corrupt")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > _FORMAT:
            raise LedgerError(f"the ledger {self.path} was written by a newer version of discreet; use that one")
        if version != _FORMAT:
            raise LedgerError(_CORRUPT.format(self.path))

    def _insert(self, db: sqlite3.Connection, book: Book, event: Event) -> None:
        """Adds an event to the book and to the open transaction."""
        book.add(event)
        row = (
            *(book.number, event.time, event.kind, event.dataset, event.of),
            *(str(event.charge.rho), str(event.charge.delta)),
            *(event.mechanism, event.parameters, event.version, event.digest),
        )
        book.hash = _sealed(book, row)
        marks = ", ".join("?" * (len(row) + 1))
        db.execute(f"INSERT INTO event ({_COLUMNS}) VALUES ({marks})", (*row, book.hash))


def _sealed(book: Book, row: tuple[object, ...]) -> str:
    """The hash of a row and of all before it."""
    return hashlib.sha256((book.hash + json.dumps(row)).encode()).hexdigest()


def _event(row: tuple[object, ...]) -> Event:
    _, when, kind, dataset, of, rho, delta, mechanism, parameters, version, digest, _ = row
    return Event(
        kind=kind,  # type: ignore[arg-type]
        time=when,  # type: ignore[arg-type]
        dataset=dataset,  # type: ignore[arg-type]
        of=of,  # type: ignore[arg-type]
        charge=Charge(int(rho), int(delta)),  # type: ignore[call-overload]
        mechanism=mechanism,  # type: ignore[arg-type]
        parameters=parameters,  # type: ignore[arg-type]
        version=version,  # type: ignore[arg-type]
        digest=digest,  # type: ignore[arg-type]
    )


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"))


def _described(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """The tables, indices, triggers and views of a file, as SQLite describes them."""
    return db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


@lru_cache(maxsize=1)
def _expected() -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in _SCHEMA:
            db.execute(statement)
        return _described(db)
