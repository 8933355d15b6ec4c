"""The file format of a ledger: a head of fixed size, then one sealed line of JSON for each event.

The head has three lines of 512 bytes: the version and the identity of the ledger, and two marks. An event's line ends
with its seal, the SHA-256 of the seal before it and of the line up to the seal. Before the first event, the SHA-256 of
the head's first line serves as the seal. The identity is 32 random hexadecimal digits, drawn for each new ledger.
A random nonce in each line makes seals unique: two copies that are both continued differ, even with equal charges.

A mark names an event that is on the disk, by its number, the end of its line, and its seal. An append writes and syncs
the event, then writes and syncs a mark over the older of the two marks, and only then returns. It follows:

- Every charge whose append has returned is before the newest mark. All bytes before that mark must verify, so a file
  that was cut, flipped or overwritten there is refused. No event before the mark is ever dropped.
- Bytes after the newest mark belong to an append that has not returned, so nothing was drawn for them. A complete event
  there counts, which can only overstate the spent budget. An incomplete event comes from a crash; the next append
  removes it.
- An interrupt can leave one event without a mark. The next append syncs this event and writes its mark before it writes
  an event of its own. So the two marks always name consecutive events; in a new ledger both name the first event.
- A crash can tear the mark that is being written, after its event was synced. So an invalid mark is accepted only if a
  complete event follows the other mark. Otherwise the file is damaged, and refused.

Let n be the last event whose append returned. Each undamaged mark names event n - 1 or a later one. So the following
files are refused, even if they have other damage too, and also after an interrupt:

- A file in which any of the events 1 to n is cut, changed, moved or missing.
- A file whose first line is changed, or that has no valid mark.
- A file with one valid mark and no complete event after it.
- A file whose two valid marks do not name consecutive events, such as two copies of one mark.

Every other damaged file has all charges whose appends returned: its damage is in one mark or after event n. This relies
on SHA-256: damage does not produce a valid seal by chance, but a forger who knows the format can. It does not cover
bytes that the file held earlier: an older copy of the whole file, or older marks with the events after them cut. Only
a process that has seen the newer state detects that.
"""

from __future__ import annotations

import hashlib
import json
from copy import copy
from typing import NamedTuple

from discreet.budgets.book import Book
from discreet.budgets.charge import NOTHING, Charge
from discreet.budgets.record import Event
from discreet.engines.untrusted import Fields
from discreet.errors import LedgerError
from discreet.release.provenance import Provenance

__all__ = [
    "HEAD_SIZE",
    "SEAL_SIZE",
    "Head",
    "corrupt",
    "events_of",
    "extended",
    "head_of",
    "mark_line",
    "new",
    "parse",
    "written",
]

_LINE = 512
HEAD_SIZE = 3 * _LINE
SEAL_SIZE = 65
"""Bytes of a seal in hexadecimal and of the line feed after the seal."""

_MAGIC = b"discreet ledger "
_VERSION = 1
_SQLITE = b"SQLite format 3\0"
_SQLITE_APPLICATION = slice(68, 72), b"dcrt"
_CHUNK = 512
"""The number of lines that are parsed as one JSON list."""

_TEXTS = ("time", "dataset", "mechanism", "parameters", "version", "digest")


class Mark(NamedTuple):
    """The last event that is known to be on the disk."""

    number: int
    end: int
    seal: str


class Head(NamedTuple):
    """The head of a ledger: its first line, its newest mark, and the file offset of the next mark."""

    line: bytes
    mark: Mark
    next_place: int
    is_torn: bool = False
    """Whether the other mark is invalid."""

    @property
    def identity(self) -> str:
        """The 32 random digits that identify this ledger."""
        return self.line.split()[3].decode()

    def empty(self) -> Book:
        """Return the book before the first event."""
        return Book(hash=hashlib.sha256(self.line).hexdigest(), end=HEAD_SIZE)


