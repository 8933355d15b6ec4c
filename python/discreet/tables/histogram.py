"""`Histogram`: the exact number of users of each item. SENSITIVE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, Unpack

import numpy as np

from discreet import _core, engines
from discreet.engines.engine import Label
from discreet.engines.frames import pair_columns, plain_column
from discreet.engines.memory import Memory
from discreet.engines.sums import rows_of_items
from discreet.engines.table import Columns, as_table
from discreet.errors import ItemTypeError, ParameterError
from discreet.privacy.arrays import whole_array
from discreet.privacy.guarantee import Sensitivity, Unit
from discreet.privacy.validation import require_flag, require_whole
from discreet.private import Private
from discreet.signatures import showing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["COUNT_LIMIT", "Histogram"]

_Rows = tuple[_core.Labels, _core.Counts]

COUNT_LIMIT = 2**35
"""The largest count that a histogram holds, above the number of people on earth."""


class Histogram(Private):
    """Items with exact counts, and the sensitivity of the counts.

    A histogram is as sensitive as its data. It has no length, no order and no repr that depends on the data. It cannot
    be copied or pickled, and only a mechanism reads it.

    Example:
        >>> import discreet as dp
        >>> dp.Histogram.from_pairs([1, 1, 2], ["a", "b", "a"], l0=2)
        Histogram(l0=2, linf=1, SENSITIVE)
    """

    _rows: _Rows
    """The rows in any order. Reading this attribute once gives labels and counts of the same order."""
    _sorted: _Rows | None
    """The largest counts by descending count, then by label, as many as were read in this order; None at first."""
    _limit: int | None
    _cap: int | None
    _below: int
    """The number by which counts are lowered: `least` - 1 of `from_counts`, and 0 otherwise."""
    _sensitivity: Sensitivity
    _clipped_to: int | None
    _users: int | None
    _every: str | None
    _unit: Unit

    def __init__(self) -> None:
        raise TypeError("use Histogram.from_table, Histogram.from_pairs or Histogram.from_counts")

    @classmethod
    @showing(Columns, unit="user")
    def from_table(
        cls,
        data: object,
        *,
        l0: int | None = None,
        k_bar: int | None = None,
        only: Sequence[str | int | bytes] | ArrayLike | None = None,
        cap: int | None = None,
        count_users: bool = False,
        linf: int = 1,
        **columns: Unpack[Columns],
    ) -> Histogram:
        """Count the distinct users of each item in a table of (user, item) rows, exactly.

        With a `linf` above 1 it counts rows, at most linf of each user for an item.

        Args:
            data: A `Table`, or the rows that a Table takes. A list is counted as one table, so a user in several of its
                tables counts once. Counting of Spark DataFrames and Ibis tables is pushed down.
            l0: Count at most l0 distinct items of each user, chosen uniformly. Threshold mechanisms need it.
            k_bar: Keep only the k_bar + 1 largest counts. Mechanisms with this k_bar read no other counts.
            only: Items that are known without the data. Other items are not counted, and do not use up a user's l0.
            cap: Stop each count at this number of users, for a mechanism that needs no more (its `cap`).
            count_users: Also count the users who have any counted item. `ConfirmedCounts` then releases more items.
            linf: The most rows of a user for an item that count: from 1 to 2^30. Above 1 the rows must be on this
                machine, and cap and count_users are not taken. Mechanisms need the same linf.
            **columns: The columns of rows.

        Returns:
            A Histogram.

        Raises:
            SchemaError: A column is missing or of another type.
            InputError: The data cannot be read.
            ParameterError: l0, k_bar or cap is below 1, or memory below 256 MiB.
            ResourceError: The folder for temporary files is full, or a Spark session has stopped.

        Example:
            >>> import discreet as dp
            >>> dp.Histogram.from_table({"user": [1, 1, 2], "page": ["a", "b", "a"]}, user="user", item="page", l0=1)
            Histogram(l0=1, linf=1, SENSITIVE)
        """
        table = as_table(data, columns, caller=cls.from_table)
        sensitivity = Sensitivity(l0=l0, linf=require_whole("linf", linf, 1, 2**30))
        require_flag("count_users", count_users)
        if sensitivity.linf > 1 and (cap is not None or count_users):
            raise ParameterError("a linf above 1 counts rows: leave out cap and count_users, which are about users")
        if k_bar is not None:
            k_bar = require_whole("k_bar", k_bar, 1)
        if cap is not None:
            cap = require_whole("cap", cap, 1, COUNT_LIMIT)
            if k_bar is not None:
                raise ParameterError(
                    "cap and k_bar exclude each other: counts that stop at cap have no k_bar largest; leave one out"
                )
        limit = None if k_bar is None else k_bar + 1
        if only is not None:
            only = plain_column(only, "only")
        if sensitivity.linf > 1:
            users = None
            labels, counts = rows_of_items(table, l0=sensitivity.l0, linf=sensitivity.linf, only=only)
        else:
            labels, counts, users = engines.histogram(
                table, l0=sensitivity.l0, limit=limit, cap=cap, only=only, users=count_users
            )
        # Nobody has more of the listed items than there are.
        is_clipped = only is None or sensitivity.l0 is None or sensitivity.l0 < len(only)  # type: ignore[arg-type]
        clipped_to = sensitivity.l0 if is_clipped else None
        return cls._of(labels, counts, sensitivity, limit, cap, clipped_to, users, every=table.every, unit=table.unit)

    @classmethod
    def from_pairs(
        cls,
        users: ArrayLike | Sequence[object],
        items: ArrayLike | Sequence[object],
        *,
        l0: int | None = None,
        count_users: bool = False,
        memory: int | str | None = None,
    ) -> Histogram:
        """Count the distinct users of each item in two arrays of equal length, exactly.

        Args:
            users: One user for each row: integers or text. A list has the type of most of its cells.
            items: One item for each row: integers or text. A pair in which either is missing or does not fit the type
                is dropped.
            l0: Count at most l0 distinct items of each user, chosen uniformly.
            count_users: Also count the users. `ConfirmedCounts` then releases more items.
            memory: Bytes, or text such as "2GB", that counting may use.

        Returns:
            A Histogram.

        Raises:
            SchemaError: An array is of another type.
            ParameterError: The arrays differ in length, or l0 is below 1.

        Example:
            >>> import discreet as dp
            >>> dp.Histogram.from_pairs([1, 1, 2], ["a", "b", "a"])
            Histogram(l0=None, linf=1, SENSITIVE)
        """
        sensitivity = Sensitivity(l0=l0, linf=1)
        require_flag("count_users", count_users)
        pair, room = pair_columns(users, items), Memory.of(memory).total
        labels, counts, found = _core.count_distinct(
            pair, "users", "items", l0=sensitivity.l0, memory=room, users=count_users
        )
        return cls._of(labels, counts, sensitivity, None, clipped_to=sensitivity.l0, users=found)

    @classmethod
    def from_counts(
        cls,
        items: Sequence[str | int | bytes] | ArrayLike,
        counts: ArrayLike,
        *,
        l0: SupportsIndex | None,
        linf: SupportsIndex,
        complete: bool,
        limit: SupportsIndex | None = None,
        least: SupportsIndex | None = None,
        users: SupportsIndex | None = None,
    ) -> Histogram:
        """Make a histogram of given counts. You must make sure that l0 and linf are true; discreet does not check it.

        Set `complete` according to the query that made the counts, never according to the number of rows that it
        returned, because a mechanism may reveal whether the rows ran out.

        Args:
            items: Distinct integers or strings.
            counts: Whole numbers from 0 to 2^35, one for each item.
            l0: The most counts that one user changes, all in one direction; None for any number.
            linf: The most that one user changes one count.
            complete: False if the query left out small counts. Without `least` it returned only the largest counts. The
                smallest count here is then the (k_bar+1)-th.
            limit: The number of counts that the query asked for, if it returned fewer; only with `complete=False`.
            least: If the query returned only counts of at least this number, and all of them; only with
                `complete=False`. Choose the number without the data. Thresholds and stop elements are then higher by
                least - 1 (Rogers 2023, Section 4.1). Smaller counts here are ignored.
            users: The exact number of distinct users in all counts, before the smallest counts were cut. With it
                `ConfirmedCounts` releases more items. If the number misses a counted user, the guarantee does not hold.
                It excludes `least`.

        Returns:
            A Histogram.

        Raises:
            ParameterError: An argument is of another type or out of range. The text does not show the value.

        Example:
            >>> import discreet as dp
            >>> dp.Histogram.from_counts(["a", "b"], [9000, 800], l0=None, linf=1, complete=True, users=9100)
            Histogram(l0=None, linf=1, SENSITIVE)
        """
        own_l0 = None if l0 is None else require_whole("l0", l0, 1)
        sensitivity = Sensitivity(l0=own_l0, linf=require_whole("linf", linf, 1))
        require_flag("complete", complete)
        labels = _core.Labels.from_sequence(plain_column(items, "items"))
        array = _whole_counts(counts)
        if limit is not None:
            limit = require_whole("limit", limit, 1)
        if len(array) != len(items):  # type: ignore[arg-type]
            raise ParameterError("items and counts must be equally long: give one count for each item")
        if limit is not None and (complete or limit < len(array)):
            raise ParameterError("limit needs complete=False, and must be at least the number of rows")
        if least is not None:
            least = require_whole("least", least, 1, COUNT_LIMIT)
            if complete or users is not None:
                raise ParameterError("least needs complete=False, and excludes users; leave one out")
        if users is not None:
            users = require_whole("users", users, 0, COUNT_LIMIT)
            if users < array.max(initial=0):
                raise ParameterError(
                    "users must be the number of users in any of the counts: at least the largest count"
                )
        kept = limit if complete or least is not None or limit is not None else len(array)
        return cls._of(labels, array, sensitivity, kept, users=users, below=(least or 1) - 1)

    @classmethod
    def _of(
        cls,
        labels: _core.Labels,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        limit: int | None,
        cap: int | None = None,
        clipped_to: int | None = None,
        users: int | None = None,
        below: int = 0,
        every: str | None = None,
        unit: Unit = "user",
    ) -> Histogram:
        """Return a histogram of labels and counts in any order.

        `limit` is the most counts to keep; the histogram stores it even if there are fewer counts. `clipped_to` is the
        most items of a user that were counted; None if all items were counted. `users` is the number of users; None if
        it is not known. `below` is subtracted from each count. Counts that would be negative become zero: the result
        has the same sensitivity, because the change of each count is not larger and has the same direction. `every` is
        the length of the periods of the items, and `unit` what counts as one user.
        """
        if below:
            counts = np.maximum(counts - below, 0)
        self = object.__new__(cls)
        cut = None if limit is None else _largest(labels, counts, limit)
        held = {
            "_rows": cut or (labels, _core.Counts(counts)),
            "_sorted": cut,
            "_limit": limit,
            "_cap": cap,
            "_below": below,
            "_sensitivity": sensitivity,
            "_clipped_to": clipped_to,
            "_users": users,
            "_every": every,
            "_unit": unit,
        }
        for name, value in held.items():
            object.__setattr__(self, name, value)
        return self

    @property
    def sensitivity(self) -> Sensitivity:
        """The most that one user can change in the counts."""
        return self._sensitivity

    @property
    def unit(self) -> Unit:
        """The unit that guarantees protect: what counts as one user."""
        return self._unit

    def _named(self, item_type: str | tuple[tuple[str, str], ...]) -> str | tuple[tuple[str, str], ...]:
        """Return the type of released items, with the names and types of this histogram's columns of items.

        A mechanism that makes labels of listed items knows no names. The schema of a table is public.
        """
        own = self._rows[0].type_name
        if isinstance(own, str):
            return item_type
        given = (("", item_type),) if isinstance(item_type, str) else item_type
        return own if len(given) == len(own) else item_type

    def _require_type_of(self, items: Sequence[Label]) -> None:
        """Raise ItemTypeError if items of these types cannot be in this histogram."""
        own, other = _kinds(self._rows[0].type_name), _kinds(_core.Labels.from_sequence([*items]).type_name)
        if [kind.replace("other", "string") for kind in own] != other:
            raise ItemTypeError("the listed items and the columns of items have different types; cast the items")

    def _in_order(self, number: int | None = None) -> tuple[_core.Labels, NDArray[np.int64]]:
        """Return labels and counts by descending count, then by label, so that no order of the input breaks ties.

        With `number`, only this many of the largest counts are needed; the result may have more rows. The first call
        sorts. At 6.3 million items this takes 2.4 CPU seconds, and counting them 0.3.
        """
        labels, counts = self._in_any_order()
        number = len(counts) if number is None else min(number, len(counts))
        found = self._sorted
        if found is None or len(found[1].array()) < number:
            found = _largest(labels, counts, number)
            object.__setattr__(self, "_sorted", found)
            if number == len(counts):
                # Free the memory of the unsorted rows.
                object.__setattr__(self, "_rows", found)
        return found[0], found[1].array()

    def _in_any_order(self) -> tuple[_core.Labels, NDArray[np.int64]]:
        """Return labels and counts in any order, which may depend on the data and on the timing of threads.

        The order may differ between calls, so a row number is valid only for the labels of the same call.
        """
        labels, exact = self._rows
        return labels, exact.array()

    def _for_noise(self, rng: _core.Rng) -> tuple[_core.Labels, NDArray[np.int64]]:
        """Return labels and counts for a mechanism that draws for each row alone, with the same law for equal counts.

        With a fresh stream any order gives the same law of the released set of rows (see
        docs/decisions/any-order.md). A seeded stream assigns draws to rows by their place. The rows are then sorted, so
        that equal tables give equal releases.
        """
        return self._in_order() if rng.is_seeded else self._in_any_order()

    @property
    def _labels(self) -> _core.Labels:
        """The labels, in the order of `_counts`."""
        return self._in_order()[0]

    def _counts(self) -> NDArray[np.int64]:
        """Return the counts, in descending order."""
        return self._in_order()[1]

    def _counts_of(self, items: Sequence[str | int | bytes]) -> NDArray[np.int64]:
        """Return the counts of these distinct items, zero for an item that is not in the histogram."""
        return _core.KnownLabels.from_sequence(list(items)).split(*self._in_any_order())[1]

    def __repr__(self) -> str:
        return f"Histogram(l0={self._sensitivity.l0}, linf={self._sensitivity.linf}, SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Histogram cannot be changed: make a new one")


def _kinds(item_type: str | tuple[tuple[str, str], ...]) -> list[str]:
    """Return the type of each column of items; "other" for dates, times and booleans, which are written as text."""
    kinds = [item_type] if isinstance(item_type, str) else [kind for _, kind in item_type]
    plain = {"int64": "integer", "uint64": "integer", "string": "string", "binary": "binary"}
    return [plain.get(kind, "other") for kind in kinds]


def _largest(labels: _core.Labels, counts: NDArray[np.int64], limit: int) -> _Rows:
    """Return the rows of the largest counts, by descending count, then by label."""
    rows = _core.top(labels, counts, limit)
    return labels.select(rows), _core.Counts(counts[rows])


def _whole_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Return the counts as int64, or raise ParameterError with a constant text."""
    array = whole_array(counts)
    if array is None or np.any((array < 0) | (array > COUNT_LIMIT)):
        raise ParameterError("counts must be whole numbers from 0 to 2^35, one for each item")
    return array.astype(np.int64)
