"""`Book`: the accounts of a ledger, summed over its events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.budgets.charge import NOTHING, Account, Charge
from discreet.budgets.record import Event
from discreet.engines.untrusted import Fields
from discreet.errors import ParameterError

__all__ = ["Book"]

_ALL = Fraction(2**64), Fraction(2**64)
"""An epsilon and a delta above those of every budget."""
_CHARGE_LIMIT = 2**140
"""An upper bound on every charge in whole units, small enough to fit a float."""


@dataclass(slots=True)
class Book:
    """The accounts of a ledger after its first `number` events."""

    number: int = 0
    hash: str = ""
    """The seal of the last event: the SHA-256 of its line and of the seal before it."""
    end: int = 0
    """The file offset after the last event."""
    accounts: dict[str, Account] = field(default_factory=dict)
    drawing: dict[int, tuple[str, Charge]] = field(default_factory=dict)
    """The dataset and charge of each reservation without a release, by the number of its event."""
    keys: dict[tuple[str, str], tuple[int, str, str]] = field(default_factory=dict)
    """The number, promise and files of each charge that is made once, by its dataset and key."""
    labels: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """The number of charges with a label and the keys of the last five, by their dataset and label."""
    by_rho: set[str] = field(default_factory=set)
    """The datasets with a charge that has no pair of epsilon and delta, among the past events."""

    def __copy__(self) -> Book:
        named = dict(self.keys), dict(self.labels), set(self.by_rho)
        return Book(self.number, self.hash, self.end, dict(self.accounts), dict(self.drawing), *named)

    def add(self, event: Event) -> None:
        """Add a new event.

        Raises BudgetExceeded if its charge does not fit, and ParameterError if it contradicts earlier events.
        """
        if (event.kind == "created") is not (self.number == 0):
            raise ParameterError("the first event of a ledger, and no other, creates it")
        number = self.number + 1
        if event.kind == "opened":
            self._open(event)
        elif event.kind in ("reserved", "charged"):
            self.accounts[event.dataset] = self.account(event.dataset).paying(event.charge)
            if event.kind == "reserved":
                self.drawing[number] = event.dataset, event.charge
            if event.about is not None:
                self._name(number, event.dataset, dict(event.about), event.promise)
        elif event.kind == "released":
            dataset, reserved = self.drawing.pop(event.of or 0, ("", NOTHING))
            if dataset != event.dataset or not event.charge.within(reserved):
                raise ParameterError("the release matches no reservation")
            self.accounts[dataset] = self.account(dataset).given_back(event.charge)
        elif event.kind != "created":
            raise ParameterError(f"{event.kind!r} is not a kind of event")
        self.number = number

    def replay(self, rows: list[Fields]) -> None:
        """Add past events, given as the fields of their lines in the file.

        All charges are summed, even if they exceed the total: they were spent, and nothing more fits then. Raises
        ValueError, TypeError, LookupError or AttributeError if a row is invalid.
        """
        spent: dict[str, list[int]] = {}
        for number, row in enumerate(rows, self.number + 1):
            kind, (rho, delta, less) = row["kind"], (row.get(name, 0) for name in ("rho", "delta", "less"))
            if not type(row["number"]) is type(rho) is type(delta) is type(less) is int or row["number"] != number:
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
                before = self.account(name).spent
                spent[name] = [before.rho, before.delta, before.less]
            if "pair" in row:
                epsilon, delta_used = map(float, row["pair"])
                account = self.account(name)
                self.accounts[name] = replace(account, used=account.used_with((epsilon, delta_used)))
            elif (rho or delta) and kind != "released":
                self.by_rho.add(name)
            if "about" in row:
                self._name(number, name, row["about"], row.get("promise", ""))
            if kind == "reserved":
                self.drawing[number] = name, Charge(rho, delta)
            elif kind == "released":
                self._settle(row["of"], name, Charge(rho, delta))
                rho, delta, less = -rho, -delta, -less
            elif kind != "charged":
                raise ParameterError("an event has an unknown kind")
            sums = spent[name]
            sums[0] += rho
            sums[1] += delta
            sums[2] += less
        self.number += len(rows)
        for name, (rho, delta, less) in spent.items():
            account = replace(self.accounts[name], spent=Charge(rho, delta, less=less))
            if name in self.by_rho and account.used is not None:  # an earlier version summed shares of pairs as rhos
                account = replace(account, used=_ALL)
            self.accounts[name] = account

    def _name(self, number: int, dataset: str, about: dict[str, str], promise: str) -> None:
        """Note the key and the label of a charge, which are the texts of its provenance."""
        if "once" in about:
            self.keys[dataset, about["once"].strip()] = number, promise, about.get("files", "")
        if "label" in about:
            label = about["label"].strip()  # earlier versions kept surrounding spaces
            many, keys = self.labels.get((dataset, label), (0, ()))
            self.labels[dataset, label] = many + 1, (*keys[-4:], about.get("once", "").strip())

    def account(self, dataset: str) -> Account:
        """Return the account of a dataset; raise ParameterError if there is none."""
        if dataset not in self.accounts:
            raise ParameterError(f"the ledger has no dataset {dataset!r}")
        return self.accounts[dataset]

    def _settle(self, number: int, dataset: str, given_back: Charge) -> None:
        """Close a reservation, whose charge is at least what is given back."""
        reserver, reserved = self.drawing.pop(number)
        if reserver != dataset or not given_back.within(reserved):
            raise ParameterError("the release matches no reservation")

    def _open(self, event: Event) -> None:
        if not isinstance(event.dataset, str):
            raise ParameterError("the name of a dataset must be text")
        if event.dataset in self.accounts:
            raise ParameterError(f"the ledger already has a dataset {event.dataset!r}")
        about = json.loads(event.parameters)
        account = Account.opened(event.charge, about)
        account.remaining  # noqa: B018 - raises an error if the total is invalid
        self.accounts[event.dataset] = account
