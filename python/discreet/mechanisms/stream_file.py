"""A stream on disk: a SQLite file that is whole after every round, and a journal that remembers what it released."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError, StateError
from discreet.mechanisms.binary_mechanism import BinaryMechanism
from discreet.mechanisms.honaker_mechanism import HonakerMechanism
from discreet.mechanisms.hybrid_mechanism import HybridMechanism

if TYPE_CHECKING:
    from discreet.mechanisms.stream_mechanism import StreamMechanism

__all__ = ["Round", "StreamFile"]

VERSION = 1
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (BinaryMechanism, HonakerMechanism, HybridMechanism)}
_FROM_BYTES: dict[str, Any] = {"b": bytes, "i": int, "t": lambda label: label.decode("utf-8", "surrogatepass")}
_MODULUS = 2**256


@dataclass(frozen=True, slots=True)
class Round:
    """A round's number, what it adds to each item, and whether counts begin anew before it."""

    number: int
    added: dict[Any, int]
    restart: bool


class StreamFile:
    """The state of one stream, open for one writer.

    The file holds the mechanism, the key, the round, the counts, and a keyed sum over them that a changed byte would
    break. Beside it, in `<file>-rounds`, stands a line for every round with a keyed digest of what it added, written
    before the round and again after it: where the file was put back to an earlier round, the journal knows what
    was released from the later ones.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, journal: Path) -> None:
        self._path, self._connection, self._journal = path, connection, journal
        self._released: dict[int, str] = {}
        self.key = b""
        self.round = 0
        self._sum = 0
        self.mechanism: Any = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], mechanism: StreamMechanism | None) -> StreamFile:
        """Opens or creates the file; StateError where that cannot be."""
        file, journal = Path(path), Path(os.fspath(path) + "-rounds")
        new = not file.exists()
        if new and mechanism is None:
            raise StateError(f"there is no stream in {file}; give a mechanism to start one")
        if new and journal.exists():
            raise StateError(f"{journal} is the journal of a file that is gone; bring it back, or use another name")
        try:
            if new:
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = sqlite3.connect(file, isolation_level=None, timeout=0.2, check_same_thread=False)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN EXCLUSIVE")
        except (sqlite3.Error, OSError) as error:
            raise _unusable(file, error) from None
        self = cls(file, connection, journal)
        try:
            if new or not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                if mechanism is None:
                    raise StateError(f"{file} holds no stream")
                self._create(mechanism)
            self._load(mechanism)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.close()
            raise _unusable(file, error) from None
        except StateError:
            connection.close()
            raise
        return self

    def _create(self, mechanism: StreamMechanism) -> None:
        kind = type(mechanism).__name__
        if kind not in _KINDS:
            raise ParameterError(f"{kind} cannot be kept in a file")
        run = self._connection.execute
        run(
            "CREATE TABLE stream (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, "
            "mechanism TEXT NOT NULL, key BLOB, round INTEGER NOT NULL, total BLOB NOT NULL)"
        )
        run("CREATE TABLE item (label BLOB PRIMARY KEY, kind TEXT NOT NULL, count INTEGER NOT NULL) WITHOUT ROWID")
        text = json.dumps({"kind": kind, **dataclasses.asdict(mechanism)})  # type: ignore[call-overload]
        key = secrets.token_bytes(32)
        total = _mac(key, b"head", f"{text}|0".encode())
        run("INSERT INTO stream VALUES (1, ?, ?, ?, 0, ?)", (VERSION, text, key, total.to_bytes(32, "little")))

    def _load(self, asked: StreamMechanism | None) -> None:
        corrupt = StateError(f"{self._path} is corrupt; bring back a copy of it, with its journal")
        if self._connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise corrupt
        row = self._connection.execute("SELECT version, mechanism, key, round, total FROM stream").fetchone()
        if row is None:
            raise corrupt
        version, text, key, self.round, total = row
        if version != VERSION:
            raise StateError(
                f"{self._path} is of version {version}, and this library reads {VERSION}; upgrade discreet"
            )
        if key is None:
            raise StateError(f"the stream in {self._path} is closed; start a new one in another file")
        self.key, self._sum = bytes(key), int.from_bytes(total, "little")
        expected = _mac(self.key, b"head", f"{text}|{self.round}".encode())
        for item, count in self.items():
            expected += _mac(self.key, b"item", _encoded(item, count))
        if expected % _MODULUS != self._sum:
            raise corrupt
        given = json.loads(text)
        self.mechanism = _KINDS[given.pop("kind")](**given)
        if asked is not None and asked != self.mechanism:
            raise StateError(
                f"{self._path} is a stream of {self.mechanism!r}, not of {asked!r}; open it without a mechanism"
            )
        self._read_journal()

    def _read_journal(self) -> None:
        """Which rounds were released, and with what."""
        try:
            lines = self._journal.read_text("ascii").splitlines() if self._journal.exists() else []
            records = [line.split(" ") for line in lines]
            done = {int(number): digest for word, number, digest in records if word == "done"}
        except (OSError, ValueError):
            raise StateError(f"the journal {self._journal} cannot be read; bring back a copy of it") from None
        if self.round and self.round not in done:
            begun = {int(number): digest for word, number, digest in records if word == "begin"}
            # The file was written and the process ended before it could say so here.
            if self.round not in begun:
                raise StateError(f"the journal {self._journal} does not know round {self.round}; bring back its copy")
            self._append("done", self.round, begun[self.round])
        self._released = {number: digest for number, digest in done.items() if number > self.round}

    def items(self) -> Iterator[tuple[Any, int]]:
        """Items and counts, in the order of the labels."""
        for label, kind, count in self._connection.execute("SELECT label, kind, count FROM item"):
            yield (
                (
                    label
                    if kind == "b"
                    else int(label)
                    if kind == "i"
                    else bytes(label).decode("utf-8", "surrogatepass")
                ),
                count,
            )

    def write(self, step: Round) -> None:
        """Makes a round durable. Raises StateError, and changes nothing, where it was released with other data."""
        parts = sorted(_encoded(item, added) for item, added in step.added.items())
        digest = hashlib.blake2b(b"".join(parts), key=self.key, digest_size=16, person=b"round").hexdigest()
        later = min(self._released, default=None)
        if later is not None and (later != step.number or self._released[later] != digest):
            raise StateError(
                f"{self._path} was put back to round {self.round}, and round {later} has been released from "
                "other data; give that round the same data again, or start a new stream"
            )
        try:
            self._append("begin", step.number, digest)
            failure_point("begun")
            self._commit(step)
            failure_point("written")
            self._append("done", step.number, digest)
            failure_point("done")
        except (sqlite3.Error, OSError) as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise _unusable(self._path, error) from None
        self.round = step.number
        self._released.pop(step.number, None)

    def _commit(self, step: Round) -> None:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        (text,) = run("SELECT mechanism FROM stream").fetchone()
        total = self._sum - _mac(self.key, b"head", f"{text}|{self.round}".encode())
        total += _mac(self.key, b"head", f"{text}|{step.number}".encode())
        if step.restart:
            total -= sum(_mac(self.key, b"item", _encoded(item, count)) for item, count in self.items())
            run("DELETE FROM item")
        for item, added in step.added.items():
            kind, label = _parts(item)
            found = run("SELECT count FROM item WHERE label = ?", (label,)).fetchone()
            if found is not None:
                total -= _mac(self.key, b"item", _encoded(item, found[0]))
            count = added + (found[0] if found else 0)
            total += _mac(self.key, b"item", _encoded(item, count))
            run(
                "INSERT INTO item VALUES (?, ?, ?) ON CONFLICT (label) DO UPDATE SET count = excluded.count",
                (label, kind, count),
            )
        total %= _MODULUS
        run("UPDATE stream SET round = ?, total = ?", (step.number, total.to_bytes(32, "little")))
        failure_point("writing")
        run("COMMIT")
        self._sum = total

    def _append(self, word: str, number: int, digest: str) -> None:
        handle = os.open(self._journal, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(handle, f"{word} {number} {digest}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def destroy(self) -> None:
        """Overwrites the key and the counts, for good."""
        try:
            self._connection.execute("UPDATE stream SET key = NULL, total = zeroblob(32)")
            self._connection.execute("DELETE FROM item")
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from None
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()


def failure_point(name: str) -> None:
    """Where a test may end the process: between the steps by which a round becomes durable."""


def _parts(item: Any) -> tuple[str, bytes]:
    if isinstance(item, int):
        return "i", str(item).encode()
    return ("t", item.encode("utf-8", "surrogatepass")) if isinstance(item, str) else ("b", item)


def _encoded(item: Any, count: int) -> bytes:
    kind, label = _parts(item)
    return kind.encode() + len(label).to_bytes(8, "little") + label + count.to_bytes(8, "little", signed=True)


def _mac(key: bytes, person: bytes, text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=32, person=person).digest(), "little")


def _unusable(path: Path, error: Exception) -> StateError:
    """What is wrong with a file, without its cells."""
    text = str(error)
    if "locked" in text:
        return StateError(f"{path} is open elsewhere; a stream has one writer")
    if "not a database" in text or "malformed" in text:
        return StateError(f"{path} is corrupt or no stream")
    return StateError(
        f"{path} cannot be used; check that it is a file that may be written, and that the disk is not full"
    )
