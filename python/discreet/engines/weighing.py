"""The items of every user, for mechanisms that weigh them: on this machine, or pushed down to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet import _core
from discreet.engines import local
from discreet.engines.engine import (
    Counted,
    Counts,
    Engine,
    Items,
    Label,
    Progress,
    Weighed,
    Weighting,
    labels_of,
)
from discreet.engines.entropy import fresh_bits
from discreet.engines.table import Table
from discreet.errors import ParameterError
from discreet.private import Private
from discreet.progress import shown_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Counting", "Lists", "LocalLists", "RemoteCounting", "RemoteLists", "Rest", "Weighing"]

_ALL = 2**32
"""More items than any user has."""


class Weighing(Protocol):
    """One release's access to the items of every user: repeated weights of the items not yet released."""

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        """Return the weights of all items by row number, zero for an item without users or already released."""

    def name(self, rows: NDArray[np.int64]) -> None:
        """Exclude these rows of the last weights from further weights."""

    @property
    def named(self) -> _core.Labels:
        """The released items, in the order of their release."""


class Lists(Protocol):
    """The items of every user of a table."""

    def weighing(self, first: Weighting, *others: Weighting) -> Weighing:
        """Return access for one release, which begins with the first weights and continues with the others.

        All errors are raised here, before the budget is charged.

        Raises:
            ParameterError: The table does not support a weighting. The other errors are the same as in
                `Engine.weighed`.
        """


class Rest(Protocol):
    """The items of users besides those that are set apart.

    Each answer has the number of users of all rows from the same read, also of users with items set apart alone. So a
    number and the number of users that it is compared with never come from different states of a table.
    """

    def users_by_size(self, most: int) -> NDArray[np.int64]:
        """Return the number of users with 0, 1, ..., `most` and more other items."""

    def weighed(self, weighting: Weighting, rng: _core.Rng) -> Weighed:
        """Return the weights of the other items."""


class Counting(Protocol):
    """One release's access to counts, and to the other items of users."""

    def checked(self) -> Counting:
        """Return the same access, after all that may be refused. It is called before the budget is charged."""

    def ordered(self) -> Counting:
        """Return access for a seeded release, in an order that follows from the table if the engine can do so."""

    def counted(self) -> Counted:
        """Return all counts, and the number of users."""

    def public(self, items: Sequence[Label]) -> Counted:
        """Return at least the counts of public items, and the number of users of the counted rows."""

    def excluding(self, items: Sequence[Label]) -> Counting:
        """Return access to the rows without these items."""

    def rest(self, counted: Counted, rows: NDArray[np.int64]) -> Rest:
        """Return access to the items besides these rows of what `counted` returned."""


