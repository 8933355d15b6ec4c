"""The latest state of each ledger that this process has seen, by the identity of the ledger.

It outlives every `Ledger` object. So no object in this process accepts an older copy of a ledger, which lacks charges
and would let the same budget be spent again. The path of the copy does not matter.
"""

from __future__ import annotations

from discreet.budgets.book import Book

__all__ = ["advance", "known"]


class _State:
    """A book and, once it exists, the next state."""

    __slots__ = ("book", "following")

    def __init__(self, book: Book | None) -> None:
        self.book = book
        self.following: dict[str, _State] = {}


_states: dict[str, _State] = {}
"""For each ledger a state from which the latest one can be reached."""


def known(identity: str) -> Book | None:
    """Return the book of a ledger that this process has seen last, or None."""
    return _latest(identity).book


def advance(identity: str, before: Book | None, after: Book) -> bool:
    """Remember the book `after`, which continues the book `before`.

    Returns False if a thread or a signal handler has remembered other events meanwhile. Threads that use the same file
    wait for its lock, so the other thread has used another copy of the file.

    There is no lock in memory. It would hang if a signal handler charged the ledger whose charge it interrupts, and a
    forked process could inherit it locked. Instead `setdefault`, which is atomic, gives each state only one successor.
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
