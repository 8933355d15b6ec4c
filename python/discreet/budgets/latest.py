"""The newest book of each ledger that this process has read or written, by the identity of the ledger.

A book is the content of a ledger at one time: the number of its events, their hash and the accounts (`budgets.book`).
An identity is the random name that a ledger gets when it is created, so that all copies of its file have it. A state is
a book in this module, linked to the next state.

The states outlive all `Ledger` objects. So no object in this process accepts an older copy of a ledger at any path. An
older copy may lack the latest charges, so the same budget could be spent twice.
"""

from __future__ import annotations

from discreet.budgets.book import Book

__all__ = ["advance", "newest_book"]


class _State:
    """A book, and the next state once there is one."""

    __slots__ = ("book", "following")

    def __init__(self, book: Book | None) -> None:
        self.book = book
        self.following: dict[str, _State] = {}


_states: dict[str, _State] = {}
"""A state of each ledger, by identity. The links from this state lead to the latest one."""


def newest_book(identity: str) -> Book | None:
    """Return the newest book of a ledger that this process has read or written, or None."""
    return _latest(identity).book


def advance(identity: str, before: Book | None, after: Book) -> bool:
    """Remember the book `after`, which continues the book `before`.

    Returns False if a thread or a signal handler has remembered a book with other events meanwhile. Threads that use
    the same file wait for the lock of the file. So this means that two copies of the file are in use.

    There is no lock in memory. With a lock, a signal handler would hang if it interrupted a charge and charged the same
    ledger. A process that is forked while a thread holds the lock would hang too. Instead `setdefault`, which is
    atomic, gives each state only one successor.
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
