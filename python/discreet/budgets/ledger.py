"""`Ledger` and `Dataset`: privacy budgets in a file, for many processes over many months."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from discreet.budgets.book import Book
from discreet.budgets.chain import Chain
from discreet.budgets.charge import Account, Charge, Neighbours, Protected
from discreet.budgets.filter import PrivacyFilter
from discreet.budgets.paid import Receipt
from discreet.budgets.record import Event, History, spendings, spent_over_time
from discreet.errors import AlreadyCharged, LedgerError, ParameterError
from discreet.privacy.guarantee import UNITS, Unit, require_one
from discreet.privacy.validation import require_choice, require_flag, require_number
from discreet.release import export, markup, plot
from discreet.release.provenance import Provenance
from discreet.wording import meant, shown_down, shown_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Dataset", "Ledger"]

_NAME_LENGTH = 200


class Ledger:
    """A file with one privacy budget for each dataset, which many processes and threads can charge at the same time.

    A charge is on the disk before its randomness is drawn. So a crash can lose budget, and can never spend it twice.
    The file is locked during each operation, so two processes cannot both spend the last of a budget.

    The file is a short head and a log of events. Each event is sealed with a hash of all events before it. An event has
    the charge, the time, the mechanism with its parameters, what it is for (`discreet.release.Provenance`), and a
    digest of the published rows. It never contains data. A file that was changed, cut or damaged is refused. A process
    refuses an older copy of a ledger that it has seen; a new process cannot detect one.

    The ledger is this one file, and links and mounts of it are the same ledger. Keep it on a local disk. It is open
    only during an operation, so there is nothing to close.

    Example:
        >>> import tempfile
        >>> import discreet as dp
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = dp.Ledger.open(f"{folder.name}/privacy.ledger")
        >>> views = ledger.dataset("views", rho=1, delta=1e-6)
        >>> views.charge(dp.Guarantee(rho=0.25, delta=0), made_by="another library")
        >>> dp.Ledger.open(f"{folder.name}/privacy.ledger").dataset("views").remaining.rho
        0.75
        >>> folder.cleanup()
    """

    __slots__ = ("_chain",)

    _chain: Chain

    def __init__(self) -> None:
        raise TypeError("use Ledger.open")

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = True, timeout: float = 30.0) -> Self:
        """Open the ledger in a file, and verify the whole file.

        Args:
            path: The file.
            create: Whether to create an empty ledger if there is no file.
            timeout: How long each operation waits while other processes use the file, in seconds from 0 to 1,000,000.

        Returns:
            A Ledger, which can be copied, pickled and used after a fork: its state is in the file.

        Raises:
            LedgerError: The file is not a ledger, or is corrupt, locked or of a newer version; or it is missing and
                cannot be created. A read-only file can be read, but not charged.
            ParameterError: `timeout` is out of range, or `path` is no path.
            EntropyError: The operating system gives no randomness for a new ledger.
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
    def history(self) -> History:
        """The charges to all datasets in order, one row each."""
        return spendings(self._chain.events())

    def dataset(
        self,
        name: str,
        *,
        rho: float | None = None,
        delta: float | None = None,
        epsilon: float | None = None,
        unit: Unit | None = None,
        neighbours: Neighbours | None = None,
    ) -> Dataset:
        """Return the budget of a dataset, and create it if the ledger does not have it yet.

        The total of a dataset is fixed for good. For an existing dataset leave the parameters out, or repeat them.

        Args:
            name: The name of the dataset: printable text of 1 to 200 characters.
            rho: The total rho of a new dataset, in zCDP. Give exactly one of rho and epsilon.
            delta: The total delta of a new dataset.
            epsilon: The epsilon of the total (epsilon, delta)-DP guarantee of a new dataset; see `Budget`.
            unit: The protected unit of a new dataset, "user" by default; see `Budget`.
            neighbours: "added" (the default) or "replaced"; see `Budget`.

        Returns:
            A Dataset.

        Raises:
            ParameterError: A parameter differs from the existing dataset, is out of range, or is missing for a new one.
            LedgerError: The file is corrupt, locked, missing or read-only.
        """
        if not isinstance(name, str) or not name.isprintable() or not name.strip() or len(name) > _NAME_LENGTH:
            raise ParameterError(f"the name of a dataset must be printable text of 1 to {_NAME_LENGTH} characters")
        if epsilon is not None and rho is not None:
            require_one(rho, epsilon)
        if unit is not None:
            require_choice("unit", unit, tuple(UNITS))
        if neighbours is not None:
            require_choice("neighbours", neighbours, ("added", "replaced"))

        def decide(book: Book) -> Event | None:
            if name in book.accounts:
                book.accounts[name].require_same(name, rho, delta, unit, neighbours, epsilon)
                return None
            if (rho is None and epsilon is None) or delta is None:
                raise ParameterError(
                    f"the ledger {self._chain.path} has no dataset {name!r}{meant(name, book.accounts)}; give rho "
                    "and delta, or epsilon and delta, to create it. If it exists, its ledger has another path: open "
                    "that one"
                )
            account = Account.holding(rho, delta, unit or "user", neighbours or "added", epsilon=epsilon)
            return Event(kind="opened", dataset=name, charge=account.total, parameters=json.dumps(account.terms))

        if decide(self._chain.read()) is not None:
            self._chain.append(decide)
        return Dataset.of(self._chain, name)

    def check(self) -> None:
        """Verify the whole file again.

        Raises:
            LedgerError: The file is missing, locked, damaged or an older copy.
        """
        self._chain.check()

    def plot(self, ax: Axes | None = None, **options: object) -> Axes:
        """Plot how much of its budget each dataset has spent over time (needs matplotlib).

        A line is the larger of two parts: of the total rho, and of the total delta.

        Args:
            ax: The axes to draw into; by default pyplot's current ones if they are empty, else a new figure.
            options: Options of `Axes.step`, such as a line width.

        Returns:
            Matplotlib Axes, which a notebook shows.

        Raises:
            LedgerError: The file is missing, locked, damaged or an older copy.
        """
        accounts, history = self._chain.read().accounts, self.history
        series = {}
        for name, account in accounts.items():
            total = account.guarantee(account.total)
            series[name] = spent_over_time([row for row in history if row.dataset == name], total)
        return plot.steps(series, title=export.plain_text(repr(self)), ax=ax, options=options)

    def __repr__(self) -> str:
        return f"Ledger({str(self._chain.path)!r})"

    def _repr_html_(self) -> str:
        names = ["dataset", "total rho", "total delta", "remaining rho", "remaining delta", "charges"]
        accounts, history = self._chain.read().accounts, self.history
        charges = Counter(row.dataset for row in history)
        rows = []
        for name, account in accounts.items():
            total, left = account.guarantee(account.total), account.remaining
            amounts = [shown_up(total.rho), shown_up(total.delta, 3), shown_down(left.rho), shown_down(left.delta, 3)]
            rows.append([export.plain_text(name), *amounts, f"{charges[name]:,}"])
        return markup.table(names, rows, title=export.plain_text(repr(self)))


