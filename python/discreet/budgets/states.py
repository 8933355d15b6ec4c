"""`States`: a sequence of states, each made from the one before, in the memory of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["States"]

T = TypeVar("T")


class States(Generic[T]):
    """A sequence of states to which threads and signal handlers append without a lock.

    A lock would hang if a signal handler charged the budget whose charge it interrupts. Instead each state has a number
    in a dictionary, and `setdefault` is atomic: only one thread gets a number. A thread that does not get it computes
    its state again from the newer one. So every charge is counted, and none is decided from an old balance.
    """

    __slots__ = ("_states",)

    def __init__(self, first: T) -> None:
        self._states = {0: first}

    @property
    def latest(self) -> T:
        """The last state."""
        return self._states[len(self._states) - 1]

    def append(self, following: Callable[[T], T]) -> int:
        """Append the state that `following` makes from the latest one; return its number.

        If `following` raises an error, nothing is appended.
        """
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
