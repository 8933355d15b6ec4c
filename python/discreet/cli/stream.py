"""The command `discreet stream`: running counts over rounds of events, kept in a file."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import click

from discreet.budgets.advice import require
from discreet.cli import endings, options, outputs, report
from discreet.cli.datasets import dataset_to_charge
from discreet.cli.names_of_files import FILE
from discreet.cli.parsing import WHOLE, Group
from discreet.engines import files
from discreet.engines.timed_events import TimedEvents
from discreet.errors import ParameterError, SchemaError, StateError
from discreet.imports import held
from discreet.planning import plan as planning
from discreet.planning.choose import stated
from discreet.privacy.guarantee import unusual
from discreet.release import export
from discreet.release.replacing import real, require_space
from discreet.streams.base import StreamMechanism
from discreet.streams.clock import Clock
from discreet.streams.events import ITEM_TYPES
from discreet.streams.file import require_new
from discreet.streams.paths import beside
from discreet.streams.seal import ItemType
from discreet.streams.stream import Stream
from discreet.wording import counted

__all__ = ["stream"]

_STREAM = 1 << 16
"""The bytes that the folder of a new stream must have room for: more than its files have."""


@click.group(cls=Group, short_help="Release running counts after every round.")
def stream() -> None:
    """Release running counts of items after every round. A file keeps the state between calls.

    \b
    discreet stream plan --rho 0.5 --delta 1e-6 --l0 1 --horizon 365
    discreet stream init visits.stream --rho 0.5 --delta 1e-6 --l0 1 \\
        --horizon 365
    discreet stream step visits.stream today.csv --user visit --item page
    discreet stream init users.stream --rho 0.5 --delta 1e-6 --l0 2 \\
        --horizon 365 --unit user --rounds 30
    discreet stream show visits.stream
    """


_chosen = options.of("recommended", "rho epsilon delta l0 horizon item_bytes unit rounds linf")


def _recommended(options: dict[str, object]) -> Callable[..., StreamMechanism]:
    """Return a function that returns the mechanism of these options, with other values for some of them."""
    return partial(Stream.recommended, **{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]


@stream.command()
@_chosen
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(as_json: bool, epsilon: float | None, delta: float, **parameters: object) -> None:
    """Predict a stream without data.

    The plan names the mechanism, the noise, the guarantee and the users that an item needs. The options are those of
    `discreet stream init`. The numbers are for the round with the most noise, without
    a horizon among the first 1,024.

    \b
    discreet stream plan --rho 0.5 --delta 1e-6 --l0 1 --horizon 365
    """
    mechanism = _recommended({"epsilon": epsilon, "delta": delta, **parameters})()
    promised = stated(mechanism, epsilon, delta)
    made = dataclasses.replace(planning.plan(mechanism), guarantee=promised, reasons=unusual(promised))
    click.echo(made.to_json() if as_json else made)


@stream.command()
@click.argument("file", type=FILE)
@_chosen
@click.option(
    "--items", type=click.Choice([*ITEM_TYPES]), default="text", show_default=True,
    help="Type of the items. The items of CSV and JSON lines files are text.",
)  # fmt: skip
@click.option(
    "--ledger",
    metavar="FILE",
    type=FILE,
    help="Charge a dataset of this ledger for all rounds at once. Its --unit must match.",
)
@click.option("--dataset", metavar="NAME", help="Dataset of the ledger to charge (see `discreet budget`).")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
def init(
    file: str,
    items: ItemType,
    ledger: str | None,
    dataset: str | None,
    quiet: bool,
    epsilon: float | None,
    delta: float,
    **parameters: object,
) -> None:
    """Start a stream in FILE, which must not exist."""
    made = _recommended({"epsilon": epsilon, "delta": delta, **parameters})
    mechanism = made()
    budget = dataset_to_charge(ledger, dataset)
    require_new(file, mechanism)
    require_space(real(file).parent, _STREAM)
    ending = endings.current()
    with ExitStack() as work:
        if budget is not None:
            again = lambda e, d: made(epsilon=e, delta=d)  # noqa: E731
            require(budget, mechanism, again, epsilon, delta)
            ending.without = (
                "The stream was not made. Once it is charged, the same command without --ledger and --dataset makes it."
            )
            # Charge before the stream file exists. A process that ends in between wastes budget, but leaves no stream
            # whose cost was not charged. `PrivacyFilter.charge` says why one charge covers all rounds.
            with ending.watched():
                budget.charge(mechanism)
            work.enter_context(held())
        Stream.open(file, mechanism, items=items).detach()
        ending.where = f"The stream is in {export.plain_text(file)}."
    if not quiet:
        promised = stated(mechanism, epsilon, delta)
        click.echo(f"{mechanism!r}\nGuarantee: {promised.promise}", err=True)
        for note in unusual(promised):
            click.echo(f"Note: {note}.", err=True)
        ending.done = ending.sentence if budget is not None else ""


@stream.command(short_help="Add the events of DATA and release the counts.")
@click.argument("file", type=FILE)
@click.argument("data", type=FILE)
@click.option(
    "--user",
    required=True,
    multiple=True,
    metavar="COLUMN",
    help="Column that identifies an event, such as a visit. With `init --rounds`, it identifies a user.",
)
@click.option("--item", required=True, multiple=True, metavar="COLUMN", help="Column of items.")
@click.option("--time", metavar="COLUMN", help="Column of times, if DATA has several rounds. Needs --until.")
@click.option("--every", metavar="SPAN", help="Length of a round: 30m, 6h, 1d or 2w. The stream remembers it.")
@click.option(
    "--since", metavar="TIME", help="Start of round one: 2026-01-31 or 2026-01-31T12:00. The stream remembers it."
)
@click.option("--until", metavar="TIME", help="End of the last round of DATA. Later rows are skipped.")
@click.option("--yes", is_flag=True, help="Do not ask whether the column of times is correct.")
@click.option(
    "--round", "number", type=WHOLE, metavar="N", help="Add DATA as round N. Without it, DATA is the next round."
)
@options.written
@click.option("-q", "--quiet", is_flag=True, help="Print only rows, closed rounds and errors.")
def step(
    file: str,
    data: str,
    user: tuple[str, ...],
    item: tuple[str, ...],
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
    """Add the events of DATA to the stream in FILE and print the last release.

    DATA is a {data} file. Without --time it is one round. With --time, the command closes all
    rounds up to --until, even empty ones, because the end of the data is private.

    An event is all rows of DATA with the same value of --user. It belongs to the round of its first row in DATA. Use a
    column of visits: a person who comes on ten days then counts ten times. With a column of users, a person counts once
    in each DATA, so give one DATA for each round. If the stream was made with --rounds, --user is a column of users,
    and a user's rows count in each of the user's first rounds.

    The command skips rows without a time, rows in closed rounds and rows at or after --until. You can therefore repeat
    the same command. Standard error always lists the rounds that were closed.

    A text column may hold any text, and whether its cells are times is private. The command therefore asks before it
    first closes rounds by a text column. --yes answers the question. The stream remembers the column.
    """
    if len(user) > 1 or len(item) > 1:
        raise click.UsageError("A stream has one column of events and one column of items: give each option once.")
    (event,), (label,) = user, item
    if time is None and (every, since, until) != (None, None, None):
        raise click.UsageError("--every, --since and --until need --time COLUMN.")
    if time is not None and until is None:
        raise click.UsageError(
            "--time needs --until, the end of the last round of DATA. The last time in DATA is private."
        )
    if time is not None and number is not None:
        raise click.UsageError("Give either --round or --time, not both.")
    if data == "-":
        raise click.UsageError(
            "DATA must be a file, not standard input: an interrupted step needs the same rows again."
        )
    outputs.require_form(output, form)
    outputs.require_apart(output, data, file, *map(str, beside(file).values()))
    outputs.require_writable(output)
    with _opened(file) as opened:
        _require_items(opened, data)
        if time is None and number is None and opened.round and opened.clock is not None:
            raise click.UsageError(
                "The rounds of this stream are set by times. Give --time and --until, or --round N to add all of DATA "
                "to one round."
            )
        if time is None or until is None:
            with _reporting_closed_rounds(opened):
                release = opened.step(data, user=event, item=label, round=number)
        else:
            clock = _clock(opened, since, every)
            last = clock.rounds_until(until)
            horizon = opened.mechanism.last_round
            if horizon is not None and last > horizon:
                raise ParameterError(f"--until needs {last} rounds, but the stream has only {horizon}")
            by_user = opened.mechanism.rounds is not None
            timed = TimedEvents(data, event=event, item=label, time=time, one_round=not by_user)
            with _reporting_closed_rounds(opened):
                if opened.round < last:
                    clock = _confirmed_clock(opened, clock, time, last, text=timed.text, yes=yes)
                    rows_of = timed.rows_by_round(clock.begin, clock.span)
                    opened.keep(clock)
                    for following in range(opened.round + 1, last + 1):
                        opened.step(rows_of(following), user=event, item=label, round=following, release=False)
                release = opened.show()
    report.write_release(release, output, form, quiet=quiet)


@stream.command()
@click.argument("file", type=FILE)
@options.written
@options.certified
def show(file: str, output: str | None, form: str | None, certificate: bool, quiet: bool) -> None:
    """Print the release of the last round again, at no privacy cost."""
    outputs.require_form(output, form, certificate=certificate)
    outputs.require_apart(output, file, *map(str, beside(file).values()))
    outputs.require_writable(output, certificate=certificate)
    with _opened(file) as opened:
        release, begun = opened.show(), opened.round > 0
    report.write_release(release, output, form, quiet=quiet or not begun, certificate=certificate)
    if not (begun or quiet):
        click.echo(f"The stream has no round yet. Add one with `discreet stream step {file} DATA`.", err=True)


@stream.command()
@click.argument("file", type=FILE)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def close(file: str, yes: bool) -> None:
    """End the stream in FILE and destroy its key and counts."""
    with _opened(file) as opened:
        _confirm("This destroys the key of the stream permanently. Continue?", yes)
        opened.close()
    click.echo(f"The stream in {file} is closed; its key and counts are destroyed.", err=True)


def _opened(file: str) -> Stream:
    if not Path(file).exists():
        raise StateError(f"there is no stream in {file}; start one with `discreet stream init {file}`")
    return Stream.open(file)


def _require_items(opened: Stream, data: str) -> None:
    """Raise SchemaError if a file of this format cannot hold items of the stream's type."""
    kind = opened.item_type
    form = files.find([data]).form
    if kind not in (None, "text") and form.is_text:
        raise SchemaError(
            f"the items of a {form.name} file are text, but this stream has items of the type {kind}; give a Parquet "
            "file, or start a stream with --items text"
        )


