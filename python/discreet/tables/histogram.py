"""`Histogram`: how many users have each item. SENSITIVE: it is exact and shows nothing of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from discreet import _core, engines
from discreet.engines.frames import plain_column
from discreet.engines.memory import Memory
from discreet.errors import ParameterError
from discreet.privacy.guarantee import Sensitivity
from discreet.privacy.validation import require_flag, require_whole
from discreet.private import Private

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["COUNT_LIMIT", "Histogram"]

COUNT_LIMIT = 2**35
"""The largest count that a histogram holds: more users than there are people."""


class Histogram(Private):
    """Items with exact counts, in descending order, and what one user can change in them.

    A histogram is as private as the data it was made of. It has no length, no order and no repr that
    depends on the data, it cannot be copied or pickled, and only a mechanism reads it.
    """

    _labels: _core.Labels
    _exact: _core.Counts
    _limit: int | None
    _cap: int | None
    _sensitivity: Sensitivity
    _clipped_to: int | None
    _users: int | None

    def __init__(self) -> None:
        raise TypeError("use Histogram.from_table, Histogram.from_pairs or Histogram.from_counts")

    @classmethod
    def from_table(
        cls,
        data: Any,
        *,
        user: str,
        item: str,
        l0: int | None = None,
        k_bar: int | None = None,
        only: Sequence[str | int | bytes] | ArrayLike | None = None,
        cap: int | None = None,
        count_users: bool = False,
        memory: int | str | None = None,
        progress: Callable[[], None] | None = None,
    ) -> Histogram:
        """Count the distinct users of each item in a table of (user, item) rows, exactly.

        Args:
            data: A path or glob of Parquet or CSV files, a frame or relation with `__arrow_c_stream__` (polars, pandas,
                pyarrow, DuckDB), a dict of two equally long arrays, or a list of these, counted as one table: a user
                who is in several counts once. Spark DataFrames and Ibis tables are counted where their rows are.
            user: The name of the column of users: integers or text.
            item: The name of the column of items: integers or text. A row with a NULL in either column is dropped.
            l0: Count at most l0 distinct items of each user, chosen uniformly, as threshold mechanisms need it.
            k_bar: Keep only the k_bar + 1 largest counts. A mechanism never looks further, whether or not there are
                more.
            only: Items that are known without the data. Other items are not counted and take up no place among a
                user's l0.
            cap: Stop each count at this number of users, for a mechanism that needs no more (`OptimalSelection.cap`).
            count_users: Also find the number of users of any counted item, from which `ConfirmedCounts` gains most.
            memory: Bytes, or text such as "2GB", that counting may use beside the data and the histogram; half of what
                the machine allows by default. Rows that do not fit are spilled to encrypted temporary files without a
                name.
            progress: Called now and then, without a number: how many rows there are is not public.

        Returns:
            A Histogram.

        Raises:
            SchemaError: A column is missing or of another type.
            InputError: The data cannot be read.
            ParameterError: l0, k_bar or cap is below 1, or memory below 256 MiB.
            ResourceError: The folder for temporary files is needed and full, or a Spark session is gone.

        Example:
            >>> import discreet as dp
            >>> dp.Histogram.from_table({"user": [1, 1, 2], "page": ["a", "b", "a"]}, user="user", item="page", l0=1)
            Histogram(l0=1, linf=1, SENSITIVE)
        """
        sensitivity = Sensitivity(l0=l0, linf=1)
        require_flag("count_users", count_users)
        if k_bar is not None:
            k_bar = require_whole("k_bar", k_bar, 1)
        if cap is not None:
            cap = require_whole("cap", cap, 1, COUNT_LIMIT)
            if k_bar is not None:
                raise ParameterError("counts that stop at cap have no k_bar largest; leave one of the two out")
        limit = None if k_bar is None else k_bar + 1
        wanted: Any = {"l0": sensitivity.l0, "limit": limit, "cap": cap, "only": only, "users": count_users}
        labels, counts, users = engines.histogram(data, user, item, **wanted, memory=memory, progress=progress)
        return cls._of(labels, counts, sensitivity, limit, cap, sensitivity.l0, users)

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
        """Count the distinct users of each item in two equally long arrays of integers or text, exactly.

        Args:
            users: One user for each row.
            items: One item for each row. A pair in which either is None is dropped.
            l0: Count at most l0 distinct items of each user, chosen uniformly.
            count_users: Also find the number of users, from which `ConfirmedCounts` gains most.
            memory: Bytes, or text such as "2GB", that counting may use.

        Returns:
            A Histogram.

        Raises:
            SchemaError: An array is of another type, or of mixed types.
            ParameterError: The arrays are not equally long, or l0 is below 1.

        Example:
            >>> import discreet as dp
            >>> dp.Histogram.from_pairs([1, 1, 2], ["a", "b", "a"])
            Histogram(l0=None, linf=1, SENSITIVE)
        """
        sensitivity = Sensitivity(l0=l0, linf=1)
        require_flag("count_users", count_users)
        pair, room = (plain_column(users), plain_column(items)), Memory.of(memory).total
        found: int | None = None
        if count_users:
            labels, counts, found = _core.count_with_users(pair, "", "", l0=sensitivity.l0, memory=room)
        else:
            labels, counts = _core.count_pairs(*pair, l0=sensitivity.l0, memory=room)
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
        users: SupportsIndex | None = None,
    ) -> Histogram:
        """Take counts that were made elsewhere, on the caller's word for what one user can change.

        Whether a table is complete must follow from the query that made it, never from how many rows came back.
        Mechanisms stop at the limit, and where they stop is published.

        Args:
            items: Distinct integers or strings.
            counts: Whole numbers from 0 to 2^35, one for each item.
            l0: The most counts that one user changes, all in one direction; None for any number.
            linf: The most that one user changes one count.
            complete: False if only the largest counts were asked for, so that the smallest one here is the
                (k_bar+1)-th.
            limit: How many counts were asked for, if fewer came back; with `complete=False` alone.
            users: The exact number of distinct users in any of the counts, before the smallest were cut.
                `ConfirmedCounts` gains most from it. A number that misses one user who is counted voids the guarantee.

        Returns:
            A Histogram.

        Raises:
            ParameterError: An argument is of another type or out of range. The text does not show the value.

        Example:
            >>> import discreet as dp
            >>> dp.Histogram.from_counts(["a", "b"], [9000, 800], l0=None, linf=1, complete=True, users=9100)
            Histogram(l0=None, linf=1, SENSITIVE)
        """
        sensitivity = Sensitivity(l0=l0, linf=linf)  # type: ignore[arg-type]
        require_flag("complete", complete)
        labels = _core.Labels.from_sequence(plain_column(items))
        array = _whole_counts(counts)
        if limit is not None:
            limit = require_whole("limit", limit, 1)
        if len(array) != len(items):  # type: ignore[arg-type]
            raise ParameterError("items and counts must be equally long")
        if limit is not None and (complete or limit < len(array)):
            raise ParameterError("limit goes with complete=False and is at least the number of rows")
        if users is not None:
            users = require_whole("users", users, 0, COUNT_LIMIT)
            if users < array.max(initial=0):
                raise ParameterError("users is the number of users in any of the counts: at least the largest count")
        return cls._of(labels, array, sensitivity, None if complete else limit or len(array), users=users)

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
    ) -> Histogram:
        """Sorts by count, then by label, one order for all, so that ties never depend on the input.

        A `limit` keeps so many rows and is remembered even where there are fewer. `clipped_to` is the most items of a
        user that were counted, None where all were. `users`: how many there are, None where that is not known.
        """
        rows = _core.top(labels, counts, len(counts) if limit is None else limit)
        self = object.__new__(cls)
        held = {
            "_labels": labels.select(rows),
            "_exact": _core.Counts(counts[rows]),
            "_limit": limit,
            "_cap": cap,
            "_sensitivity": sensitivity,
            "_clipped_to": clipped_to,
            "_users": users,
        }
        for name, value in held.items():
            object.__setattr__(self, name, value)
        return self

    @property
    def sensitivity(self) -> Sensitivity:
        """What one user can change in the counts."""
        return self._sensitivity

    def _counts(self) -> NDArray[np.int64]:
        """Return the counts, in descending order."""
        return self._exact.array()

    def _counts_of(self, items: Sequence[object]) -> NDArray[np.int64]:
        """The counts of these items, zero where there is none."""
        exact = self._counts()
        rows = np.flatnonzero(exact)
        counts = dict(zip(self._labels.take(rows), exact[rows].tolist(), strict=True))
        return np.array([counts.get(item, 0) for item in items], np.int64)

    def __repr__(self) -> str:
        return f"Histogram(l0={self._sensitivity.l0}, linf={self._sensitivity.linf}, SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Histogram is not edited")


def _whole_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """The counts as int64, or ParameterError with a constant text."""
    error = ParameterError("counts must be whole numbers from 0 to 2^35, one for each item")
    try:
        array = np.asarray(counts)
        if array.size == 0:
            array = array.astype(np.int64)
        legal = array.ndim == 1 and array.dtype.kind in "iu" and bool(np.all((array >= 0) & (array <= COUNT_LIMIT)))
    except (TypeError, ValueError, OverflowError):
        raise error from None
    if not legal:
        raise error
    return array.astype(np.int64)
