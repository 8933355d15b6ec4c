"""The latest state of each ledger that this process has seen, by the identity of the ledger.

It outlives every `Ledger` object, so that no object of this process accepts an older copy, under whatever path.
"""

from __future__ import annotations

import os
import threading

from discreet.budgets.book import Book

__all__ = ["advance", "known"]

_books: dict[str, Book] = {}
_lock = threading.Lock()


def _renew_lock() -> None:
    """Replace the lock in a forked process: a thread of the parent may have held it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def known(identity: str) -> Book | None:
    """Return the book of a ledger as this process has seen it last."""
    return _books.get(identity)


def advance(identity: str, before: Book | None, after: Book) -> bool:
    """Remember a book that continues the book `before`.

    Returns False if another thread has remembered other events meanwhile. Threads that use the same file wait for its
    lock, so that the other thread has used another copy of it.
    """
    with _lock:
        now = _books.get(identity)
        if _state(now) not in (_state(before), _state(after)):
            return False
        _books[identity] = after
        return True


def _state(book: Book | None) -> tuple[int, str] | None:
    return None if book is None else (book.number, book.hash)