class LocalLists(Private):
    """The items of every user on this machine, in memory or in a temporary file."""

    def __init__(self, labels: _core.Labels, lists: _core.Lists) -> None:
        self._labels, self._lists = labels, lists

    @classmethod
    def read(cls, table: Table, *, l0: int | None, tick: Progress | None, any_order: bool = False) -> LocalLists:
        """Read tables of this machine, as `local.histogram` does, and keep at most `l0` items of each user.

        `any_order` is faster. Then the order of users depends on all rows: only even weights are independent of it.
        """

        def gather(sources: list[object], room: int) -> tuple[_core.Labels, _core.Lists]:
            return _core.Lists.read(
                sources,
                table.user,
                table.item,
                l0=l0,
                any_order=any_order,
                memory=room,
                times=table.period,
                progress=tick,
            )

        return cls(*local.read(table, gather))

    def histogram(self, *, l0: int | None, only: Items | None, users: bool, secret: bytes | None = None) -> Counted:
        """Count the distinct users of each item; see `Engine.histogram`."""
        key = np.frombuffer(secret or fresh_bits(32), np.uint64).tolist()
        counts, number = self._lists.count(self._labels, key, l0=l0, only=local.listed_labels(only))
        rows = np.flatnonzero(counts)
        return Counted(self._labels.select(rows), counts[rows], number if users else None)

    def sizes(self, only: Sequence[Label] | None = None) -> NDArray[np.int64]:
        """Return the number of items of each user who has any, or any in `only`."""
        lists = self._lists
        if only is not None:
            others = np.delete(np.arange(self._labels.items()), self._rows(only))
            lists = lists.bounded(_ALL, others, [0, 0, 0, 0])
        sizes = lists.sizes()
        return sizes[sizes > 0]

    def _rows(self, items: Sequence[Label]) -> NDArray[np.int64]:
        """Return the numbers of those of the items that any user has."""
        numbers = np.arange(1, self._labels.items() + 1)
        found = _core.KnownLabels.from_sequence([*items]).split(self._labels, numbers)[1]
        return found[found > 0] - 1

    @property
    def labels(self) -> _core.Labels:
        """The labels of all items, by number."""
        return self._labels

    def counted(self) -> Counted:
        """Return all labels and their counts, by number, and the number of users."""
        counts, users = self._lists.count(self._labels, [0, 0, 0, 0])
        return Counted(self._labels, counts, users)

    def checked(self) -> LocalLists:
        """Return these lists, of which nothing is refused later."""
        return self

    def public(self, items: Sequence[Label]) -> Counted:
        """Return all counts, and the number of users of all rows."""
        return self.counted()

    def without(self, rows: NDArray[np.int64]) -> LocalLists:
        """Return the lists without the items of these numbers; the other items keep their numbers."""
        return LocalLists(self._labels, self._lists.bounded(_ALL, rows, [0, 0, 0, 0]))

    def excluding(self, items: Sequence[Label]) -> LocalLists:
        """Return the lists without these items; the other items keep their numbers."""
        return self.without(self._rows(items))

    def rest(self, counted: Counted, rows: NDArray[np.int64]) -> Rest:
        """Return access to the items besides those of these numbers."""
        return _LocalRest(counted.users or 0, self.without(rows))

    def ordered(self) -> LocalLists:
        """Return the lists with sorted items, so that equal tables of integer users give equal seeded releases."""
        every = np.arange(self._labels.items())
        labels, order = self._labels.ordered(every, np.zeros_like(every))
        return LocalLists(labels, self._lists.ordered(order, sort_items=True))

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        """Return the weights of all items by number, from at most `weighting.l0` items of each user."""
        key = rng.words(8).view(np.uint64).tolist()
        kept = self._lists.bounded(weighting.l0, np.zeros(0, np.int64), key)
        return kept.weights(weighting.method, weighting.bits, few=weighting.full)

    def weighing(self, first: Weighting, *others: Weighting) -> Weighing:
        """Return access for one release."""
        return _LocalWeighing(self._labels, self._lists)


class _LocalWeighing(Private):
    def __init__(self, labels: _core.Labels, lists: _core.Lists) -> None:
        self._labels, self._lists = labels, lists
        self._named = np.zeros(0, np.int64)
        self._is_sorted = False

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        if rng.is_seeded and not self._is_sorted:
            self._sort()
        key = rng.words(8).view(np.uint64).tolist()
        bounded = self._lists.bounded(weighting.l0, self._named, key, shared_order=weighting.shared_order)
        return bounded.weights(weighting.method, weighting.bits, target=weighting.target)

    def _sort(self) -> None:
        """Sort items by label, and users too if they are integers, so that equal tables give equal seeded releases."""
        every = np.arange(self._labels.items())
        self._labels, order = self._labels.ordered(every, np.zeros_like(every))
        self._lists = self._lists.ordered(order)
        self._is_sorted = True

    def name(self, rows: NDArray[np.int64]) -> None:
        self._named = np.concatenate([self._named, rows])

    @property
    def named(self) -> _core.Labels:
        return self._labels.select(self._named)


class _LocalRest(Private):
    def __init__(self, users: int, rest: LocalLists) -> None:
        self._users, self._rest = users, rest

    def users_by_size(self, most: int) -> NDArray[np.int64]:
        sizes = self._rest.sizes()
        seen = np.bincount(np.minimum(sizes, most + 1), minlength=most + 2)
        seen[0] = self._users - len(sizes)
        return seen

    def weighed(self, weighting: Weighting, rng: _core.Rng) -> Weighed:
        return Weighed(self._rest.labels, self._rest.weights(weighting, rng), self._users)


