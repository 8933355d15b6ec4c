"""A stream on disk: a SQLite file that is whole after every round, its key, and a journal of what it released."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import ParameterError, StateError
from discreet.streams import seal
from discreet.streams.base import StreamMechanism
from discreet.streams.clock import Clock
from discreet.streams.journal import Journal, failure_point
from discreet.streams.key import KeyFile, new_key
from discreet.streams.paths import beside, erase, open_plain, real, unusable
from discreet.streams.seal import Item, Round
from discreet.streams.state import DAMAGE, KINDS, read_items, read_state, state_text, with_clock

__all__ = ["StreamFile", "require_new"]

VERSION = 2
_MAGIC = b"SQLite format 3\0"
_FIRST = Round(0, {}, restart=False)
"""What a stream begins with: its digest, by the stream's key, tells whose a journal is."""


class StreamFile:
    """The state of one stream, open for one writer.

    The file holds the mechanism, the round, a keyed digest of what was added up to it, the counts, and a keyed sum over
    these that a changed byte would break. The key is in `<file>-key`; all three files are of use together alone. In
    `<file>-rounds` stands a line for every round with its digest, of which the first tells whose journal it is. Lines
    are written before the round and again after it: where the file was put back to an earlier round, the journal knows
    what was released from the later ones. A file whose round has another digest in the journal is refused. That both
    were put back, or copied and gone on with, is not noticed.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, journal: Journal) -> None:
        self._path, self._connection, self._journal = path, connection, journal
        self._beside = beside(path)
        self._key_file: KeyFile | None = None
        self.key = b""
        self.round = 0
        self._sum = 0
        self._digest = ""
        self.mechanism: Any = None
        self.item_type: Any = None
        self.clock: Clock | None = None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], mechanism: StreamMechanism | None, items: str | None = None
    ) -> StreamFile:
        """Open or create the file, for items of a type; StateError where that cannot be."""
        file = real(path)
        _require_kind(mechanism)
        if not file.exists():
            if mechanism is None:
                raise StateError(f"there is no stream in {file}; give a mechanism to start one")
            require_new(file)
            with _errors(file):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        else:
            _require_stream(file)
        failure_point("named")
        journal = Journal(beside(file)["rounds"])
        connection = None
        try:
            with _errors(file, *DAMAGE):
                connection = sqlite3.connect(file, isolation_level=None, timeout=0.2, check_same_thread=False)
                self = cls(file, connection, journal)
                self._begin(mechanism, items)
        except BaseException:
            if connection is not None:
                connection.close()
            journal.close()
            raise
        return self

    def _begin(self, mechanism: StreamMechanism | None, items: str | None) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        # The rollback journal holds old counts: it stays, so that `destroy` finds and overwrites it.
        run("PRAGMA journal_mode = PERSIST")
        run("PRAGMA temp_store = MEMORY")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA secure_delete = ON")
        run("BEGIN EXCLUSIVE")
        if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            if mechanism is None:
                raise StateError(f"{self._path} holds no stream; start one in it, or use another name")
            self._create(mechanism, items)
        self._load(mechanism, items)
        run("COMMIT")

    def _create(self, mechanism: StreamMechanism, items: str | None) -> None:
        """Make the stream in an empty file, or go on where that was cut short: the key and the journal come first."""
        self.key = self._unused_key() or new_key()
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
        """Return the key of a stream whose making was cut short, None where there is none; StateError where the files
        beside are those of a stream that was made."""
        lines, path = self._journal.lines, self._beside["key"]
        key = None
        if os.path.lexists(path):
            self._key_file = KeyFile.open(path)
            key = self._key_file.key
        known = None if key is None else seal.digest(key, _FIRST)
        if lines.closed or {*lines.done, *lines.begun} - {0} or (known is not None and lines.done.get(0) != known):
            raise StateError(f"{self._path} is empty, and its journal is not; bring back a copy, or use another name")
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
            remedy = "upgrade discreet" if version > VERSION else "it was made by an older discreet: start a new stream"
            raise StateError(f"{self._path} is of version {version}, not {VERSION}; {remedy}")
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
        self.mechanism, self.item_type, self.clock = state.mechanism, state.item_type, state.clock
        if asked is not None and asked != self.mechanism:
            raise StateError(f"{self._path} is a stream of {self.mechanism!r}; open it without a mechanism")
        if items is not None and items != self.item_type:
            raise StateError(f"{self._path} is a stream of items={self.item_type!r}; open it without items")
        self._require_own_journal()
        self._journal.cut()
        known = lines.done.get(self.round, lines.begun.get(self.round))
        if known is None:
            raise StateError(f"the journal of {self._path} does not know round {self.round}; bring back its copy")
        left_out = self.round not in lines.done and max(lines.done, default=0) > self.round
        if known != self._digest or left_out:
            raise StateError(
                f"round {self.round} of {self._path} is not the one that its journal knows; bring back the newest "
                "copy of the file, or start a new stream"
            )
        if self.round not in lines.done:
            # The file was written and the process ended before it could say so.
            self._journal.append("done", self.round, self._digest)

    def _require_own_journal(self) -> None:
        """Raise StateError if the journal is that of a stream with another key; a destroyed key tells nothing."""
        if self._key_file is None and os.path.lexists(self._beside["key"]):
            with suppress(StateError):  # a key whose overwriting was cut short
                self._key_file = KeyFile.open(self._beside["key"])
        key = None if self._key_file is None else self._key_file.key
        if key is not None and self._journal.lines.done.get(0) != seal.digest(key, _FIRST):
            raise StateError(f"the journal beside {self._path} is not its own; bring back the copy that is")

    def _require_key(self, name: bytes) -> None:
        """Read the key, which must be this stream's own."""
        path = self._beside["key"]
        if self._key_file is None:
            self._key_file = KeyFile.open(path)
        if self._key_file.key is None or seal.name(self._key_file.key) != name:
            raise StateError(f"the key in {path} is not that of this stream; bring back the copy that is")
        self.key = self._key_file.key

    def items(self) -> Iterator[tuple[Item, int]]:
        """Yield items and counts, in the order of the labels."""
        return read_items(self._connection.execute("SELECT label, kind, count FROM item"))

    def require(self, step: Round) -> None:
        """Raise StateError where a round that this file has forgotten was released with other data."""
        done = self._journal.lines.done
        # A list: a signal handler may take in a round meanwhile.
        forgotten = min((number for number in list(done) if number > self.round), default=None)
        if forgotten is None:
            return
        if forgotten != step.number or done[forgotten] != seal.digest(self.key, step, self._digest):
            raise StateError(
                f"{self._path} was put back to round {self.round}, and round {forgotten} has been released from "
                "other data; give that round the same data again, or start a new stream"
            )

    def write(self, step: Round) -> None:
        """Make a round durable. Whatever goes wrong, the file is to be opened again."""
        digest = seal.digest(self.key, step, self._digest)
        with _errors(self._path):
            self._journal.append("begin", step.number, digest)
            failure_point("begun")
            self._commit(step, digest)
            failure_point("written")
            self._journal.append("done", step.number, digest)
            failure_point("done")
        self.round = step.number

    def _commit(self, step: Round, digest: str) -> None:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        (text,) = run("SELECT mechanism FROM stream").fetchone()
        given = text if step.clock is None else with_clock(text, step.clock)
        known = seal.head(self.key, text, self.round, self._digest)
        parts = [self._sum - known, seal.head(self.key, given, step.number, digest)]
        if step.restart:
            parts += [-seal.sealed(self.key, item, count) for item, count in self.items()]
            run("DELETE FROM item")
        for item, added in step.added.items():
            kind, label = seal.label_parts(item)
            found = run("SELECT count FROM item WHERE label = ?", (label,)).fetchone()
            if found is not None:
                parts.append(-seal.sealed(self.key, item, found[0]))
            count = added + (found[0] if found else 0)
            parts.append(seal.sealed(self.key, item, count))
            run("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", (label, kind, count))
        total = seal.total(parts)
        run("UPDATE stream SET mechanism = ?, round = ?, digest = ?, total = ?", (given, step.number, digest, total))
        failure_point("writing")
        run("COMMIT")
        self._sum, self._digest = int.from_bytes(total, "little"), digest

    def destroy(self) -> None:
        """Close the stream for good: overwrite the key, then the counts.

        The journal says first that the stream is closed. Where the process ends in between, the next `open` goes on.
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
        """Let go of the files."""
        self._connection.close()
        if self._key_file is not None:
            self._key_file.close()
        self._journal.close()


def require_new(path: str | os.PathLike[str], mechanism: StreamMechanism | None = None) -> None:
    """Raise where a new stream cannot be made in a file, before anything is paid for it.

    Raises:
        ParameterError: Where the file is there already, other than empty, or no file can keep the mechanism.
        StateError: Where a file beside it is left over, or its folder is missing or not writable.
    """
    file = real(path)
    _require_kind(mechanism)
    if file.exists():
        if not file.is_file() or file.stat().st_size:
            raise ParameterError(f"{path} is there already; go on with `discreet stream step`, or use another name")
        return  # a making that was cut short
    for purpose, what in (("rounds", "journal"), ("key", "key"), ("journal", "rollback journal")):
        left = beside(file)[purpose]
        if os.path.lexists(left):
            raise StateError(f"{left} is the {what} of a file that is gone; bring it back, or use another name")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise unusable(file)


def _require_kind(mechanism: object) -> None:
    if mechanism is not None and type(mechanism).__name__ not in KINDS:
        raise ParameterError(f"a stream in a file needs one of {', '.join(KINDS)}, not {type(mechanism).__name__}")


def _require_stream(file: Path) -> None:
    """Raise StateError where a file cannot be a stream, before anything is made beside it."""
    with _errors(file):
        if not file.is_file():
            raise OSError("no regular file")
        with file.open("rb") as opened:
            start = opened.read(len(_MAGIC))
    if start and not os.path.lexists(beside(file)["rounds"]):
        if start != _MAGIC:
            raise StateError(f"{file} is no stream; give the file of one, or a new name to start one")
        raise StateError(f"{file} has no journal {beside(file)['rounds']}, or is no stream; bring back its copy")


@contextmanager
def _errors(path: Path, *damage: type[Exception]) -> Iterator[None]:
    """Turn errors of SQLite and of the system, and those of `damage`, into StateError without a cell in its text."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, str(error) if isinstance(error, sqlite3.Error) else "") from None
    except damage:
        raise StateError(f"{path} is corrupt; bring back a copy of it, with its journal") from None
