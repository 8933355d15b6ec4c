"""The commands that read no data: `discreet plan` and `discreet audit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import click

from discreet import audit as auditing
from discreet.audit.exact import auditable
from discreet.cli import listed, options
from discreet.cli.options import joined
from discreet.cli.parsing import WHOLE, Group
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.planning import plan as planning
from discreet.planning.choose import Parameters, Verb, choose, stated
from discreet.planning.shape import Shape

__all__ = ["audit", "plan"]


@click.group(cls=Group, short_help="Predict the result of a command without data.")
def plan() -> None:
    """Predict the result of a command without private data: mechanism, noise, guarantee and the items that it names.

    The forecast runs all mechanisms that could do the job on a public shape of data, or on a public file.

    \b
    discreet plan count --epsilon 1 --delta 1e-6 --l0 10
    discreet plan top-k -k 10 --rho 0.5 --delta 1e-6 --json
    discreet plan count --rho 1 --delta 1e-6 --like users=20000,median=8,p95=60
    discreet plan count --delta 1e-6 --l0 10 --users 50
    """


@click.group(cls=Group, short_help="Verify a guarantee by computing exact distributions.")
def audit() -> None:
    """Verify a guarantee by computing the exact output distribution on small neighbouring datasets.

    The audit also makes 1,000 releases of some datasets each. It fails if these releases do not follow the exact
    distribution. A correct mechanism fails with a probability of at most one in a billion. The result says what was
    compared, and what an audit cannot show. The exit code is 1 if the audit finds an error.

    \b
    can be audited       count, count --l0 N, top-k, select --l0 1,
                         select --method threshold
    cannot be audited    count --l0 auto, top-k --method discover+peel, the set
                         unions of select: their exact distributions are not
                         known, so the guarantees rest on their proofs

    \b
    discreet audit count --rho 1 --delta 1e-6
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
        type=WHOLE,
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
        help="Also release both datasets of the pair closest to the guarantee N times, at least 100. For `count` "
        "without --l0, make N releases of each dataset instead of 1,000.",
    ),
    _as_json,
)


_likeness = joined(
    click.option(
        "--like",
        metavar="SHAPE|FILE",
        help="Public data for the forecast: three numbers, users=20000,median=8,p95=60 (items of the median user, and "
        "of one at the 95th percentile; items=50000 and top20=4000, the users of the 20th most common item, may "
        "follow), or a PUBLIC file, which is read without privacy. A file needs --user and --item.",
    ),
    click.option("--user", multiple=True, metavar="COLUMN", help="Column of users of the public file."),
    click.option("--item", multiple=True, metavar="COLUMN", help="Column of items of the public file."),
    click.option(
        "--users",
        type=WHOLE,
        metavar="N",
        help="Also print the least rho, or with --epsilon the least epsilon, at which an item of N users is named with "
        "95 %. With neither, print both.",
    ),
)
_NUMBERS: dict[str, Callable[[str], float]] = {"users": int, "median": int, "p95": int, "items": int, "top20": int}
"""The numbers that an owner of data knows; the first three are needed."""
_LAW: dict[str, Callable[[str], float]] = {
    "users": int,
    "items": int,
    "exponent": float,
    "items_per_user": float,
    "cutoff": float,
    "spread": float,
}
"""The numbers of a shape; the first four are needed."""
_ADVICE = (
    "To forecast it for your data, give --like users=...,median=...,p95=...: the users, and the items of the median "
    "user and of one at the 95th percentile. Or give --like with a public file, --user and --item."
)
"""The advice of a plan without public data, in options."""


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
    make: Callable[..., Shape] = Shape.of_numbers if "median" in given else Shape
    known, least = (_NUMBERS, 3) if "median" in given else (_LAW, 4)
    if not {*[*known][:least]} <= given.keys() <= known.keys() or len(pairs) != len(given):
        raise click.UsageError(
            "--like needs three numbers, once each, such as users=20000,median=8,p95=60; items and top20 may follow. "
            "Or it needs users, items, exponent and items-per-user, the numbers of a Shape."
        )
    numbers: dict[str, object] = {}
    try:
        numbers |= {name: known[name](value) for name, value in given.items()}
    except ValueError:
        raise click.UsageError(
            "--like has a value that is not a number. Give whole numbers of users and items, and a point in decimals."
        ) from None
    try:
        return {"like": make(**numbers)}
    except ParameterError as error:
        raise click.UsageError(f"In --like: {error}") from None