def corrupt(path: object) -> LedgerError:
    """Return the error for a damaged file."""
    return LedgerError(
        f"the ledger {path} is corrupt: restore a complete copy, and charge everything released since then to it"
    )


def parse(content: bytes, path: object = "file") -> Book:
    """Return the book of a ledger's complete content; raise LedgerError, and no other error, if it is invalid."""
    head = head_of(content[:HEAD_SIZE], path)
    return extended(head, head.empty(), content[HEAD_SIZE:], path)


def head_of(content: bytes, path: object) -> Head:
    """Return the head in the first HEAD_SIZE bytes of a file; raise LedgerError if it is invalid."""
    if content.startswith(_SQLITE):
        place, application = _SQLITE_APPLICATION
        if content[place] == application:
            raise LedgerError(
                f"the ledger {path} has the SQLite format of an earlier version: make a new ledger, and charge each of "
                "its datasets with the sum that was spent in the old one"
            )
    if not content.startswith(_MAGIC):
        raise LedgerError(f"{path} is not a ledger, or it is corrupt; use another path, or restore a complete copy")
    version, _, _ = content.removeprefix(_MAGIC).partition(b" ")
    if version.isdigit() and len(version) < 10 and int(version) > _VERSION:
        raise LedgerError(f"the ledger {path} was written by a newer version of discreet; upgrade to it")
    first, *slots = (content[place : place + _LINE] for place in range(0, HEAD_SIZE, _LINE))
    identity = first[len(_MAGIC) + 2 :][:32]
    if len(content) < HEAD_SIZE or first != _first_line(identity):
        raise corrupt(path)
    marks = [_mark(first, slot) for slot in slots]
    ends = [0 if mark is None else mark.end for mark in marks]
    newest = marks[ends.index(max(ends))]
    if newest is None or newest.end < HEAD_SIZE or not _are_consecutive(marks):
        raise corrupt(path)
    return Head(first, newest, _LINE * (1 + ends.index(min(ends))), None in marks)


def extended(head: Head, book: Book, content: bytes, path: object, kept: list[dict[str, object]] | None = None) -> Book:
    """Return `book` with the events in `content`, the file's bytes from `book.end` on.

    Raises LedgerError if an event is invalid. `kept`: a list to which the rows of these events are added.
    """
    found, mark = copy(book), head.mark
    try:
        before = max(0, mark.end - book.end)
        if len(content) < before:
            raise ValueError
        _add_all(found, content[:before], kept)
        if found.end == mark.end and (found.number, found.hash) != (mark.number, mark.seal):
            raise ValueError
        for line in content[before:].split(b"\n")[:-1]:
            if _seal(found.hash, line[:-64]) != line[-64:]:
                break
            _add(found, [line], kept)
        if head.is_torn and found.number == mark.number:
            raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise corrupt(path) from None
    return found


def new(identity: str, nonce: str) -> bytes:
    """Return the content of a new ledger with this identity, 32 hexadecimal digits. Its one event is its creation."""
    first = _first_line(identity.encode())
    book, line = written(Head(first, Mark(0, HEAD_SIZE, ""), 0).empty(), Event(kind="created"), nonce)
    mark = mark_line(first, book)
    return first + mark + mark + line


def written(book: Book, event: Event, nonce: str) -> tuple[Book, bytes]:
    """Return the book after one more event, and the event's line; raise BudgetExceeded if its charge does not fit."""
    grown = copy(book)
    grown.add(event)
    payload = json.dumps(_row(grown.number, event) | {"nonce": nonce}, separators=(",", ":")).encode() + b" "
    line = payload + _seal(book.hash, payload) + b"\n"
    grown.hash = line[-SEAL_SIZE:-1].decode()
    grown.end += len(line)
    return grown, line


def mark_line(first: bytes, book: Book) -> bytes:
    """Return the mark for the last event of a book, in the ledger with this first line."""
    return _encoded(first, Mark(book.number, book.end, book.hash))


