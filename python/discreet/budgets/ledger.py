"""`Ledger`: privacy budgets in a file, for many processes over many months."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Self

from discreet.budgets.book import Book
from discreet.budgets.chain import Chain
from discreet.budgets.charge import Account, Charge, Protected
from discreet.budgets.filter import PrivacyFilter
from discreet.budgets.record import Event, Spending, spendings
from discreet.errors import LedgerError, ParameterError
from discreet.privacy.validation import require_flag, require_number
from discreet.release.release import Release

__all__ = ["Dataset", "Ledger"]

_NAME_LENGTH = 200


class Ledger:
    """Privacy budgets in one file, one budget for each dataset, that many processes and threads charge at once.

    A charge is on the disk before its randomness is drawn: a crash loses budget and never spends it twice. The file
    is an append-only log: each event is sealed with a hash of all events before it. It holds what was charged, when,
    by which mechanism and parameters, and a digest of the published rows; never data. No other file belongs to it,
    and links and mounts of it are the same ledger. A file that was changed, cut or damaged is refused. A process
    refuses an older copy of a ledger that it has seen; a new process cannot know. Keep the file on a local disk. It is
    open only during an operation, so there is nothing to close.
    """

    __slots__ = ("_chain",)

    _chain: Chain

    def __init__(self) -> None:
        raise TypeError("use Ledger.open")

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = True, timeout: float = 30.0) -> Self:
        """Open the ledger in a file and verify all of it; with `create`, make an empty one if there is no file.

        `timeout`: how many seconds each operation waits while other processes use the file.

        Raises LedgerError if the file is no ledger, or is corrupt, locked, read-only or of a newer version, and
        EntropyError if the operating system gives no randomness for a new ledger.
        """
        self = object.__new__(cls)
        self._chain = Chain(path, require_number("timeout", timeout, 0, 1e6, open_low=False))
        if require_flag("create", create) and not self._chain.exists():
            self._chain.create()
        self._chain.check()
        return self

    @property
    def datasets(self) -> list[str]:
        """The names of the datasets, in the order in which they were opened."""
        return list(self._chain.read().accounts)

    @property
    def history(self) -> list[Spending]:
        """What was charged to any dataset, in order."""
        return spendings(self._chain.events())

    def dataset(
        self,
        name: str,
        *,
        rho: float | None = None,
        delta: float | None = None,
        epsilon: float | None = None,
        unit: str | None = None,
        neighbours: str | None = None,
    ) -> Dataset:
        """The budget of a dataset, which `rho` and `delta` open where the ledger does not have it yet.

        `epsilon`: instead of rho the total (epsilon, delta)-DP promise, see `Budget`. A total is
        fixed for good. Where the dataset is there already leave them out, or repeat them. Raises
        ParameterError where they differ from what is there, are out of range, or are missing for a new dataset.
        """
        if not isinstance(name, str) or not name.isprintable() or not name.strip() or len(name) > _NAME_LENGTH:
            raise ParameterError(f"the name of a dataset is printable text of 1 to {_NAME_LENGTH} characters")
        if epsilon is not None and rho is not None:
            raise ParameterError("give exactly one of rho and epsilon")

        def decide(book: Book) -> Event | None:
            if name in book.accounts:
                book.accounts[name].require_same(name, rho, delta, unit, neighbours, epsilon)
                return None
            if (rho is None and epsilon is None) or delta is None:
                raise ParameterError(
                    f"the ledger has no dataset {name!r}{_near(name, book)}; "
                    "give rho and delta, or epsilon and delta, to open it"
                )
            account = Account.holding(rho, delta, unit or "user", neighbours or "added", epsilon=epsilon)
            return Event(kind="opened", dataset=name, charge=account.total, parameters=json.dumps(account.terms))

        if decide(self._chain.read()) is not None:
            self._chain.append(decide)
        return Dataset._of(self._chain, name)

    def check(self) -> None:
        """Verify the whole file again; raise LedgerError if anything is wrong."""
        self._chain.check()

    def __repr__(self) -> str:
        return f"Ledger({str(self._chain.path)!r})"


def _near(name: str, book: Book) -> str:
    import difflib

    found = difflib.get_close_matches(name, book.accounts, 1)
    return f" (did you mean {found[0]!r}?)" if found else ""


class Dataset(PrivacyFilter):
    """The budget of one dataset of a ledger: a `Budget` whose charges are on the disk. Made by `Ledger.dataset`."""

    __slots__ = ("_about", "_chain", "name")

    _chain: Chain
    _about: Protected
    name: str

    def __init__(self) -> None:
        raise TypeError("use Ledger.open(path).dataset(name)")

    @classmethod
    def _of(cls, chain: Chain, name: str) -> Self:
        self = object.__new__(cls)
        self._set(_chain=chain, name=name, _about=chain.read().account(name).protected)
        return self

    @property
    def history(self) -> list[Spending]:
        """What was charged to this dataset, in order."""
        return [row for row in spendings(self._chain.events()) if row.dataset == self.name]

    @property
    def _protected(self) -> Protected:
        return self._about

    def _account(self) -> Account:
        return self._required(self._chain.read())

    def _reserve(self, event: Event) -> int:
        def decide(book: Book) -> Event:
            self._required(book)
            return replace(event, dataset=self.name)

        return self._chain.append(decide)

    def _settle(self, number: int, given_back: Charge, release: Release) -> None:
        digest = getattr(release, "digest", "")  # answers to queries have no rows
        event = Event(kind="released", dataset=self.name, of=number, charge=given_back, digest=digest)
        self._chain.append(lambda _: event)

    def _required(self, book: Book) -> Account:
        if self.name not in book.accounts:
            raise LedgerError(f"the ledger {self._chain.path} does not have the dataset {self.name!r} any more")
        return book.accounts[self.name]
