"""Mechanisms that read rows by themselves: `TableMechanism`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening
from discreet.privacy.guarantee import Sensitivity
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.tables.table import Table
from discreet.tables.user_items import UserItems

__all__ = ["TableMechanism", "without_value"]


class TableMechanism(Mechanism[object, Release]):
    """A mechanism that reads rows by itself, some mechanisms twice, and bounds what a user changes."""

    __slots__ = ()

    reads = Table

    @property
    def protects(self) -> Sensitivity:
        """Any rows of a user: the mechanism itself counts a user once per item, and of so many items as it says."""
        return Sensitivity(l0=None, linf=1)

    def release(
        self,
        data: object,
        *,
        user: str | None = None,
        item: str | None = None,
        value: str | None = None,
        memory: int | str | None = None,
        progress: Callable[[], None] | None = None,
        rng: _core.Rng | Opening | None = None,
    ) -> Release:
        """Publishes what the mechanism finds in a `Table`, or in rows and the names of their columns.

        Args:
            data: A `Table`; or what it is made of, with the names of the columns beside it.
            user: The name of the column of users.
            item: The name of the column of items.
            value: The name of the column that is summed, for `ClippedSums` alone.
            memory: Bytes, or text such as "2GB", that reading may take.
            progress: Called now and then, without a number.
            rng: For tests (`discreet.testing.seeded_rng`).

        Raises:
            ParameterError: The names of the columns are missing, or another mechanism's.
            SchemaError: A column is missing or of another type.
            InputError: The data cannot be read.
            EntropyError: The system gives no randomness.
        """
        kind = type(self).__name__
        if isinstance(data, Histogram | UserItems):
            raise ParameterError(
                f"{kind} reads a table by itself: give it the rows, not {type(data).__name__}, and user= and item="
            )
        columns = {"user": user, "item": item, "value": value, "memory": memory, "progress": progress}
        if isinstance(data, Table):
            if any(given is not None for given in columns.values()):
                raise ParameterError("a Table has its columns, memory and progress: leave them out here")
            return self._read(data, rng)
        if user is None or item is None:
            raise ParameterError(f"{kind} reads a table: give user= and item=, the names of its columns")
        return self._read(Table(data, user=user, item=item, value=value, memory=memory, progress=progress), rng)

    @abstractmethod
    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        """The release, which opens its stream when nothing is left that could be refused."""


def without_value(table: Table, kind: str) -> None:
    """Refuses a column to sum where nothing is summed."""
    if table.value is not None:
        raise ParameterError(f"{kind} sums no column: leave out value")
