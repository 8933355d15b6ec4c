"""A stream on disk: a SQLite file that is whole after every round, and a journal that remembers what it released."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.engines.engine import fresh_key
from discreet.errors import ParameterError, StateError
from discreet.mechanisms.binary_mechanism import BinaryMechanism
from discreet.mechanisms.honaker_mechanism import HonakerMechanism
from discreet.mechanisms.hybrid_mechanism import HybridMechanism
from discreet.mechanisms.square_root_mechanism import SquareRootMechanism
from discreet.mechanisms.stream_clock import Clock
from discreet.mechanisms.stream_journal import Journal, failure_point
from discreet.mechanisms.stream_mechanism import StreamMechanism

__all__ = ["Item", "Round", "StreamFile", "keyed", "label_bytes"]

Item = str | int | bytes

VERSION = 1
_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (BinaryMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism)
}
_FROM_BYTES: dict[str, Any] = {"b": bytes, "i": int, "t": lambda label: label.decode("utf-8")}
_MODULUS = 2**256
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Round:
    """A round's number, what it adds to each item, whether counts begin anew before it, and a clock that is new."""

    number: int
    added: dict[Item, int]
    restart: bool
    clock: Clock | None = None


_FIRST = Round(0, {}, restart=False)
"""What a stream begins with: its digest, by the stream's key, tells whose a journal is."""


