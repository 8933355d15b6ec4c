"""What a ledger's events add up to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from discreet.budgets.charge import NOTHING, Account, Charge
from discreet.budgets.record import Event
from discreet.errors import ParameterError

__all__ = ["Book"]


@dataclass(slots=True)
class Book:
    """The accounts of a ledger after its first `number` events, of which `hash` is the seal."""

    number: int = 0
    hash: str = ""
    accounts: dict[str, Account] = field(default_factory=dict)
    drawing: dict[int, tuple[str, Charge]] = field(default_factory=dict)
    """What is reserved and not published yet, by the number of the event."""

    def __copy__(self) -> Book:
        return Book(self.number, self.hash, dict(self.accounts), dict(self.drawing))

    def add(self, event: Event) -> None:
        """Adds the next event.

        Raises BudgetExceeded where its charge does not fit, ParameterError where it makes no sense here.
        """
        if (event.kind == "created") is not (self.number == 0):
            raise ParameterError("a ledger is created once")
        number = self.number + 1
        if event.kind == "opened":
            self._open(event)
        elif event.kind in ("reserved", "charged"):
            self.accounts[event.dataset] = self.account(event.dataset).paying(event.charge)
            if event.kind == "reserved":
                self.drawing[number] = event.dataset, event.charge
        elif event.kind == "released":
            dataset, reserved = self.drawing.pop(event.of or 0, ("", NOTHING))
            if dataset != event.dataset or not event.charge.within(reserved):
                raise ParameterError("there is no such reservation")
            self.accounts[dataset] = self.account(dataset).given_back(event.charge)
        elif event.kind != "created":
            raise ParameterError(f"there is no event {event.kind!r}")
        self.number = number

    def account(self, dataset: str) -> Account:
        """The account of a dataset; ParameterError where there is none."""
        if dataset not in self.accounts:
            raise ParameterError(f"the ledger has no dataset {dataset!r}")
        return self.accounts[dataset]

    def _open(self, event: Event) -> None:
        if event.dataset in self.accounts:
            raise ParameterError(f"the ledger has a dataset {event.dataset!r} already")
        about = json.loads(event.parameters)
        account = Account.opened(event.charge, about)
        account.remaining  # noqa: B018 - refuses what is no total
        self.accounts[event.dataset] = account
