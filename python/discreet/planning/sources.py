"""Public data that a plan runs mechanisms on: a shape, a public table, or public counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet import engines
from discreet.cached import cached_property
from discreet.engines.table import Columns, Table, as_table
from discreet.errors import ParameterError
from discreet.planning.shape import Shape
from discreet.privacy.validation import require_whole
from discreet.release.release import Release
from discreet.tables.user_items import UserItems, read_items
from discreet.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.engines.engine import Label
    from discreet.engines.projection import Names

__all__ = ["PublicCounts", "PublicData", "PublicShape", "PublicTable", "source_of"]


class PublicData:
    """Public data, which has no guarantee and needs none."""

    name: str
    """A description for texts."""
    users: int | None
    """The number of users, or None if it is not known."""
    _lists: UserItems | None = None
    _held: Table | None = None

    @property
    @abstractmethod
    def counts(self) -> NDArray[np.int64]:
        """The number of users of each item in descending order. The place of an item is its rank, from 0."""

    @abstractmethod
    def clipped(self, l0: int) -> NDArray[np.int64] | None:
        """Return the counts by rank with at most l0 items of each user, or None if the users are not known."""

    @abstractmethod
    def user_items(self) -> UserItems | None:
        """Return the items of every user, or None if they are not known, or too many."""

    @abstractmethod
    def rows(self) -> Table | None:
        """Return a table, or None if there is none."""

    def held(self) -> Table | None:
        """Return the table, read once, or None if there is none."""
        if self._held is None and (found := self.rows()) is not None:
            self._held = found._changed(data=engines.held(found, any_order=True))
        return self._held

    @property
    def drawn(self) -> NDArray[np.int64]:
        """The number of users of each item in the table, by rank."""
        return self.counts

    def ranks(self, items: Sequence[Label]) -> NDArray[np.int64]:
        """Return the ranks of released items."""
        return np.array(items, np.int64)

    def lost(self, l0: int | None) -> float:
        """Return the share of (user, item) pairs that is lost if at most l0 items of each user are counted."""
        kept = None if l0 is None else self.clipped(l0)
        return 0.0 if kept is None else 1 - float(kept.sum()) / max(1, int(self.counts.sum()))

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the items of users, which cannot be copied or pickled; they are read again."""
        return {**self.__dict__, "_lists": None, "_held": None}

    @property
    def unclipped_l0(self) -> int:
        """An l0 from which on clipping has no effect, if it is known."""
        return len(self.counts)


class PublicShape(PublicData):
    """A shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.name, self.users = shape, str(shape), shape.users
        self._table: dict[str, NDArray[np.int64]] | None = None
        self._lists: UserItems | None = None
        self._clipped: dict[int, NDArray[np.int64]] = {}

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The expected number of users of each item, computed when a forecast needs it."""
        return self.shape.counts()

    def clipped(self, l0: int) -> NDArray[np.int64]:
        """Return the counts by rank with at most l0 items of each user.

        A release chooses the items of each user at random, so the counts are binomial. Expected counts instead would
        name too few items: with l0=1, chance lifts many items over the threshold.
        """
        if l0 not in self._clipped:
            random = np.random.default_rng(l0)  # public data, so plans may repeat it
            kept = self.shape.expected(l0) / self.shape.expected(None)
            self._clipped[l0] = random.binomial(self.counts, kept.clip(0, 1))
        return self._clipped[l0]

    @property
    def drawn(self) -> NDArray[np.int64]:
        """The number of users of each item in the table, by rank."""
        self.rows()
        return self.counts if self._table is None else np.bincount(self._table["item"], minlength=self.shape.items)

    def lost(self, l0: int | None) -> float:
        """Return the share of pairs that is lost, without the rounding of counts."""
        return 0.0 if l0 is None else 1 - self.shape.kept_share(l0)

    def rows(self) -> Table | None:
        """Return the table of the shape, if it is not too large."""
        if not self.shape.makes_table:
            return None
        if self._table is None:
            self._table = self.shape.table()
        return Table(self._table, user="user", item="item")

    def user_items(self) -> UserItems | None:
        """Return the items of every user, if they are not too many."""
        found = self.rows()
        if self._lists is None and found is not None:
            self._lists = read_items(found)
        return self._lists


