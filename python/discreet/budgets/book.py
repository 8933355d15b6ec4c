"""`Book`: the sums of a ledger's events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from discreet.budgets.charge import NOTHING, Account, Charge
from discreet.budgets.record import Event
from discreet.errors import ParameterError

__all__ = ["Book"]

_CHARGE_LIMIT = 2**140
"""Above every charge in whole units, and small enough to be a float."""


@dataclass(slots=True)
class Book:
    """The accounts of a ledger after its first `number` events."""

    number: int = 0
    hash: str = ""
    """The seal of the last event."""
    end: int = 0
    """The place in the file behind the last event."""
    accounts: dict[str, Account] = field(default_factory=dict)
    drawing: dict[int, tuple[str, Charge]] = field(default_factory=dict)
    """Datasets and charges that are reserved and not published yet, by the number of the event."""

    def __copy__(self) -> Book:
        return Book(self.number, self.hash, self.end, dict(self.accounts), dict(self.drawing))

    def add(self, event: Event) -> None:
        """Add a new event.

        Raises BudgetExceeded if its charge does not fit, ParameterError if it contradicts the events before it.
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

    def replay(self, rows: list[dict[str, Any]]) -> None:
        """Add events of the past, given as the fields of their lines in the file.

        Charges are summed, whether they fit or not: what was charged was spent, and a total that is exceeded allows
        nothing more. Raises ValueError, TypeError, LookupError or AttributeError if a row is invalid.
        """
        spent: dict[str, list[int]] = {}
        for number, row in enumerate(rows, self.number + 1):
            kind, rho, delta = row["kind"], row.get("rho", 0), row.get("delta", 0)
            if not type(row["number"]) is type(rho) is type(delta) is int or row["number"] != number:
                raise ParameterError("an event has no valid number or charge")
            if not (0 <= rho < _CHARGE_LIMIT and 0 <= delta < _CHARGE_LIMIT) or (kind == "created") is not (
                number == 1
            ):
                raise ParameterError("a charge is out of range, or a ledger is created twice")
            if kind == "created":
                continue
            name = row["dataset"]
            if kind == "opened":
                self._open(Event(kind=kind, dataset=name, charge=Charge(rho, delta), parameters=row["parameters"]))
                continue
            if name not in spent:
                account = self.account(name)
                spent[name] = [account.spent.rho, account.spent.delta]
            if kind == "reserved":
                self.drawing[number] = name, Charge(rho, delta)
            elif kind == "released":
                rho, delta = self._settled(row["of"], name, Charge(rho, delta))
            elif kind != "charged":
                raise ParameterError("there is no event of this kind")
            sums = spent[name]
            sums[0] += rho
            sums[1] += delta
        self.number += len(rows)
        for name, (rho, delta) in spent.items():
            self.accounts[name] = replace(self.accounts[name], spent=Charge(rho, delta))

    def account(self, dataset: str) -> Account:
        """Return the account of a dataset; ParameterError if there is none."""
        if dataset not in self.accounts:
            raise ParameterError(f"the ledger has no dataset {dataset!r}")
        return self.accounts[dataset]

    def _settled(self, number: int, dataset: str, given_back: Charge) -> tuple[int, int]:
        """Close a reservation; return what to add to the spent rho and delta."""
        reserver, reserved = self.drawing.pop(number)
        if reserver != dataset or not given_back.within(reserved):
            raise ParameterError("there is no such reservation")
        return -given_back.rho, -given_back.delta

    def _open(self, event: Event) -> None:
        if not isinstance(event.dataset, str):
            raise ParameterError("the name of a dataset is text")
        if event.dataset in self.accounts:
            raise ParameterError(f"the ledger has a dataset {event.dataset!r} already")
        about = json.loads(event.parameters)
        account = Account.opened(event.charge, about)
        account.remaining  # noqa: B018 - refuses what is no total
        self.accounts[event.dataset] = account