def events_of(rows: list[Fields], path: object) -> list[tuple[int, Event]]:
    """Return the numbered events of verified rows; raise LedgerError if a field has a wrong type."""
    events = []
    for row in rows:
        fields = {name: row[name] for name in _TEXTS if name in row}
        if not all(isinstance(value, str) for value in fields.values()):
            raise corrupt(path)
        pair = row.get("pair")
        charge = Charge(
            row.get("rho", 0), row.get("delta", 0), None if pair is None else (float(pair[0]), float(pair[1]))
        )
        try:
            about = Provenance.read(row["about"]) if "about" in row else None
        except ValueError:
            raise corrupt(path) from None
        events.append((row["number"], Event(kind=row["kind"], of=row.get("of"), charge=charge, about=about, **fields)))
    return events


def _first_line(identity: bytes) -> bytes:
    if len(identity) != 32 or not set(identity) <= set(b"0123456789abcdef"):
        return b""
    return (_MAGIC + b"%d %s" % (_VERSION, identity)).ljust(_LINE - 1) + b"\n"


def _mark(first: bytes, line: bytes) -> Mark | None:
    """Return the mark in a line of the head; None if a crash or damage has made it invalid."""
    try:
        _, number, end, seal, _ = line.split()
        mark = Mark(int(number), int(end), seal.decode("ascii"))
    except ValueError:
        return None
    return mark if _encoded(first, mark) == line else None


def _are_consecutive(marks: list[Mark | None]) -> bool:
    """Return whether the marks name consecutive events, or both the first one; True if a mark is invalid."""
    numbers = sorted(mark.number for mark in marks if mark is not None)
    return len(numbers) < 2 or numbers == [1, 1] or numbers[1] - numbers[0] == 1


def _encoded(first: bytes, mark: Mark) -> bytes:
    text = f"mark {mark.number:020d} {mark.end:020d} {mark.seal} ".encode()
    return (text + hashlib.sha256(first + text).hexdigest().encode()).ljust(_LINE - 1) + b"\n"


def _seal(before: str, payload: bytes) -> bytes:
    return hashlib.sha256(before.encode() + payload).hexdigest().encode()


def _add_all(book: Book, content: bytes, kept: list[dict[str, object]] | None) -> None:
    """Add the events of complete lines to a book; raise ValueError or another error if they do not continue it."""
    if content and not content.endswith(b"\n"):
        raise ValueError
    lines = content.split(b"\n")[:-1]
    for start in range(0, len(lines), _CHUNK):
        _add(book, lines[start : start + _CHUNK], kept)


def _add(book: Book, lines: list[bytes], kept: list[dict[str, object]] | None) -> None:
    """Add the events of some lines to a book; raise ValueError or another error if they do not continue it."""
    seal, sha256 = book.hash.encode(), hashlib.sha256
    for line in lines:
        if sha256(seal + line[:-64]).hexdigest().encode() != line[-64:]:
            raise ValueError
        seal = line[-64:]
    rows = json.loads(b"[" + b",".join([line[:-65] for line in lines]) + b"]")
    if len(rows) != len(lines):
        raise ValueError
    book.replay(rows)
    book.hash = seal.decode()
    book.end += sum(map(len, lines)) + len(lines)
    if kept is not None:
        kept.extend(rows)


def _row(number: int, event: Event) -> dict[str, object]:
    """Return the fields of an event's line, without empty ones."""
    row: dict[str, object] = {"number": number, "time": event.time, "kind": event.kind, "dataset": event.dataset}
    row |= {"of": event.of} if event.of is not None else {}
    row |= {"rho": event.charge.rho, "delta": event.charge.delta} if event.charge != NOTHING else {}
    row |= {} if event.charge.pair is None else {"pair": event.charge.pair}
    row |= {"less": event.charge.less} if event.charge.less else {}
    row |= {"mechanism": event.mechanism, "parameters": event.parameters}
    row |= {"version": event.version, "digest": event.digest, "promise": event.promise}
    row |= {} if event.about is None else {"about": dict(event.about)}
    return {name: value for name, value in row.items() if value != ""}
