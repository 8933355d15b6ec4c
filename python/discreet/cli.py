"""The command `discreet`: rows to stdout, everything else to stderr."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import discreet
from discreet import audit as auditing
from discreet import cli_budget, cli_stream, export, report
from discreet import demo as demonstration
from discreet.engines import local, spark_session
from discreet.errors import BudgetExceeded, DiscreetError, InputError, ParameterError
from discreet.mechanisms.set_union import METHODS as UNION_METHODS
from discreet.plan import choose

__all__ = ["main"]

_EXIT = {ParameterError: 2, BudgetExceeded: 3}


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits: 0 done, 1 input or other error, 2 parameters, 3 budget, 130 interrupt."""
    sys.exit(_run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: list[str]) -> int:
    try:
        with _sigterm_as_interrupt():
            return int(cli.main(arguments, prog_name="discreet", standalone_mode=False) or 0)
    except click.ClickException as error:
        _with_remedy(error).show()
        return error.exit_code
    except DiscreetError as error:
        click.echo(f"discreet: {error}", err=True)
        return next((code for kind, code in _EXIT.items() if isinstance(error, kind)), 1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("discreet: interrupted; nothing was published", err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        click.echo("discreet: out of memory; nothing was published", err=True)
        return 1


def _with_remedy(error: click.ClickException) -> click.ClickException:
    """What click says of a wrong option or argument, with what helps here."""
    if isinstance(error, click.NoSuchOption) and error.option_name in ("--seed", "--random-state"):
        remedy = "There is no seed: rows that can be drawn again protect nobody."
    elif isinstance(error, click.UsageError) and error.message.startswith("Got unexpected extra argument"):
        remedy = "Several files are one quoted glob, such as 'logs/*.csv'."
    else:
        return error
    return click.UsageError(f"{error.message.rstrip('.')}. {remedy}", ctx=error.ctx)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Lets a polite kill clean up as Ctrl-C does."""
    import signal

    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(discreet.__version__, prog_name="discreet")
def cli() -> None:
    """Publish counts of items with differential privacy, when nobody knows the items in advance.

    Try `discreet demo` first: it needs no data.

    \b
    Exit codes: 0 done, 1 input or any other error, 2 parameters, 3 a budget does
    not pay, 130 interrupted. `audit` ends with 1 where a promise is violated.
    """


def _options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Several options as one decorator, in the order in which help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_table = _options(
    click.argument("file", required=False),
    click.option("--user", required=True, metavar="COLUMN", help="The column of users: integers or text."),
    click.option("--item", required=True, metavar="COLUMN", help="The column of items: integers or text."),
)
_promise = _options(
    click.option("--rho", type=float, help="The privacy cost, in delta-approximate rho-zCDP."),
    click.option("--epsilon", type=float, help="Or the total promise, (epsilon, delta)-DP."),
    click.option(
        "--delta", type=float, required=True, help="The chance that the promise may fail: far below 1 / users."
    ),
)
_counting = _options(
    click.option("--l0", type=int, metavar="N", help="Count at most N items of each user, by a threshold mechanism."),
    click.option(
        "--relative-error",
        type=float,
        default=0.1,
        show_default=True,
        help="How close a count just large enough to be named should be, below 1; under about 0.087 it takes --spend.",
    ),
    click.option("--k-bar", type=int, default=10_000, show_default=True, help="How many ranked counts a call may see."),
    click.option(
        "--epsilon-star", type=float, default=0.0005, show_default=True, help="The epsilon of the first call."
    ),
    click.option("--delta-star", type=float, default=1e-11, show_default=True, help="The share of delta of one call."),
    click.option("--spend", is_flag=True, help="Pay for counts as close as --relative-error says; names fewer items."),
)
_top = _options(
    click.option("-k", type=int, required=True, metavar="N", help="How many items."),
    click.option("--k-bar", type=int, default=1_000, show_default=True, help="How many ranked counts are seen."),
    click.option(
        "--method",
        type=click.Choice(["gumbel", "discover+peel"]),
        default="gumbel",
        show_default=True,
        help="Ranks of the largest counts, or of items that a set union finds first.",
    ),
    click.option("--l0", type=int, metavar="N", help="With discover+peel, find items by at most N of each user."),
)
_bounded = click.option("--l0", type=int, required=True, metavar="N", help="Count at most N items of each user.")
_selected = _options(
    _bounded,
    click.option(
        "--method",
        type=click.Choice(["auto", "threshold", "dp_sips", *UNION_METHODS]),
        default="auto",
        show_default=True,
        help="By counts above a threshold, or by weights (see the docs on set union).",
    ),
)
_rows = _options(
    click.option("--sql", metavar="QUERY", help="Count the rows of this query instead of FILE."),
    click.option("--engine", type=click.Choice(["local", "spark"]), default="local", help="What counts the rows."),
    click.option("--master", metavar="URL", help="Where Spark is: local[*], spark://host:7077, yarn, sc://host."),
    click.option("--memory", metavar="SIZE", help="What counting may take, such as 2GB.  [default: half of all]"),
    click.option("-o", "--output", metavar="FILE", help="Write here; the suffix picks the format."),
    click.option(
        "-f", "--format", "form", type=click.Choice(["table", *export.FORMATS]), help="The format of the rows."
    ),
    click.option("--ledger", metavar="FILE", help="Charge this ledger's dataset before any noise is drawn."),
    click.option("--dataset", metavar="NAME", help="The dataset of the ledger; see `discreet budget`."),
    click.option("--certificate", is_flag=True, help="With -o, write a certificate of the rows beside them."),
    click.option("-q", "--quiet", is_flag=True, help="Print rows and errors only."),
)


@cli.command()
@_table
@_promise
@_counting
@_rows
def count(**options: Any) -> None:
    """How many users have each item of FILE.

    FILE is a Parquet or CSV file, a quoted glob of such files, or - for standard input. Rows with an
    empty user or item are left out. Counts come to a relative error, with no bound on a user's items, by
    Private Count Release (Rogers 2024); with --l0 by the threshold mechanism that names the smallest
    items, whatever the data (see `discreet plan count`).

    Without --l0 a larger --rho names more items and leaves the noise of the same counts as it is: the column
    sigma says how large. With --l0, where users have few items, the noise is far smaller, and falls as rho grows.

    \b
    discreet count visits.parquet --user user --item item --rho 1 --delta 1e-6
    discreet count 'logs/*.csv' --user id --item word --epsilon 4 --delta 1e-7 -o words.csv
    """
    _publish(discreet.count, **options)


@cli.command("top-k", short_help="The items that most users have, in order.")
@_table
@_promise
@_top
@_rows
def top_k(**options: Any) -> None:
    """The K items of FILE that most users have, in order, without counts.

    Fewer come out where the rest is not safe to name. A user may have any number of items. By the
    unknown-domain Gumbel mechanism (Rogers 2023).

    \b
    discreet top-k visits.parquet --user user --item item -k 10 --epsilon 1 --delta 1e-6
    """
    _publish(discreet.top_k, **options)


@cli.command()
@_table
@_promise
@_selected
@_rows
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
    report.require_form(output, form)
    if certificate and output is None:
        raise click.UsageError("a certificate lies beside a file: give -o FILE")
    budget = cli_budget.paying(ledger, dataset)
    with _source(file, sql, engine, master, parameters["memory"]) as data, report.progress(quiet) as progress:
        release = verb(data, budget=budget, progress=progress, **parameters)
    report.publish(release, output, form, quiet=quiet, certificate=certificate)
    if budget is not None and not quiet:
        whole, left = release.guarantee, budget.remaining
        click.echo(
            f"Charged to {dataset}: the whole guarantee, rho {whole.rho:.6g} and delta {whole.delta:.3g}. "
            f"Left in the ledger for {dataset}: rho {left.rho:.6g}, delta {left.delta:.3g}.",
            err=True,
        )


cli.add_command(cli_budget.budget)
cli.add_command(cli_budget.verify)
cli.add_command(cli_stream.stream)


@cli.group(short_help="What a command would do, before any data.")
def plan() -> None:
    """What a command would do, before any data: mechanism, noise, guarantee, and which items it names.

    \b
    discreet plan count --epsilon 1 --delta 1e-6 --l0 10
    discreet plan top-k -k 10 --rho 0.5 --delta 1e-6 --json
    """


@cli.group(short_help="Checks a guarantee against exact laws.")
def audit() -> None:
    """Holds the guarantee of a command's mechanism against its exact law on small neighbouring tables.

    That is known for `count --l0`, `top-k --method gumbel` and `select --method threshold`. Set unions, which
    `select --method auto` takes for more than one item of a user, have too many outcomes, as has count without
    --l0.

    \b
    discreet audit count --epsilon 1 --delta 1e-2 --l0 2 --runs 10000
    """


_as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")
_examined = _options(
    click.option(
        "--pairs", type=click.IntRange(min=1), default=200, show_default=True, help="How many neighbouring tables."
    ),
    click.option("--runs", type=click.IntRange(min=0), default=0, help="Also release the worst pair so often each."),
    _as_json,
)


def _plan(verb: str, as_json: bool, parameters: dict[str, Any]) -> None:
    made = discreet.plan(verb, **parameters)
    click.echo(made.to_json() if as_json else made)


def _audit(verb: str, pairs: int, runs: int, as_json: bool, parameters: dict[str, Any]) -> None:
    """Exits with 1 where there is a violation."""
    mechanism, _ = choose(verb, **parameters)
    found = auditing.audit(mechanism, pairs=pairs)
    click.echo(found.to_json() if as_json else found)
    violated = bool(found.violations)
    if runs:
        run = auditing.trial(mechanism, found.tightest.first, found.tightest.second, runs=runs)
        click.echo(run, err=as_json)
        violated |= run.violates
    if violated:
        raise click.exceptions.Exit(1)


def _without_data(name: str, parameters: Callable[..., Any], audited_by: Callable[..., Any], limits: str) -> None:
    """Adds the plan and the audit of a command; `limits` says what cannot be audited."""
    verb = name.replace("-", "_")

    def planned(as_json: bool, **given: Any) -> None:
        _plan(verb, as_json, given)

    def audited(pairs: int, runs: int, as_json: bool, **given: Any) -> None:
        _audit(verb, pairs, runs, as_json, given)

    text = f"of `discreet {name}` with these parameters."
    plan.command(name, help=f"The plan {text}")(_promise(parameters(_as_json(planned))))
    audit.command(name, help=f"Audits the mechanism {text}\n\n{limits}")(_promise(audited_by(_examined(audited))))


_without_data("count", _counting, _bounded, "Only with --l0: without it there are too many outcomes to enumerate.")
_without_data("top-k", _top, _top, "Only with --method gumbel: the law of the other is not known.")
_without_data(
    "select",
    _selected,
    _selected,
    "Only with --method threshold, which auto takes for --l0 1: no set union can be audited.",
)


@contextmanager
def _source(file: str | None, sql: str | None, engine: str, master: str | None, memory: str | None) -> Iterator[Any]:
    """The data that a command names; standard input passes through a temporary file of the user's own."""
    if engine == "spark":
        with spark_session.opened(file or "", master or "local[*]") as table:
            yield table
    elif sql is not None:
        yield local.query(sql, memory)
    elif file != "-":
        yield file
    else:
        with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
            start = sys.stdin.buffer.read(4)
            path = Path(folder) / ("stdin.parquet" if start == b"PAR1" else "stdin.csv")
            try:
                with path.open("xb") as copy:
                    copy.write(start)
                    shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
            except OSError:
                raise InputError("cannot keep standard input: the temporary folder is full or read-only") from None
            if path.stat().st_size == 0:
                raise InputError("cannot read standard input: it is empty")
            yield str(path)


@cli.command(short_help="Counts a synthetic log, which it can also write.")
@click.option("--rho", type=float, default=1.0, show_default=True, help="The privacy cost.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="The chance that the promise may fail.")
@click.option("--write", metavar="FILE", help="Also write the synthetic rows to a .csv or .parquet file.")
def demo(rho: float, delta: float, write: str | None) -> None:
    """Makes a synthetic log, counts it with differential privacy and shows the result."""
    if write is not None and export.form_of(write) not in ("csv", "parquet"):
        raise ParameterError("the file's suffix must be .csv or .parquet, which can be counted")
    log = demonstration.synthetic_log()
    table = log.table
    click.echo(f"A synthetic log: {len(log.users):,} visits by 20,000 users to 50,000 pages.", err=True)
    if write is not None:
        export.write(write, [("user", log.users, "int64"), ("item", table["item"], "string")], {})
    release = discreet.count(table, user="user", item="item", rho=rho, delta=delta)
    click.echo(report.table(release, shown=12, truth=log.true_counts()), nl=False)
    for line in report.guarantee_lines(release):
        click.echo(line, err=True)
    example = write or "FILE"
    click.echo(
        f"Now your own: discreet count {example} --user user --item item --rho {rho:g} --delta {delta:g}", err=True
    )


@cli.command()
def doctor() -> None:
    """Checks that this installation works and says what it found."""
    failed = 0
    for name, check in _CHECKS.items():
        try:
            click.echo(f"ok      {name}: {check()}")
        except Exception as error:  # whatever is broken is reported, not raised
            failed += 1
            click.echo(f"FAILED  {name}: {type(error).__name__}: {error}")
    if failed:
        raise click.ClickException("this installation does not work; install discreet again in a fresh environment")


def _check_count() -> str:
    data = {"user": [1, 1, 2, 3], "item": ["a", "a", "a", "b"]}
    release = discreet.count(data, user="user", item="item", rho=0.1, delta=1e-6)
    return f"a table of four rows was counted and {len(release)} items were released"


def _check_duckdb() -> str:
    import duckdb

    _, counts = local.histogram(local.query("SELECT 1 AS u, 'x' AS i"), "u", "i")
    if counts.tolist() != [1]:
        raise RuntimeError("a table of one row was not counted as one")
    return f"version {duckdb.__version__} scans"


def _check_entropy() -> str:
    from discreet._core import Rng

    if Rng().bits64() == Rng().bits64():
        raise RuntimeError("two streams are equal")
    return "the operating system gives randomness"


_CHECKS: dict[str, Callable[[], str]] = {
    "discreet": lambda: f"version {discreet.__version__}",
    "python": lambda: f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    "numpy": lambda: str(sys.modules["numpy"].__version__),
    "duckdb": _check_duckdb,
    "entropy": _check_entropy,
    "count": _check_count,
}
