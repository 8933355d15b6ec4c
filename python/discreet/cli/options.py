"""Options that several commands share. Those of parameters have the type and text that the function gives them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import click

from discreet.cli.described import described
from discreet.cli.names_of_files import FILE
from discreet.cli.parsing import BOUND, BOUNDED, DECIMAL, FLOAT, ROWS, WHOLE, Form, Given
from discreet.formats import RELEASED

__all__ = [
    "PLUME",
    "certified",
    "files",
    "joined",
    "memory",
    "of",
    "published",
    "written",
]

PLUME = {"plume": "threshold", "plume-weighted-gaussian": "weighted_gaussian", "plume-dp-sips": "dp_sips"}
"""The names of Plume, which reads a table twice, and how each finds items."""
OptionDecorator: TypeAlias = Callable[[Callable[..., object]], Callable[..., object]]
"""A decorator that adds options to a command."""


def joined(*options: OptionDecorator) -> OptionDecorator:
    """Return one decorator that adds several options, in the order that the help text shows."""

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


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


_BOUNDED = "COLUMN [LOW HIGH]"
_WIDE = 60
"""The most characters of choices that a help text shows beside the name of an option."""
_KINDS: tuple[tuple[str, Given], ...] = (
    ("bool | int", {"type": ROWS, "metavar": "[N]", "is_flag": False, "flag_value": "all"}),
    ("bool", {"is_flag": True}),
    ("int | Literal", {"type": BOUND, "metavar": "N|auto"}),
    ("Mapping", {"type": BOUNDED, "multiple": True, "metavar": _BOUNDED}),
    ("tuple", {"type": (DECIMAL, DECIMAL), "metavar": "LOW HIGH"}),
    ("Sequence[Label", {"type": FILE, "is_eager": True, "metavar": "FILE"}),
    ("str | Sequence", {"multiple": True, "required": True, "metavar": "COLUMN"}),
    ("int | str", {"metavar": "SIZE"}),
    ("int", {"type": WHOLE, "metavar": "N"}),
    ("float", {"type": FLOAT}),
    ("str | date", {"metavar": "TIME"}),
)
"""The type of an option by the beginning of the type of its parameter."""
_NAMED: dict[str, Given] = {
    "k": {"names": ("-k", "--k")},
    "value": {"names": ("--column",), "metavar": "COLUMN", "required": True},
    "sums": {"names": ("--sum",)},
    "means": {"names": ("--mean",)},
    "time": {"metavar": "COLUMN"},
    "resolution": {"metavar": "UNIT"},
    "bounds_percentile": {"metavar": "P"},
    "label": {"metavar": "TEXT"},
    "once": {"metavar": "KEY"},
    "replaces": {"metavar": "KEY"},
}
"""What the type of a parameter does not say about its option, by name."""
_MORE = {
    "FILE": "FILE is public, because its lines are published: one item on each line, without a header.",
    "COLUMN": "Give it once for each column.",
    _BOUNDED: "Give it once for each column; without LOW and HIGH nothing is clipped.",
    "rows": "Without N, all rows count.",
    "once": "Needs --ledger. The exit code is then 0 if -o FILE has the rows, else 5.",
    "replaces": "Needs --ledger.",
    "charge": "Needs --ledger.",
}
"""How a shell gives values of a kind, and what a command does besides."""


def of(function: str, names: str, **changed: object) -> OptionDecorator:
    """Return a decorator that adds the options of parameters of a function, or of keys of a group.

    Args:
        function: The name of the function or group.
        names: The names of the parameters, with spaces between them.
        **changed: Other properties of these options than their types say.
    """
    return joined(*(_option(function, name, changed) for name in names.split()))


def _option(function: str, name: str, changed: dict[str, object]) -> OptionDecorator:
    known = described(function)
    own: Given = {"required": known[name].required} | _kind(known[name].annotation) | _NAMED.get(name, {})
    made = own | changed
    kinds = {name, own.get("metavar") if own.get("multiple") or own.get("is_eager") else name}
    texts = [known[name].help({other: _spelt(other) for other in known})]
    texts += [text for kind, text in _MORE.items() if kind in kinds]
    if made.get("metavar") == "NAME":
        texts.append(f"NAME is {', '.join(made['type'].choices)}.")
    if known[name].default:
        texts.append(f" [default: {known[name].default}]")
    return click.option(*made.pop("names", (_spelt(name),)), name, help=" ".join(texts), **made)


def _kind(annotation: str) -> Given:
    """Return the properties of an option by the type of its parameter."""
    if found := next((dict(kind) for start, kind in _KINDS if annotation.startswith(start)), None):
        return found
    _, is_choice, choices = annotation.partition("Literal")
    if not is_choice:
        return {}
    kind = click.Choice(ast.literal_eval(choices.partition("]")[0] + "]"))
    return {"type": kind} | ({"metavar": "NAME"} if len("".join(kind.choices)) > _WIDE else {})


def _spelt(name: str) -> str:
    """Return the option of a parameter."""
    return str(_NAMED.get(name, {}).get("names", (f"--{name.replace('_', '-')}",))[0])


_shown = partial(click.option, show_default=True)
times = of("Columns", "time every since until unit")
memory = of("Columns", "memory")
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
_table = click.argument("file", required=False, type=FILE)
_k_bar = _shown(
    "--k-bar", type=WHOLE, default=2**14, metavar="N", help="Confirm only this many of the most common items (k-bar)."
)
_found = joined(
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
)
_resolution = click.option(
    "--resolution",
    type=FLOAT,
    metavar="UNIT",
    help="Round values to this unit, such as 0.01.  [default: as in discreet sum]",
)
promises = {
    "count": joined(of("count", "rho epsilon"), of("count", "delta", callback=_needed_unless_listed)),
    "top_k": joined(of("top_k", "rho epsilon"), of("top_k", "delta", callback=_needed_unless_listed)),
    "select": of("select", "rho epsilon delta"),
    "sum": of("sum", "rho epsilon delta"),
    "aggregate": of("aggregate", "rho epsilon delta"),
}
"""The options for the guarantee of each verb."""
planned = {
    "count": joined(of("count", "l0", type=WHOLE, metavar="N"), of("count", "relative_error"), _k_bar),
    "top_k": of("top_k", "k k_bar method l0"),
    "select": of("select", "l0 method"),
}
"""The options of a mechanism that a plan and an audit take, too."""
_chosen = {
    "count": joined(of("count", "l0 kept_share"), _found, of("count", "relative_error"), _k_bar),
    "sum": joined(of("sum", "bounds", required=False), of("sum", "bounds_percentile resolution l0")),
    "aggregate": joined(of("aggregate", "rows sums means"), _resolution, of("aggregate", "l0")),
}
listed = {
    "count": of("count", "items others"),
    **{verb: of(verb, "items") for verb in ("top_k", "sum", "aggregate")},
}
"""The options for public items."""
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


def published(verb: str) -> OptionDecorator:
    """Return a decorator that adds all options of a command that releases rows."""
    value = of("sum", "value", multiple=True, callback=_once) if verb == "sum" else joined()
    charge = of(verb, "charge") if "charge" in described(verb) else joined()
    return joined(
        _table,
        of(verb, "user item"),
        value,
        times,
        promises[verb],
        _chosen.get(verb, planned.get(verb, joined())),
        listed.get(verb, joined()),
        _sql,
        _engine,
        files,
        memory,
        written,
        _replacing,
        charged,
        charge,
        of(verb, "label once replaces"),
    )
