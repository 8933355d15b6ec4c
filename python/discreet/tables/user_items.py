"""`UserItems`: the exact items of every user. SENSITIVE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, Unpack

from discreet import _core, engines
from discreet.engines.frames import pair_columns
from discreet.engines.memory import Memory
from discreet.engines.table import Columns, Table, as_table
from discreet.engines.weighing import Lists, LocalLists
from discreet.privacy.guarantee import Sensitivity, Unit
from discreet.private import Private
from discreet.signatures import showing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["UserItems"]


class UserItems(Private):
    """The distinct items of every user, which a `SetUnion` weighs; as sensitive as its data.

    Example:
        >>> import discreet as dp
        >>> dp.tables.UserItems.from_pairs([1, 1, 2], ["a", "b", "a"])
        UserItems(SENSITIVE)
    """

    _lists: Lists
    _every: str | None
    _unit: Unit

    def __init__(self) -> None:
        raise TypeError("use UserItems.from_table or UserItems.from_pairs")

    @classmethod
    @showing(Columns, unit="user")
    def from_table(cls, data: object, *, l0: int | None = None, **columns: Unpack[Columns]) -> UserItems:
        """Read the items of every user from a table of (user, item) rows.

        Args:
            data: A `Table`, or the rows that a Table takes. The rows of a Spark DataFrame or an Ibis table stay where
                they are, and every release weighs them there. The table's memory limits the items, too.
            l0: Keep at most l0 items of each user, chosen uniformly. This saves memory for a `SetUnion` of this l0,
                which bounds the items anyway. Leave l0 out for `IteratedSetUnion`, which chooses items in every round.
            **columns: The columns of rows.

        Returns:
            A UserItems.

        Raises:
            ResourceError: The folder for temporary files is full. The other errors are the same as in
                `Histogram.from_table`.
        """
        l0 = Sensitivity(l0=l0, linf=1).l0
        table = as_table(data, columns, caller=cls.from_table)
        return read_items(table, l0=l0)

    @classmethod
    def from_pairs(
        cls,
        users: ArrayLike | Sequence[object],
        items: ArrayLike | Sequence[object],
        *,
        l0: int | None = None,
        memory: int | str | None = None,
    ) -> UserItems:
        """Read the items of every user from two arrays of equal length.

        Args:
            users: One user for each row: integers or text.
            items: One item for each row: integers or text. A pair in which either is None is dropped.
            l0: Keep at most l0 items of each user, chosen uniformly.
            memory: Bytes, or text such as "2GB", for reading and for the items.

        Returns:
            A UserItems.

        Raises:
            ResourceError: The folder for temporary files is full. The other errors are the same as in
                `Histogram.from_pairs`.
        """
        l0 = Sensitivity(l0=l0, linf=1).l0
        pair, room = pair_columns(users, items), Memory.of(memory).total
        return cls._of(LocalLists(*_core.Lists.read(pair, "users", "items", l0=l0, memory=room)))

    @classmethod
    def _of(cls, lists: Lists, every: str | None = None, unit: Unit = "user") -> UserItems:
        self = object.__new__(cls)
        object.__setattr__(self, "_lists", lists)
        object.__setattr__(self, "_every", every)
        object.__setattr__(self, "_unit", unit)
        return self

    @property
    def unit(self) -> Unit:
        """The unit that guarantees protect: what counts as one user."""
        return self._unit

    def __repr__(self) -> str:
        return "UserItems(SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("UserItems cannot be changed: make new ones")


def read_items(table: Table, *, l0: int | None = None) -> UserItems:
    """Read the items of every user."""
    found = engines.lists(table, l0=l0)
    return UserItems._of(found, table.every, table.unit)  # noqa: SLF001 - the same module
