"""Reading, verifying and appending a ledger's events under the lock of its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from discreet.budgets import latest, ledger_file, ledger_format
from discreet.budgets.book import Book
from discreet.budgets.ledger_file import LedgerFile
from discreet.budgets.ledger_format import HEAD_SIZE, SEAL_SIZE, Head
from discreet.budgets.record import Event
from discreet.engines.entropy import fresh_key
from discreet.errors import LedgerError

__all__ = ["Chain"]

_NONCE = 16
"""The number of hexadecimal digits in an event's nonce."""


class Chain:
    """A ledger's file that many processes and threads append to.

    Every operation opens and locks the file, and verifies the events that this process has not verified yet.
    """

    __slots__ = ("_identity", "_timeout", "path")

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = Path(path).absolute()
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

    def append(self, decide: Callable[[Book], Event | None]) -> int:
        """Append the event that `decide` makes from the book, and sync it; return its number, or 0 if there is none.

        Raises BudgetExceeded if the event does not fit. If this method is interrupted, the event may be in the file. It
        then counts as spent, although nothing was drawn for it.
        """
        with ledger_file.opened(self.path, self._timeout) as file:
            head, book = self._verified(file)
            event = decide(book)
            if event is None:
                return 0
            grown, line = ledger_format.written(book, event, fresh_key()[:_NONCE])
            place = head.next_place
            if book.number > head.mark.number:
                # An interrupted append has left an event without a mark. Sync first: a mark names only synced events.
                file.append(book.end, b"")
                file.overwrite(place, ledger_format.mark_line(head.line, book))
                place = HEAD_SIZE - place
            file.append(book.end, line)
            file.overwrite(place, ledger_format.mark_line(head.line, grown))
            file.require_name()
            self._remember(file, head, book, grown)
            return grown.number

    def read(self) -> Book:
        """Return the current book."""
        with ledger_file.opened(self.path, self._timeout) as file:
            return self._verified(file)[1]

    def events(self) -> list[tuple[int, Event]]:
        """Verify the whole file, and return every event with its number."""
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
        """Return the head and the book of the file, and remember the book. With `whole`, verify old events again."""
        head = ledger_format.head_of(file.read(0, HEAD_SIZE), self.path)
        if self._identity not in (None, head.identity):
            raise LedgerError(f"{self.path} is another ledger than the one that was opened; restore the original file")
        seen = latest.known(head.identity)
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
        """Remember a book for the whole process; raise LedgerError if a thread has used another copy meanwhile."""
        if not latest.advance(head.identity, before, after):
            file.require_name()  # raises another error if a signal handler has used the ledger and closed this file
            raise LedgerError(self._rolled_back())

    def _rolled_back(self) -> str:
        return (
            f"the ledger {self.path} lacks events that this process has seen: it was rolled back to an older copy or "
            "damaged; restore the newest copy"
        )