class Dataset(PrivacyFilter):
    """A privacy budget for one dataset of a ledger, with the methods of `Budget`. Made by `Ledger.dataset`.

    Many processes may charge it at the same time, also after a fork: every charge is decided and synced under the lock
    of the file. A Dataset itself cannot be copied or pickled; open the ledger again instead.

    Example:
        >>> import tempfile
        >>> import discreet as dp
        >>> folder = tempfile.TemporaryDirectory()
        >>> views = dp.Ledger.open(f"{folder.name}/privacy.ledger").dataset("views", rho=1, delta=1e-6)
        >>> log = {"user": [*range(5000)], "page": ["home"] * 5000}
        >>> release = dp.count(log, user="user", item="page", rho=0.25, delta=1e-7, budget=views)
        >>> [row.status for row in views.history]
        ['released']
        >>> folder.cleanup()
    """

    __slots__ = ("_about", "_chain", "name")

    _chain: Chain
    _about: Protected
    name: str

    def __init__(self) -> None:
        raise TypeError("use Ledger.open(path).dataset(name)")

    @classmethod
    def of(cls, chain: Chain, name: str) -> Self:
        """Return the budget of a dataset, for `Ledger.dataset`.

        Args:
            chain: The events of the ledger.
            name: The name of the dataset.
        """
        self = object.__new__(cls)
        self._set(_chain=chain, name=name, _about=chain.read().account(name).protected)
        return self

    @property
    def history(self) -> History:
        """The charges to this dataset in order, one row each."""
        return History(row for row in spendings(self._chain.events()) if row.dataset == self.name)

    @property
    def _protected(self) -> Protected:
        return self._about

    def _account(self) -> Account:
        return self._required(self._chain.read())

    @property
    def seen(self) -> Account:
        """The account after the last event that this process has seen. No file is read."""
        return self._required(self._chain.seen())

    @property
    def _label(self) -> str:
        return self.name

    def _require_chargeable(self) -> None:
        self._chain.require_writable()

    def _require_unnamed(self, about: Provenance | None, *promises: str) -> None:
        if about is None or not (about.once or about.replaces):
            return
        if self._is_charged(self._chain.read(), about, *promises):
            raise self._already(about.once)

    def _is_charged(self, book: Book, about: Provenance, *promises: str) -> bool:
        """Return whether a charge was made before, by its key; raise ParameterError if its names do not fit."""
        before = book.keys.get((self.name, about.once)) if about.once else None
        if before is not None:
            _, promise, files = before
            (stated, _, inputs), *now = (text.partition(".") for text in (promise, *promises))
            if stated not in (one[0] for one in now):
                raise ParameterError.about(
                    "{once} {!r} was charged for a release with other parameters or columns, and nothing is "
                    "charged now: repeat these, or give another key",
                    about.once,
                )
            others = [one[2] for one in now if one[2]]
            if (inputs and others and inputs not in others) or (files and about.files and files != about.files):
                which = f", which was {files}" if files and files != about.files else ""
                raise ParameterError.about(
                    "{once} {!r} was charged for another input{}, and nothing is charged now: repeat the call "
                    "with that input, or give another key",
                    about.once,
                    which,
                )
        named = (self.name, about.replaces)
        if before is None and about.replaces and named not in book.keys:
            many, found = book.labels.get(named, (0, ()))
            keys = ", ".join(repr(key) for key in found if key)
            if many == 0:
                raise ParameterError.about(
                    "no charge to {} has the key or label {!r} that {replaces} names; the history of the dataset "
                    "lists them",
                    self.name,
                    about.replaces,
                )
            if many > 1:
                last = f"their last keys are {keys}" if keys else "the last ones have no key"
                raise ParameterError.about(
                    "{:,} charges to {} have the label {!r} that {replaces} names, and {}: name a charge by its "
                    "key (once), or by a label that no other has",
                    many,
                    self.name,
                    about.replaces,
                    last,
                )
        return before is not None

    def _already(self, once: str) -> AlreadyCharged:
        history = self.history
        row = next(row for row in history if row.once.strip() == once)
        later = [row.once for row in history if row.replaces.strip() == once and row.once]
        return AlreadyCharged(once, self.name, row.time, row.digest, *later[-1:])

    def _reserve(self, event: Event, receipt: Receipt) -> int:
        def decide(book: Book) -> Event | None:
            self._required(book)
            # Under the lock: another process may have charged the key since `_require_unnamed`.
            if event.about is not None and self._is_charged(book, event.about, event.promise):
                return None
            return replace(event, dataset=self.name)

        if number := self._chain.append(decide, receipt):
            return number
        assert event.about is not None
        raise self._already(event.about.once)

    def _settle(self, number: int, given_back: Charge, release: object) -> None:
        digest = getattr(release, "digest", "")  # answers to queries have no rows
        event = Event(kind="released", dataset=self.name, of=number, charge=given_back, digest=digest)
        self._chain.append(lambda _: event)

    def _required(self, book: Book) -> Account:
        if self.name not in book.accounts:
            raise LedgerError(
                f"the ledger {self._chain.path} no longer has the dataset {self.name!r}; restore the original file"
            )
        return book.accounts[self.name]
