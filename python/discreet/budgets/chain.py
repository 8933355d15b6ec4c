"""`Chain`: a ledger's file, whose events are read, verified and appended under a lock.

A book is the accounts of a ledger after its last event (`budgets.book`). A mark is a line in the head of the file that
names a synced event (`budgets.ledger_format`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from discreet.budgets import latest, ledger_file, ledger_format
from discreet.budgets.book import Book
from discreet.budgets.ledger_file import LedgerFile
from discreet.budgets.ledger_format import HEAD_SIZE, SEAL_SIZE, Head
from discreet.budgets.paid import Receipt
from discreet.budgets.record import Event
from discreet.engines.entropy import fresh_key
from discreet.errors import LedgerError
from discreet.privacy.validation import require_path

__all__ = ["Chain"]

_NONCE = 16
"""The number of hexadecimal digits in an event's nonce."""


class Chain:
    """A ledger's file to which many processes and threads append.

    Every read and every append opens and locks the file. It then verifies the events that this process has not verified
    yet.
    """

    __slots__ = ("_identity", "_timeout", "path")

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(require_path(path)).absolute()
        self._timeout = timeout
        self._identity: str | None = None

    def __reduce__(self) -> tuple[type[Chain], tuple[Path, float]]:
        return Chain, (self.path, self._timeout)

    def exists(self) -> bool:
        """Return whether the path exists, even as a broken link."""
        return os.path.lexists(self.path)

    def create(self) -> None:
        """Create an empty ledger atomically; keep the file if another process has created it meanwhile.

        Raises EntropyError if the operating system gives no randomness for the ledger's identity.
        """
        random = fresh_key()
        ledger_file.create(self.path, ledger_format.new(random[:32], random[32:][:_NONCE]))

    def require_writable(self) -> None:
        """Raise LedgerError if the file is read-only or missing."""
        ledger_file.require_file(self.path, writable=True)

    def append(self, decide: Callable[[Book], Event | None], receipt: Receipt | None = None) -> int:
        """Append the event that `decide` returns for the book, sync the file, and return the event's number.

        Returns 0 if `decide` returns None. Raises BudgetExceeded if the event's charge does not fit. If this method is
        interrupted, the event may be in the file. Its charge then counts as spent, although no noise was drawn. The
        receipt says whether it may be there.
        """
        with ledger_file.opened(self.path, self._timeout, writable=True) as file:
            head, book = self._verified(file)
            event = decide(book)
            if event is None:
                return 0
            grown, line = ledger_format.written(book, event, fresh_key()[:_NONCE])
            place = head.next_place
            if book.number > head.mark.number:
                # An interrupted append has left an event without a mark. Sync the event first, then write its mark.
                file.append(book.end, b"")
                file.overwrite(place, ledger_format.mark_line(head.line, book))
                place = HEAD_SIZE - place
            if receipt is not None:
                receipt.begin()
            try:
                file.append(book.end, line)
            except LedgerError:
                if receipt is not None and not file.read(book.end):
                    receipt.cancel()  # the disk was full, and the part of the line that it held was removed
                raise
            file.overwrite(place, ledger_format.mark_line(head.line, grown))
            file.require_name()
            self._remember(file, head, book, grown)
            return grown.number

    def read(self) -> Book:
        """Return the current book."""
        with ledger_file.opened(self.path, self._timeout) as file:
            return self._verified(file)[1]

    def seen(self) -> Book:
        """Return the newest book that this process has read or written. No file is read."""
        assert self._identity is not None
        book = latest.newest_book(self._identity)
        assert book is not None
        return book

    def events(self) -> list[tuple[int, Event]]:
        """Verify the whole file and return every event with its number."""
        rows: list[dict[str, object]] = []
        with ledger_file.opened(self.path, self._timeout) as file:
            self._verified(file, whole=True, kept=rows)
        return ledger_format.events_of(rows, self.path)

    def check(self) -> None:
        """Verify the whole file; raise LedgerError if anything is wrong."""
        with ledger_file.opened(self.path, self._timeout) as file:
            self._verified(file, whole=True)

    def _verified(
        self, file: LedgerFile, *, whole: bool = False, kept: list[dict[str, object]] | None = None
    ) -> tuple[Head, Book]:
        """Verify the file's new events, remember the book, and return the file's head and the book.

        With `whole`, verify all events again. `kept` is a list to which the rows of the verified events are added.
        """
        head = ledger_format.head_of(file.read(0, HEAD_SIZE), self.path)
        if self._identity not in (None, head.identity):
            raise LedgerError(f"{self.path} is another ledger, not the one that was opened; restore the original file")
        seen = latest.newest_book(head.identity)
        book = head.empty() if seen is None or whole else seen
        begin = HEAD_SIZE if book is not seen else book.end - SEAL_SIZE
        content = file.read(begin)
        if seen is not None and content[: seen.end - begin][-SEAL_SIZE:] != f"{seen.hash}\n".encode():
            raise LedgerError(self._rolled_back())
        found = ledger_format.extended(head, book, content[book.end - begin :], self.path, kept)
        self._remember(file, head, seen, found)
        self._identity = head.identity
        return head, found

    def _remember(self, file: LedgerFile, head: Head, before: Book | None, after: Book) -> None:
        """Remember the book `after`, which continues `before`, for the whole process.

        Raises LedgerError if a thread has used another copy of the file meanwhile.
        """
        if not latest.advance(head.identity, before, after):
            # If a signal handler has used the ledger, it has closed this file. This call then raises LedgerError, which
            # says to try again.
            file.require_name()
            raise LedgerError(self._rolled_back())

    def _rolled_back(self) -> str:
        return (
            f"the ledger {self.path} lacks events that this process has seen: it was rolled back to an older copy or "
            "damaged; restore the newest copy"
        )