class RemoteCounting(Private):
    """Access to the counts of a table of a cluster or a warehouse, which a query reads again for every answer."""

    def __init__(self, engine: Engine, table: Table, without: Sequence[Label] = ()) -> None:
        self._engine, self._table, self._without = engine, table, [*without]
        self._counted: Counted | None = None

    def checked(self) -> RemoteCounting:
        """Return the same access, after the first query and a trial of the later ones."""
        kind = self.counted().labels.type_name
        extremes: dict[object, Label] = {"int64": -(2**63), "uint64": 2**64 - 1, "string": "a"}
        apart = [extremes[kind]] if kind in extremes else []
        _RemoteRest(self._engine, self._table, self._without, apart).try_weights()
        return self

    def ordered(self) -> RemoteCounting:
        """Return the same access: the order of the rows and the choice of items are the engine's."""
        return self

    def counted(self) -> Counted:
        """Return all counts, and the number of users of the counted rows."""
        if self._counted is None:
            self._counted = self._histogram(only=None, without=self._without)
        return self._counted

    def public(self, items: Sequence[Label]) -> Counted:
        """Return the counts of these items, and the number of users of any of them."""
        return self._histogram(only=[*items], without=())

    def _histogram(self, only: Sequence[Label] | None, without: Sequence[Label]) -> Counted:
        with shown_progress(self._table.progress) as tick:
            return self._engine.histogram(
                self._table, l0=None, limit=None, cap=None, users=True, tick=tick, only=only, without=without
            )

    def excluding(self, items: Sequence[Label]) -> RemoteCounting:
        """Return access to the rows without these items."""
        return RemoteCounting(self._engine, self._table, [*self._without, *items])

    def rest(self, counted: Counted, rows: NDArray[np.int64]) -> Rest:
        """Return access to the items besides these rows of what `counted` returned."""
        return _RemoteRest(self._engine, self._table, self._without, counted.labels.take(rows))


class _RemoteRest(Private):
    def __init__(self, engine: Engine, table: Table, without: Sequence[Label], apart: Sequence[Label]) -> None:
        self._engine, self._table = engine, table
        self._without, self._apart = without, apart

    def users_by_size(self, most: int) -> NDArray[np.int64]:
        with shown_progress(self._table.progress) as tick:
            return self._engine.users_by_size(
                self._table, most=most, without=self._without, apart=self._apart, tick=tick
            )

    def weighed(self, weighting: Weighting, rng: _core.Rng) -> Weighed:
        with shown_progress(self._table.progress) as tick:
            return self._weighed(weighting, tick)

    def try_weights(self) -> None:
        """Raise the errors of a query for weights that the engine cannot make, without reading rows."""
        first = Weighting(method="capped_squares", bits=0, l0=1)
        self._weighed(first, None, trial=True)

    def _weighed(self, weighting: Weighting, tick: Progress | None, *, trial: bool = False) -> Weighed:
        return self._engine.weighed(
            self._table, weighting=weighting, without=self._without, apart=self._apart, tick=tick, trial=trial
        )


class RemoteLists(Private):
    """The items of every user in a table of a cluster or a warehouse, which weighs them again for every release."""

    def __init__(self, engine: Engine, table: Table) -> None:
        self._engine, self._table = engine, table

    def weighing(self, first: Weighting, *others: Weighting) -> Weighing:
        """Return access for one release, after computing its first weights."""
        if not all(weighting.is_even for weighting in (first, *others)):
            raise ParameterError(
                "with this method a user's weights depend on other users, which needs the rows on this machine; on a "
                'cluster or a warehouse use "weighted_gaussian", "weighted_laplace" or "dp_sips"'
            )
        if any(weighting.shared_order for weighting in (first, *others)):
            raise ParameterError("a cluster or a warehouse does not support shared_order; leave it out")
        return _RemoteWeighing(self, first)

    def weigh(self, weighting: Weighting, named: Sequence[Label]) -> Counts:
        """Return the weights of all items except the released ones."""
        with shown_progress(self._table.progress) as tick:
            return self._engine.weighed(self._table, weighting=weighting, without=named, apart=(), tick=tick)[:2]


class _RemoteWeighing(Private):
    def __init__(self, lists: RemoteLists, first: Weighting) -> None:
        self._lists = lists
        self._first: Weighting | None = first
        self._labels, self._weights = lists.weigh(first, [])
        self._named: list[Label] = []

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        if weighting != self._first:
            self._labels, self._weights = self._lists.weigh(weighting, self._named)
        self._first = None
        return self._weights

    def name(self, rows: NDArray[np.int64]) -> None:
        self._named += self._labels.take(rows)

    @property
    def named(self) -> _core.Labels:
        return labels_of(self._named, self._labels.type_name)
