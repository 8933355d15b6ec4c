"""`TableMechanism`: the base class of mechanisms that read rows instead of counts."""

from __future__ import annotations

from abc import abstractmethod

from discreet import _core
from discreet.engines.selection import Names
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening
from discreet.privacy.guarantee import Sensitivity
from discreet.progress import ProgressOption
from discreet.release.release import Release, changed
from discreet.tables.histogram import Histogram
from discreet.tables.table import Table
from discreet.tables.user_items import UserItems

__all__ = ["TableMechanism", "without_value"]


class TableMechanism(Mechanism[object, Release]):
    """A mechanism that reads a table of rows, some mechanisms twice, and clips each user's contribution."""

    __slots__ = ()

    reads = Table

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any rows, because the mechanism clips each user's contribution."""
        return Sensitivity(l0=None, linf=1)

    def release(
        self,
        data: object,
        *,
        user: Names | None = None,
        item: Names | None = None,
        value: str | None = None,
        memory: int | str | None = None,
        progress: ProgressOption = None,
        rng: _core.Rng | Opening | None = None,
    ) -> Release:
        """Release what the mechanism finds in a table.

        Args:
            data: A `Table`, or the rows that a `Table` takes; rows need `user` and `item`.
            user: The name of the column of users, or of several columns that are one user.
            item: The name of the column of items, or of several columns that are one item.
            value: The name of the column to sum, for `ClippedSums` and `DiscoverAndSum` only.
            memory: Bytes, or text such as "2GB", that reading may use.
            progress: True for a bar on a terminal or in a notebook, or a function that is called now and then.
            rng: For tests (`discreet.testing.seeded_rng`). By default every release draws from a fresh stream with a
                key from the operating system.

        Returns:
            A Release.

        Raises:
            ParameterError: The column names are missing, or the mechanism has no use for one of them.
            SchemaError: A column is missing or of another type.
            InputError: The data cannot be read.
            EntropyError: The operating system provides no randomness.

        Example:
            >>> import discreet as dp
            >>> log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
            >>> release = dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2).release(log, user="user", item="page")
            >>> sorted(release.items)
            ['help', 'home']
        """
        kind = type(self).__name__
        if isinstance(data, Histogram | UserItems):
            raise ParameterError(f"{kind} takes rows, not {type(data).__name__}: give it a table, user= and item=")
        columns = {"user": user, "item": item, "value": value, "memory": memory, "progress": progress}
        if isinstance(data, Table):
            if any(given is not None for given in columns.values()):
                raise ParameterError("a Table already has its columns, memory and progress: leave them out")
            return self._released(data, rng)
        if user is None or item is None:
            raise ParameterError(f"{kind} reads a table: give user= and item=, the names of the columns")
        return self._released(Table(data, user=user, item=item, value=value, memory=memory, progress=progress), rng)

    def _released(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        release = self._read(table, rng)
        return release if table.period is None else changed(release, every=table.period.every)

    @abstractmethod
    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        """Return the release. Implementations open the random stream last, after all validation."""


def without_value(table: Table, kind: str) -> None:
    """Raise ParameterError if the table names a column to sum."""
    if table.value is not None:
        raise ParameterError(f"{kind} does not sum a column: leave out value")
