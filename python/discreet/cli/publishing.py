"""The work of a command that releases rows: checks of its options, the release, and its output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import click

from discreet import api, sums
from discreet.cli import endings, outputs, report, sources
from discreet.cli.datasets import dataset_to_charge
from discreet.cli.known import known_items, released
from discreet.cli.named_mechanisms import mechanism_named
from discreet.cli.options import PLUME
from discreet.cli.parsing import Given
from discreet.cli.sources import FileOptions
from discreet.engines import spark_session
from discreet.engines.projection import columns_of
from discreet.engines.sql import query
from discreet.engines.standard_input import standard_input
from discreet.errors import OUT_OF_DELTA, AlreadyCharged
from discreet.mechanisms import CountsWithFoundBound
from discreet.mechanisms.base import made_for
from discreet.mechanisms.parameters import K_BAR, L0_SHARE, PERCENTILE, RELATIVE_ERROR
from discreet.planning.choose import choose
from discreet.release import Release, export, provenance, reading
from discreet.releasing import required
from discreet.wording import shown_down

if TYPE_CHECKING:
    from discreet.budgets import Dataset
    from discreet.errors import Charged

__all__ = ["publish"]

_EMPTY = 4
"""The exit code for a release without items, with --fail-if-empty."""
_VERBS: dict[str, Callable[..., Release]] = {
    "count": api.count,
    "top_k": api.top_k,
    "select": api.select,
    "sum": sums.sum,
    "aggregate": sums.aggregate,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A release that a command was asked for: the options that are no parameters of its function, and these."""

    verb: str
    file: str | None
    sql: str | None
    engine: str = "local"
    master: str | None = None
    output: str | None
    form: str | None
    ledger: str | None
    dataset: str | None
    certificate: bool
    quiet: bool
    items: str | None = None
    overwrite: bool = False
    title: str | None = None
    fail_if_empty: bool = False
    read: FileOptions
    parameters: Given

    @classmethod
    def of(cls, verb: str, options: Given) -> Self:
        """Return the task of a verb and its options."""
        read = FileOptions(
            database=options.pop("database"),
            table=options.pop("table"),
            delimiter=options.pop("delimiter"),
            encoding=options.pop("encoding"),
            no_header=options.pop("no_header"),
        )
        own = {field.name: options.pop(field.name) for field in fields(cls) if field.name in options}
        given = {name: value for name, value in options.items() if value is not None}
        return cls(verb=verb, read=read, parameters=given, **own)

    @property
    def is_named(self) -> bool:
        """Whether FILE alone names the input, so that it is known that the output is no input."""
        return self.sql is None and self.read["database"] is None and self.engine != "spark"

    @property
    def once(self) -> str | None:
        """The key of a charge that is made once."""
        key: str | None = self.parameters.get("once")
        return key


def publish(verb: str, **options: Any) -> int:
    """Release rows with a verb, write them, and report the guarantee and the charge; return the exit code."""
    task = Task.of(verb, options)
    _require_input(task)
    _require_one_reading(task)
    _require_terms(task)
    chosen = _chosen(task.parameters, listed=task.items is not None) if verb == "count" else {}
    budget = _dataset(task)
    listed = _listed(task)
    outputs.require_writable(task.output, certificate=task.certificate)
    is_new = budget is not None and not task.overwrite and task.output is not None
    is_new = is_new and not os.path.lexists(str(task.output))
    ending, failure = endings.current(), None
    try:
        with ending.watched():
            release = _released(task, budget, listed, chosen)
    except BaseException as error:
        if isinstance(error, AlreadyCharged) and task.output and error.digest in reading.digests_of(task.output):
            return _said_again(task, task.output, error)
        if ending.release is None:
            raise
        release, failure = ending.release, error  # it is complete and paid for, so it is published
    report.write_release(
        release,
        task.output,
        task.form,
        quiet=task.quiet,
        certificate=task.certificate,
        overwrite=_may_replace(task, budget, is_new=is_new),
        title=task.title,
    )
    if failure is not None:
        raise failure
    if budget is not None and not task.quiet:
        ending.done = _charged(budget, release, ending.charged, task.parameters)
    if task.quiet and not len(release):
        click.echo("No item is common enough to be released.", err=True)
    return _EMPTY if task.fail_if_empty and not len(release) else 0


