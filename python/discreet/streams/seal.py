"""Keyed hashes of a stream's labels, rounds and state: without the stream's secret key nobody can compute them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from struct import Struct
from typing import Literal

from discreet.cached import cached_property
from discreet.errors import SchemaError, StateError
from discreet.streams.clock import Clock

__all__ = [
    "Item",
    "ItemType",
    "Remembered",
    "Round",
    "UserColumns",
    "UserName",
    "digest",
    "encoded",
    "head",
    "keyed",
    "label_bytes",
    "label_parts",
    "name",
    "row",
    "sealed",
    "total",
]

Item = str | int | bytes

ItemType = Literal["text", "integer", "bytes"]
"""The type of a stream's items."""


class UserName(bytes):
    """The keyed name of a user. Its count is the number of rounds in which the user was counted."""


UserColumns = tuple[tuple[str, str], ...]
"""The names of the columns that name users, and the kinds of their cells."""

_MODULUS = 2**256
_count = Struct("<q").pack
"""The 8 bytes of a count or a length."""


@dataclass(frozen=True)
class Remembered:
    """All that a stream remembers of its rounds besides their counts; None for what no round has decided yet.

    No member depends on the rows: a table without rows decides and contradicts what the same table with rows does.
    """

    clock: Clock | None = None
    users: UserColumns | None = None
    items: ItemType | None = None

    def require(self, found: Remembered) -> None:
        """Raise an error unless a round has the columns of users and the type of items that are remembered.

        Raises:
            StateError: Users have other columns, so that a user would have two names.
            SchemaError: Items have another type.
        """
        if None not in (found.users, self.users) and found.users != self.users:
            shown = [", ".join(f"{name!r} ({kind})" for name, kind in each or ()) for each in (self.users, found.users)]
            raise StateError(
                f"the users of this stream are named by {shown[0]}, not by {shown[1]}, and the same user must have the "
                "same name in all rounds; give this column, renamed or cast if it has another name or type"
            )
        if None not in (found.items, self.items) and found.items != self.items:
            raise SchemaError(f"the items of this stream have the type {self.items}, not {found.items}; convert them")


@dataclass(frozen=True)
class Round:
    """A round: its number, the counts it adds, whether counts are reset before it, and what the stream then remembers.

    The counts are of items, and of the names of users if the stream counts these in a limited number of rounds.
    `remembered` is None if the stream remembers the same as before.
    """

    number: int
    added: dict[Item, int]
    restart: bool
    remembered: Remembered | None = None

    @cached_property
    def labels(self) -> list[bytes]:
        """The encoded labels of the items it adds."""
        return list(map(encoded, self.added))


def keyed(key: bytes, purpose: bytes, text: bytes) -> bytes:
    """Return a keyed hash of 32 bytes; hashes of different purposes are independent."""
    return hashlib.blake2b(text, key=key, digest_size=32, person=purpose).digest()


def name(key: bytes) -> bytes:
    """Return 16 bytes that identify a key and do not reveal it."""
    return keyed(key, b"name", b"")[:16]


def digest(key: bytes, step: Round, before: str = "") -> str:
    """Return a keyed digest of a round's number, of the counts it adds, and of `before`, the previous digest."""
    parts = sorted(map(add, step.labels, map(_count, step.added.values())))
    text = step.number.to_bytes(8, "little") + bytes.fromhex(before) + b"".join(parts)
    return hashlib.blake2b(text, key=key, digest_size=16, person=b"round").hexdigest()


def total(parts: Iterable[int]) -> bytes:
    """Return the keyed checksum of a state as 32 bytes: the sum of `head` and of `sealed` of all items."""
    return (sum(parts) % _MODULUS).to_bytes(32, "little")


def head(key: bytes, mechanism: str, number: int, rounds_digest: str) -> int:
    """Return the checksum's term for the mechanism, the round and the digest of all rounds up to it."""
    return int.from_bytes(keyed(key, b"head", f"{mechanism}|{number}|{rounds_digest}".encode()), "little")


def sealed(key: bytes, labels: Iterable[bytes], counts: Iterable[int]) -> int:
    """Return the sum of the checksum's terms, one for each encoded label and its count."""
    keyed_hash = hashlib.blake2b(key=key, digest_size=32, person=b"item")
    terms = []
    for text in map(add, labels, map(_count, counts)):
        term = keyed_hash.copy()  # a copy costs half as much as a new keyed hash
        term.update(text)
        terms.append(int.from_bytes(term.digest(), "little"))
    return sum(terms)


def label_bytes(item: Item) -> bytes:
    """Return a label as bytes. Labels of different types never have the same bytes."""
    kind, label = label_parts(item)
    return kind.encode() + label


def label_parts(item: Item) -> tuple[str, bytes]:
    """Return the letter of a label's type, and the label as bytes."""
    if isinstance(item, int):
        return "i", str(item).encode()
    if isinstance(item, UserName):
        return "u", bytes(item)
    return ("t", item.encode("utf-8")) if isinstance(item, str) else ("b", item)


def encoded(item: Item) -> bytes:
    """Return a label as bytes: its length, the letter of its type, and the label."""
    kind, label = label_parts(item)
    return b"%b%b%b" % (_count(1 + len(label)), kind.encode(), label)


def row(label: bytes, count: int) -> tuple[bytes, str, int]:
    """Return the row of an encoded label: the label, the letter of its type, and the count."""
    return label[9:], chr(label[8]), count
