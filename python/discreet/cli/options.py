"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import partial

import click

from discreet.cli.names_of_files import FILE
from discreet.cli.parsing import FLOAT, L0, WHOLE, Form, is_in_digits
from discreet.formats import RELEASED
from discreet.mechanisms.union.methods import UNION_METHODS
from discreet.privacy.validation import is_comma

__all__ = [
    "PLUME",
    "aggregated",
    "certified",
    "counted",
    "counting",
    "files",
    "joined",
    "known",
    "memory",
    "promise",
    "promise_of_items",
    "promise_of_sums",
    "published",
    "published_sums",
    "ranked",
    "selected",
    "summed",
    "table",
    "times",
    "top",
    "written",
]

PLUME = {"plume": "threshold", "plume-weighted-gaussian": "weighted_gaussian", "plume-dp-sips": "dp_sips"}
"""The names of Plume, which reads a table twice, and how each finds items."""


def joined(*options: Callable[..., object]) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return one decorator that adds several options, in the order that the help text shows."""

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


class _Bound(click.ParamType[int | str]):
    """A number of items, or auto."""

    name = "bound"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return a number, or "auto"."""
        if isinstance(value, int) or value == "auto":
            return value
        try:
            return int(WHOLE.convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is neither a whole number nor auto. Write digits alone, such as 10.", param, ctx)


_SUCH = {2: "0 20.5", 3: "price 0 20.5"}
"""Examples of options with several values, by their number."""


class _Number(click.ParamType[Decimal]):
    """A number as it is written, without rounding to a float."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Return a finite number."""
        found = Decimal("nan")
        with suppress(InvalidOperation):
            if is_in_digits(value):
                found = Decimal(str(value))
        if not found.is_finite():
            remedy = "Use a point as the decimal separator, such as 0.5."
            if param is not None and param.nargs > 1:
                takes = f"{param.opts[0]} takes {param.metavar}, such as {_SUCH[param.nargs]}."
                takes += " Use a point as the decimal separator." if is_comma(value) else ""
                is_auto = param.name == "bounds" and value == "auto"
                remedy = "--bounds-percentile P, such as 95, finds bounds with privacy." if is_auto else takes
            self.fail(f"{value!r} is not a number. {remedy}", param, ctx)
        return found


def _once(_context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str:
    """Return the value of an option that is given once. By itself, click would ignore all values but the last one."""
    if len(given) > 1:
        raise click.UsageError(f"A sum has one column to sum: give {parameter.opts[0]} once.")
    return given[0]


def _needed_unless_listed(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Return delta, which only public items do not need. --items is eager, so its value is known."""
    if value is None and context.params.get("items") is None:
        raise click.MissingParameter(ctx=context, param=parameter)
    return value


NUMBER = _Number()
"""The type of an option for a decimal number."""
BOUND = _Bound()
"""The type of --l0 of commands that can find it."""

_shown = partial(click.option, show_default=True)
_l0 = partial(click.option, "--l0", type=L0, metavar="N")
_items = partial(click.option, "--items", type=FILE, metavar="FILE")
_resolution = partial(_shown, "--resolution", type=FLOAT, metavar="UNIT")

times = joined(
    click.option(
        "--time",
        metavar="COLUMN",
        help="Column of times, for --every, --since, --until and --unit. A time without a zone is in UTC.",
    ),
    click.option(
        "--every",
        type=click.Choice(["1h", "1d", "1w", "1mo"]),
        help="Make the hour, day, week or month of a row part of its item. Weeks begin on Monday.",
    ),
    click.option("--since", metavar="TIME", help="Count only rows from TIME on: 2026-01-31 or 2026-01-31T12:00."),
    click.option("--until", metavar="TIME", help="Count only rows before TIME."),
    _shown(
        "--unit",
        type=click.Choice(["user", "user-hour", "user-day", "user-week", "user-month"]),
        default="user",
        help="Protect all rows of a user, or only those in one period of --time in UTC. Counts are then numbers of "
        "users and periods. A user with rows in many periods is protected less.",
    ),
)
table = joined(
    click.argument("file", required=False, type=FILE),
    click.option(
        "--user",
        required=True,
        multiple=True,
        metavar="COLUMN",
        help="Column of users. Give it again for several columns that are one user together.",
    ),
    click.option(
        "--item",
        required=True,
        multiple=True,
        metavar="COLUMN",
        help="Column of items. Give it again for several columns that are one item together.",
    ),
    times,
)
files = joined(
    click.option(
        "--database", metavar="FILE", type=FILE, help="Read a table of this DuckDB or SQLite database instead of FILE."
    ),
    click.option("--table", metavar="NAME", help="Table or view of --database, such as visits or logs.visits."),
    click.option("--delimiter", metavar="CHAR", help="Character between CSV cells.  [default: comma; tab for .tsv]"),
    _shown(
        "--encoding",
        default="utf-8",
        help="Encoding of CSV: utf-8, latin-1, windows-1252 or utf-16.",
    ),
    click.option("--no-header", is_flag=True, help="CSV without a header line. The columns are 1, 2 and so on."),
)
memory = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory limit for counting, such as 8G or 8GiB.  [default: half of the machine's or container's memory]",
)
summed = joined(
    table,
    click.option(
        "--column",
        "value",
        required=True,
        multiple=True,
        callback=_once,
        metavar="COLUMN",
        help="Column of numbers to sum.",
    ),
    click.option(
        "--bounds",
        type=(NUMBER, NUMBER),
        metavar="LOW HIGH",
        help="Clip the sum of one user for one item to these bounds, in units of the column, such as 0 20. Choose them "
        "without the data.",
    ),
    click.option(
        "--bounds-percentile",
        type=click.IntRange(1, 99),
        metavar="P",
        help="Instead of --bounds: find bounds with 5 % of rho. For about P % of the users, such as 95, the sum for "
        "one of their items, chosen at random, lies within.",
    ),
    _resolution(
        help="Round each value to this unit, such as 0.01.  [default: 1 for integers, the places of a decimal type, "
        "else 2^-32]",
    ),
    _l0(
        help="Sum at most N items of each user. The noise of a sum is that of N items. Without --l0 and --items, 5 % "
        "of rho finds N: about 95 % of the users do not have more items.",
    ),
    _items(
        help="Release a sum for each item in this file, one on each line and without a header, and apply no threshold. "
        "The file must be public, because all of its lines are published.",
    ),
)
_bounds = "units of the column. Choose them without the data. May be given for several columns."
aggregated = joined(
    table,
    click.option(
        "--rows",
        type=L0,
        metavar="N",
        help="Also count rows: at most N of each user for an item. --mean needs it. Choose N without the data.",
    ),
    click.option(
        "--sum",
        "sums",
        type=(str, NUMBER, NUMBER),
        multiple=True,
        metavar="COLUMN LOW HIGH",
        help=f"Also add up this column. The sum of one user for one item is clipped to these bounds, in {_bounds}",
    ),
    click.option(
        "--mean",
        "means",
        type=(str, NUMBER, NUMBER),
        multiple=True,
        metavar="COLUMN LOW HIGH",
        help="Also average this column over rows. The mean of one user for one item is clipped to these bounds, in "
        f"{_bounds}",
    ),
    _resolution(
        help="Round values to this unit, such as 0.01.  [default: as in discreet sum]",
    ),
    _l0(
        help="Use at most N items of each user, the same ones for all numbers. Without --l0 and --items, 5 % of rho "
        "finds N: about 95 % of the users do not have more items.",
    ),
    _items(
        help="Release numbers for each item in this file, one on each line and without a header, and apply no "
        "threshold. The file must be public, because all of its lines are published.",
    ),
)
known = joined(
    _items(
        is_eager=True,
        help="Count the items in this file, one on each line and without a header, and apply no threshold. The file "
        "must be public, because all of its lines are published.",
    ),
    click.option(
        "--others",
        is_flag=True,
        help="With --items, also release other items, as without --items. Half of rho then counts the listed items. "
        "With --l0, the N items of a user are chosen among all items, so counts of listed items are lower too.",
    ),
)
ranked = _items(
    is_eager=True,
    help="Rank the items in this file, one on each line and without a header, even items that nobody has. The file "
    "must be public.",
)
_cost = joined(
    click.option("--rho", type=FLOAT, help="Privacy cost rho, in delta-approximate zCDP."),
    click.option("--epsilon", type=FLOAT, help="Instead of --rho: total (epsilon, delta)-DP."),
)
_delta = "Probability that the guarantee fails. Choose it far below 1 / number of users."
promise = joined(_cost, click.option("--delta", type=FLOAT, required=True, help=_delta))
promise_of_items = joined(
    _cost,
    click.option(
        "--delta",
        type=FLOAT,
        callback=_needed_unless_listed,
        help=f"{_delta} Not needed with --items: it is then not charged, and states a guarantee of --rho as (epsilon, "
        "delta)-DP.",
    ),
)
promise_of_sums = joined(
    _cost,
    click.option(
        "--delta",
        type=FLOAT,
        help=f"{_delta} Needed, but not for --rho with --items: it then only states the guarantee as (epsilon, "
        "delta)-DP.",
    ),
)
_accuracy = joined(
    _shown(
        "--relative-error",
        type=FLOAT,
        default=0.1,
        help="Target error of a confirmed count, as a fraction of the count, from 0.005 to below 1. The noise (sigma) "
        "is usually about 0.475 times this fraction of the count. Values above 0.17 change nothing: sigma is then "
        "usually about 8 % of the count. A smaller value confirms fewer items.",
    ),
    _shown(
        "--k-bar",
        type=WHOLE,
        default=2**14,
        metavar="N",
        help="Confirm only the N most common items (k-bar).",
    ),
)
_threshold = "Count at most N items of each user, with a threshold mechanism."
counting = joined(_l0(help=_threshold), _accuracy)
counted = joined(
    click.option(
        "--l0",
        type=BOUND,
        metavar="N|auto",
        help=f"{_threshold} auto finds N with privacy: about --percentile percent of the users do not have more items.",
    ),
    click.option(
        "--kept-share",
        is_flag=True,
        help="With --l0, also estimate the share of (user, item) pairs that the bound keeps, for 1 % of rho (5 % of "
        "epsilon). --l0 auto includes it.",
    ),
    _shown(
        "--percentile",
        type=WHOLE,
        default=95,
        metavar="P",
        help="With --l0 auto: percentage of the users who have at most N items, about.",
    ),
    _shown(
        "--l0-share",
        type=FLOAT,
        default=0.05,
        metavar="SHARE",
        help="With --l0 auto: share of rho that finds N.",
    ),
    _shown(
        "--mechanism",
        type=click.Choice(["auto", "confirmed-counts", "private-count-release", *PLUME]),
        metavar="NAME",
        default="auto",
        help=f"Use another mechanism, to compare: confirmed-counts, private-count-release, {', '.join(PLUME)}. Plume "
        "needs --l0 N: it uses at most N items of each user, both in its search for items, which its name says, and in "
        "its counts. The others take no --l0.",
    ),
    _accuracy,
)
top = joined(
    click.option("-k", "--k", type=WHOLE, required=True, metavar="N", help="Most items to release."),
    _shown(
        "--k-bar",
        type=WHOLE,
        default=1_000,
        metavar="N",
        help="Consider only the N most common items (k-bar).",
    ),
    _shown(
        "--method",
        type=click.Choice(["gumbel", "discover+peel"]),
        default="gumbel",
        help="gumbel ranks the most common items. discover+peel first finds items with a set union, then ranks them.",
    ),
    _l0(help="With discover+peel, find items from at most N items of each user."),
)
bounded = click.option("--l0", type=L0, required=True, metavar="N", help="Count at most N items of each user.")
selected = joined(
    _l0(
        help="Use at most N items of each user, 100 by default. --l0 1 is best if users have one item.",
    ),
    _shown(
        "--method",
        type=click.Choice(["auto", "threshold", "dp_sips", *UNION_METHODS]),
        default="auto",
        help="threshold selects items by their counts. All methods but auto and threshold are set unions.",
    ),
)
written = joined(
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        type=FILE,
        help="Write to FILE and overwrite it. The command refuses if FILE is one of its inputs. The suffix sets the "
        f"format: {', '.join('.' + suffix for suffix in RELEASED)}, or .html for a report of at most 1,000 items.",
    ),
    click.option(
        "-f",
        "--format",
        "form",
        type=Form(["table", *RELEASED]),
        help="Format of the rows.  [default: table on a terminal, csv elsewhere]",
    ),
)
_replacing = joined(
    click.option(
        "--overwrite",
        is_flag=True,
        help="With --ledger: overwrite FILE even if it has the rows of an earlier charge.",
    ),
    click.option("--title", metavar="TEXT", help="Title of a report (-o FILE.html).  [default: the label]"),
    click.option("--fail-if-empty", is_flag=True, help="End with exit code 4 if no item is released."),
)
_named = joined(
    click.option("--label", metavar="TEXT", help="Text for the ledger's history, the certificate and the report."),
    click.option(
        "--once",
        metavar="KEY",
        help="With --ledger: charge KEY once. If it was charged for the same command, nothing is charged or written, "
        "and the exit code is 0 if -o FILE has its rows, else 5.",
    ),
    click.option(
        "--replaces",
        metavar="KEY",
        help="With --ledger: note that this release replaces the one of this key or label. It is charged in full.",
    ),
)
certified = joined(
    click.option(
        "--certificate",
        is_flag=True,
        help="With -o FILE, also write a certificate of the rows to FILE.certificate.json.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print only rows and errors."),
)
charged = joined(
    click.option(
        "--ledger", metavar="FILE", type=FILE, help="Charge a dataset of this ledger before any noise is drawn."
    ),
    click.option("--dataset", metavar="NAME", help="Dataset of the ledger to charge (see `discreet budget`)."),
    certified,
)
_charge = _shown(
    "--charge",
    type=click.Choice(["guarantee", "spent"]),
    default="guarantee",
    help="With --ledger: charge the whole guarantee, or only the steps that the release made. Either way the whole "
    "guarantee must fit into the budget.",
)
_sql = click.option(
    "--sql",
    metavar="QUERY",
    help="Read the rows of this SELECT instead of FILE. The query must only read, and -o must name a new file. "
    "Only the data owner may write it: it defines who the users are, and it can fail on a value of the data.",
)
_engine = joined(
    click.option(
        "--engine",
        type=click.Choice(["local", "spark"]),
        default="local",
        help="Count on this machine or on Spark.  [default: local]",
    ),
    click.option(
        "--master",
        metavar="URL",
        help="URL of Spark: local[*], spark://host:7077, yarn or sc://host.  [default: local[*]]",
    ),
)
published = joined(_sql, _engine, files, memory, written, _replacing, _charge, charged, _named)
published_sums = joined(_sql, _engine, files, memory, written, _replacing, charged, _named)
