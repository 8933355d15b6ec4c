"""The commands that read no data: `discreet plan` and `discreet audit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, Unpack

import click

from discreet import audit as auditing
from discreet.audit.exact import auditable
from discreet.cli import listed, outputs
from discreet.cli.names_of_files import FILE
from discreet.cli.options import bounded, counting, joined, known, promise, promise_of_items, selected, top
from discreet.cli.parsing import WHOLE, AtLeast, Group
from discreet.planning import explorer
from discreet.planning import plan as planning
from discreet.planning.choose import Parameters, Verb, choose, stated
from discreet.planning.comparison import ANOTHER_SHAPE
from discreet.planning.shape import DEFAULT, Shape
from discreet.release import export

__all__ = ["audit", "plan"]

Options: TypeAlias = Callable[[Callable[..., object]], Callable[..., object]]
"""A decorator that adds options to a command."""


@click.group(cls=Group, short_help="Predict the result of a command without data.")
def plan() -> None:
    """Predict the result of a command without private data: mechanism, noise, guarantee and the items that it names.

    The forecast runs all mechanisms that could do the job on a public shape of data, or on a public file.

    \b
    discreet plan count --epsilon 1 --delta 1e-6 --l0 10
    discreet plan top-k -k 10 --rho 0.5 --delta 1e-6 --json
    discreet plan count --rho 1 --delta 1e-6 --like users=20000,items=50000,exponent=1,items-per-user=20
    discreet plan count --delta 1e-6 --users 50
    discreet plan count --rho 1 --delta 1e-6 --html explorer.html
    """


@click.group(cls=Group, short_help="Verify a guarantee by computing exact distributions.")
def audit() -> None:
    """Verify a guarantee by computing the exact output distribution on small neighbouring datasets.

    The audit also releases some of the datasets 1,000 times each. It fails if these releases do not follow the exact
    distribution. A correct mechanism fails with a probability of at most one in a million.

    An audit needs `count --l0`, `top-k --method gumbel` or `select --method threshold`. The other mechanisms have too
    many outcomes to compute: `count` without --l0, and the set unions that `select --method auto` uses for an --l0
    above 1.

    \b
    discreet audit count --epsilon 1 --delta 1e-2 --l0 2 --runs 10000
    """


def _runs(_context: click.Context, _parameter: click.Parameter, runs: int) -> int:
    """Return the number of releases of --runs, before the audit starts. `trial` needs at least 100."""
    if runs and not 100 <= runs <= 10**8:
        raise click.BadParameter(f"{runs} is neither 0 nor from 100 to 100,000,000: fewer runs detect too little.")
    return runs


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_examined = joined(
    click.option(
        "--pairs",
        type=AtLeast(min=1),
        default=200,
        show_default=True,
        help="Number of pairs of neighbouring datasets.",
    ),
    click.option(
        "--runs",
        type=WHOLE,
        default=0,
        metavar="N",
        callback=_runs,
        help="Also release both datasets of the pair closest to the guarantee N times, at least 100. By default an "
        "audit makes only its 1,000 releases of some pairs.",
    ),
    _as_json,
)


_likeness = joined(
    click.option(
        "--like",
        metavar="SHAPE|FILE",
        help="Public data for the forecast: users=20000,items=50000,exponent=1,items-per-user=20, or a PUBLIC file, "
        "which is read without privacy. A file needs --user and --item.  [default: that shape]",
    ),
    click.option("--user", multiple=True, metavar="COLUMN", help="Column of users of the public file."),
    click.option("--item", multiple=True, metavar="COLUMN", help="Column of items of the public file."),
    click.option(
        "--users",
        type=AtLeast(min=1),
        metavar="N",
        help="Also print the least rho, or with --epsilon the least epsilon, at which an item of N users is named with "
        "95 %. With neither, print both.",
    ),
)
_html = click.option(
    "--html",
    metavar="FILE",
    type=FILE,
    help="Also write a page with sliders and curves to FILE, and overwrite it. The command refuses if FILE is the file "
    "of --like. The page needs no network.",
)
_NAMES: dict[str, Callable[[str], float]] = {
    "users": int,
    "items": int,
    "exponent": float,
    "items_per_user": float,
    "cutoff": float,
    "spread": float,
}
_NEEDED = [*_NAMES][:4]
_ANOTHER_SHAPE = (
    "give --like users=...,items=...,exponent=...,items-per-user=..., or --like with a public file, --user and --item."
)
"""The advice of a plan on the default shape, in options."""


def _like(text: str | None, user: tuple[str, ...], item: tuple[str, ...]) -> dict[str, object]:
    """Return the arguments of `plan` that name the public data."""
    if text is None or user or item:
        columns = {"user": [*user] or None, "item": [*item] or None}
        return {
            "like": text,
            **{name: names[0] if names and len(names) == 1 else names for name, names in columns.items()},
        }
    pairs = [part.partition("=") for part in text.split(",")]
    given = {name.strip().replace("-", "_"): value for name, _, value in pairs}
    if not any(mark for _, mark, _ in pairs):
        raise click.UsageError("--like with a file needs --user and --item, the columns of the public file.")
    if not {*_NEEDED} <= given.keys() <= _NAMES.keys() or len(pairs) != len(given):
        raise click.UsageError(
            "--like needs the four numbers of a shape, once each, such as "
            "users=20000,items=50000,exponent=1,items-per-user=20; cutoff and spread may follow."
        )
    numbers: dict[str, Any] = {}
    try:
        numbers |= {name: _NAMES[name](value) for name, value in given.items()}
    except ValueError:
        raise click.UsageError(
            "--like has a value that is not a number. Give whole numbers of users and items, and a point in decimals."
        ) from None
    return {"like": Shape(**numbers)}


def _plan(verb: Verb, as_json: bool, html: str | None, public: dict[str, object], parameters: Parameters) -> None:
    if html is not None and not html.endswith((".html", ".htm")):
        raise click.UsageError("--html needs a FILE with the suffix .html.")
    if html is not None:
        like = public.get("like")
        outputs.require_apart(html, like if isinstance(like, str) else None, option="--html")
        outputs.require_writable(html)
    make: Callable[..., planning.Plan] = planning.plan
    made = make(verb, **public, **parameters)
    if html is not None:
        shape = public.get("like")
        export.write_text(
            html,
            explorer.explorer(
                made,
                shape=shape if isinstance(shape, Shape) else DEFAULT,
                l0=parameters.get("l0"),
                relative_error=parameters.get("relative_error", 0.1),
            ),
        )
    click.echo(made.to_json() if as_json else str(made).replace(ANOTHER_SHAPE, _ANOTHER_SHAPE))


def _audit(verb: Verb, pairs: int, runs: int, as_json: bool, parameters: Parameters) -> None:
    """Print an audit and exit with 1 if it finds a violation."""
    mechanism = auditable(choose(verb, **parameters)[0])
    asked = stated(mechanism, parameters["epsilon"], parameters["delta"]).dp
    found = auditing.audit(mechanism, pairs=pairs, dp=asked)
    click.echo(found.to_json() if as_json else found)
    violated = found.failed
    if runs:
        run = auditing.trial(mechanism, found.tightest.first, found.tightest.second, runs=runs)
        click.echo(run, err=as_json)
        violated |= run.failed
    if violated:
        raise click.exceptions.Exit(1)


def _without_data(verb: Verb, parameters: Options, audited_by: Options, limits: str) -> None:
    """Add the plan and the audit of a command; `limits` says which parameters can be audited."""
    name = verb.replace("_", "-")

    def planned(
        as_json: bool,
        like: str | None,
        user: tuple[str, ...],
        item: tuple[str, ...],
        users: int | None,
        html: str | None = None,
        items: str | None = None,
        others: bool = False,
        **given: Unpack[Parameters],
    ) -> None:
        if items is None:
            if others:
                raise click.UsageError("--others needs --items FILE.")
            _plan(verb, as_json, html, {**_like(like, user, item), "users": users}, given)
        elif (like, user, item, users, html) != (None, (), (), None, None):
            raise click.UsageError(
                "--items excludes --like, --users and --html: all items of the file are released, without a forecast."
            )
        else:
            click.echo(listed.planned(items, others=others, as_json=as_json, parameters=given))

    def audited(pairs: int, runs: int, as_json: bool, **given: Unpack[Parameters]) -> None:
        _audit(verb, pairs, runs, as_json, given)

    text = f"`discreet {name}` with these parameters."
    forecast = joined(_likeness, _html, known) if verb == "count" else _likeness
    promised = promise_of_items if verb == "count" else promise
    plan.command(name, help=f"Plan {text}")(promised(parameters(forecast(_as_json(planned)))))
    audit.command(name, help=f"Audit {text}\n\n{limits}")(promise(audited_by(_examined(audited))))


_without_data("count", counting, bounded, "The audit needs --l0: without it there are too many outcomes to enumerate.")
_without_data(
    "top_k", top, top, "The audit needs --method gumbel: the exact distribution of discover+peel is not known."
)
_without_data(
    "select",
    selected,
    selected,
    "The audit needs --method threshold (auto uses it for --l0 1): set unions cannot be audited.",
)