def _require_input(task: Task) -> None:
    """Raise UsageError unless the options name one input that the engine reads."""
    is_usual = sources.dialect(task.read).is_usual
    if [task.file, task.sql, task.read["database"]].count(None) != 2:
        raise click.UsageError(
            "Give exactly one of FILE, --sql QUERY and --database FILE. FILE is - for standard input."
        )
    if task.sql is not None and not is_usual:
        raise click.UsageError("--delimiter, --encoding and --no-header are for FILE; a query reads its files itself.")
    if task.engine == "spark" and not is_usual:
        raise click.UsageError("--delimiter, --encoding and --no-header are for CSV; --engine spark reads Parquet.")
    if task.engine == "spark" and task.file in (None, "-"):
        raise click.UsageError("--engine spark needs a FILE; it reads neither --sql nor standard input.")
    if task.engine == "local" and task.master is not None:
        raise click.UsageError("--master needs --engine spark.")
    if task.file == "-" and sys.stdin is None:
        raise click.UsageError("Standard input is closed. Give a FILE, or pipe rows into the command.")


def _require_one_reading(task: Task) -> None:
    """Raise UsageError for standard input if the command reads its rows twice."""
    given = task.parameters
    values = {*given.get("sums", ()), *given.get("means", ())}
    reasons = {
        "With several columns of values, this command reads": len(values) > 1,
        "plume reads": given.get("mechanism") in PLUME,
        "--bounds-percentile reads": "bounds_percentile" in given,
        "Without --items, this command reads": task.verb == "sum" and task.items is None,
        "--l0 auto and --kept-share read": given.get("l0") == "auto" or bool(given.get("kept_share")),
    }
    what = next((what for what, is_so in reasons.items() if is_so), None)
    if task.file == "-" and what is not None:
        raise click.UsageError(f"{what} the rows twice. Give a FILE, not standard input.")


def _require_terms(task: Task) -> None:
    """Raise UsageError if a delta is missing, or if options need a ledger or another output."""
    given, is_report = task.parameters, task.output is not None and export.form_of(task.output) == "html"
    sums_up = task.verb in ("sum", "aggregate")
    if sums_up and given.get("delta") is None and (task.items is None or given.get("epsilon") is not None):
        raise click.UsageError(
            "--delta is missing. Choose it far below 1 / number of users, such as --delta 1e-6. Only --rho with "
            "--items needs no --delta."
        )
    paying = {"--charge spent": given.get("charge") == "spent", "--once": task.once is not None}
    paying["--replaces"] = given.get("replaces") is not None
    if task.ledger is None and (option := next((name for name, is_given in paying.items() if is_given), None)):
        raise click.UsageError(f"{option} needs --ledger and --dataset.")
    if task.once is not None and is_report:
        raise click.UsageError("--once compares the rows of -o FILE, and a report is no file of rows. Give FILE.csv.")
    if task.title is not None and not is_report:
        raise click.UsageError("--title is the title of a report. Give -o FILE.html, or leave it out.")
    provenance.require_label("title", task.title)


def _dataset(task: Task) -> Dataset | None:
    """Return the dataset to charge; raise an error if the output would replace an input or rows that were paid for."""
    database = task.read["database"]
    outputs.require_form(task.output, task.form, certificate=task.certificate)
    if not task.is_named and task.once is None:
        outputs.require_new(task.output)
    outputs.require_apart(task.output, task.file, task.ledger, task.items, database)
    budget = dataset_to_charge(task.ledger, task.dataset)
    kept = outputs.require_unpublished(task.output, budget, task.ledger, task.once, overwrite=task.overwrite)
    if not (task.is_named or kept):
        outputs.require_new(task.output)
    outputs.require_public(task.items, task.sql, task.file, database, task.ledger)
    return budget


def _listed(task: Task) -> list[str] | None:
    """Return the public items of --items; None without the option."""
    if task.items is None:
        return None
    named = task.parameters["item"]
    every = task.parameters.get("every")
    return known_items(task.items, [*((named,) if isinstance(named, str) else named), *filter(None, [every])])


def _released(task: Task, budget: Dataset | None, listed: list[str] | None, chosen: dict[str, object]) -> Release:
    """Return the release of the data that the options name."""
    with _naming(task), _source(task) as data:
        if task.items is not None and task.read["database"] is not None:
            outputs.require_stored(data)
        call = partial(_VERBS[task.verb], data, budget=budget, progress=not task.quiet, **task.parameters, **chosen)
        return call() if listed is None else released(lambda known: call(items=known), listed)


def _said_again(task: Task, output: str, error: AlreadyCharged) -> int:
    """Return the exit code for rows of an earlier charge that the output has."""
    if task.certificate and not reading.is_certified(output, error.digest):
        raise outputs.uncertified(output, error) from None
    if not task.quiet:
        click.echo(
            f"{export.plain_text(output)} has the rows that were charged to {error.dataset} for this key at "
            f"{error.time}. Nothing was charged or written.",
            err=True,
        )
    return _EMPTY if task.fail_if_empty and reading.is_empty(output) else 0


