"""Counting the events of a round by item, with at most l0 items of each event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy import ma

from discreet import _core, engines
from discreet.engines.cells import cells_of_kind, text_of
from discreet.engines.columns import list_of
from discreet.engines.frames import is_value, library
from discreet.engines.local import read
from discreet.engines.pandas_columns import object_cells
from discreet.engines.table import Columns, Table, as_table
from discreet.engines.typed_arrays import Foreign, is_backed_by_arrow, of_polars, of_pyarrow
from discreet.errors import ParameterError, SchemaError
from discreet.privacy.validation import is_bytes, require_choice
from discreet.progress import shown_progress
from discreet.streams.seal import Item, ItemType, UserColumns, UserName, keyed
from discreet.tables.histogram import Histogram

__all__ = [
    "EMPTY_TYPES",
    "ITEM_TYPES",
    "Given",
    "Limit",
    "can_be_released",
    "clipped_counts",
    "counts_by_item",
    "counts_by_user",
    "require_item_type",
    "type_of",
]

ITEM_TYPES: dict[ItemType, tuple[type, ...]] = {"text": (str,), "integer": (int, np.integer), "bytes": (bytes,)}
"""The Python types of each item type."""
EMPTY_TYPES: dict[ItemType | None, str] = {"integer": "int64", "bytes": "binary"}
"""The Arrow type of the items in a release without rows, unless it is text."""
_COLUMN_TYPES: dict[str, ItemType] = {"string": "text", "int64": "integer", "uint64": "integer", "binary": "bytes"}
_ONE_NAME = {"int64": "numbers or text", "string": "numbers or text", "uint64": "numbers or text"}
"""Arrow types whose cells name the same user if they have the same text."""
_AT_ONCE = 1 << 16
"""Users and items that are read at a time."""
_PLAIN = {str, int, bytes}
"""Python's own types. Items are converted to them, so that the order of items does not depend on a NumPy type."""
_LEAST, _MOST = -(2**63), 2**63 - 1


def require_item_type(items: object) -> ItemType | None:
    """Return a valid item type, or None if the first items decide it; raise ParameterError for another value."""
    return None if items is None else cast("ItemType", require_choice("items", items, ITEM_TYPES))


def type_of(item: Item | str) -> ItemType:
    """Return the type of an item."""
    return next(kind for kind, types in ITEM_TYPES.items() if isinstance(item, types))


class Given(NamedTuple):
    """What `Stream.step` was given, the declared type of the items, and the type that earlier rounds have decided."""

    events: object
    user: str | None
    item: str | None
    declared: ItemType | None
    known: ItemType | None
    progress: Callable[[], None] | None


def counts_by_item(given: Given, l0: int, key: bytes, number: int) -> tuple[ItemType, dict[Item, int]]:
    """Return the type of a round's items and the number of events with each. No cell decides the type."""
    if isinstance(given.events, Table) or (given.user is not None and given.item is not None):
        table, kind = _table(given, key, number)
        labels, counts = Histogram.from_table(table, l0=l0)._in_order()
        added = dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
        kind = kind or _kind(table, labels.type_name)
    elif given.user is None and given.item is None:
        # Text that is not declared takes cells of all types.
        items = None if given.declared is None and given.known == "text" else given.known
        added, kind = clipped_counts(given.events, l0, key, number, items), given.known or "text"
    else:
        raise ParameterError("give both user and item with a table, or neither with lists of items")
    return kind, {label: count for label, count in added.items() if can_be_released(label)}


class Limit(NamedTuple):
    """The most rounds of a user, and a function that returns the rounds of users so far."""

    rounds: int
    rounds_of: Callable[[list[UserName]], list[int]]