def _plan(verb: Verb, as_json: bool, public: dict[str, object], parameters: Parameters) -> None:
    make: Callable[..., planning.Plan] = planning.plan
    made = make(verb, **public, **parameters)
    click.echo(made.to_json() if as_json else made.text(_ADVICE))


def _audit(verb: Verb, pairs: int, runs: int, as_json: bool, parameters: Parameters) -> None:
    """Print an audit and exit with 1 if it finds a violation."""
    mechanism = auditable(choose(verb, **parameters)[0])
    asked = stated(mechanism, parameters.get("epsilon"), parameters["delta"]).dp
    watched = not isinstance(mechanism, HistogramMechanism)
    found = auditing.audit(mechanism, pairs=pairs, dp=asked, runs=runs if watched and runs else 1000)
    click.echo(found.to_json() if as_json else found)
    violated = found.failed
    if runs and isinstance(mechanism, HistogramMechanism):
        run = auditing.trial(mechanism, found.tightest.first, found.tightest.second, runs=runs)
        click.echo(run, err=as_json)
        violated |= run.failed
    if violated:
        raise click.exceptions.Exit(1)


def _given(asked: dict[str, object]) -> Parameters:
    """Return the parameters that were given; the functions have the defaults of others."""
    return cast("Parameters", {name: value for name, value in asked.items() if value is not None})


def _without_data(verb: Verb, limits: str) -> None:
    """Add the plan and the audit of a command; `limits` says which parameters can be audited."""
    name = verb.replace("_", "-")

    def planned(
        as_json: bool,
        like: str | None,
        user: tuple[str, ...],
        item: tuple[str, ...],
        users: int | None,
        items: str | None = None,
        others: bool = False,
        **asked: object,
    ) -> None:
        given = _given(asked)
        if items is None:
            if others:
                raise click.UsageError("--others needs --items FILE.")
            _plan(verb, as_json, {**_like(like, user, item), "users": users}, given)
        elif (like, user, item, users) != (None, (), (), None):
            raise click.UsageError(
                "--items excludes --like and --users: all items of the file are released, without a forecast."
            )
        else:
            click.echo(listed.planned(items, others=others, as_json=as_json, parameters=given))

    def audited(pairs: int, runs: int, as_json: bool, **asked: object) -> None:
        _audit(verb, pairs, runs, as_json, _given(asked))

    text = f"`discreet {name}` with these parameters."
    forecast = joined(options.promises["select"], options.planned[verb], _likeness, _as_json)
    if verb == "count":
        forecast = joined(options.promises[verb], options.planned[verb], _likeness, options.listed[verb], _as_json)
    plan.command(name, help=f"Plan {text}")(forecast(planned))
    examined = joined(options.promises["select"], options.planned[verb], _examined)
    audit.command(name, help=f"Audit {text}\n\n{limits}")(examined(audited))


_without_data(
    "count",
    "With --l0 N the audit computes the exact distribution of whole releases. Without --l0 it verifies the steps of a "
    "release one by one: the exact distribution of weighted counts, and the exact cost of all other measurements. The "
    "step that confirms the most common items has too many outcomes; its releases are compared with a second "
    "implementation. This takes about half a minute. With --l0 auto a count cannot be audited.",
)
_without_data(
    "top_k",
    "The default, --method gumbel, can be audited: the exact distribution of the released list. --method discover+peel "
    "cannot: its exact distribution is not known, so its guarantee rests on its proof.",
)
_without_data(
    "select",
    "A threshold can be audited: --method threshold, and --method auto with --l0 1. --method auto mostly uses a set "
    "union for a larger --l0. Set unions cannot be audited: their exact distributions are not known, so their "
    "guarantees rest on their proofs.",
)
