"""The command `discreet stream`: rounds of events into a file, running counts out."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from discreet.budgets.advice import require
from discreet.cli import options, outputs, report
from discreet.cli.budget import paying
from discreet.engines import files
from discreet.engines.rounds import TimedEvents
from discreet.errors import ParameterError, SchemaError, StateError
from discreet.planning.plan import stated
from discreet.privacy.guarantee import unusual
from discreet.streams.clock import Clock
from discreet.streams.events import ITEM_TYPES
from discreet.streams.file import require_new
from discreet.streams.paths import beside
from discreet.streams.stream import Stream

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
@click.option(
    "--items", type=click.Choice([*ITEM_TYPES]), default="text", show_default=True,
    help="What items are; those of CSV files are text.",
)  # fmt: skip
@click.option(
    "--unit", type=click.Choice(["event", "user"]), default="event", show_default=True,
    help="What is protected. A user may have --l0 items, each --linf times, in all rounds together: see to that.",
)  # fmt: skip
@click.option("--linf", type=int, metavar="N", help="Needed with --unit user: how often a user has an item at most.")
@click.option(
    "--ledger", metavar="FILE", help="Charge this ledger's dataset, of the same unit, for all rounds at once."
)
@click.option("--dataset", metavar="NAME", help="The dataset of the ledger; see `discreet budget`.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def init(file: str, items: Any, ledger: str | None, dataset: str | None, quiet: bool, **parameters: Any) -> None:
    """Starts a stream in FILE, which must not exist."""
    if parameters["unit"] == "user" and parameters["linf"] is None:
        raise click.UsageError("--unit user needs --linf: how often a user has an item at most, in all rounds together")
    parameters["linf"] = 1 if parameters["linf"] is None else parameters["linf"]
    mechanism = Stream.recommended(**parameters)
    budget = paying(ledger, dataset)
    require_new(file, mechanism)
    if budget is not None:
        again = lambda e, d: Stream.recommended(**{**parameters, "epsilon": e, "delta": d})  # noqa: E731
        require(budget, mechanism, again, parameters["epsilon"], parameters["delta"])
        # On the disk before the stream exists: a process that ends in between loses budget, and leaves no stream that
        # nobody paid for. `PrivacyFilter.charge` says why one charge pays for all rounds.
        budget.charge(mechanism)
    with Stream.open(file, mechanism, items=items):
        if not quiet:
            promised = stated(mechanism, parameters["epsilon"], parameters["delta"])
            click.echo(f"{mechanism!r}\npromises {promised.promise}", err=True)
            for note in unusual(promised):
                click.echo(f"Note: {note}.", err=True)


_rows = options.joined(
    options.written,
    click.option("-q", "--quiet", is_flag=True, help="Print rows, what was closed, and errors only."),
)


@stream.command()
@click.argument("file")
@click.argument("data")
@click.option(
    "--user", "event", required=True, metavar="COLUMN", help="The column that tells events apart, such as visits."
)
@click.option("--item", required=True, metavar="COLUMN", help="The column of items.")
@click.option("--time", metavar="COLUMN", help="The column of times, where DATA has several rounds; needs --until.")
@click.option("--every", metavar="SPAN", help="How long a round is: 30m, 6h, 1d or 2w. The stream remembers it.")
@click.option("--since", metavar="TIME", help="When round one begins: 2026-01-31 or 2026-01-31T12:00. Remembered, too.")
@click.option("--until", metavar="TIME", help="When the last round of DATA ends; later rows are left out.")
@click.option("--yes", is_flag=True, help="Do not ask whether the column of times is the right one.")
@click.option("--round", "number", type=int, metavar="N", help="The round of DATA; without it the next one.")
@_rows
def step(
    file: str,
    data: str,
    event: str,
    item: str,
    time: str | None,
    every: str | None,
    since: str | None,
    until: str | None,
    yes: bool,
    number: int | None,
    output: str | None,
    form: str | None,
    quiet: bool,
) -> None:
    """Adds the events of DATA to the stream in FILE, as one round or by their times, and prints the last release.

    DATA is a Parquet or CSV file. By their times all rounds up to --until are closed, empty ones too, since where the
    data ends is not public. An event is all rows of DATA with one cell of --user, in the round of its first row. Give a
    column of visits: somebody who comes on ten days counts ten times by visits, and once by a column of users.
    Rows without a time, in rounds that are closed, or from --until on, are left out, so that the same command can be
    given again. Which rounds were closed is always said on standard error.

    A column of text may hold anything, and whether its cells are times is private. So it is asked for once whether
    they are, or --yes given, before rounds are closed by it; the stream remembers the column.
    """
    if time is None and (every, since, until) != (None, None, None):
        raise click.UsageError("--every, --since and --until go with --time COLUMN")
    if time is not None and until is None:
        raise click.UsageError("--time needs --until, when the last round of DATA ends: where data ends is not public")
    if time is not None and number is not None:
        raise click.UsageError("--round and --time exclude each other")
    if data == "-":
        raise click.UsageError("a step that is cut short must be given the same rows again: write them to a file first")
    outputs.require_form(output, form)
    outputs.require_apart(output, data, file, *map(str, beside(file).values()))
    with _opened(file) as opened:
        _require_items(opened, data)
        if time is None and number is None and opened.round and opened.clock is not None:
            raise click.UsageError(
                "the rounds of this stream go by times: give --time and --until, or --round N for all of DATA at once"
            )
        if time is None or until is None:
            with _saying_what_was_closed(opened):
                release = opened.step(data, user=event, item=item, round=number)
        else:
            clock = _clock(opened, since, every)
            last = clock.rounds(until)
            horizon = opened.mechanism.last_round
            if horizon is not None and last > horizon:
                raise ParameterError(f"--until asks for {last} rounds, and the stream has {horizon}")
            events = TimedEvents(data, event=event, item=item, time=time)
            with _saying_what_was_closed(opened):
                if opened.round < last:
                    clock = _confirmed(opened, clock, time, last, text=events.text, yes=yes)
                    rows_of = events.rounds(clock.begin, clock.span)
                    opened.keep(clock)
                    for following in range(opened.round + 1, last + 1):
                        opened.step(rows_of(following), user="user", item="item", round=following, release=False)
                release = opened.show()
    report.publish(release, output, form, quiet=quiet)


@stream.command()
@click.argument("file")
@_rows
def show(file: str, output: str | None, form: str | None, quiet: bool) -> None:
    """Prints the release of the last round again, at no cost."""
    outputs.require_form(output, form)
    outputs.require_apart(output, file, *map(str, beside(file).values()))
    with _opened(file) as opened:
        release, begun = opened.show(), opened.round > 0
    report.publish(release, output, form, quiet=quiet or not begun)
    if not (begun or quiet):
        click.echo(f"There was no round yet: add one with `discreet stream step {file} DATA`.", err=True)


@stream.command()
@click.argument("file")
@click.option("--yes", is_flag=True, help="Do not ask.")
def close(file: str, yes: bool) -> None:
    """Ends the stream in FILE and destroys its key and counts."""
    with _opened(file) as opened:
        _confirm("This destroys the key of the stream for good. Go on?", yes)
        opened.close()
    click.echo(f"The stream in {file} is closed; its key and counts are destroyed.", err=True)


def _opened(file: str) -> Stream:
    if not Path(file).exists():
        raise StateError(f"there is no stream in {file}; start one with `discreet stream init {file}`")
    return Stream.open(file)


def _require_items(opened: Stream, data: str) -> None:
    """Refuses a file that can hold no items of the stream's type."""
    kind = opened.item_type
    if kind not in (None, "text") and files.find([data]).form == "CSV":
        raise SchemaError(
            f"the items of a CSV file are text, and those of this stream are of the type {kind}: give a Parquet file, "
            "or start a stream with --items text"
        )