def counts_by_user(
    given: Given, l0: int, key: bytes, number: int, limit: Limit
) -> tuple[ItemType, dict[Item, int], UserColumns]:
    """Return the type of a table's items, the number of users with each and one round for each of these users.

    Users who were counted in all rounds of the limit are left out, and of others at most `l0` items are counted. Also
    return the columns that name users. Only `_AT_ONCE` pairs of a user and an item are Python objects at a time.
    """
    if not isinstance(given.events, Table) and (given.user is None or given.item is None):
        raise ParameterError("this stream counts the rounds of users: give a table, with user and item")
    table, kind = _table(given, key, number)
    if not engines.rows_here(table.data):
        raise ParameterError(
            "this stream counts the rounds of users, and needs the rows on this machine: give the table as toArrow() "
            "of Spark or to_pyarrow() of Ibis returns it"
        )
    users = [table.user] if isinstance(table.user, str) else [*table.user]
    with shown_progress(table.progress) as tick:

        def pairs(sources: list[object], room: int) -> _core.Labels:
            return _core.count_distinct(
                sources,
                table.user,
                [*users, str(table.item)],
                l0=l0,
                memory=room,
                times=table.period,
                secret=table.secret,
                progress=tick,
            )[0]

        labels = read(table, pairs)
    types = labels.type_name
    assert not isinstance(types, str)
    name_of = _names(key)
    counted, added = dict[Item, int](), dict[Item, int]()
    for first in range(0, labels.items(), _AT_ONCE):
        rows = labels.take(np.arange(first, min(first + _AT_ONCE, labels.items())))
        found = [(name_of(cells), label) for *cells, label in rows if can_be_released(label)]
        for (name, label), done in zip(found, limit.rounds_of([name for name, _ in found]), strict=True):
            if done < limit.rounds:
                counted[name], added[label] = 1, added.get(label, 0) + 1
    named_by = tuple((name, _ONE_NAME.get(found, found)) for name, found in types[:-1])
    return kind or _kind(table, types[-1][1]), {**added, **counted}, named_by


def _names(key: bytes) -> Callable[[Iterable[object]], UserName]:
    """Return a function that returns the keyed name of a user.

    A number is the same user as its text, as in files of other formats.
    """
    keyed_hash = hashlib.blake2b(key=key, digest_size=16, person=b"user")

    def name_of(cells: Iterable[object]) -> UserName:
        made = keyed_hash.copy()  # a copy costs half as much as a new keyed hash
        for cell in cells:
            part = cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "surrogatepass")
            made.update(len(part).to_bytes(8, "little") + part)
        return UserName(made.digest())

    return name_of


def _table(given: Given, key: bytes, number: int) -> tuple[Table, ItemType | None]:
    """Return the rows of a round as a table, and the type of their items if the column of items is a list.

    A list of users is read as text. A list of items has the type of the stream's items, or is text before the stream
    has one. If the stream was made for text, its cells of other types are left out.

    A user with more than l0 items counts for the same ones whenever the same rows are given for this round.
    """
    columns: Columns = {"user": given.user, "item": given.item, "progress": given.progress}  # type: ignore[typeddict-item]
    table = as_table(given.events, columns, caller=Histogram.from_table)._changed(
        secret=keyed(key, b"rows", number.to_bytes(8, "little"))
    )
    name, rows = table.item, table.data
    if not isinstance(name, str) or table.every is not None:
        raise ParameterError(
            "a stream counts items of one column: give the name of one column as item, and leave out every"
        )
    if table.unit != "user":
        raise ParameterError(
            "a stream has a unit of its own: make the Table without unit. A stream per event whose rounds are days "
            "protects a user in one day, if each row of the table names its user"
        )
    tables: list[Any] = [*rows] if isinstance(rows, list | tuple) else [rows]
    kinds = dict.fromkeys([table.user] if isinstance(table.user, str) else table.user, "text")
    kinds[name] = {"integer": "int64", "bytes": "binary"}.get(given.known or "", "text")
    read, is_listed = [], False
    for one in tables:
        lists: dict[str, Foreign] = {}
        for column, kind in kinds.items() if isinstance(one, dict) else ():
            if column in one and not is_value(one[column]):
                cells = list_of(one[column], f"column {column!r}")
                if cells is not None and column == name and given.declared == "text":
                    cells = [cell if isinstance(cell, str) else None for cell in cells]
                lists |= {} if cells is None else {column: cells_of_kind(cells, kind)}
        is_listed = is_listed or name in lists
        read.append(one | lists if lists else one)
    data = read if isinstance(rows, list | tuple) else read[0]
    return table._changed(data=data), (given.known or "text") if is_listed else None