def _clock(opened: Stream, since: str | None, every: str | None) -> Clock:
    """Return the clock of the options and the stream; raise an error if they contradict each other."""
    known = opened.clock
    if known is not None:
        since, every = known.since if since is None else since, known.every if every is None else every
    if since is None or every is None:
        raise click.UsageError("The first step with --time needs --since and --every. The stream remembers them.")
    asked = Clock(since=since, every=every)
    opened.require_clock(asked)
    return known if known is not None and asked.keeps_time_with(known) else asked


def _confirmed_clock(opened: Stream, clock: Clock, time: str, last: int, *, text: bool, yes: bool) -> Clock:
    """Return the clock to keep, after the user has confirmed what the command cannot check."""
    doubts = []
    if text and clock.column != time:
        doubts.append(
            f"The column {time!r} is text. Rows without a time such as 2026-01-31T12:00 are skipped without a message."
        )
        clock = dataclasses.replace(clock, column=time)
    if opened.clock is None and opened.round:
        doubts.append(
            f"{counted(opened.round, 'round')} closed without times. --since must be the start of the first of them."
        )
    if doubts:
        times = f"{clock.end(opened.round)} to {clock.end(last)}"
        doubts.append(f"This closes {_rounds_text(opened.round + 1, last)} permanently, {times}. Continue?")
        _confirm("\n".join(doubts), yes)
    return clock


def _confirm(question: str, yes: bool) -> None:
    """Ask on standard error; raise an error if the answer is no or there is no terminal, unless --yes is given."""
    if yes:
        return
    if sys.stdin is None:
        raise click.UsageError(
            "Standard input is closed, so there is no way to confirm. Nothing was changed. Pass --yes to proceed."
        )
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise click.UsageError(
            "Not a terminal, so there is no way to confirm. Nothing was changed. Pass --yes to proceed."
        ) from None
    if not agreed:
        raise click.ClickException("Nothing was changed.")


@contextmanager
def _reporting_closed_rounds(opened: Stream) -> Iterator[None]:
    """Print the rounds that were closed, even after an error."""
    before = opened.round
    try:
        yield
    finally:
        now, clock = opened.round, opened.clock
        if now > before:
            times = f", {clock.end(before)} to {clock.end(now)}" if clock is not None else ""
            click.echo(f"Closed {_rounds_text(before + 1, now)}{times}.", err=True)
        elif sys.exc_info()[0] is None:
            click.echo(f"No new round was closed, so no row was added. The last closed round is round {now}.", err=True)


def _rounds_text(first: int, last: int) -> str:
    return f"round {last}" if first == last else f"rounds {first} to {last}"
