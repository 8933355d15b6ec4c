"""`TableMechanism`: the base class of mechanisms that read rows instead of counts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Unpack

from discreet import _core
from discreet.engines.projection import require_free
from discreet.engines.table import Columns, Table, as_table
from discreet.errors import ParameterError
from discreet.mechanisms.base import Mechanism, Opening
from discreet.mechanisms.published import of_rows
from discreet.privacy.guarantee import Sensitivity
from discreet.release.export import shortened
from discreet.release.facts import Facts, Summed
from discreet.release.release import Release
from discreet.signatures import showing
from discreet.tables.histogram import Histogram
from discreet.tables.user_items import UserItems

__all__ = ["TableMechanism"]


class TableMechanism(Mechanism[object, Release]):
    """A mechanism that reads a table of rows, some mechanisms twice, and clips each user's contribution."""

    __slots__ = ()

    reads = Table

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity: a user may have any rows, because the mechanism clips each user's contribution."""
        return Sensitivity(l0=None, linf=1)

    @showing(Columns, unit="user")
    def release(
        self,
        data: object,
        *,
        value: str | None = None,
        rng: _core.Rng | Opening | None = None,
        **columns: Unpack[Columns],
    ) -> Release:
        """Release what the mechanism finds in a table.

        Args:
            data: A `Table`, or the rows that a Table takes.
            value: The name of the column to sum, for a mechanism that sums.
            rng: For tests (`discreet.testing.seeded_rng`). By default every release draws from a fresh stream with a
                key from the operating system.
            **columns: The columns of rows.

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
        if value is not None and self.releases != "sums":
            raise ParameterError(f"{kind} does not sum a column: leave out value")
        table = as_table(data, columns, value, caller=self.release)
        if self.releases == "sums" and table.value is not None:
            names = Summed(0, 1, 1.0, shortened(table.value)).columns
            require_free(names, table.user, table.item, table.period)
        return of_rows(self._read(table, rng), table.every, table.unit)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        return replace(super()._facts(l0, summed), clips=True, is_keyed=True)

    @abstractmethod
    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        """Return the release. Implementations open the random stream last, after all validation."""