def _clock(opened: Stream, since: str | None, every: str | None) -> Clock:
    """When rounds begin and end, by the options and by what the stream remembers, where both say the same."""
    known = opened.clock
    if known is not None:
        since, every = known.since if since is None else since, known.every if every is None else every
    if since is None or every is None:
        raise click.UsageError("the first step by times needs --since and --every; the stream remembers them")
    asked = Clock(since=since, every=every)
    opened.require_clock(asked)
    return known if known is not None and asked.keeps_time_with(known) else asked


def _confirmed(opened: Stream, clock: Clock, time: str, last: int, *, text: bool, yes: bool) -> Clock:
    """The clock to keep, once it is said that what cannot be seen from outside is right."""
    doubts = []
    if text and clock.column != time:
        doubts.append(
            f"The column {time!r} is text. Cells that are no times such as 2026-01-31T12:00 are left out in silence."
        )
        clock = dataclasses.replace(clock, column=time)
    if opened.clock is None and opened.round:
        doubts.append(f"{opened.round} rounds were closed without times; --since must be when the first of them began.")
    if doubts:
        times = f"{clock.end(opened.round)} to {clock.end(last)}"
        doubts.append(f"This closes {_rounds(opened.round + 1, last)} for good, {times}. Go on?")
        _confirm("\n".join(doubts), yes)
    return clock


def _confirm(question: str, yes: bool) -> None:
    """Asks on standard error; --yes is the answer where nobody can be asked."""
    if yes:
        return
    if sys.stdin is None:
        raise click.UsageError("standard input is closed, and nothing was changed: give --yes to go on")
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise click.UsageError("nobody is there to answer, and nothing was changed: give --yes to go on") from None
    if not agreed:
        raise click.ClickException("nothing was changed")


@contextmanager
def _saying_what_was_closed(opened: Stream) -> Iterator[None]:
    """Says at the end, however it came, which rounds were closed."""
    before = opened.round
    try:
        yield
    finally:
        now, clock = opened.round, opened.clock
        if now > before:
            times = f", {clock.end(before)} to {clock.end(now)}" if clock is not None else ""
            click.echo(f"Closed {_rounds(before + 1, now)}{times}.", err=True)
        elif sys.exc_info()[0] is None:
            click.echo(f"No new round was closed; the last one is round {now}.", err=True)


def _rounds(first: int, last: int) -> str:
    return f"round {last}" if first == last else f"rounds {first} to {last}"
