"""`UserItems`: which items every user has. SENSITIVE: it is exact and shows nothing of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from discreet import _core
from discreet.engines import lists

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["UserItems"]


class UserItems:
    """The distinct items of every user, which a `SetUnion` weighs; as private as the data it was made of."""

    __slots__ = ("_labels", "_lists")

    _labels: _core.Labels
    _lists: _core.Lists

    def __init__(self) -> None:
        raise TypeError("use UserItems.from_table or UserItems.from_pairs")

    @classmethod
    def from_table(cls, data: Any, *, user: str, item: str) -> UserItems:
        """Reads a table of (user, item) rows; `data` and errors are those of `Histogram.from_table`.

        How many rows say that a user has an item orders the user's items for the greedy method.
        """
        return cls._of(*lists.read(data, user=user, item=item))

    @classmethod
    def from_pairs(cls, users: ArrayLike | Sequence[Any], items: ArrayLike | Sequence[Any]) -> UserItems:
        """Reads two equally long arrays of integers or text, as `Histogram.from_pairs`."""
        return cls._of(*_core.Lists.from_pairs(users, items))

    @classmethod
    def _of(cls, labels: _core.Labels, core: _core.Lists) -> UserItems:
        self = object.__new__(cls)
        self._labels, self._lists = labels, core
        return self

    def __repr__(self) -> str:
        return "UserItems(SENSITIVE)"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("UserItems are sensitive and are neither copied nor pickled; publish a Release of them")
