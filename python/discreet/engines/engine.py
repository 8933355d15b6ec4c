"""What an engine is, and what the engines that count elsewhere share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from discreet import _core
from discreet.errors import SchemaError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Counted", "Counts", "Engine", "Items", "Progress", "Weighting", "labels", "listed"]

Counts = tuple[_core.Labels, "NDArray[np.int64]"]
Items: TypeAlias = "Sequence[str | int | bytes] | ArrayLike"
Progress = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """How users give weights to at most `l0` items each; `_core.Lists.weights` says what the methods are."""

    method: str
    bits: int
    l0: int
    target: int = 1
    shared_order: bool = False

    @property
    def is_even(self) -> bool:
        """Whether what a user gives follows from the number of their items alone, whatever others give."""
        return self.method in ("even", "even_squares")

    @property
    def shares(self) -> list[int]:
        """What a user with 1, 2 and up to l0 items gives to each, where that is even, in units of 2^-bits."""
        unit = 1 << self.bits
        if self.method == "even":
            return [unit // d for d in range(1, self.l0 + 1)]
        return [math.isqrt(unit**2 // d) for d in range(1, self.l0 + 1)]


class Counted(NamedTuple):
    """What an engine counts."""

    labels: _core.Labels
    counts: NDArray[np.int64]
    users: int | None = None
    """How many distinct users have any of the counted rows, None where that was not asked for or cannot be had."""


class Engine(Protocol):
    """A module that counts the tables of one kind where they are, and weighs their items."""

    def histogram(
        self,
        source: Any,
        user: str,
        item: str,
        *,
        l0: int | None,
        limit: int | None,
        cap: int | None,
        only: Items | None,
        users: bool,
        memory: int | str | None,
        progress: Progress | None,
    ) -> Counted:
        """The distinct users of each item: labels, and counts as int64, in no particular order.

        Rows with a NULL, or with text that is not UTF-8, are left out. With `l0` only so many items of each
        user count, chosen uniformly and anew in every call; with `only` these items alone, before that
        choice. `limit`: how many of the largest will be looked at, in the order of `_core.top`; an engine may
        leave the others where they are. `cap`: what a count need not exceed; an engine may stop there.
        `users`: whether all users of counted rows are to be counted too, in the same reading of the rows, so that none
        is missed who is in a count. `memory`: what counting may take on this machine, "2GB" or a number of bytes; of no
        meaning to an engine that counts elsewhere.

        Raises SchemaError for columns that cannot be used, InputError where the source cannot be read,
        ResourceError where its session is gone, ParameterError for what the engine cannot do.
        """

    def weights(
        self,
        source: object,
        user: str,
        item: str,
        *,
        weighting: Weighting,
        without: Sequence[object],
        progress: Progress | None,
    ) -> Counts:
        """The weight of each item, as `_core.Lists.weights` computes it: labels, and weights as int64.

        Of each user's distinct items but those `without`, at most `weighting.l0` are chosen as for counting, and
        each gets an even share. Every item that has a weight comes here, however little: one user's own items may
        pass a threshold, so that leaving any behind would be an answer about the data. Errors are those of `histogram`.
        """


def labels(values: Sequence[Any], kind: str) -> _core.Labels:
    """Labels of a type that the schema alone decides: int64, uint64, string or binary."""
    if kind in ("int64", "uint64"):
        return _core.Labels.from_sequence(np.asarray(values, kind))
    blank = "" if kind == "string" else b""
    return _core.Labels.from_sequence(values or [blank]).select(np.arange(len(values)))


def listed(only: Items, kind: str) -> list[Any]:
    """The listed items that such a column can hold, as Python values; SchemaError where they are not of its kind."""
    given = _core.Labels.from_sequence(only).type_name
    values: list[Any] = only.tolist() if isinstance(only, np.ndarray) else list(only)  # type: ignore[arg-type]
    if values and given.removeprefix("u") != kind.removeprefix("u"):
        raise SchemaError("the listed items and the column of items are of different types")
    if kind not in ("int64", "uint64"):
        return values
    held = np.iinfo(kind)
    return [value for value in values if held.min <= value <= held.max]
