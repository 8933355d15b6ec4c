"""The events of a round: how many have each item, at most l0 items of each event."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from discreet.errors import ParameterError, SchemaError
from discreet.streams.seal import Item, keyed

__all__ = [
    "EMPTY_TYPES",
    "ITEM_TYPES",
    "ItemType",
    "bounded",
    "can_be_released",
    "column_type",
    "require_item_type",
    "type_of",
]

ItemType = Literal["text", "integer", "bytes"]
"""What the items of a stream are."""
ITEM_TYPES: dict[ItemType, tuple[type, ...]] = {"text": (str,), "integer": (int, np.integer), "bytes": (bytes,)}
"""The Python types of each."""
EMPTY_TYPES: dict[ItemType | None, str] = {"integer": "int64", "bytes": "binary"}
"""What a release without rows says that its items are, where that is not text."""
_COLUMN_TYPES: dict[str, ItemType] = {"string": "text", "int64": "integer", "uint64": "integer", "binary": "bytes"}
_PLAIN = {str, int, bytes}
"""Python's own types: what orders an item must not depend on which type of number somebody has it in."""
_LEAST, _MOST = -(2**63), 2**63 - 1


def require_item_type(items: object) -> ItemType | None:
    """A type of items, or None where it is left to what comes first."""
    if items is not None and items not in ITEM_TYPES:
        raise ParameterError('items must be "text", "integer" or "bytes"')
    return items


def type_of(item: Item | str) -> ItemType:
    """The type of an item."""
    return next(kind for kind, types in ITEM_TYPES.items() if isinstance(item, types))


def column_type(name: str, empty: object, column: str) -> ItemType | None:
    """The type of items in a column of an Arrow type; None for a list without any, which has none.

    `empty`: the table where it has no rows.
    """
    if isinstance(empty, dict) and getattr(getattr(empty[column], "dtype", None), "kind", "O") == "O":
        return None
    return _COLUMN_TYPES[name]


def bounded(events: Any, l0: int, key: bytes, number: int, items: ItemType | None) -> dict[Item, int]:
    """How many events have each item, at most `l0` items of each: those whose keyed hashes are the least.

    What is not of the type `items` is left out; where that is None all must be of one type.
    """
    if isinstance(events, str | bytes | dict) or hasattr(events, "columns") or not hasattr(events, "__iter__"):
        raise ParameterError(
            "events must be a list with one list of items for each event; with a table give user and item"
        )
    priorities: dict[Item, bytes] = {}

    def priority(item: Item) -> bytes:
        if item not in priorities:
            priorities[item] = keyed(key, b"choice", number.to_bytes(8, "little") + _priority_bytes(item))
        return priorities[item]

    added: dict[Any, int] = {}
    kinds: set[type] = set()
    for event in events:
        distinct = _distinct(event, items)
        if items is None and not kinds.issuperset(map(type, distinct)):
            kinds.update(map(type, distinct))
            _require_one_kind(kinds)
        if not kinds <= _PLAIN:
            distinct = set(map(_plain, distinct))
        for item in distinct if len(distinct) <= l0 else sorted(distinct, key=priority)[:l0]:
            added[item] = added.get(item, 0) + 1
    return added


def can_be_released(label: Item) -> bool:
    """Whether a label fits a column: no integer beyond 64 bits, no text that is not UTF-8. Others are left out."""
    if isinstance(label, int):
        return _LEAST <= label <= _MOST
    try:
        return isinstance(label, bytes) or bool(label.encode("utf-8") or True)
    except UnicodeEncodeError:
        return False


def _distinct(event: Any, items: ItemType | None) -> set[Any]:
    """The items of an event, once each."""
    if isinstance(event, str | bytes | dict):
        raise ParameterError("each event must be a list of items")
    try:
        if items is not None:
            types = ITEM_TYPES[items]
            known = (item for item in event if isinstance(item, types) and item is not True and item is not False)
            return {item if type(item) in _PLAIN else _plain(item) for item in known}
        distinct = set(event)
    except TypeError:
        raise ParameterError("each event must be a list of items: text, integers or bytes") from None
    distinct.discard(None)
    return distinct


def _plain(item: Any) -> Item:
    """An item as a value of Python's own types."""
    return str(item) if isinstance(item, str) else bytes(item) if isinstance(item, bytes) else int(item)


def _require_one_kind(kinds: set[type]) -> None:
    """Items of one stream are all text, all whole numbers or all bytes."""
    if len(kinds) > 1 or not kinds <= _PLAIN:
        one = [next((k for k in (str, bytes, np.integer, int) if issubclass(kind, k)), None) for kind in kinds]
        names = {int if kind is np.integer else kind for kind in one}
        if len(names) > 1 or None in names or bool in kinds:
            raise SchemaError(
                "items must be all text, all integers or all bytes; a stream started with items= leaves others out"
            )


def _priority_bytes(label: Item) -> bytes:
    """What orders an event's items, of whatever kind."""
    if isinstance(label, int):
        return b"i" + format(label, "x").encode()
    return b"t" + label.encode("utf-8", "surrogatepass") if isinstance(label, str) else b"b" + label
