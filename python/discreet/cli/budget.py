"""The commands for budgets and certificates: `discreet budget` and `discreet verify`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from discreet import certificate
from discreet.budgets.charge import Account
from discreet.budgets.ledger import Ledger
from discreet.budgets.record import Spending, shown_columns
from discreet.cli import outputs, report
from discreet.cli.datasets import dataset_of
from discreet.cli.names_of_files import FILE
from discreet.cli.options import promises
from discreet.cli.parsing import FLOAT, WHOLE, Command, Group
from discreet.errors import InputError, ParameterError
from discreet.formats import RELEASED_NAMES, TEXTS
from discreet.privacy.guarantee import UNITS, Unit, pair_text, unusual
from discreet.privacy.policy import policy_text, require_policy, require_within
from discreet.release import export
from discreet.wording import counted, shown_down, shown_up

__all__ = ["budget", "verify"]

_SHOWN, _WIDTH = 20, 120
_FIRST = ("number", "time", "dataset", "mechanism")
"""The most charges that `show` lists."""
_TYPES = {"number": "int64", "rho": "float64", "delta": "float64"}
_ledger = click.argument("ledger", metavar="LEDGER", type=FILE)
_chosen = click.option("--dataset", metavar="NAME", help="Show only this dataset.")
_delta = click.option("--delta", type=FLOAT, metavar="D", help="The total delta at which --max-epsilon must hold.")
_unit = click.option(
    "--unit",
    type=click.Choice([*UNITS]),
    default="user",
    show_default=True,
    help="The unit that the policy is about, such as user-day.",
)


@click.group(cls=Group, short_help="Create and inspect privacy-budget ledgers.")
def budget() -> None:
    """Limit the total privacy cost of all releases from a dataset.

    LEDGER is a file on a local disk. It holds the budgets of any number of datasets. The commands count, top-k, select,
    sum and aggregate charge a dataset, given by --ledger and --dataset, before they draw any noise. If its budget is
    insufficient, they release nothing and end with exit code 3.

    \b
    discreet budget init privacy.ledger --dataset views --rho 1 --delta 1e-6
    discreet count views.parquet --user user --item page --rho 0.1 \\
        --delta 1e-7 --ledger privacy.ledger --dataset views
    discreet budget show privacy.ledger
    """


@budget.command()
@_ledger
@click.option("--dataset", required=True, metavar="NAME", help="Name of the dataset.")
@promises["select"]
@click.option(
    "--unit",
    type=click.Choice([*UNITS]),
    default="user",
    show_default=True,
    help="Protect all rows of a user, each event alone, or all rows of a user in one period, as --unit of a release.",
)
def init(ledger: str, dataset: str, rho: float | None, epsilon: float | None, delta: float, unit: Unit) -> None:
    """Set the total budget of a dataset, in a new or existing LEDGER. The total cannot be changed later."""
    Account.holding(rho, delta, unit, "added", epsilon=epsilon)  # validate before the file is created
    opened = Ledger.open(ledger)
    exists = dataset in opened.datasets
    made = opened.dataset(dataset, rho=rho, delta=delta, epsilon=epsilon, unit=unit)
    if epsilon is None:
        click.echo(f"{dataset}: {made.guarantee.promise}", err=True)
    else:
        total = made.total
        rho_left, delta_left = shown_down(total.rho), shown_down(total.delta)
        click.echo(
            f"{dataset}: {pair_text(epsilon, delta)} per {UNITS[unit]}. It covers several releases with a total cost "
            f"of rho={rho_left} and delta={delta_left}, or one larger release of at most this epsilon and "
            "delta, or several whose epsilons and deltas add up so. The first charge decides.",
            err=True,
        )
    if exists:
        left = made.remaining
        click.echo(
            f"The dataset exists already, and was not changed. Remaining: rho {shown_down(left.rho)}, "
            f"delta {shown_down(left.delta, 3)}.",
            err=True,
        )
    for note in unusual(made.guarantee):
        click.echo(f"Note: {note}.", err=True)


@budget.command()
@_ledger
@_chosen
def show(ledger: str, dataset: str | None) -> None:
    """Show the budget of each dataset and its last charges.

    Amounts are the epsilons or the rhos that a budget adds up. Long texts are cut to fit 120 columns.
    """
    outputs.require_apart(None, ledger)
    opened = Ledger.open(ledger, create=False)
    chosen = [*map(opened.dataset, opened.datasets)] if dataset is None else [dataset_of(ledger, dataset)]
    grids: dict[str, list[list[str]]] = {"rho": [], "epsilon": []}
    for one in chosen:
        kind, amounts = one._account().amounts  # noqa: SLF001 - as the budget adds them up
        promise = pair_text(*one.guarantee.quoted)
        if one.guarantee.unit != "user":
            promise += f" per {one.guarantee.unit}"
        shown = zip(*amounts, strict=True)
        cells = [text for total, spent, left in shown for text in (shown_up(total), shown_up(spent), shown_down(left))]
        grids[kind].append([one.name, *cells, promise])
    for kind, rows in grids.items():
        if rows:
            names = ["dataset", kind, "spent", "left", "delta", "spent", "left", "total guarantee"]
            click.echo(report.grid(names, rows), nl=False)
    if charges := _rows(ledger, dataset):
        last = charges[-_SHOWN:]
        hidden = {"verb", "columns"} | ({"dataset"} if len(chosen) == 1 else set())
        names = [name for name in shown_columns(last, _FIRST, ("delta", "status")) if name not in hidden]
        rows = [[row.shown(name)[: 16 if name == "time" else None] for name in names] for row in last]
        click.echo(f"\n{report.grid(names, rows, width=_WIDTH, kept=('time', 'once', 'replaces'))}", nl=False)
        some = f"The last {_SHOWN} of {len(charges):,} charges. " if len(charges) > _SHOWN else ""
        click.echo(f"{some}`discreet budget history` lists all of each charge.")


@budget.command()
@_ledger
@click.option("--dataset", required=True, metavar="NAME", help="Name of the dataset.")
@click.option("-n", "--n", "parts", type=WHOLE, required=True, metavar="N", help="Number of equal parts.")
def split(ledger: str, dataset: str, parts: int) -> None:
    """Print the parameters of N equal releases that fit.

    Nothing is charged. --rho and --delta fit N times, whatever the commands are. In a budget in epsilon, --epsilon and
    --delta fit N times for one command with the same parameters. Counts without --l0 and top-k have less noise with the
    --rho, the more so the more parts; with a small --l0 and few parts, the --epsilon can have less.
    """
    outputs.require_apart(None, ledger)
    account = dataset_of(ledger, dataset)
    share, pair = account.split(parts)[0], account.split_epsilon(parts)
    click.echo(f"--rho {share.rho!r} --delta {share.delta!r}")
    if pair is not None:
        click.echo("--epsilon {!r} --delta {!r}".format(*pair))
        click.echo(
            "Note: counts without --l0 and top-k have less noise with the --rho. With a small --l0 and few parts, the "
            "--epsilon can have less.",
            err=True,
        )


@budget.command()
@_ledger
@_chosen
def history(ledger: str, dataset: str | None) -> None:
    """List all charges with label, mechanism, cost and status.

    \b
    reserved   charged, and no release of the rows is recorded
    released   charged, and the rows were released
    charged    charged for a release that was made elsewhere, such as a stream

    If a budget adds up epsilons, a row has the epsilon and delta of its charge.
    """
    outputs.require_apart(None, ledger)
    click.echo(_charges(_rows(ledger, dataset)), nl=False)


def _charges(rows: list[Spending]) -> str:
    """Return charges as a table."""
    names = shown_columns(rows, _FIRST, ("delta", "status", "digest"))
    return report.grid(
        names, [[row.digest[:12] if name == "digest" else row.shown(name) for name in names] for row in rows]
    )


@budget.command("verify")
@_ledger
@click.option("--dataset", required=True, metavar="NAME", help="Name of the dataset.")
@click.option(
    "--max-epsilon",
    type=FLOAT,
    metavar="E",
    help="Also require that all charges together imply an epsilon of at most E at --delta.",
)
@_delta
@_unit
def verify_dataset(ledger: str, dataset: str, max_epsilon: float | None, delta: float | None, unit: Unit) -> None:
    """Check LEDGER, and a policy for all charges to a dataset.

    Each event of the ledger must match its hash. All charges to the dataset add up, with and without a file. Their sum
    is converted to (epsilon, delta)-DP, and its epsilon is rounded up. The exit code is 0 if the sum is within the
    policy, and 1 if it exceeds the policy or the ledger is damaged.

    Releases that were not charged to this ledger are not checked, and an older copy of the ledger is not detected.
    `discreet verify FILE... --ledger` checks files.

    \b
    discreet budget verify privacy.ledger --dataset views --max-epsilon 4 \\
        --delta 1e-5
    """
    policy = require_policy(max_epsilon, delta)
    outputs.require_apart(None, ledger)
    found = dataset_of(ledger, dataset)
    account, rows = found._account(), found.history  # noqa: SLF001 - in the terms in which it adds up
    refunded = any(row.is_refunded for row in rows)
    spent = (
        certificate.sum_of([account.cost_of(*row.stated, row.pair) for row in rows]) if refunded else account.spending
    )
    click.echo("each event of the ledger matches its hash; an older copy of the ledger is not detected")
    click.echo(f"{counted(len(rows), 'charge')} to {export.plain_text(dataset)}: {spent.promise}")
    if refunded:
        click.echo("outputs decided what was given back of these charges, so it is not subtracted")
    click.echo(f"the total, which also holds if outputs decided which charges were made: {found.guarantee.promise}")
    if policy is not None:
        # With refunds, charges may add up to more than the total, which always holds.
        judged = found.guarantee if refunded and found.guarantee.implies(*policy) else spent
        what = f"the sum of all charges to {dataset}"
        epsilon = require_within(judged, *policy, what=what, unit=unit, parts=len(rows))
        click.echo(policy_text(epsilon, *policy))


@budget.command("export")
@_ledger
@_chosen
@click.option(
    "-o", "--output", metavar="FILE", type=FILE, help="Write to FILE and overwrite it. The suffix sets the format."
)
@click.option(
    "-f", "--format", "form", type=click.Choice(TEXTS), default="csv", show_default=True,
    help="Format on standard output.",
)  # fmt: skip
def export_history(ledger: str, dataset: str | None, output: str | None, form: str) -> None:
    """Write all charges, with parameters and digests.

    The format is {released}.
    """
    if output is not None and output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"A report is about released rows. The format is {RELEASED_NAMES}.")
    outputs.require_apart(output, ledger)
    outputs.require_writable(output)
    rows = _rows(ledger, dataset)
    fields = [field.name for field in dataclasses.fields(Spending) if field.name not in ("pair", "stated")]
    columns = [(name, [_encodable(getattr(row, name)) for row in rows], _TYPES.get(name, "string")) for name in fields]
    if output is not None:
        export.write(output, columns, {})
    else:
        click.echo(export.text(columns, {}, form), nl=False)


def _encodable(cell: object) -> object:
    """Return a cell with escapes for text that UTF-8 cannot encode; a ledger may hold such text."""
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell


def _rows(ledger: str, dataset: str | None) -> list[Spending]:
    return Ledger.open(ledger, create=False).history if dataset is None else dataset_of(ledger, dataset).history


@click.command(cls=Command, short_help="Check released rows against their certificate, and a policy.")
@click.argument("files", metavar="FILE...", type=FILE, nargs=-1, required=True)
@click.option(
    "--ledger",
    metavar="FILE",
    type=FILE,
    help="Also require that this ledger recorded the release of these rows, and name the charges without a file.",
)
@click.option(
    "--max-epsilon",
    type=FLOAT,
    metavar="E",
    help="Also require that the guarantee implies an epsilon of at most E at --delta. With several files, the sum of "
    "their guarantees must; with --ledger, also with the charges that have no file.",
)
@_delta
@_unit
def verify(
    files: tuple[str, ...], ledger: str | None, max_epsilon: float | None, delta: float | None, unit: Unit
) -> None:
    """Check the rows of each FILE against FILE.certificate.json, which --certificate wrote.

    The digest of the rows must match the certificate. The guarantee, and all else that follows from the mechanism and
    its parameters, is recomputed. A certificate is no signature: anyone can write one.

    --max-epsilon and --delta check a policy. The guarantee is converted to (epsilon, delta)-DP, and its epsilon is
    rounded up. Several files are several releases from the same users, so their guarantees add up; the rounds of one
    stream have a single guarantee, so give one of them. With --ledger, the other charges of the datasets that paid are
    added. `discreet budget verify` checks all charges of a dataset without files. The exit code is 1 if a file does not
    match its certificate, or if the policy is exceeded.

    \b
    discreet verify pages.csv --ledger privacy.ledger
    discreet verify pages.csv --max-epsilon 1 --delta 1e-6
    discreet verify january.csv february.csv --max-epsilon 2 --delta 1e-5
    """
    policy = require_policy(max_epsilon, delta)
    files = (*{Path(file): file for file in files}.values(),)  # the same path twice is one file
    outputs.require_apart(None, *(name for file in files for name in (file, f"{file}.certificate.json")), ledger)
    if len(files) == 1 and ledger is None:
        click.echo(certificate.verify(files[0], max_epsilon=max_epsilon, delta=delta, unit=unit))
        return
    found: list[certificate.Verified] = []
    for file, one in zip(files, certificate.verify_all(files, ledger), strict=True):
        click.echo(f"{export.plain_text(file)}: {one}\n" if len(files) > 1 else one)
        found.append(one)
    what = (
        f"the sum of {counted(len(files), 'file')}"
        if len(files) > 1
        else f"the guarantee of {export.plain_text(files[0])}"
    )
    try:
        total, others = certificate.total_of(found, ledger)
        if ledger is not None:
            charges = f"{counted(len(others), 'charge')} without a file"
            names = ", ".join(dict.fromkeys(repr(one.dataset) for one in found))
            if not others:
                click.echo(f"all charges of the ledger to {names} are those of these files")
            else:
                cost = certificate.sum_of(others)
                click.echo(
                    f"the ledger has {charges} among these, to {names}: {cost}. `discreet budget history` lists all"
                )
                what += f" and of {charges}"
    except ParameterError as error:
        raise InputError(f"the guarantees of these files have no sum: {error}") from None
    if len(found) + len(others) > 1:
        click.echo(f"{what}: {total.promise}")
    if policy is not None:
        epsilon = require_within(total, *policy, what=what, unit=unit, parts=len(found) + len(others))
        click.echo(policy_text(epsilon, *policy))