class StreamFile:
    """The state of one stream, open for one writer.

    The file holds the mechanism, the key, the round, the counts, and a keyed sum over them that a changed byte would
    break. Beside it, in `<file>-rounds`, stands a line for every round with a keyed digest of what it added, of which
    the first tells whose journal it is. They are written before the round and again after it: where the file was put
    back to an earlier round, the journal knows what was released from the later ones. That both were put back, or
    copied and gone on with, is not noticed.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, journal: Journal) -> None:
        self._path, self._connection, self._journal = path, connection, journal
        self.key = b""
        self.round = 0
        self._sum = 0
        self.mechanism: Any = None
        self.item_type: Any = None
        self.clock: Clock | None = None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], mechanism: StreamMechanism | None, items: str | None = None
    ) -> StreamFile:
        """Opens or creates the file, for items of a type; StateError where that cannot be."""
        file, beside = Path(path), Path(os.fspath(path) + "-rounds")
        if mechanism is not None and type(mechanism).__name__ not in _KINDS:
            raise ParameterError(f"a stream in a file needs one of {', '.join(_KINDS)}, not {type(mechanism).__name__}")
        new = not file.exists()
        if new and mechanism is None:
            raise StateError(f"there is no stream in {file}; give a mechanism to start one")
        if new and beside.exists():
            raise StateError(f"{beside} is the journal of a file that is gone; bring it back, or use another name")
        if not new and not beside.exists() and file.is_file() and file.stat().st_size:
            if not _is_database(file):
                raise StateError(f"{file} is no stream; give the file of one, or a new name to start one")
            raise StateError(f"{file} has no journal {beside}, or is no stream; bring back its copy")
        try:
            if new:
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            elif not file.is_file():
                raise OSError("no regular file")
        except OSError as error:
            raise _unusable(file, error) from None
        journal = Journal(beside)
        connection = None
        try:
            connection = sqlite3.connect(file, isolation_level=None, timeout=0.2, check_same_thread=False)
            self = cls(file, connection, journal)
            self._begin(mechanism, items)
        except BaseException as error:
            if connection is not None:
                connection.close()
            journal.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise _unusable(file, error) from None
            if isinstance(error, ValueError | TypeError | LookupError | ArithmeticError):
                # Damaged text, or parameters that no mechanism has.
                raise StateError(f"{file} is corrupt; bring back a copy of it, with its journal") from None
            raise
        return self

    def _begin(self, mechanism: StreamMechanism | None, items: str | None) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA secure_delete = ON")
        run("BEGIN EXCLUSIVE")
        if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            if mechanism is None:
                raise StateError(f"{self._path} holds no stream")
            self._create(mechanism, items)
        self._load(mechanism, items)
        run("COMMIT")

    def _create(self, mechanism: StreamMechanism, items: str | None) -> None:
        if any(self._journal.done) or any(self._journal.begun):
            raise StateError(f"{self._path} is empty, and its journal is not; bring back a copy, or use another name")
        run = self._connection.execute
        run(
            "CREATE TABLE stream (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, "
            "mechanism TEXT NOT NULL, key BLOB, round INTEGER NOT NULL, total BLOB NOT NULL)"
        )
        run("CREATE TABLE item (label BLOB PRIMARY KEY, kind TEXT NOT NULL, count INTEGER NOT NULL) WITHOUT ROWID")
        given = {"kind": type(mechanism).__name__, **dataclasses.asdict(mechanism)}  # type: ignore[call-overload]
        text = json.dumps(given if items is None else {"items": items, **given})
        self.key = bytes.fromhex(fresh_key())
        total = _head(self.key, text, 0) % _MODULUS
        run("INSERT INTO stream VALUES (1, ?, ?, ?, 0, ?)", (VERSION, text, self.key, total.to_bytes(32, "little")))
        self._journal.append("done", 0, self._digest(_FIRST))

    def _load(self, asked: StreamMechanism | None, items: str | None) -> None:
        corrupt = StateError(f"{self._path} is corrupt; bring back a copy of it, with its journal")
        if self._connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise corrupt
        row = self._connection.execute("SELECT version, mechanism, key, round, total FROM stream").fetchone()
        if row is None:
            raise corrupt
        version, text, key, self.round, total = row
        if version != VERSION:
            raise StateError(f"{self._path} is of version {version}, not {VERSION}; upgrade discreet")
        if key is None:
            raise StateError(f"the stream in {self._path} is closed; start a new one in another file")
        self.key, self._sum = bytes(key), int.from_bytes(total, "little")
        try:
            expected = _head(self.key, text, self.round)
            expected += sum(_sealed(self.key, item, count) for item, count in self.items())
        except (ValueError, KeyError, TypeError, OverflowError):
            raise corrupt from None
        if expected % _MODULUS != self._sum:
            raise corrupt
        given = json.loads(text)
        self.item_type = given.pop("items", None)
        clock = given.pop("clock", None)
        self.clock = None if clock is None else Clock(**clock)
        self.mechanism = _KINDS[given.pop("kind")](**given)
        if asked is not None and asked != self.mechanism:
            raise StateError(f"{self._path} is a stream of {self.mechanism!r}; open it without a mechanism")
        if items is not None and items != self.item_type:
            raise StateError(f"{self._path} is a stream of items={self.item_type!r}; open it without items")
        if self._journal.done.get(0) != self._digest(_FIRST):
            raise StateError(f"the journal beside {self._path} is not its own; bring back the copy that is")
        if self.round not in self._journal.done:
            if self.round not in self._journal.begun:
                raise StateError(f"the journal of {self._path} does not know round {self.round}; bring back its copy")
            # The file was written and the process ended before it could say so.
            self._journal.append("done", self.round, self._journal.begun[self.round])

    def items(self) -> Iterator[tuple[Item, int]]:
        """Items and counts, in the order of the labels."""
        for label, kind, count in self._connection.execute("SELECT label, kind, count FROM item"):
            yield _FROM_BYTES[kind](bytes(label)), count

    def require(self, step: Round) -> None:
        """Raises StateError where a round that this file has forgotten was released with other data."""
        forgotten = min((number for number in self._journal.done if number > self.round), default=None)
        if forgotten is None:
            return
        if forgotten != step.number or self._journal.done[forgotten] != self._digest(step):
            raise StateError(
                f"{self._path} was put back to round {self.round}, and round {forgotten} has been released from "
                "other data; give that round the same data again, or start a new stream"
            )

    def write(self, step: Round) -> None:
        """Makes a round durable. Whatever goes wrong, the file is to be opened again."""
        digest = self._digest(step)
        try:
            self._journal.append("begin", step.number, digest)
            failure_point("begun")
            self._commit(step)
            failure_point("written")
            self._journal.append("done", step.number, digest)
            failure_point("done")
        except (sqlite3.Error, OSError) as error:
            raise _unusable(self._path, error) from None
        self.round = step.number

    def _digest(self, step: Round) -> str:
        parts = sorted(_encoded(item, added) for item, added in step.added.items())
        text = step.number.to_bytes(8, "little") + b"".join(parts)
        return hashlib.blake2b(text, key=self.key, digest_size=16, person=b"round").hexdigest()

    def _commit(self, step: Round) -> None:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        (text,) = run("SELECT mechanism FROM stream").fetchone()
        given = text
        if step.clock is not None:
            given = json.dumps({**json.loads(text), "clock": dataclasses.asdict(step.clock)})
        total = self._sum - _head(self.key, text, self.round) + _head(self.key, given, step.number)
        if step.restart:
            total -= sum(_sealed(self.key, item, count) for item, count in self.items())
            run("DELETE FROM item")
        for item, added in step.added.items():
            kind, label = _parts(item)
            found = run("SELECT count FROM item WHERE label = ?", (label,)).fetchone()
            if found is not None:
                total -= _sealed(self.key, item, found[0])
            count = added + (found[0] if found else 0)
            total += _sealed(self.key, item, count)
            run("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", (label, kind, count))
        total %= _MODULUS
        values = given, step.number, total.to_bytes(32, "little")
        run("UPDATE stream SET mechanism = ?, round = ?, total = ?", values)
        failure_point("writing")
        run("COMMIT")
        self._sum = total

    def destroy(self) -> None:
        """Overwrites the key and the counts, for good."""
        try:
            # No copy of the old pages may be left in a file beside.
            self._connection.execute("PRAGMA journal_mode = MEMORY")
            self._connection.execute("UPDATE stream SET key = NULL, total = zeroblob(32)")
            self._connection.execute("DELETE FROM item")
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from None
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()
        self._journal.close()


def keyed(key: bytes, purpose: bytes, text: bytes) -> bytes:
    """A keyed hash of 32 bytes, its purpose setting it apart from others of the same key."""
    return hashlib.blake2b(text, key=key, digest_size=32, person=purpose).digest()


def label_bytes(item: Item) -> bytes:
    """A label as bytes, told apart by type."""
    kind, label = _parts(item)
    return kind.encode() + label


def _parts(item: Item) -> tuple[str, bytes]:
    if isinstance(item, int):
        return "i", str(item).encode()
    return ("t", item.encode("utf-8")) if isinstance(item, str) else ("b", item)


def _encoded(item: Item, count: int) -> bytes:
    label = label_bytes(item)
    return len(label).to_bytes(8, "little") + label + count.to_bytes(8, "little", signed=True)


def _sealed(key: bytes, item: Item, count: int) -> int:
    return int.from_bytes(keyed(key, b"item", _encoded(item, count)), "little")


def _head(key: bytes, mechanism: str, number: int) -> int:
    return int.from_bytes(keyed(key, b"head", f"{mechanism}|{number}".encode()), "little")


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: Exception) -> StateError:
    """What is wrong with a file, without its cells."""
    # What the system says of a path holds its letters.
    text = str(error) if isinstance(error, sqlite3.Error) else ""
    if "locked" in text:
        return StateError(f"{path} is open elsewhere; a stream has one writer")
    if not path.parent.is_dir():
        return StateError(f"{path} cannot be made: make its folder first")
    if "not a database" in text or "malformed" in text:
        return StateError(f"{path} is corrupt or no stream")
    return StateError(f"{path} cannot be used; check that it is a file, may be written, and that the disk is not full")
