"""The commands that publish rows: `discreet count`, `top-k` and `select`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

import discreet
from discreet.cli import interrupts, options, outputs, report
from discreet.cli.budget import paying
from discreet.engines import spark_session
from discreet.engines.sql import query
from discreet.engines.standard_input import standard_input
from discreet.errors import OUT_OF_DELTA

__all__ = ["count", "select", "top_k"]


@click.command()
@options.table
@options.promise
@options.counting
@options.published
def count(**options: Any) -> None:
    """How many users have each item of FILE.

    FILE is a Parquet or CSV file, a quoted glob of such files, or - for standard input. Rows with an
    empty user or item are left out. A CSV file has names in its first line, commas and UTF-8; --sql
    reads others, as below. Counts come to a relative error, with no bound on a user's items, by
    confirmed counts; with --l0 by the threshold mechanism that names the smallest items, whatever the
    data (see `discreet plan count`).

    Without --l0 a larger --rho names more items and leaves the noise of the same counts about as it is: the column
    sigma says how large. With --l0, where users have few items, the noise is far smaller, and falls as rho grows.

    \b
    discreet count visits.parquet --user user --item item --rho 1 --delta 1e-6
    discreet count 'logs/*.csv' --user id --item word --epsilon 4 --delta 1e-7 -o words.csv
    discreet count --sql "SELECT * FROM read_csv('excel.csv', delim = ';', all_varchar = true,
        parallel = false)" --user id --item word --epsilon 4 --delta 1e-7
    """
    _publish(discreet.count, **options)


@click.command("top-k", short_help="The items that most users have, in order.")
@options.table
@options.promise
@options.top
@options.published
def top_k(**options: Any) -> None:
    """The K items of FILE that most users have, in order, without counts.

    Fewer come out where the rest is not safe to name. A user may have any number of items. By the
    unknown-domain Gumbel mechanism (Rogers 2023).

    \b
    discreet top-k visits.parquet --user user --item item -k 10 --epsilon 1 --delta 1e-6
    """
    _publish(discreet.top_k, **options)


@click.command()
@options.table
@options.promise
@options.selected
@options.published
def select(**options: Any) -> None:
    """The items of FILE that can be named, without counts.

    At most --l0 items of each user count. With --method auto by a threshold on counts for one item of a user, by
    the greedy set union for few under --epsilon, and by dp_sips, set union in rounds, for more, unless it needs far
    more users than a threshold; from the promise and --l0 alone, whatever the data (see `discreet plan select`).

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
    **parameters: Any,
) -> None:
    """Runs a verb on the data that a command names and puts rows and guarantee where they belong."""
    if (file is None) == (sql is None):
        raise click.UsageError("give exactly one of FILE, or - for standard input, and --sql")
    if engine == "spark" and (file is None or file == "-"):
        raise click.UsageError("--engine spark reads a FILE; give neither --sql nor -")
    if engine == "local" and master is not None:
        raise click.UsageError("--master goes with --engine spark")
    if file == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed: give a FILE, or send rows to it")
    outputs.require_form(output, form)
    overwrite = sql is None and engine != "spark"
    if not overwrite:
        outputs.require_new(output)
    outputs.require_apart(output, file, ledger)
    if certificate and output is None:
        raise click.UsageError("a certificate lies beside a file: give -o FILE")
    budget = paying(ledger, dataset)
    with _source(file, sql, engine, master, parameters["memory"]) as data, report.progress(quiet) as progress:
        release = verb(data, budget=budget, progress=progress, **parameters)
    try:
        report.publish(release, output, form, quiet=quiet, certificate=certificate, overwrite=overwrite)
    except OSError:
        if budget is not None:
            with suppress(OSError):
                click.echo(
                    f"The release was charged to {dataset}, and its rows could not all be written. They cannot be "
                    "drawn again: another release costs again. Give -o FILE to keep rows in a file.",
                    err=True,
                )
        raise
    if budget is not None and not quiet:
        cost, total, left = release.guarantee, budget.total, budget.remaining
        charged = f"the whole guarantee, rho {cost.rho:.6g} and delta {cost.delta:.3g}"
        if cost.rho > total.rho or cost.delta > total.delta:
            charged = "the whole budget, which pays for one release of its epsilon and delta"
        click.echo(
            f"Charged to {dataset}: {charged}. "
            f"Left in the ledger for {dataset}: rho {left.rho:.6g}, delta {left.delta:.3g}.",
            err=True,
        )
        if left.rho > 0 and left.delta == 0 < total.delta:
            click.echo(f"Note: {OUT_OF_DELTA}", err=True)


@contextmanager
def _source(file: str | None, sql: str | None, engine: str, master: str | None, memory: str | None) -> Iterator[Any]:
    """Yields the data that a command names.

    Spark's jobs have to be ended, however long that takes. Everything else ends within a second of an interrupt.
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