def _may_replace(task: Task, budget: Dataset | None, *, is_new: bool) -> bool:
    """Return whether the output may be overwritten now: another command may have written it meanwhile."""
    if is_new and os.path.lexists(str(task.output)):
        return False  # a file that has appeared may have the rows of another charge
    if task.is_named:
        try:
            outputs.require_unpublished(task.output, budget, task.ledger, None, overwrite=task.overwrite)
        except click.UsageError:
            return False  # another command has written the rows of its charge meanwhile
    return task.is_named


def _charged(budget: Dataset, release: Release, paid: Charged | None, parameters: Given) -> str:
    """Return the text about the charge, by what the process has seen of the ledger, which may have been moved."""
    account = budget.seen
    cost, total, left = release.guarantee, account.guarantee(account.total), account.remaining
    rest = f"rho {shown_down(left.rho)}, delta {shown_down(left.delta)}"
    amount, pair = ("", None) if paid is None else (paid.amount, paid.pair)
    charged = f"the whole guarantee, {amount}"
    if pair is not None and pair != account.promise.dp:  # epsilons add up
        charged, rest = amount, "epsilon {}, delta {}".format(*map(shown_down, left.dp or (0.0, 0.0)))
    elif pair is not None or cost.rho > total.rho or cost.delta > total.delta:
        charged = "the whole budget"
    elif parameters.get("charge") == "spent":
        charged = f"what was spent, {amount}"
    note = f"\nNote: {OUT_OF_DELTA}" if left.rho > 0 and left.delta == 0 < total.delta else ""
    return f"Charged to {budget.name}: {charged}. Remaining for {budget.name}: {rest}.{note}"


def _chosen(parameters: Given, *, listed: bool) -> dict[str, object]:
    """Return the mechanism of options that `count` of the library leaves to it, and remove what it contains."""
    bound = {name: parameters.pop(name) for name in ("percentile", "l0_share")}
    k_bar, l0 = parameters.pop("k_bar"), parameters.get("l0")
    name = parameters.pop("mechanism")
    found = bound != {"percentile": PERCENTILE, "l0_share": L0_SHARE}
    if name != "auto" and (listed or l0 == "auto" or parameters.get("kept_share")):
        raise click.UsageError("--mechanism is not for --items, --kept-share or --l0 auto. Leave out either of them.")
    if name in PLUME and (k_bar != K_BAR or "relative_error" in parameters):
        raise click.UsageError("--relative-error and --k-bar are not for plume. Leave them out.")
    if found and l0 != "auto":
        raise click.UsageError("--percentile and --l0-share are for --l0 auto. Leave them out.")
    if k_bar != K_BAR and (listed or (parameters.get("l0") is not None and name == "auto")):
        raise click.UsageError("--k-bar is for counts without --l0 and --items. Leave out either of them.")
    if not found and k_bar == K_BAR and name == "auto":
        return {}
    delta = required(parameters.pop("delta", None))
    rho, epsilon = parameters.pop("rho", None), parameters.pop("epsilon", None)
    if found:
        parameters.pop("l0")
        return {"mechanism": made_for(CountsWithFoundBound, rho, epsilon, delta=delta, **bound)}
    error = parameters.pop("relative_error", RELATIVE_ERROR)
    if name != "auto":
        l0 = parameters.pop("l0", None)
        return {"mechanism": mechanism_named(name, rho, epsilon, delta=delta, l0=l0, relative_error=error, k_bar=k_bar)}
    return {"mechanism": choose("count", rho=rho, epsilon=epsilon, delta=delta, relative_error=error, k_bar=k_bar)[0]}


def _naming(task: Task) -> AbstractContextManager[None]:
    """Return a context in which a release knows the name of its data, if the data is no file of rows."""
    database, table = task.read["database"], task.read["table"]
    name = "" if database is None else f"{os.path.basename(database)}: {table}"  # noqa: PTH119 - only a text
    path = "" if task.file == "-" else os.path.abspath(task.file or database or "")  # noqa: PTH100 - may be a pattern
    return provenance.naming_source(
        "query" if task.sql is not None else "standard input" if task.file == "-" else name,
        task.sql or path if database is None else f"{path}\0{table}",
    )


@contextmanager
def _source(task: Task) -> Iterator[object]:
    """Yield the data that a command reads."""
    memory = task.parameters.get("memory")
    if task.engine == "spark":
        named = [task.parameters[name] for name in ("user", "item")]
        columns = [*columns_of(*named), *filter(None, [task.parameters.get("value")])]
        with spark_session.opened(task.file or "", task.master or "local[*]", columns) as table:
            yield table
    elif task.file == "-":
        with standard_input(memory, sources.dialect(task.read)) as data:
            yield data
    elif task.sql is not None:
        yield query(task.sql, memory)
    else:
        yield sources.table(task.file, memory=memory, **task.read)
