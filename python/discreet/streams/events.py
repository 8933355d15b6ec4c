"""Counting the events of a round by item, with at most l0 items of each event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy import ma

from discreet import _core, engines
from discreet.engines.frames import library
from discreet.engines.local import read
from discreet.engines.pandas_columns import is_missing, object_cells
from discreet.engines.table import Table, as_table
from discreet.engines.typed_arrays import Foreign, is_backed_by_arrow, of_polars, of_pyarrow
from discreet.errors import ParameterError, ResourceError, SchemaError
from discreet.privacy.validation import is_bytes, require_choice
from discreet.progress import shown_progress
from discreet.streams.seal import Item, UserColumns, UserName, keyed
from discreet.tables.histogram import Histogram

__all__ = [
    "EMPTY_TYPES",
    "ITEM_TYPES",
    "ItemType",
    "Limit",
    "can_be_released",
    "clipped_counts",
    "column_type",
    "counts_by_item",
    "counts_by_user",
    "require_item_type",
    "type_of",
]

ItemType = Literal["text", "integer", "bytes"]
"""The type of a stream's items."""
ITEM_TYPES: dict[ItemType, tuple[type, ...]] = {"text": (str,), "integer": (int, np.integer), "bytes": (bytes,)}
"""The Python types of each item type."""
EMPTY_TYPES: dict[ItemType | None, str] = {"integer": "int64", "bytes": "binary"}
"""The Arrow type of the items in a release without rows, unless it is text."""
_COLUMN_TYPES: dict[str, ItemType] = {"string": "text", "int64": "integer", "uint64": "integer", "binary": "bytes"}
_ONE_NAME = {"int64": "numbers or text", "string": "numbers or text", "uint64": "numbers or text"}
"""Arrow types whose cells name the same user if they have the same text."""
_PAIR_BYTES = 500
"""Bytes that a user with an item takes while a round is counted."""
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


def counts_by_item(
    events: object,
    user: str | None,
    item: str | None,
    l0: int,
    key: bytes,
    number: int,
    declared: ItemType | None,
    progress: Callable[[], None] | None,
) -> tuple[ItemType | None, dict[Item, int]]:
    """Return the type of a round's items and the number of events with each. A table has a type even when empty."""
    if not isinstance(events, Table) and user is None and item is None:
        added = clipped_counts(events, l0, key, number, declared)
        kind = declared or next(map(type_of, added), None)
    elif not isinstance(events, Table) and (user is None or item is None):
        raise ParameterError("give both user and item with a table, or neither with lists of items")
    else:
        table = _table(events, user, item, declared, progress)
        labels, counts = Histogram.from_table(table, l0=l0)._in_order()
        added = dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
        kind = _kind(table, labels.type_name, not added)
    return kind, {label: count for label, count in added.items() if can_be_released(label)}


class Limit(NamedTuple):
    """The key that names users, the most rounds of a user, and a function that returns the rounds of users so far."""

    key: bytes
    rounds: int
    rounds_of: Callable[[list[UserName]], list[int]]


def counts_by_user(
    events: object,
    user: str | None,
    item: str | None,
    l0: int,
    limit: Limit,
    declared: ItemType | None,
    progress: Callable[[], None] | None,
) -> tuple[ItemType | None, dict[Item, int], UserColumns | None]:
    """Return the type of a table's items, the number of users with each and one round for each of these users.

    Users who were counted in all rounds of the limit are left out, and of others at most `l0` items are counted. Also
    return the columns that name users, or None for a table without rows.
    """
    if not isinstance(events, Table) and (user is None or item is None):
        raise ParameterError("this stream counts the rounds of users: give a table, with user and item")
    table = _table(events, user, item, declared, progress)
    if not engines.rows_here(table.data):
        raise ParameterError(
            "this stream counts the rounds of users, and needs the rows on this machine: give the table as toArrow() "
            "of Spark or to_pyarrow() of Ibis returns it"
        )
    users = [table.user] if isinstance(table.user, str) else [*table.user]
    with shown_progress(table.progress) as tick:

        def pairs(sources: list[object], room: int) -> _core.Labels:
            columns, times = [*users, str(table.item)], table.period
            made = _core.count_distinct(sources, table.user, columns, l0=l0, memory=room, times=times, progress=tick)
            if made[0].items() * _PAIR_BYTES > room:
                raise ResourceError(
                    "the users of this round need more memory than the table may take; raise its memory, or take "
                    "shorter rounds"
                )
            return made[0]

        labels = read(table, pairs)
    types = labels.type_name
    assert not isinstance(types, str)
    kept: dict[UserName, list[Item]] = {}
    name_of = _names(limit.key)
    for first in range(0, labels.items(), _AT_ONCE):
        for *cells, label in labels.take(np.arange(first, min(first + _AT_ONCE, labels.items()))):
            if can_be_released(label):
                kept.setdefault(name_of(cells), []).append(label)
    kind = _kind(table, types[-1][1], not labels.items())
    names = [name for name, done in zip(kept, limit.rounds_of([*kept]), strict=True) if done < limit.rounds]
    added: dict[Item, int] = {}
    for label in chain.from_iterable(kept[name] for name in names):
        added[label] = added.get(label, 0) + 1
    keyed_by = tuple((name, _ONE_NAME.get(found, found)) for name, found in types[:-1])
    return kind, {**added, **dict.fromkeys(names, 1)}, keyed_by if labels.items() else None


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


