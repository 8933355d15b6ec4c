"""`UserItems`: which items every user has. SENSITIVE: it is exact and shows nothing of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from discreet import _core, engines
from discreet.engines.frames import plain_column
from discreet.engines.memory import Memory, drawn
from discreet.engines.weighing import Here, Lists
from discreet.privacy.guarantee import Sensitivity
from discreet.private import Private

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["UserItems"]


class UserItems(Private):
    """The distinct items of every user, which a `SetUnion` weighs; as private as the data it was made of."""

    _lists: Lists

    def __init__(self) -> None:
        raise TypeError("use UserItems.from_table or UserItems.from_pairs")

    @classmethod
    def from_table(
        cls,
        data: object,
        *,
        user: str,
        item: str,
        l0: int | None = None,
        memory: int | str | None = None,
        progress: Callable[[], None] | None = None,
    ) -> UserItems:
        """Reads a table of (user, item) rows; `data` and errors are those of `Histogram.from_table`.

        How many rows say that a user has an item orders the user's items for the greedy method. `l0` keeps at most so
        many items of each user, chosen uniformly while they are read: enough for a `SetUnion` of that l0, which
        bounds them anyway, and less to hold; `IteratedSetUnion` chooses in every round and wants them all.
        `memory`: bytes, or text such as "2GB", that reading and what is kept may take; half of what the machine
        allows where it is not given; ResourceError where it does not suffice. `progress` is called now and then,
        without a number. The rows of a Spark DataFrame or an Ibis table stay where they are, and are weighed there
        in every release.
        """
        l0 = Sensitivity(l0=l0, linf=1).l0
        return cls._of(engines.lists(data, user, item, l0=l0, memory=memory, progress=progress))

    @classmethod
    def from_pairs(
        cls,
        users: ArrayLike | Sequence[object],
        items: ArrayLike | Sequence[object],
        *,
        l0: int | None = None,
        memory: int | str | None = None,
    ) -> UserItems:
        """Reads two equally long arrays of integers or text, as `Histogram.from_pairs`; `l0` and `memory` are those
        of `from_table`."""
        l0 = Sensitivity(l0=l0, linf=1).l0
        columns = plain_column(users), plain_column(items)
        return cls._of(Here(*_core.Lists.from_pairs(*columns, l0=l0, memory=drawn(Memory.of(memory).total))))

    @classmethod
    def _of(cls, lists: Lists) -> UserItems:
        self = object.__new__(cls)
        object.__setattr__(self, "_lists", lists)
        return self

    def __repr__(self) -> str:
        return "UserItems(SENSITIVE)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("UserItems are not edited")
