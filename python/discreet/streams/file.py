"""A stream on disk: a SQLite file with its counts, a key file, and a journal of the rounds that were released."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from operator import add
from pathlib import Path

from discreet.errors import ParameterError, StateError
from discreet.streams import seal
from discreet.streams.base import StreamMechanism
from discreet.streams.journal import Journal, failure_point
from discreet.streams.key import KeyFile, new_key
from discreet.streams.paths import beside, erase, open_plain, real, unusable
from discreet.streams.seal import Item, ItemType, Remembered, Round
from discreet.streams.state import DAMAGE, STORED, changed_text, read_items, read_state, sealed_items, state_text

__all__ = ["StreamFile", "require_new"]

VERSION = 2
_AT_ONCE = 32
"""Rows that one statement writes: 32 rows take little more than half of the time of 32 statements."""
_MAGIC = b"SQLite format 3\0"
_FIRST = Round(0, {}, restart=False)
"""The state before round one. Its keyed digest in the first line of the journal identifies the stream."""


class StreamFile:
    """The state of one stream, open for one writer.

    The SQLite file holds the mechanism, the round, a keyed digest of all rounds, and the counts. A keyed checksum of
    these detects any changed byte. The key is in `<file>-key`. The journal `<file>-rounds` has the digest of every
    round, and its first line identifies the stream. A stream needs all three files.

    The journal prevents that one round is released twice from different data. Both releases would have the same noise,
    so their difference would reveal the data. The journal gets a line before a round is written to the file, and
    another line after it. If an older copy of the file is restored, the journal still has the digests of the later
    rounds. The stream then accepts only the same data for these rounds. The stream refuses a file whose last round has
    another digest than in the journal.

    The stream cannot detect that file and journal were both restored, or that copies of both continue.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, journal: Journal) -> None:
        self._path, self._connection, self._journal = path, connection, journal
        self._beside = beside(path)
        self._key_file: KeyFile | None = None
        self.key = b""
        self.round = 0
        self._sum = 0
        self._digest = ""
        self.mechanism: StreamMechanism
        self.item_type: ItemType | None = None
        self.remembered = Remembered()

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], mechanism: StreamMechanism | None, items: str | None = None
    ) -> StreamFile:
        """Open the file, or create it for items of a type; raise StateError if that is impossible."""
        file = real(path)
        _require_kind(mechanism)
        made = not file.exists()
        if made:
            if mechanism is None:
                raise StateError(f"there is no stream {file}; give a mechanism to start one")
            require_new(file)
            with _errors(file):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        else:
            _require_stream(file)
        failure_point("named")
        journal = connection = None
        creating: list[bool] = []
        try:
            journal = Journal(beside(file)["rounds"])
            with _errors(file, *DAMAGE):
                connection = sqlite3.connect(file, isolation_level=None, timeout=0.2, check_same_thread=False)
                self = cls(file, connection, journal)
                self._begin(mechanism, items, creating)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if made and creating and isinstance(error, StateError):
                # The journal is still locked, and nothing was released from the stream: nobody else has it.
                for place in (file, *beside(file).values()):
                    with suppress(OSError):
                        place.unlink(missing_ok=True)
            if journal is not None:
                journal.close()
            raise
        return self

    def _begin(self, mechanism: StreamMechanism | None, items: str | None, creating: list[bool]) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        # SQLite's rollback journal holds old counts. It is kept, so that `destroy` can overwrite it.
        run("PRAGMA journal_mode = PERSIST")
        run("PRAGMA temp_store = MEMORY")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA secure_delete = ON")
        run("BEGIN EXCLUSIVE")
        if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            if mechanism is None:
                raise StateError(f"{self._path} holds no stream; give a mechanism to start one, or use another name")
            self._create(mechanism, items, creating)
        self._load(mechanism, items)
        run("COMMIT")

    def _create(self, mechanism: StreamMechanism, items: str | None, creating: list[bool]) -> None:
        """Create the stream in an empty file, or finish an interrupted creation. Journal and key are written first.

        `creating` gets an entry once the files are known to hold no other stream.
        """
        self.key = self._unused_key() or new_key()
        creating.append(True)
        self._journal.cut()
        if not self._journal.lines.done:
            self._journal.append("done", 0, seal.digest(self.key, _FIRST))
            failure_point("journal made")
        if self._key_file is None:
            self._key_file = KeyFile.create(self._beside["key"], self.key)
            failure_point("key made")
        run = self._connection.execute
        run(
            "CREATE TABLE stream (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, "
            "mechanism TEXT NOT NULL, key_name BLOB NOT NULL, round INTEGER NOT NULL, digest TEXT NOT NULL, "
            "total BLOB NOT NULL)"
        )
        run("CREATE TABLE item (label BLOB PRIMARY KEY, kind TEXT NOT NULL, count INTEGER NOT NULL) WITHOUT ROWID")
        text = state_text(mechanism, items)
        first = seal.digest(self.key, _FIRST)
        total = seal.total([seal.head(self.key, text, 0, first)])
        run("INSERT INTO stream VALUES (1, ?, ?, ?, 0, ?, ?)", (VERSION, text, seal.name(self.key), first, total))
        failure_point("making")

    def _unused_key(self) -> bytes | None:
        """Return the key that an interrupted creation has left, or None.

        Raises StateError if the journal has rounds or is closed, or if the key does not fit the journal. An interrupted
        creation leaves none of these.
        """
        lines, path = self._journal.lines, self._beside["key"]
        key = None
        if os.path.lexists(path):
            self._key_file = KeyFile.open(path)
            key = self._key_file.key
        known = None if key is None else seal.digest(key, _FIRST)
        if lines.closed or {*lines.done, *lines.begun} - {0} or (known is not None and lines.done.get(0) != known):
            raise StateError(
                f"{self._path} is empty, and its journal is not; restore a copy of the file, or use another name"
            )
        if key is None:
            if self._key_file is not None:
                self._key_file.destroy()
                self._key_file = None
            self._journal.clear()
        return key

    def _load(self, asked: StreamMechanism | None, items: str | None) -> None:
        run, lines = self._connection.execute, self._journal.lines
        if run("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise ValueError("damaged pages")
        version = run("SELECT version FROM stream").fetchone()[0]
        if version != VERSION:
            remedy = "upgrade discreet" if version > VERSION else "an older discreet wrote it: start a new stream"
            raise StateError(f"{self._path} has the file format {version}, not {VERSION}; {remedy}")
        if lines.closed:
            self._require_own_journal()
            run("COMMIT")
            self._finish_closing()
            raise StateError(f"the stream in {self._path} is closed; start a new one in another file")
        row = run("SELECT mechanism, key_name, round, digest, total FROM stream").fetchone()
        text, name, self.round, self._digest, total = row
        self._require_key(bytes(name))
        state = read_state(self.key, text, self.round, self._digest, total, run("SELECT label, kind, count FROM item"))
        self._sum = int.from_bytes(total, "little")
        self.mechanism, self.item_type, self.remembered = state.mechanism, state.item_type, state.remembered
        if asked is not None and asked != self.mechanism:
            raise StateError(f"{self._path} has the mechanism {self.mechanism!r}; open it without a mechanism")
        if items is not None and items != self.item_type:
            raise StateError(f"{self._path} was started with items={self.item_type!r}; open it without items")
        self._require_own_journal()
        self._journal.cut()
        known = lines.done.get(self.round, lines.begun.get(self.round))
        if known is None:
            raise StateError(
                f"the journal of {self._path} lacks round {self.round}; restore the newest copy of the journal"
            )
        left_out = self.round not in lines.done and max(lines.done, default=0) > self.round
        if known != self._digest or left_out:
            raise StateError(
                f"round {self.round} of {self._path} differs from its journal; restore the newest copy of the file, "
                "or start a new stream"
            )
        if self.round not in lines.done:
            # The process ended after it wrote the round to the file, and before it wrote "done" to the journal.
            self._journal.append("done", self.round, self._digest)

    def _require_own_journal(self) -> None:
        """Raise StateError if the journal belongs to a stream with another key. Not checked if the key is destroyed."""
        if self._key_file is None and os.path.lexists(self._beside["key"]):
            with suppress(StateError):  # the key was partly overwritten when `destroy` was interrupted
                self._key_file = KeyFile.open(self._beside["key"])
        key = None if self._key_file is None else self._key_file.key
        if key is not None and self._journal.lines.done.get(0) != seal.digest(key, _FIRST):
            raise StateError(f"the journal of {self._path} belongs to another stream; restore the right one")

    def _require_key(self, name: bytes) -> None:
        """Read the key; raise StateError if it belongs to another stream."""
        path = self._beside["key"]
        if self._key_file is None:
            self._key_file = KeyFile.open(path)
        if self._key_file.key is None or seal.name(self._key_file.key) != name:
            raise StateError(f"the key in {path} belongs to another stream; restore the right one")
        self.key = self._key_file.key

    def items(self) -> Iterator[tuple[Item, int]]:
        """Yield items and their counts, in the order of the labels."""
        return read_items(self._connection.execute("SELECT label, kind, count FROM item"))

    def require(self, step: Round) -> None:
        """Raise StateError if a round that a restored file lacks was released from data other than `step`."""
        done = self._journal.lines.done
        # A list, since a signal handler may add a round during the loop.
        forgotten = min((number for number in list(done) if number > self.round), default=None)
        if forgotten is None:
            return
        if forgotten != step.number or done[forgotten] != seal.digest(self.key, step, self._digest):
            raise StateError(
                f"{self._path} was restored to round {self.round}, but round {forgotten} was already released from "
                "other data; step that round with the same data again, or start a new stream"
            )

    def write(self, step: Round, counts_before: list[int]) -> None:
        """Make a round durable. After any error the caller must open the file again.

        `counts_before` are the counts before the round of the items that it adds, zero for a new item.
        """
        digest = seal.digest(self.key, step, self._digest)
        with _errors(self._path):
            self._journal.append("begin", step.number, digest)
            failure_point("begun")
            self._commit(step, counts_before, digest)
            failure_point("written")
            self._journal.append("done", step.number, digest)
            failure_point("done")
        self.round = step.number

    def _commit(self, step: Round, counts_before: list[int], digest: str) -> None:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        (text,) = run("SELECT mechanism FROM stream").fetchone()
        given = changed_text(text, step)
        head = seal.head(self.key, text, self.round, self._digest)
        parts = [self._sum - head, seal.head(self.key, given, step.number, digest)]
        counts = [*step.added.values()]
        if step.restart:
            parts.append(-sealed_items(self.key, run("SELECT label, kind, count FROM item")))
            run("DELETE FROM item")
        else:
            # The file has the counts in memory, or else its checksum is wrong and `open` refuses it.
            old = [(label, count) for label, count in zip(step.labels, counts_before, strict=True) if count]
            parts.append(-seal.sealed(self.key, (label for label, _ in old), (count for _, count in old)))
            counts = [*map(add, counts, counts_before)]
        parts.append(seal.sealed(self.key, step.labels, counts))
        self._store(sorted(map(seal.row, step.labels, counts)))
        total = seal.total(parts)
        run("UPDATE stream SET mechanism = ?, round = ?, digest = ?, total = ?", (given, step.number, digest, total))
        failure_point("writing")
        run("COMMIT")
        self._sum, self._digest = int.from_bytes(total, "little"), digest

    def _store(self, rows: list[tuple[bytes, str, int]]) -> None:
        """Write rows of items in the order of their labels, many in each statement."""
        rest = len(rows) % _AT_ONCE
        for size, some in ((1, rows[:rest]), (_AT_ONCE, rows[rest:])):
            values = ", ".join(["(?, ?, ?)"] * size)
            update = "ON CONFLICT (label) DO UPDATE SET kind = excluded.kind, count = excluded.count"
            cells = (tuple(chain.from_iterable(some[start : start + size])) for start in range(0, len(some), size))
            self._connection.executemany(f"INSERT INTO item VALUES {values} {update}", cells)
            failure_point("storing")

    def destroy(self) -> None:
        """End the stream for good: overwrite the key, then the counts.

        Before that, the journal gets a line that the stream is closed. If the process ends in between, the next `open`
        overwrites the key and the counts.
        """
        digest = seal.digest(self.key, Round(self.round, {}, restart=False))
        with _errors(self._path):
            self._journal.append("closed", self.round, digest)
            failure_point("closing")
            self._finish_closing()

    def _finish_closing(self) -> None:
        """Overwrite the key, the counts and SQLite's rollback journal, which holds older counts."""
        if self._key_file is None and os.path.lexists(self._beside["key"]):
            self._key_file = KeyFile(self._beside["key"], open_plain(self._beside["key"]))
        if self._key_file is not None:
            self._key_file.destroy()
        failure_point("key destroyed")
        run = self._connection.execute
        run("PRAGMA journal_mode = MEMORY")
        run("DELETE FROM item")
        failure_point("counts destroyed")
        with suppress(FileNotFoundError):
            handle = open_plain(self._beside["journal"])
            try:
                erase(handle)
            finally:
                os.close(handle)
        self.close()
        self._beside["journal"].unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files."""
        self._connection.close()
        if self._key_file is not None:
            self._key_file.close()
        self._journal.close()


def require_new(path: str | os.PathLike[str], mechanism: StreamMechanism | None = None) -> None:
    """Raise an error if no new stream can be created in a file. Called before a budget is charged for it.

    Raises:
        ParameterError: The file exists and is not empty, or no file can keep the mechanism.
        StateError: A key or journal of a deleted stream is left, or the folder is missing or not writable.
    """
    file = real(path)
    _require_kind(mechanism)
    if file.exists():
        if not file.is_file() or file.stat().st_size:
            raise ParameterError(f"{path} exists already; add rounds by `discreet stream step`, or use another name")
        return  # an interrupted creation
    for purpose, what in (("rounds", "journal"), ("key", "key"), ("journal", "rollback journal")):
        left = beside(file)[purpose]
        if os.path.lexists(left):
            raise StateError(f"{left} is the {what} of a stream that is missing; restore it, or use another name")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise unusable(file)


def _require_kind(mechanism: object) -> None:
    if mechanism is not None and type(mechanism).__name__ not in STORED:
        raise ParameterError(
            f"the mechanism of a stream in a file must be one of {', '.join(STORED)}, not {type(mechanism).__name__}"
        )


def _require_stream(file: Path) -> None:
    """Raise StateError if a file cannot be a stream. Called before a journal or key is created for it."""
    with _errors(file):
        if not file.is_file():
            raise OSError("no regular file")
        with file.open("rb") as opened:
            start = opened.read(len(_MAGIC))
    if start and not os.path.lexists(beside(file)["rounds"]):
        if start != _MAGIC:
            raise StateError(f"{file} is no stream; name the file of a stream, or a new file to start one")
        raise StateError(f"{file} lacks its journal {beside(file)['rounds']}, or is no stream; restore the journal")


@contextmanager
def _errors(path: Path, *damage: type[Exception]) -> Iterator[None]:
    """Turn errors of SQLite, of the system and of `damage` into StateErrors whose texts show no data."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)) from None
    except damage:
        raise StateError(f"{path} is corrupt; restore a copy of it, with its journal") from None
