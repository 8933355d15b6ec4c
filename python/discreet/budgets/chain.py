"""The file of a ledger: a SQLite table that only grows, each row sealed with a hash of all before it."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import copy
from functools import lru_cache
from pathlib import Path

from discreet.budgets.book import Book
from discreet.budgets.charge import Charge
from discreet.budgets.connections import Connections, corrupt, errors
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
_RESTORED = "the ledger {} is older than this process has seen it: it was rolled back, and what was spent is not in it"


class Chain:
    """A ledger's file, which many processes and threads append to at once.

    What was verified once is remembered, and every operation verifies what was appended since.
    """

    __slots__ = ("_connections", "_seen", "_timeout", "path")

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(path).absolute()
        self._timeout = timeout
        self._connections = Connections(self.path, timeout, self._require_format)
        self._seen = Book()

    def __reduce__(self) -> tuple[type[Chain], tuple[Path, float]]:
        return Chain, (self.path, self._timeout)

    def close(self) -> None:
        """Closes the connections that are not in use; the last one to close leaves no log beside the file."""
        self._connections.close()

    def exists(self) -> bool:
        """Whether there is anything at the path."""
        return os.path.lexists(self.path)

    def create(self) -> None:
        """Makes an empty ledger, whole or not at all; what another process made meanwhile is kept."""
        import tempfile

        folder = self.path.parent
        if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
            raise LedgerError(f"cannot make the ledger {self.path}: its folder is missing or read-only")
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".discreet-") as drafts:
                draft = Path(drafts) / "ledger"
                with errors(self.path), closing(sqlite3.connect(draft, isolation_level=None)) as db:
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
            raise LedgerError(f"cannot make the ledger {self.path}: the disk is full or has no hard links") from None

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
            self._remember(book)
            return book.number

    def read(self) -> Book:
        """What the ledger says now."""
        with self._transaction("BEGIN") as (_, book):
            self._remember(book)
            return book

    def events(self) -> list[tuple[int, Event]]:
        """Every event with its number, all verified anew."""
        with self._transaction("BEGIN", whole=True) as (db, book):
            found = [(row[0], _event(row)) for row in db.execute(f"SELECT {_COLUMNS} FROM event ORDER BY number")]
            self._remember(book)
            return found

    def check(self) -> None:
        """Verifies every page and every row; LedgerError where anything is wrong."""
        with self._transaction("BEGIN", whole=True) as (db, book):
            if [row[0] for row in db.execute("PRAGMA integrity_check(1)")] != ["ok"]:
                raise LedgerError(corrupt(self.path))
            self._remember(book)

    @contextmanager
    def _transaction(self, begin: str, *, whole: bool = False) -> Iterator[tuple[sqlite3.Connection, Book]]:
        """A connection in a transaction, and a book of all that it sees."""
        # What this process has seen before the transaction's view of the file began: other threads go on seeing more.
        seen = self._seen
        with self._connections.transaction(begin) as db:
            yield db, self._verified(db, seen, whole)

    def _remember(self, book: Book) -> None:
        """Keeps the latest book that a thread has verified."""
        if book.number >= self._seen.number:
            self._seen = book

    def _verified(self, db: sqlite3.Connection, seen: Book, whole: bool) -> Book:
        """The book of all rows, of which only those that nobody here has verified are read, unless `whole`."""
        self._require_format(db)
        if _described(db) != _expected():
            raise LedgerError(corrupt(self.path))
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
                raise LedgerError(corrupt(self.path)) from None
            if (row[0], row[-1]) != (book.number, seal):
                raise LedgerError(corrupt(self.path))
            book.hash = seal
        if db.execute("SELECT name, seq FROM sqlite_sequence").fetchall() != [("event", book.number)]:
            raise LedgerError(corrupt(self.path))
        return book

    def _require_format(self, db: sqlite3.Connection) -> None:
        """Refuses another file than a ledger of this format; it changes nothing."""
        if db.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
            raise LedgerError(f"{self.path} is not a ledger, or it is corrupt")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > _FORMAT:
            raise LedgerError(f"the ledger {self.path} was written by a newer version of discreet; use that one")
        if version != _FORMAT:
            raise LedgerError(corrupt(self.path))

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


def _described(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """The tables, indices, triggers and views of a file, as SQLite describes them."""
    return db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


@lru_cache(maxsize=1)
def _expected() -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in _SCHEMA:
            db.execute(statement)
        return _described(db)