def _kind(table: Table, found: object) -> ItemType:
    """Return the item type of a table whose column of items has this Arrow type name."""
    if not isinstance(found, str) or found not in _COLUMN_TYPES:
        raise SchemaError(f"the items of a stream are integers, text or bytes; cast the column {table.item!r} to text")
    return _COLUMN_TYPES[found]


def clipped_counts(events: object, l0: int, key: bytes, number: int, items: ItemType | None) -> dict[Item, int]:
    """Return the number of events with each item. An event counts for the `l0` items with the smallest keyed hashes.

    Items of another type than `items` are dropped. If it is None, cells of all types are read as text. An event that
    is a cell itself has one item, and one that cannot be read has none.
    """
    is_other = isinstance(events, str | Mapping) or is_bytes(events) or hasattr(events, "columns")
    if is_other or not hasattr(events, "__iter__") or getattr(events, "ndim", 1) == 0:
        raise ParameterError(
            "events must be a list with one list of items for each event; with a table give user and item, "
            "or give a Table"
        )
    priorities: dict[Item, bytes] = {}

    def priority(item: Item) -> bytes:
        if item not in priorities:
            priorities[item] = keyed(key, b"choice", number.to_bytes(8, "little") + _priority_bytes(item))
        return priorities[item]

    if isinstance(events, ma.MaskedArray):
        events = events.tolist()
    added: dict[Item, int] = {}
    known: set[Item] = set()
    for event in events:
        distinct = _distinct(event, items)
        if not distinct <= known:
            known.update(filter(can_be_released, distinct - known))
            distinct &= known
        for item in distinct if len(distinct) <= l0 else sorted(distinct, key=priority)[:l0]:
            added[item] = added.get(item, 0) + 1
    return added


def can_be_released(label: Item) -> bool:
    """Return whether a table counts a label, and an Arrow column holds it. Other labels are dropped.

    Integers need 64 bits at most, and text must be valid UTF-8. Text and bytes have a limit of length.
    """
    if isinstance(label, int):
        return _LEAST <= label <= _MOST
    try:
        return len(label if isinstance(label, bytes) else label.encode()) <= _core.LONGEST
    except UnicodeEncodeError:
        return False


def _distinct(event: Foreign, items: ItemType | None) -> set[Item]:
    """Return the distinct items of an event, none if it cannot be read."""
    if isinstance(event, str) or is_bytes(event) or not hasattr(event, "__iter__"):
        event = (event,)
    elif isinstance(event, Mapping):
        return set()
    is_plain = isinstance(event, list | tuple | set)  # the search for a library takes a microsecond
    if not is_plain and (kind := library(event)) in ("pandas", "polars", "pyarrow"):
        # Reading one cell that is not UTF-8 as text is an error, or a panic of polars that prints it.
        if kind == "pyarrow" and hasattr(event, "null_count"):
            event = of_pyarrow(event, "an event")
        elif kind == "polars" and hasattr(event, "null_count") and hasattr(event, "dtype"):
            event = of_polars(event, "an event")
        elif kind == "pandas" and is_backed_by_arrow(getattr(event, "dtype", None)):
            event = object_cells(event)
    if isinstance(event, ma.MaskedArray):
        event = event.tolist()
    try:
        if items is None:
            texts = {item if type(item) is str else text_of(item) for item in event}
            texts.discard(None)
            return texts  # type: ignore[return-value]
        known = (item for item in event if _is_of_type(item, items))
        return {item if type(item) in _PLAIN else _plain(item) for item in known}
    except Exception:  # an array without dimensions has `__iter__`, and an iterator may raise any error
        return set()


def _is_of_type(item: object, items: ItemType) -> bool:
    return isinstance(item, ITEM_TYPES[items]) and item is not True and item is not False


def _plain(item: Any) -> Item:
    """Return an item as a str, bytes or int."""
    return str(item) if isinstance(item, str) else bytes(item) if isinstance(item, bytes) else int(item)


def _priority_bytes(label: Item) -> bytes:
    """Return the bytes of a label that are hashed to order an event's items; the first byte stands for the type."""
    if isinstance(label, int):
        return b"i" + format(label, "x").encode()
    return b"t" + label.encode("utf-8", "surrogatepass") if isinstance(label, str) else b"b" + label
