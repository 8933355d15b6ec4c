"""The items of every user, which give them weights: read to this machine, or left where a cluster weighs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from discreet import _core
from discreet.engines import local
from discreet.engines.engine import Counts, Engine, Progress, Weighting, labels
from discreet.engines.memory import drawn
from discreet.errors import ParameterError
from discreet.private import Private

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Elsewhere", "Here", "Lists", "Weighing"]


class Weighing(Protocol):
    """One release's look at the items of every user: weights, again and again, of the items not yet named."""

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        """The weights of all items by row number, zero for an item that nobody has or that was named."""

    def name(self, rows: NDArray[np.int64]) -> None:
        """Takes these rows of the last weights out of what follows."""

    @property
    def named(self) -> _core.Labels:
        """The items that were named, in that order."""


class Lists(Protocol):
    """The items of every user of a table."""

    def weighing(self, first: Weighting, *others: Weighting) -> Weighing:
        """A look at them, which will begin with the first weights and go on with the others.

        Whatever can be refused, or fails elsewhere, does so here, before a release is paid for. Raises
        ParameterError for a weighting that cannot be done where the table is, and what counting there raises.
        """


class Here(Private):
    """Lists in the memory of this machine."""

    def __init__(self, labels: _core.Labels, lists: _core.Lists) -> None:
        self._labels, self._lists = labels, lists

    @classmethod
    def read(
        cls,
        source: object,
        user: str,
        item: str,
        *,
        l0: int | None,
        memory: int | str | None,
        progress: Progress | None,
    ) -> Here:
        """Reads tables of this machine, as `local.histogram` does, and keeps at most `l0` items of each user."""

        def gather(sources: list[object], room: int) -> tuple[_core.Labels, _core.Lists]:
            return _core.Lists.read(sources, user, item, l0=l0, memory=drawn(room), progress=progress)

        return cls(*local.read(source, user, item, memory, gather))

    def weighing(self, first: Weighting, *others: Weighting) -> Weighing:
        """A look at them; every weighting can be done."""
        return _HereWeighing(self._labels, self._lists)


class _HereWeighing(Private):
    def __init__(self, labels: _core.Labels, lists: _core.Lists) -> None:
        self._labels, self._lists = labels, lists
        self._named = np.zeros(0, np.int64)

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        key = rng.words(8).view(np.uint64).tolist()
        bounded = self._lists.bounded(weighting.l0, self._named, key, shared_order=weighting.shared_order)
        return bounded.weights(weighting.method, weighting.bits, target=weighting.target, few=weighting.l0)

    def name(self, rows: NDArray[np.int64]) -> None:
        self._named = np.concatenate([self._named, rows])

    @property
    def named(self) -> _core.Labels:
        return self._labels.select(self._named)


class Elsewhere(Private):
    """Lists that stay in a table of a cluster or a warehouse, which weighs their items anew for every release."""

    def __init__(self, engine: Engine, source: object, user: str, item: str, progress: Progress | None) -> None:
        self._engine, self._source, self._columns, self._progress = engine, source, (user, item), progress

    def weighing(self, first: Weighting, *others: Weighting) -> Weighing:
        """A look at them, whose first weights are added up now."""
        if not all(weighting.is_even for weighting in (first, *others)):
            raise ParameterError(
                "with this method what a user gives depends on the others, which needs the rows on this machine; a "
                'cluster or a warehouse can weigh by "weighted_gaussian", "weighted_laplace" and "dp_sips"'
            )
        if any(weighting.shared_order for weighting in (first, *others)):
            raise ParameterError("users of a cluster or a warehouse choose for themselves; leave shared_order out")
        return _ElsewhereWeighing(self, first)

    def weigh(self, weighting: Weighting, named: Sequence[object]) -> Counts:
        """The weights of all items but those that were named."""
        return self._engine.weights(
            self._source, *self._columns, weighting=weighting, without=named, progress=self._progress
        )


class _ElsewhereWeighing(Private):
    def __init__(self, lists: Elsewhere, first: Weighting) -> None:
        self._lists = lists
        self._first: Weighting | None = first
        self._labels, self._weights = lists.weigh(first, [])
        self._named: list[object] = []

    def weights(self, weighting: Weighting, rng: _core.Rng) -> NDArray[np.int64]:
        if weighting != self._first:
            self._labels, self._weights = self._lists.weigh(weighting, self._named)
        self._first = None
        return self._weights

    def name(self, rows: NDArray[np.int64]) -> None:
        self._named += self._labels.take(rows)

    @property
    def named(self) -> _core.Labels:
        return labels(self._named, self._labels.type_name)
