"""The datasets of a ledger that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from discreet import budgets
from discreet.errors import ParameterError
from discreet.wording import meant

if TYPE_CHECKING:
    from discreet.budgets.ledger import Dataset

__all__ = ["dataset_of", "dataset_to_charge"]


def dataset_to_charge(ledger: str | None, dataset: str | None) -> Dataset | None:
    """Return the dataset that --ledger and --dataset name; None if neither option is given."""
    if (ledger is None) != (dataset is None):
        raise click.UsageError("Give --ledger and --dataset together.")
    return None if ledger is None or dataset is None else dataset_of(ledger, dataset)


def dataset_of(ledger: str, name: str) -> Dataset:
    """Return a dataset of the ledger; raise ParameterError with the options to use if its name is unknown."""
    opened = budgets.Ledger.open(ledger, create=False)
    names = opened.datasets
    if name not in names:
        raise ParameterError(
            f"the ledger {ledger} has no dataset {name!r}{meant(name, names) or '.'} `discreet budget show {ledger}` "
            "lists its datasets; `discreet budget init` adds one."
        )
    return opened.dataset(name)