def _table(
    events: object, user: str | None, item: str | None, declared: ItemType | None, progress: Callable[[], None] | None
) -> Table:
    """Return the rows of a round, without items of another type than the declared one."""
    columns: Any = {"user": user, "item": item, "progress": progress}
    table = as_table(events, columns, caller="step")
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
    if declared is not None and isinstance(rows, dict) and name in rows:
        return table._changed(data={**rows, name: _declared_cells(rows[name], declared)})
    return table


def _kind(table: Table, found: object, is_empty: bool) -> ItemType | None:
    """Return the item type of a table whose column of items has this Arrow type name."""
    if not isinstance(found, str) or found not in _COLUMN_TYPES:
        raise SchemaError(f"the items of a stream are integers, text or bytes; cast the column {table.item!r} to text")
    return column_type(found, table.data if is_empty else None, str(table.item))


def column_type(name: str, empty: object, column: str) -> ItemType | None:
    """Return the item type of a column with this Arrow type name; None for an empty list, which has no type.

    `empty` is the table if the table has no rows, and None otherwise.
    """
    if isinstance(empty, dict) and _is_list(empty[column]):
        return None
    return _COLUMN_TYPES[name]


def clipped_counts(events: object, l0: int, key: bytes, number: int, items: ItemType | None) -> dict[Item, int]:
    """Return the number of events with each item. An event counts for the `l0` items with the smallest keyed hashes.

    A missing event or item is dropped. If `items` is given, so are items of another type, and events that are no lists
    or cannot be read, unless no event is a list. If `items` is None, all events must be lists, and all items must have
    the same type.
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
    kinds: set[type] = set()
    has_list, has_other = False, False
    for event in events:
        distinct = _distinct(event, items)
        if distinct is None:
            has_other = has_other or not is_missing(event)
            if has_other and items is None:
                break
            continue
        has_list = True
        if items is None and not kinds.issuperset(map(type, distinct)):
            distinct = {item for item in distinct if not is_missing(item)}
            kinds.update(map(type, distinct))
            _require_one_kind(kinds)
        if not kinds <= _PLAIN:
            distinct = set(map(_plain, distinct))
        if not distinct <= known:
            known.update(filter(can_be_released, distinct - known))
            distinct &= known
        for item in distinct if len(distinct) <= l0 else sorted(distinct, key=priority)[:l0]:
            added[item] = added.get(item, 0) + 1
    if has_other and (items is None or not has_list):
        raise ParameterError("each event must be a list of items: text, integers or bytes")
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


def _distinct(event: Foreign, items: ItemType | None) -> set[Item] | None:
    """Return the distinct items of an event, or None if it is no list of items that can be read."""
    if isinstance(event, str | Mapping) or is_bytes(event) or not hasattr(event, "__iter__"):
        return None
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
        if items is not None:
            known = (item for item in event if _is_of_type(item, items))
            return {item if type(item) in _PLAIN else _plain(item) for item in known}
        distinct = set(event)
    except Exception:  # an array without dimensions has `__iter__`, and an iterator may raise any error
        return None
    distinct.discard(None)
    return distinct


def _is_of_type(item: object, items: ItemType) -> bool:
    return isinstance(item, ITEM_TYPES[items]) and item is not True and item is not False


def _declared_cells(column: Foreign, items: ItemType) -> Foreign:
    """Return a list or an array of objects with None for cells of another type, unless no cell has the type.

    Items that no table counts become None too: an integer beyond 64 bits would be an error for all rows.
    """
    if not _is_list(column):
        return column
    cells = [cell if _is_of_type(cell, items) else None for cell in column]
    if all(cell is None for cell in cells):
        return column
    return [cell if cell is None or can_be_released(_plain(cell)) else None for cell in cells]


def _is_list(column: Foreign) -> bool:
    """Return whether cells have types of their own. Objects of pandas are text."""
    is_typed = library(column) in ("pandas", "polars", "pyarrow")
    return not is_typed and getattr(getattr(column, "dtype", None), "kind", "O") == "O"


def _plain(item: Any) -> Item:
    """Return an item as a str, bytes or int."""
    return str(item) if isinstance(item, str) else bytes(item) if isinstance(item, bytes) else int(item)


def _require_one_kind(kinds: set[type]) -> None:
    """Raise SchemaError unless all items are text, all are whole numbers or all are bytes."""
    if len(kinds) > 1 or not kinds <= _PLAIN:
        one = [next((k for k in (str, bytes, np.integer, int) if issubclass(kind, k)), None) for kind in kinds]
        names = {int if kind is np.integer else kind for kind in one}
        if len(names) > 1 or None in names or bool in kinds:
            raise SchemaError(
                "items must be all text, all integers or all bytes; a stream started with items= drops the others"
            )


def _priority_bytes(label: Item) -> bytes:
    """Return the bytes of a label that are hashed to order an event's items; the first byte stands for the type."""
    if isinstance(label, int):
        return b"i" + format(label, "x").encode()
    return b"t" + label.encode("utf-8", "surrogatepass") if isinstance(label, str) else b"b" + label
