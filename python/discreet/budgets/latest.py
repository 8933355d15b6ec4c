"""The latest state of each ledger that this process has seen, by the identity of the ledger.

It outlives every `Ledger` object, so that no object of this process accepts an older copy, under whatever path.
"""

from __future__ import annotations

from discreet.budgets.book import Book

__all__ = ["advance", "known"]


class _State:
    """A book, and the state that has followed it."""

    __slots__ = ("book", "following")

    def __init__(self, book: Book | None) -> None:
        self.book = book
        self.following: dict[str, _State] = {}


_states: dict[str, _State] = {}
"""For each ledger a state from which the latest is reached."""


def known(identity: str) -> Book | None:
    """Return the book of a ledger as this process has seen it last."""
    return _latest(identity).book


def advance(identity: str, before: Book | None, after: Book) -> bool:
    """Remember a book that continues the book `before`.

    Returns False if a thread or a signal handler has remembered other events meanwhile. Threads that use the same file
    wait for its lock, so that the other thread has used another copy of it.
    A lock here would hang if a signal handler charged the ledger whose charge it interrupts, and a forked process could
    inherit it locked. Each state has one successor instead: `setdefault` is one step.
    """
    new = _State(after)
    while True:
        state = _latest(identity)
        if _sum(state.book) not in (_sum(before), _sum(after)):
            return False
        if state.following.setdefault("next", new) is new:
            _states[identity] = new
            return True


def _latest(identity: str) -> _State:
    state = _states.setdefault(identity, _State(None))
    while "next" in state.following:
        state = state.following["next"]
    return state


def _sum(book: Book | None) -> tuple[int, str] | None:
    return None if book is None else (book.number, book.hash)
