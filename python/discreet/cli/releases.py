"""The commands that release rows: `discreet count`, `top-k` and `select`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Unpack

import click

import discreet
from discreet.cli import interrupts, options, outputs, report
from discreet.cli.budget import dataset_to_charge
from discreet.engines import spark_session
from discreet.engines.sql import query
from discreet.engines.standard_input import standard_input
from discreet.errors import OUT_OF_DELTA
from discreet.planning.choose import Parameters

__all__ = ["count", "select", "top_k"]


class Asked(Parameters, total=False):
    """The options that become parameters of a function."""

    user: str
    item: str
    memory: str | None


class Options(Asked):
    """The options of a command that releases rows."""

    file: str | None
    sql: str | None
    engine: str
    master: str | None
    output: str | None
    form: str | None
    ledger: str | None
    dataset: str | None
    certificate: bool
    quiet: bool


@click.command()
@options.table
@options.promise
@options.counting
@options.published
def count(**options: Unpack[Options]) -> None:
    """Count the users of each item in FILE.

    FILE is a Parquet or CSV file, a quoted glob of such files, or - for standard input. A CSV file needs a header
    line, commas and UTF-8; --sql can read other CSV files (last example). Rows with an empty user or item are
    skipped.

    Without --l0, a user may have any number of items. The mechanism is confirmed counts, with the accuracy that
    --relative-error sets. A larger --rho releases more items; the noise of a count stays about the same.

    With --l0 N, at most N items of each user count. The noise is far smaller if users have few items, and it shrinks
    as --rho grows. The command uses the threshold mechanism that can release items with the fewest users. The choice
    depends on the parameters alone, not on the data (see `discreet plan count`).

    The column sigma is the standard deviation of a count's noise.

    \b
    discreet count visits.parquet --user user --item item --rho 1 --delta 1e-6
    discreet count 'logs/*.csv' --user id --item word --epsilon 4 --delta 1e-7 -o words.csv
    discreet count --sql "SELECT * FROM read_csv('excel.csv', delim = ';', all_varchar = true,
        parallel = false)" --user id --item word --epsilon 4 --delta 1e-7
    """
    _publish(discreet.count, **options)


@click.command("top-k", short_help="Rank the K items that most users have.")
@options.table
@options.promise
@options.top
@options.published
def top_k(**options: Unpack[Options]) -> None:
    """Rank the K items of FILE that most users have, without counts.

    The release has fewer than K items if the remaining items are not safe to publish. A user may have any number of
    items. The default mechanism is the unknown-domain Gumbel mechanism (Rogers 2023).

    \b
    discreet top-k visits.parquet --user user --item item -k 10 --epsilon 1 --delta 1e-6
    """
    _publish(discreet.top_k, **options)


@click.command(short_help="List the items that are safe to publish.")
@options.table
@options.promise
@options.selected
@options.published
def select(**options: Unpack[Options]) -> None:
    """List the items of FILE that are safe to publish, without counts.

    At most --l0 items of each user count. With --method auto, the choice of the method depends on the parameters
    alone, not on the data (see `discreet plan select`):

    \b
    --l0 1                     a threshold on counts
    --epsilon and a small l0   policy_laplace, a set union (up to an l0 of about three)
    otherwise                  dp_sips, a set union in rounds

    A set union collects the items of all users, and gives each item a weight from its users. --method auto uses a
    threshold on counts instead if an item could need far more users with a set union.

    \b
    discreet select visits.parquet --user user --item item --l0 1 --epsilon 1 --delta 1e-6
    """
    _publish(discreet.select, **options)


def _publish(
    verb: Callable[..., discreet.Release],
    *,
    file: str | None,
    sql: str | None,
    engine: str,
    master: str | None,
    output: str | None,
    form: str | None,
    ledger: str | None,
    dataset: str | None,
    certificate: bool,
    quiet: bool,
    **parameters: Unpack[Asked],
) -> None:
    """Release rows with a verb, write them, and report the guarantee and the charge."""
    if (file is None) == (sql is None):
        raise click.UsageError("Give exactly one of FILE and --sql QUERY. FILE is - for standard input.")
    if engine == "spark" and (file is None or file == "-"):
        raise click.UsageError("--engine spark needs a FILE; it reads neither --sql nor standard input.")
    if engine == "local" and master is not None:
        raise click.UsageError("--master needs --engine spark.")
    if file == "-" and sys.stdin is None:
        raise click.UsageError("Standard input is closed. Give a FILE, or pipe rows into the command.")
    outputs.require_form(output, form)
    overwrite = sql is None and engine != "spark"
    if not overwrite:
        outputs.require_new(output)
    outputs.require_apart(output, file, ledger)
    if certificate and output is None:
        raise click.UsageError("--certificate needs -o FILE: it is written next to FILE.")
    budget = dataset_to_charge(ledger, dataset)
    with _source(file, sql, engine, master, parameters["memory"]) as data, report.progress(quiet) as progress:
        release = verb(data, budget=budget, progress=progress, **parameters)
    try:
        report.publish(release, output, form, quiet=quiet, certificate=certificate, overwrite=overwrite)
    except OSError:
        if budget is not None:
            with suppress(OSError):
                click.echo(
                    f"The release was charged to {dataset}, but not all of its rows were written. The rows cannot be "
                    "drawn again, and a new release is charged again. Use -o FILE to keep rows in a file.",
                    err=True,
                )
        raise
    if budget is not None and not quiet:
        cost, total, left = release.guarantee, budget.total, budget.remaining
        charged = f"the whole guarantee, rho {cost.rho:.6g} and delta {cost.delta:.3g}"
        if cost.rho > total.rho or cost.delta > total.delta:
            charged = "the whole budget, which covers one release at its epsilon and delta"
        click.echo(
            f"Charged to {dataset}: {charged}. Remaining for {dataset}: rho {left.rho:.6g}, delta {left.delta:.3g}.",
            err=True,
        )
        if left.rho > 0 and left.delta == 0 < total.delta:
            click.echo(f"Note: {OUT_OF_DELTA}", err=True)


@contextmanager
def _source(file: str | None, sql: str | None, engine: str, master: str | None, memory: str | None) -> Iterator[object]:
    """Yield the data that a command reads.

    After an interrupt, all engines but Spark end within a second. Spark jobs must be cancelled first, which can take
    longer.
    """
    if engine == "spark":
        with spark_session.opened(file or "", master or "local[*]") as table:
            yield table
    else:
        with interrupts.within_a_second():
            if file == "-":
                with standard_input(memory) as data:
                    yield data
            else:
                yield file if sql is None else query(sql, memory)