class PublicTable(PublicData):
    """A public table of (user, item) rows."""

    def __init__(self, data: object, columns: Columns) -> None:
        self._data, self._columns = data, columns  # plain values, so that a plan is pickled
        engines.require_rows_again(self.rows().data)
        found = engines.histogram(self.rows(), users=True)
        counts = np.asarray(found.counts)
        if not len(counts):
            raise ParameterError("the table has no pairs of a user and an item: give a public table with rows")
        order = np.argsort(-counts, kind="stable")
        self._counts, self.users = counts[order], found.users
        self._labels = {label: rank for rank, label in enumerate(found.labels.take(order))}
        self._clipped: dict[int, NDArray[np.int64]] = {}
        self._lists: UserItems | None = None
        self.name = f"the given public table: {counted(found.users or 0, 'user')}, {counted(len(counts), 'item')}"

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of users of each item."""
        return self._counts

    def ranks(self, items: Sequence[Label]) -> NDArray[np.int64]:
        """Return the ranks of released items."""
        return np.array([self._labels[item] for item in items], np.int64)

    def clipped(self, l0: int) -> NDArray[np.int64]:
        """Return the counts by rank with at most l0 items of each user, chosen as in a release."""
        if l0 not in self._clipped:
            found = engines.histogram(self.rows(), l0=l0)
            counts = np.zeros(len(self.counts), np.int64)
            counts[self.ranks(found.labels.to_list())] = np.asarray(found.counts)
            self._clipped[l0] = counts
        return self._clipped[l0]

    def user_items(self) -> UserItems:
        """Return the items of every user."""
        if self._lists is None:
            self._lists = read_items(self.rows())
        return self._lists

    def rows(self) -> Table:
        """Return the table."""
        return as_table(self._data, self._columns, caller=type(self))


class PublicCounts(PublicData):
    """Public counts alone, such as a release of last year."""

    def __init__(self, counts: list[int], users: int | None, name: str) -> None:
        found = np.sort(np.array([max(0, count) for count in counts], np.int64))[::-1]
        if not len(found) or not found[0]:
            raise ParameterError("like has no counts above zero: give counts, a table or a Shape")
        self._counts, self.users = found, None if users is None else max(users, int(found[0]))
        self.name = f"{name}: {counted(len(found), 'item')}"

    @property
    def counts(self) -> NDArray[np.int64]:
        """The counts."""
        return self._counts

    def clipped(self, l0: int) -> None:
        """Return None: counts do not tell how many items a user has."""

    def user_items(self) -> None:
        """Return None."""

    def rows(self) -> None:
        """Return None."""


def source_of(like: object, user: Names | None, item: Names | None) -> PublicData | None:
    """Return the public data that `like` names, or None if there is none.

    Raises:
        ParameterError: It is none of a Shape, a Release, counts by item, or a table with the names of its columns.
    """
    if (user is None) != (item is None):
        raise ParameterError.about("give {user:=} and {item:=} together: the names of the columns of the public table")
    if user is not None and item is not None:
        if like is None or isinstance(like, Shape | Release | Table):
            raise ParameterError.about(
                "{user:=} and {item:=} name the columns of a public table: give the table as {like:=}"
            )
        return PublicTable(like, {"user": user, "item": item})
    if isinstance(like, Table):
        return PublicTable(like, {})
    if like is None:
        return None
    if isinstance(like, Shape):
        return PublicShape(like)
    if isinstance(like, Release):
        if like.counts is None:
            raise ParameterError("like is a release without counts: give a release of counts, a table or a Shape")
        return PublicCounts(like.counts.tolist(), None if like.users is None else like.users[0], "the given release")
    if isinstance(like, Mapping) and all(isinstance(count, int | np.integer) for count in like.values()):
        return PublicCounts(
            [require_whole("a count", count, 0, 2**35) for count in like.values()], None, "the given counts"
        )
    raise ParameterError.about(
        "{like} takes a Shape, a Release of counts, a dict of counts by item, or a public table; a table needs "
        "{user:=} and {item:=}, the names of its columns"
    )
