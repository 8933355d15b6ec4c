"""The work of a command that releases rows: checks of its options, the release, and its output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Literal, Unpack

import click

from discreet import api, sums
from discreet.cli import endings, outputs, report, sources
from discreet.cli.datasets import dataset_to_charge
from discreet.cli.known import known_items, released
from discreet.cli.named_mechanisms import mechanism_named
from discreet.cli.options import PLUME
from discreet.cli.sources import FileOptions
from discreet.engines import spark_session
from discreet.engines.projection import UserUnit, columns_of
from discreet.engines.sql import query
from discreet.engines.standard_input import standard_input
from discreet.errors import OUT_OF_DELTA, AlreadyCharged
from discreet.mechanisms import CountsWithFoundBound
from discreet.mechanisms.base import made_for
from discreet.mechanisms.parameters import K_BAR, L0_SHARE, PERCENTILE, RELATIVE_ERROR
from discreet.planning.choose import Parameters, choose
from discreet.privacy.validation import is_equal
from discreet.release import Release, export, provenance, reading
from discreet.releasing import required

if TYPE_CHECKING:
    from discreet.budgets import Dataset
    from discreet.errors import Charged

__all__ = ["CommandOptions", "publish"]

_EMPTY = 4
"""The exit code for a release without items, with --fail-if-empty."""
_VERBS: dict[str, Callable[..., Release]] = {
    "count": api.count,
    "top_k": api.top_k,
    "select": api.select,
    "sum": sums.sum,
    "aggregate": sums.aggregate,
}


class FunctionParameters(Parameters, total=False):
    """The options that become parameters of a function."""

    user: tuple[str, ...] | str
    item: tuple[str, ...] | str
    value: str
    bounds: tuple[Decimal, Decimal] | Literal["auto"]
    bounds_percentile: int
    rows: int | None
    sums: dict[str, tuple[Decimal, Decimal, float | None]]
    means: dict[str, tuple[Decimal, Decimal, float | None]]
    resolution: float | None
    time: str | None
    every: str | None
    since: str | None
    until: str | None
    unit: UserUnit
    others: bool
    kept_share: bool
    mechanism: str
    percentile: int
    l0_share: float
    memory: str | None
    charge: str
    label: str | None
    once: str | None
    replaces: str | None


class CommandOptions(FunctionParameters, FileOptions):
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
    items: str | None
    overwrite: bool
    title: str | None
    fail_if_empty: bool


def publish(
    verb: Literal["count", "top_k", "select", "sum", "aggregate"],
    *,
    file: str | None,
    sql: str | None,
    engine: str = "local",
    master: str | None = None,
    output: str | None,
    form: str | None,
    ledger: str | None,
    dataset: str | None,
    certificate: bool,
    quiet: bool,
    database: str | None,
    table: str | None,
    delimiter: str | None,
    encoding: str,
    no_header: bool,
    items: str | None = None,
    overwrite: bool = False,
    title: str | None = None,
    fail_if_empty: bool = False,
    **parameters: Unpack[FunctionParameters],
) -> int:
    """Release rows with a verb, write them, and report the guarantee and the charge; return the exit code."""
    read = FileOptions(database=database, table=table, delimiter=delimiter, encoding=encoding, no_header=no_header)
    if [file, sql, database].count(None) != 2:
        raise click.UsageError(
            "Give exactly one of FILE, --sql QUERY and --database FILE. FILE is - for standard input."
        )
    if sql is not None and not sources.dialect(read).is_usual:
        raise click.UsageError("--delimiter, --encoding and --no-header are for FILE; a query reads its files itself.")
    if engine == "spark" and not sources.dialect(read).is_usual:
        raise click.UsageError("--delimiter, --encoding and --no-header are for CSV; --engine spark reads Parquet.")
    if engine == "spark" and (file is None or file == "-"):
        raise click.UsageError("--engine spark needs a FILE; it reads neither --sql nor standard input.")
    if engine == "local" and master is not None:
        raise click.UsageError("--master needs --engine spark.")
    is_read_twice = verb == "sum" and (items is None or "bounds_percentile" in parameters)
    is_plume = parameters.get("mechanism") in PLUME
    several = len({*parameters.get("sums", ()), *parameters.get("means", ())}) > 1
    if file == "-" and (
        is_read_twice or several or is_plume or str(parameters.get("l0")) == "auto" or parameters.get("kept_share")
    ):
        what = "Without --items, this command reads" if is_read_twice else "--l0 auto and --kept-share read"
        what = "--bounds-percentile reads" if "bounds_percentile" in parameters else what
        what = "plume reads" if is_plume else what
        what = "With several columns of values, this command reads" if several else what
        raise click.UsageError(f"{what} the rows twice. Give a FILE, not standard input.")
    sums_up = verb in ("sum", "aggregate")
    if sums_up and parameters.get("delta") is None and (items is None or parameters.get("epsilon") is not None):
        raise click.UsageError(
            "--delta is missing. Choose it far below 1 / number of users, such as --delta 1e-6. Only --rho with "
            "--items needs no --delta."
        )
    once = parameters.get("once")
    paying = {"--charge spent": parameters.get("charge") == "spent", "--once": once is not None}
    paying["--replaces"] = parameters.get("replaces") is not None
    if ledger is None and (option := next((name for name, is_given in paying.items() if is_given), None)):
        raise click.UsageError(f"{option} needs --ledger and --dataset.")
    if once is not None and output is not None and export.form_of(output) == "html":
        raise click.UsageError("--once compares the rows of -o FILE, and a report is no file of rows. Give FILE.csv.")
    if title is not None and (output is None or export.form_of(output) != "html"):
        raise click.UsageError("--title is the title of a report. Give -o FILE.html, or leave it out.")
    provenance.require_label("title", title)
    if file == "-" and sys.stdin is None:
        raise click.UsageError("Standard input is closed. Give a FILE, or pipe rows into the command.")
    chosen = _chosen(parameters, listed=items is not None) if verb == "count" else {}
    outputs.require_form(output, form, certificate=certificate)
    replaceable = sql is None and database is None and engine != "spark"
    if not replaceable and once is None:
        outputs.require_new(output)
    outputs.require_apart(output, file, ledger, items, database)
    budget = dataset_to_charge(ledger, dataset)
    kept = outputs.require_unpublished(output, budget, ledger, once, overwrite=overwrite)
    if not (replaceable or kept):
        outputs.require_new(output)
    outputs.require_public(items, sql, file, database, ledger)
    columns = [*_columns(parameters["item"]), *filter(None, [parameters.get("every")])]
    listed = None if items is None else known_items(items, columns)
    outputs.require_writable(output, certificate=certificate)
    is_new = budget is not None and not overwrite and output is not None and not os.path.lexists(output)
    ending, failure = endings.current(), None
    try:
        with (
            ending.watched(),
            _naming(file, sql, database, table),
            _source(file, sql, engine, master, parameters, read) as data,
        ):
            if items is not None and database is not None:
                outputs.require_stored(data)
            call = partial(_VERBS[verb], data, budget=budget, progress=not quiet, **parameters, **chosen)
            release = call() if listed is None else released(lambda known: call(items=known), listed)
    except BaseException as error:
        if isinstance(error, AlreadyCharged) and output is not None and error.digest in reading.digests_of(output):
            if certificate and not reading.is_certified(output, error.digest):
                raise outputs.uncertified(output, error) from None
            if not quiet:
                click.echo(
                    f"{export.plain_text(output)} has the rows that were charged to {error.dataset} for this key at "
                    f"{error.time}. Nothing was charged or written.",
                    err=True,
                )
            return _EMPTY if fail_if_empty and reading.is_empty(output) else 0
        if ending.release is None:
            raise
        release, failure = ending.release, error  # it is complete and paid for, so it is published
    if is_new and output is not None and os.path.lexists(output):
        replaceable = False  # a file that has appeared may have the rows of another charge
    elif replaceable:
        try:
            outputs.require_unpublished(output, budget, ledger, None, overwrite=overwrite)
        except click.UsageError:
            replaceable = False  # another command has written the rows of its charge meanwhile
    report.write_release(
        release, output, form, quiet=quiet, certificate=certificate, overwrite=replaceable, title=title
    )
    if failure is not None:
        raise failure
    if budget is not None and not quiet:
        ending.done = _charged(budget, release, ending.charged, parameters)
    if quiet and not len(release):
        click.echo("No item is common enough to be released.", err=True)
    return _EMPTY if fail_if_empty and not len(release) else 0


def _charged(budget: Dataset, release: Release, paid: Charged | None, parameters: FunctionParameters) -> str:
    """Return the text about the charge, by what the process has seen of the ledger, which may have been moved."""
    account = budget.seen
    cost, total, left = release.guarantee, account.guarantee(account.total), account.remaining
    rest = f"rho {left.rho:.6g}, delta {left.delta:.6g}"
    amount, pair = ("", None) if paid is None else (paid.amount, paid.pair)
    charged = f"the whole guarantee, {amount}"
    if pair is not None and pair != account.promise.dp:  # epsilons add up
        charged, rest = amount, "epsilon {:.6g}, delta {:.6g}".format(*(left.dp or (0.0, 0.0)))
    elif pair is not None or cost.rho > total.rho or cost.delta > total.delta:
        charged = "the whole budget"
    elif parameters.get("charge") == "spent":
        charged = f"what was spent, {amount}"
    note = f"\nNote: {OUT_OF_DELTA}" if left.rho > 0 and left.delta == 0 < total.delta else ""
    return f"Charged to {budget.name}: {charged}. Remaining for {budget.name}: {rest}.{note}"


def _columns(names: tuple[str, ...] | str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _chosen(parameters: FunctionParameters, *, listed: bool) -> dict[str, object]:
    """Return the mechanism of options that `count` of the library leaves to it, and remove what it contains."""
    bound = {"percentile": parameters.pop("percentile"), "l0_share": parameters.pop("l0_share")}
    k_bar, l0 = parameters.pop("k_bar"), str(parameters.get("l0"))
    name = parameters.pop("mechanism")
    found = bound != {"percentile": PERCENTILE, "l0_share": L0_SHARE}
    if name != "auto" and (listed or l0 == "auto" or parameters.get("kept_share")):
        raise click.UsageError("--mechanism is not for --items, --kept-share or --l0 auto. Leave out either of them.")
    if name in PLUME and (k_bar != K_BAR or not is_equal(parameters["relative_error"], RELATIVE_ERROR)):
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
    if name != "auto":
        own, error = parameters.pop("l0"), parameters.pop("relative_error")
        return {
            "mechanism": mechanism_named(name, rho, epsilon, delta=delta, l0=own, relative_error=error, k_bar=k_bar)
        }
    made, _ = choose(
        "count", rho=rho, epsilon=epsilon, delta=delta, relative_error=parameters.pop("relative_error"), k_bar=k_bar
    )
    return {"mechanism": made}


def _naming(file: str | None, sql: str | None, database: str | None, table: str | None) -> AbstractContextManager[None]:
    """Return a context in which a release knows the name of its data, if the data is no file of rows."""
    name = "" if database is None else f"{os.path.basename(database)}: {table}"  # noqa: PTH119 - only a text
    inputs = sql or ("" if file == "-" else os.path.abspath(file or database or ""))  # noqa: PTH100 - may be a pattern
    return provenance.naming_source(
        "query" if sql is not None else "standard input" if file == "-" else name,
        inputs if database is None else f"{inputs}\0{table}",
    )


@contextmanager
def _source(
    file: str | None,
    sql: str | None,
    engine: str,
    master: str | None,
    parameters: FunctionParameters,
    read: FileOptions,
) -> Iterator[object]:
    """Yield the data that a command reads."""
    if engine == "spark":
        value = parameters.get("value")
        columns = [*columns_of(parameters["user"], parameters["item"]), *([] if value is None else [value])]
        with spark_session.opened(file or "", master or "local[*]", columns) as table:
            yield table
    else:
        memory = parameters.get("memory")
        if file == "-":
            with standard_input(memory, sources.dialect(read)) as data:
                yield data
        else:
            yield sources.table(file, memory=memory, **read) if sql is None else query(sql, memory)
