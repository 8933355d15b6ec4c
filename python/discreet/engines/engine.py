"""The interface of an engine, and functions that the remote engines share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from discreet import _core
from discreet.engines.projection import Period
from discreet.engines.table import Table
from discreet.errors import ItemTypeError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "MOST_STEPS",
    "PART",
    "Counted",
    "Counts",
    "Engine",
    "ItemFields",
    "Items",
    "Label",
    "Progress",
    "Weighed",
    "Weighting",
    "counted_from",
    "encoded",
    "fetched_labels",
    "labels",
    "labels_of",
    "listed",
    "require_no_period",
    "tag",
    "tallied",
    "with_weights",
]

Counts = tuple[_core.Labels, "NDArray[np.int64]"]
Label: TypeAlias = "str | int | bytes | tuple[str | int | bytes, ...]"
Items: TypeAlias = "Sequence[Label] | ArrayLike"
Fetched: TypeAlias = "list[Any]"
"""A column of the result of a query."""
Progress = Callable[[], None]
PART = 1 << 32
"""Sums of steps are added up in three parts: multiples of PART**2, of PART, and the rest.

Whatever the sign of a remainder is, a number less its remainder is a multiple of PART, so its quotient is exact. Sums
of parts fit into 64 bits unless one pair has 2^31 rows.
"""
MOST_STEPS = 1 << 61
"""The largest bound of a sum in steps."""


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """A method by which users weigh at most `l0` items each; see `_core.Lists.weights`."""

    method: str
    bits: int
    l0: int
    target: int = 1
    shared_order: bool = False
    full: int = 1
    """For "capped_squares": the most items that weigh one each."""

    @property
    def is_even(self) -> bool:
        """Whether a user's weights depend only on the number of their items, and not on other users."""
        return self.method in ("even", "even_squares", "capped_squares")

    @property
    def shares(self) -> list[int]:
        """For even methods: the weight of each item of a user who has 1, 2, ..., l0 items, in units of 2^-bits."""
        unit = 1 << self.bits
        if self.method == "even":
            return [unit // d for d in range(1, self.l0 + 1)]
        full = self.full if self.method == "capped_squares" else 1
        return [min(unit, math.isqrt(full * unit**2 // d)) for d in range(1, self.l0 + 1)]


class Counted(NamedTuple):
    """The result of counting."""

    labels: _core.Labels
    counts: NDArray[np.int64]
    users: int | None = None
    """The number of distinct users in any counted row; None if it was not requested or is not available."""


class Weighed(NamedTuple):
    """The weights of items, and the number of users from the same read of the rows."""

    labels: _core.Labels
    weights: NDArray[np.int64]
    users: int
    """The number of distinct users in any counted row, also of users without an item that weighs."""


class Engine(Protocol):
    """A module that counts tables of one kind in place, weighs their items, and adds up their values."""

    def histogram(
        self,
        table: Table,
        *,
        l0: int | None,
        limit: int | None,
        cap: int | None,
        only: Items | None,
        users: bool,
        tick: Progress | None,
        without: Sequence[Label] = (),
    ) -> Counted:
        """Count the distinct users of each item; return labels, and counts as int64, in no particular order.

        Rows with a NULL or with text that is not UTF-8 are dropped. The labels of several columns are encoded as in
        `rust/labels/composite.rs`.

        Args:
            table: The rows. `memory` is for counting on this machine; remote engines ignore it.
            l0: Count at most l0 items of each user, chosen uniformly: with new randomness in every call, unless the
                table has a `secret` key of the choice.
            limit: The number of largest counts that will be read, in the order of `_core.top`. An engine may omit the
                others.
            cap: An engine may stop each count at this number of users.
            only: Count only these items, and choose the l0 items of a user among them.
            users: Whether to count the users of all counted rows too, in the same scan, so that no counted user is
                missed.
            tick: A function that is called now and then.
            without: Items whose rows are removed first. Only remote engines take it.

        Raises:
            SchemaError: A column cannot hold users or items.
            InputError: The rows cannot be read.
            ResourceError: The session of the rows has stopped.
            ParameterError: The engine does not support a parameter.
        """

    def users_by_size(
        self, table: Table, *, most: int, without: Sequence[Label], apart: Sequence[Label], tick: Progress | None
    ) -> NDArray[np.int64]:
        """Return the number of users with 0, 1, ..., `most` and more items besides those set `apart`.

        The rows of the items in `without` are removed first. The numbers add up to the users of all other rows, also of
        users with items of `apart` alone. Errors are the same as in `histogram`.
        """

    def weighed(
        self,
        table: Table,
        *,
        weighting: Weighting,
        without: Sequence[Label],
        apart: Sequence[Label],
        tick: Progress | None,
        trial: bool = False,
    ) -> Weighed:
        """Return the weight of each item but those of `apart`, and the number of users, in one query.

        The weights are those that `_core.Lists.weights` computes. The items in `without` are removed first. At most
        `weighting.l0` of the other items of each user are then chosen as for counting, and weighed evenly. The engine
        must return every item with a weight, however small: a single user's items may pass a threshold, so an omission
        would reveal data. Errors are the same as in `histogram`.

        A user of whom all rows have items of `apart` is one of the users; rows of `without` are not counted. With
        `trial`, the query returns no row, and raises the errors of a query that the engine cannot make.
        """

    def clipped_sums(
        self,
        table: Table,
        *,
        items: Sequence[Label],
        bounds: tuple[int, int],
        resolution: float,
        shift: int,
        l0: int | None,
        tick: Progress | None,
    ) -> Counts:
        """Return the sum over users of their clipped sums for each of `items` that has a value, in no particular order.

        A user's values for an item are rounded to steps and added up exactly. This sum is clipped, and rounded toward
        zero to parts of 2^shift steps, as by `_core.Pairs`. Bounds are at most `MOST_STEPS`. At most `l0` of the listed
        items of each user count, chosen as for counting. No value may fail the query, because an error would reveal it.
        Errors are the same as in `histogram`.
        """


ItemFields: TypeAlias = tuple[tuple[str, str], ...]
"""The name and the type of each column of items."""
_TAGS = {"int64": "i", "uint64": "i", "string": "s", "binary": "b", "bool": "o", "date": "d"}


def require_no_period(period: Period | None) -> None:
    """Raise ParameterError if there is a period, which only this machine reads."""
    if period is not None:
        raise ParameterError(
            "a cluster or a warehouse does not read time, every, since and until: filter the table, add a column with "
            "the period of each row, and name it in item. For a unit such as user-day give the rows themselves, as "
            "toArrow() of Spark or to_pyarrow() of Ibis returns them"
        )


def tag(kind: str) -> str:
    """Return the letter of a type in labels of several columns; see `rust/labels/composite.rs`."""
    return _TAGS[kind]


def encoded(values: Sequence[Label], fields: ItemFields) -> list[bytes]:
    """Return items of several columns as labels of bytes.

    Raises:
        ItemTypeError: The items have other types, or another number of columns.
    """
    return [_encoded(value if isinstance(value, tuple) else (value,), fields) for value in values]


def _encoded(cells: tuple[str | int | bytes, ...], fields: ItemFields) -> bytes:
    kinds = {"int64": int, "uint64": int, "binary": bytes}
    if len(cells) != len(fields) or not all(
        isinstance(cell, kinds.get(kind, str)) for cell, (_, kind) in zip(cells, fields, strict=True)
    ):
        raise ItemTypeError("the listed items and the columns of items are of different types; cast the items")
    label = b""
    for cell, (_, kind) in zip(cells, fields, strict=True):
        raw = cell if isinstance(cell, bytes) else str(cell).encode()
        label += f"{_TAGS[kind]}{len(raw)}:".encode() + raw
    return label


def labels(values: Sequence[Label], kind: str) -> _core.Labels:
    """Return labels of the type `kind` (int64, uint64, string or binary), even if there are no values."""
    if kind in ("int64", "uint64"):
        return _core.Labels.from_sequence(np.asarray(values, kind))
    blank = "" if kind == "string" else b""
    return _core.Labels.from_sequence(values or [blank]).select(np.arange(len(values)))


def labels_of(values: Sequence[Label], kind: str | ItemFields) -> _core.Labels:
    """Return the labels of a column, or of several columns, from the values that `_core.Labels.take` returned."""
    return labels(values, kind) if isinstance(kind, str) else _core.Labels.of_encoded(encoded(values, kind), kind)


def fetched_labels(values: Fetched, kind: str | ItemFields) -> _core.Labels:
    """Return fetched items as labels. Items of several columns are encoded, as text or bytes."""
    if isinstance(kind, str):
        return labels(values, kind)
    return _core.Labels.of_encoded([cell.encode() if isinstance(cell, str) else cell for cell in values], kind)


def counted_from(columns: dict[str, Fetched], kind: str | ItemFields) -> Counted:
    """Return the result of `Engine.histogram` from its columns, which may have all `users`, or `first` to add up."""
    users = sum(columns["first"]) if "first" in columns else None
    users = max(columns["users"], default=0) if "users" in columns else users
    return Counted(fetched_labels(columns["item"], kind), np.asarray(columns["n"], np.int64), users)


def tallied(columns: dict[str, Fetched], most: int) -> NDArray[np.int64]:
    """Return the result of `Engine.users_by_size` from numbers `n` of users with `own` items; the last have more."""
    seen = np.zeros(most + 2, np.int64)
    seen[np.asarray(columns["own"], np.int64)] = columns["n"]
    return seen


def with_weights(columns: dict[str, Fetched], kind: str | ItemFields) -> Weighed:
    """Return the result of `Engine.weighed` from columns of all items, some of which have no weight."""
    weights = np.asarray(columns["weight"], np.int64)
    items = [item for item, weight in zip(columns["item"], weights, strict=True) if weight]
    return Weighed(fetched_labels(items, kind), weights[weights > 0], sum(columns["first"]))


def listed(only: Items, kind: str | ItemFields) -> list[Any]:
    """Return the listed items that a column of this type can hold, as Python values; those of several columns encoded.

    Raises:
        ItemTypeError: The items are of another type.
    """
    values: list[Any] = only.tolist() if isinstance(only, np.ndarray) else list(only)  # type: ignore[arg-type]
    if not isinstance(kind, str):
        return encoded(values, kind)
    given = str(_core.Labels.from_sequence(only).type_name)
    if values and given.removeprefix("u") != kind.removeprefix("u"):
        raise ItemTypeError("the listed items and the column of items are of different types; cast the items")
    if kind not in ("int64", "uint64"):
        return values
    held = np.iinfo(kind)
    return [value for value in values if held.min <= value <= held.max]
