"""Keyed hashes of a stream: of its labels, its rounds and its whole state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from discreet.streams.clock import Clock

__all__ = ["Item", "Round", "digest", "head", "keyed", "label_bytes", "label_parts", "name", "sealed", "total"]

Item = str | int | bytes

_MODULUS = 2**256


@dataclass(frozen=True, slots=True)
class Round:
    """A round's number, what it adds to each item, whether counts begin anew before it, and a clock that is new."""

    number: int
    added: dict[Item, int]
    restart: bool
    clock: Clock | None = None


def keyed(key: bytes, purpose: bytes, text: bytes) -> bytes:
    """Return a keyed hash of 32 bytes; hashes of different purposes are independent."""
    return hashlib.blake2b(text, key=key, digest_size=32, person=purpose).digest()


def name(key: bytes) -> bytes:
    """Return the 16 bytes by which a file recognises its key."""
    return keyed(key, b"name", b"")[:16]


def digest(key: bytes, step: Round, before: str = "") -> str:
    """Return a keyed digest of a round: of its number, of what it adds, and of `before`, the digest of the last one."""
    parts = sorted(_encoded(item, added) for item, added in step.added.items())
    text = step.number.to_bytes(8, "little") + bytes.fromhex(before) + b"".join(parts)
    return hashlib.blake2b(text, key=key, digest_size=16, person=b"round").hexdigest()


def total(parts: Iterable[int]) -> bytes:
    """Return the sum of `head` and of `sealed` for every item, as 32 bytes."""
    return (sum(parts) % _MODULUS).to_bytes(32, "little")


def head(key: bytes, mechanism: str, number: int, rounds: str) -> int:
    """Return the summand of the mechanism, the round and the digest of all rounds up to it."""
    return int.from_bytes(keyed(key, b"head", f"{mechanism}|{number}|{rounds}".encode()), "little")


def sealed(key: bytes, item: Item, count: int) -> int:
    """Return the summand of an item with its count."""
    return int.from_bytes(keyed(key, b"item", _encoded(item, count)), "little")


def label_bytes(item: Item) -> bytes:
    """Return a label as bytes; labels of different types are never the same bytes."""
    kind, label = label_parts(item)
    return kind.encode() + label


def label_parts(item: Item) -> tuple[str, bytes]:
    """Return the letter of a label's type and its bytes."""
    if isinstance(item, int):
        return "i", str(item).encode()
    return ("t", item.encode("utf-8")) if isinstance(item, str) else ("b", item)


def _encoded(item: Item, count: int) -> bytes:
    label = label_bytes(item)
    return len(label).to_bytes(8, "little") + label + count.to_bytes(8, "little", signed=True)
