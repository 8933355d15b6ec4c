"""The command `discreet stream`: rounds of events into a file, running counts out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from discreet import cli_budget, export, report
from discreet.engines.local import connect, quoted, scan
from discreet.engines.sums import Rows
from discreet.errors import DiscreetError, InputError, ParameterError
from discreet.mechanisms.stream import Stream
from discreet.mechanisms.stream_events import ITEM_TYPES

__all__ = ["stream"]


@click.group(short_help="Running counts, round after round.")
def stream() -> None:
    """Running counts of items over rounds, kept in a file between calls.

    \b
    discreet stream init visits.stream --rho 0.5 --delta 1e-6 --l0 1 --horizon 365
    discreet stream step visits.stream today.csv --user visit --item page
    discreet stream show visits.stream
    """


@stream.command()
@click.argument("file")
@click.option("--rho", type=float, help="The privacy cost of all rounds, in delta-approximate rho-zCDP.")
@click.option("--epsilon", type=float, help="Or the total promise, (epsilon, delta)-DP.")
@click.option("--delta", type=float, required=True, help="The chance that the promise may fail.")
@click.option("--l0", type=int, required=True, metavar="N", help="Count at most N items of each event.")
@click.option("--horizon", type=int, metavar="ROUNDS", help="How many rounds there will be; without it any number.")
@click.option("--item-bytes", type=int, default=4400, show_default=True, help="How much memory an item may take.")
@click.option("--items", type=click.Choice([*ITEM_TYPES]), default="text", show_default=True, help="What items are.")
@click.option("--ledger", metavar="FILE", help="Charge this ledger's dataset, of unit event, for all rounds at once.")
@click.option("--dataset", metavar="NAME", help="The dataset of the ledger; see `discreet budget`.")
def init(file: str, items: Any, ledger: str | None, dataset: str | None, **parameters: Any) -> None:
    """Starts a stream in FILE, which must not exist."""
    mechanism = Stream.recommended(**parameters)
    budget = cli_budget.paying(ledger, dataset)
    if Path(file).exists():
        raise ParameterError(f"{file} is there already; go on with `discreet stream step`")
    with Stream.open(file, mechanism, items=items) as made:
        try:
            if budget is not None:
                budget.charge(mechanism)
        except BaseException:
            # Nothing was drawn, so that the stream may go as if it had never been.
            made.detach()
            for path in (file, f"{file}-rounds"):
                Path(path).unlink(missing_ok=True)
            raise
        click.echo(f"{mechanism!r}\npromises {mechanism.guarantee}", err=True)


_rows = (
    click.option("-o", "--output", metavar="FILE", help="Write here; the suffix picks the format."),
    click.option(
        "-f", "--format", "form", type=click.Choice(["table", *export.FORMATS]), help="The format of the rows."
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print rows and errors only."),
)


def _with_rows(command: Any) -> Any:
    for option in reversed(_rows):
        command = option(command)
    return command


@stream.command()
@click.argument("file")
@click.argument("data")
@click.option("--user", "event", required=True, metavar="COLUMN", help="The column that tells events apart.")
@click.option("--item", required=True, metavar="COLUMN", help="The column of items.")
@click.option("--time", metavar="COLUMN", help="The column of times, where DATA has several rounds; needs --every.")
@click.option("--every", metavar="SPAN", help="How long a round is: 30m, 6h, 1d or 2w.")
@click.option("--since", metavar="TIME", help="When round one begins, as 2026-01-31 or 2026-01-31T12:00.")
@click.option("--until", metavar="TIME", help="When the last round of DATA ends; later rows are left out.")
@click.option("--round", "number", type=int, metavar="N", help="The round of DATA; without it the next one.")
@_with_rows
def step(
    file: str,
    data: str,
    event: str,
    item: str,
    time: str | None,
    every: str | None,
    since: str | None,
    until: str | None,
    number: int | None,
    output: str | None,
    form: str | None,
    quiet: bool,
) -> None:
    """Adds the events of DATA to the stream in FILE, as one round or by their times, and prints the last release.

    DATA is a Parquet or CSV file. By their times all rounds up to --until are added, empty ones too, since where the
    data ends is not public. An event is in the round of its first row. Rows without a time, in rounds that are
    closed, or from --until on, are left out, so that the same command can be given again.
    """
    if len({option is None for option in (time, every, since, until)}) > 1:
        raise click.UsageError("--time, --every, --since and --until go together")
    report.require_form(output, form)
    with Stream.open(file) as opened:
        if time is None:
            release = opened.step(data, user=event, item=item, round=number)
        else:
            if number is not None:
                raise click.UsageError("--round and --time exclude each other")
            release = opened.show()
            span, begin = _span(str(every)), _moment(str(since))
            last = math.ceil((_moment(str(until)) - begin) / span)
            horizon = opened.mechanism.last_round
            if horizon is not None and last > horizon:
                raise ParameterError(f"--until asks for {last} rounds, and the stream has {horizon}")
            with _placed(data, event, item, time, span, begin) as rows_of:
                for number in range(opened.round + 1, last + 1):
                    release = opened.step(rows_of(number), user="user", item="item", round=number)
    report.publish(release, output, form, quiet=quiet)


@stream.command()
@click.argument("file")
@_with_rows
def show(file: str, output: str | None, form: str | None, quiet: bool) -> None:
    """Prints the release of the last round again, at no cost."""
    report.require_form(output, form)
    with Stream.open(file) as opened:
        release = opened.show()
    report.publish(release, output, form, quiet=quiet)


@stream.command()
@click.argument("file")
@click.confirmation_option(prompt="This destroys the key of the stream for good. Go on?")
def close(file: str) -> None:
    """Ends the stream in FILE and destroys its key and counts."""
    Stream.open(file).close()


@contextmanager
def _placed(
    data: str, event: str, item: str, time: str, span: timedelta, since: datetime
) -> Iterator[Callable[[int], Any]]:
    """Gives the rows of a round, as a table of user and item. An event is in the round of its first row alone."""
    connection = connect()
    try:
        connection.register("given", Rows(scan([data], [event, item, time])))
        # A time with a zone is a moment; one without is taken for UTC, whatever the zone of this machine.
        kind = str(connection.sql(f"SELECT {quoted(time)} FROM given LIMIT 0").types[0])
        moment = quoted(time) if "TIME ZONE" in kind else f"TRY_CAST({quoted(time)} AS TIMESTAMP)"
        connection.register("given", Rows(scan([data], [event, item, time])))
        place = f"floor((epoch({moment}) - {since.timestamp()!r}) / {span.total_seconds()!r}) + 1"
        connection.execute(
            f'CREATE TEMP TABLE placed AS SELECT place, "user", item FROM '
            f'(SELECT {place} AS place, {quoted(event)} AS "user", {quoted(item)} AS item FROM given) '
            'QUALIFY place = min(place) OVER (PARTITION BY "user")'
        )
    except (MemoryError, DiscreetError):
        raise
    except Exception:
        raise InputError(f"cannot read the rounds of {data}; check its columns and times") from None
    yield lambda number: connection.sql(f'SELECT "user", item FROM placed WHERE place = {number}')


def _span(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})\s*([mhdw])", text.strip())
    if found is None or int(found[1]) == 0:
        raise ParameterError(f"a span is a number and m, h, d or w, such as 30m or 1d, not {text[:20]!r}")
    unit = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[found[2]]
    return timedelta(**{unit: int(found[1])})


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError(f"a time is written 2026-01-31 or 2026-01-31T12:00, not {text[:30]!r}") from None
    return moment.replace(tzinfo=moment.tzinfo or UTC)
