"""The commands about budgets and certificates: `discreet budget` and `discreet verify`."""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from typing import Any

import click

from discreet import certificate
from discreet.budgets.charge import Account
from discreet.budgets.ledger import Dataset, Ledger
from discreet.budgets.record import Spending
from discreet.cli import outputs, report
from discreet.errors import ParameterError
from discreet.privacy.guarantee import unusual
from discreet.release import export

__all__ = ["budget", "paying", "verify"]

_TYPES = {"number": "int64", "rho": "float64", "delta": "float64"}
_ledger = click.argument("ledger", metavar="LEDGER")
_chosen = click.option("--dataset", metavar="NAME", help="This dataset alone.")


def paying(ledger: str | None, dataset: str | None) -> Dataset | None:
    """The dataset that the options of a releasing command name, None where they are left out."""
    if (ledger is None) != (dataset is None):
        raise click.UsageError("give --ledger and --dataset together")
    return None if ledger is None or dataset is None else _dataset(ledger, dataset)


def _dataset(ledger: str, name: str) -> Dataset:
    """A dataset that the ledger has; ParameterError, in words of the command line, if it has none of this name."""
    opened = Ledger.open(ledger, create=False)
    names = opened.datasets
    if name not in names:
        near = get_close_matches(name, names, 1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ParameterError(
            f"the ledger {ledger} has no dataset {name!r}{meant}: give --dataset one that `discreet budget show "
            f"{ledger}` lists, or make it with `discreet budget init`"
        )
    return opened.dataset(name)


@click.group(short_help="What may be spent, and what was, in a file.")
def budget() -> None:
    """Keeps what all releases from a dataset cost together within a total that was fixed beforehand.

    LEDGER is a file on a local disk, one for many datasets. The commands count, top-k and select charge it with
    --ledger and --dataset before they draw any noise, and end with exit code 3 where it does not pay.

    \b
    discreet budget init privacy.ledger --dataset views --rho 1 --delta 1e-6
    discreet count views.parquet --user user --item page --rho 0.1 --delta 1e-7 \\
        --ledger privacy.ledger --dataset views
    discreet budget show privacy.ledger
    """


@budget.command()
@_ledger
@click.option("--dataset", required=True, metavar="NAME", help="What the releases are about.")
@click.option("--rho", type=float, help="The total privacy cost, in delta-approximate rho-zCDP.")
@click.option("--epsilon", type=float, help="Or the total promise, (epsilon, delta)-DP.")
@click.option("--delta", type=float, required=True, help="The chance that the promise may fail: far below 1 / users.")
@click.option(
    "--unit", type=click.Choice(["user", "event"]), default="user", show_default=True, help="What is protected."
)
def init(ledger: str, dataset: str, rho: float | None, epsilon: float | None, delta: float, unit: str) -> None:
    """Fixes the total of a dataset, for good, in a new or an old LEDGER."""
    Account.holding(rho, delta, unit, "added", epsilon=epsilon)  # before a file is made
    made = Ledger.open(ledger).dataset(dataset, rho=rho, delta=delta, epsilon=epsilon, unit=unit)
    if epsilon is None:
        click.echo(f"{dataset}: {made.guarantee.promise}", err=True)
    else:
        total = made.total
        click.echo(
            f"{dataset}: ({epsilon:g}, {delta:g})-DP per {unit}, for one release of this epsilon and delta, or for "
            f"several whose costs add up to rho={total.rho:.6g} and delta={total.delta:.6g}",
            err=True,
        )
    for note in unusual(made.guarantee):
        click.echo(f"Note: {note}.", err=True)


@budget.command()
@_ledger
@_chosen
def show(ledger: str, dataset: str | None) -> None:
    """The total of each dataset, what was spent of it and what is left."""
    outputs.require_apart(None, ledger)
    opened = Ledger.open(ledger, create=False)
    rows = []
    for account in map(opened.dataset, opened.datasets) if dataset is None else [_dataset(ledger, dataset)]:
        columns = account.total, account.spent, account.remaining
        promise = "({:.4g}, {:.4g})-DP".format(*account.guarantee.quoted)
        rows.append([account.name, *(f"{x.rho:.6g}" for x in columns), *(f"{x.delta:.6g}" for x in columns), promise])
    names = ["dataset", "rho", "spent", "left", "delta", "spent", "left", "total promise"]
    click.echo(report.grid(names, rows), nl=False)


@budget.command()
@_ledger
@_chosen
def history(ledger: str, dataset: str | None) -> None:
    """What was charged, when, by which mechanism, and whether it was published."""
    outputs.require_apart(None, ledger)
    names = ["number", "time", "dataset", "mechanism", "rho", "delta", "status", "digest"]
    rows = []
    for row in _rows(ledger, dataset):
        cost = f"{row.rho:.6g}", f"{row.delta:.6g}"
        rows.append([str(row.number), row.time, row.dataset, row.mechanism, *cost, row.status, row.digest[:12]])
    click.echo(report.grid(names, rows), nl=False)


@budget.command("export")
@_ledger
@_chosen
@click.option("-o", "--output", metavar="FILE", help="Write here; the suffix picks the format.")
@click.option(
    "-f", "--format", "form", type=click.Choice(["csv", "json", "jsonl"]), default="csv", show_default=True,
    help="The format on standard output.",
)  # fmt: skip
def export_history(ledger: str, dataset: str | None, output: str | None, form: str) -> None:
    """The whole history, with parameters and digests, as CSV, JSON or Parquet."""
    outputs.require_apart(output, ledger)
    rows = _rows(ledger, dataset)
    fields = [field.name for field in dataclasses.fields(Spending)]
    columns = [(name, [_encodable(getattr(row, name)) for row in rows], _TYPES.get(name, "string")) for name in fields]
    if output is not None:
        export.write(output, columns, {})
    else:
        click.echo(export.text(columns, {}, form), nl=False)


def _encodable(cell: object) -> object:
    """Return a cell with escapes for what UTF-8 cannot encode; a ledger may hold such text."""
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell


def _rows(ledger: str, dataset: str | None) -> list[Spending]:
    return Ledger.open(ledger, create=False).history if dataset is None else _dataset(ledger, dataset).history


@click.command(short_help="Holds released rows against their certificate.")
@click.argument("file")
@click.option("--ledger", metavar="FILE", help="The rows must be those of a release that this ledger recorded, too.")
def verify(file: str, ledger: str | None) -> None:
    """Holds the rows of FILE against the certificate that --certificate wrote beside it.

    The digest of the rows must be the certificate's, and the guarantee that of the mechanism and its
    parameters, computed anew. A certificate is no signature.
    """
    outputs.require_apart(None, file, f"{file}.certificate.json", ledger)
    found: Any = certificate.verify(file, ledger=ledger)
    click.echo(found)
