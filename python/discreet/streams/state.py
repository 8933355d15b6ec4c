"""The state of a stream as its file stores it: parameters as JSON, counts, and a keyed checksum of both."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from discreet.streams import seal
from discreet.streams.base import StreamMechanism
from discreet.streams.binary import BinaryMechanism
from discreet.streams.clock import Clock
from discreet.streams.epochs import EpochMechanism
from discreet.streams.honaker import HonakerMechanism
from discreet.streams.hybrid import HybridMechanism
from discreet.streams.seal import Item, ItemType, Remembered, Round, UserName
from discreet.streams.square_root import SquareRootMechanism

__all__ = ["DAMAGE", "STORED", "State", "changed_text", "read_items", "read_state", "sealed_items", "state_text"]

_MANY = 1 << 12
"""Rows that are checked at a time."""

STORED: dict[str, type[StreamMechanism]] = {
    kind.__name__: kind
    for kind in (BinaryMechanism, EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism)
}
"""The classes of mechanisms that a file can store."""
DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error)
"""The errors that reading a damaged state raises: for damaged text, or for parameters that no mechanism has."""
_REMEMBERED = ("clock", "keyed_by", "item_type")
"""The names under which a file has the members of `Remembered`."""
_FROM_BYTES: dict[str, Callable[[bytes], Item]] = {
    "b": bytes,
    "i": int,
    "t": lambda label: label.decode("utf-8"),
    "u": UserName,
}


@dataclass(frozen=True, slots=True)
class State:
    """The content of a stream's file without the counts."""

    mechanism: StreamMechanism
    item_type: ItemType | None
    remembered: Remembered
    round: int


def state_text(mechanism: StreamMechanism, items: str | None) -> str:
    """Return a mechanism and the type of its items as JSON."""
    fields = {name: value for name, value in mechanism.__getstate__().items() if value is not None}
    given = {"kind": type(mechanism).__name__, **fields}
    return json.dumps(given if items is None else {"items": items, **given})


def changed_text(text: str, step: Round) -> str:
    """Return the JSON of a state with what it remembers after a round."""
    if step.remembered is None:
        return text
    given = json.loads(text)
    for name, stored in zip(_REMEMBERED, dataclasses.asdict(step.remembered).values(), strict=True):
        given[name] = stored
    return json.dumps({name: stored for name, stored in given.items() if stored is not None})


def read_state(
    key: bytes, text: str, number: int, rounds_digest: str, total: bytes, rows: Iterable[tuple[bytes, str, int]]
) -> State:
    """Return the state that a file stores, after verifying its checksum.

    `rows` has the label, the letter of its type and the count of every item.

    Raises:
        ValueError: The checksum differs or the text is invalid. Other errors of `DAMAGE` mean the same.
    """
    if seal.total([seal.head(key, text, number, rounds_digest), sealed_items(key, rows)]) != bytes(total):
        raise ValueError("the keyed checksum differs")
    given = json.loads(text)
    item_type = given.pop("items", None)
    clock, keyed_by, known = (given.pop(name, None) for name in _REMEMBERED)
    mechanism = STORED[given.pop("kind")](**given)
    columns = None if keyed_by is None else tuple((str(name), str(kind)) for name, kind in keyed_by)
    remembered = Remembered(None if clock is None else Clock(**clock), columns, known or item_type)
    return State(mechanism, item_type, remembered, number)


def sealed_items(key: bytes, rows: Iterable[tuple[bytes, str, int]]) -> int:
    """Return the terms of the checksum for the rows of all items, summed. Few rows are in memory at a time."""
    found, parts = read_items(rows), 0
    while some := list(islice(found, _MANY)):
        parts += seal.sealed(key, (seal.encoded(item) for item, _ in some), (count for _, count in some))
    return parts


def read_items(rows: Iterable[tuple[bytes, str, int]]) -> Iterator[tuple[Item, int]]:
    """Yield items and their counts."""
    for label, kind, count in rows:
        yield _FROM_BYTES[kind](bytes(label)), count
