"""`States`: numbered states, each made from the one before, in the memory of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["States"]

T = TypeVar("T")


class States(Generic[T]):
    """States that threads and signal handlers append to, without a lock.

    A lock would hang if a signal handler charged the budget whose charge it interrupts. The dictionary decides instead:
    `setdefault` is one step, and whoever finds the number taken makes the state again from the newer one.
    """

    __slots__ = ("_states",)

    def __init__(self, first: T) -> None:
        self._states = {0: first}

    @property
    def latest(self) -> T:
        """The state that was appended last."""
        return self._states[len(self._states) - 1]

    def append(self, following: Callable[[T], T]) -> int:
        """Append the state that `following` makes of the latest; return its number. Its errors append nothing."""
        while True:
            number = len(self._states)
            state = following(self._states[number - 1])
            if self._states.setdefault(number, state) is state:
                return number

    def __getitem__(self, number: int) -> T:
        return self._states[number]

    def all(self) -> list[tuple[int, T]]:
        """Return every state with its number, in order."""
        return list(self._states.items())
