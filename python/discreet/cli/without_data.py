"""The commands that read no data: `discreet plan` and `discreet audit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, Unpack

import click

from discreet import audit as auditing
from discreet.audit.exact import auditable
from discreet.cli import listed
from discreet.cli.options import bounded, counting, joined, known, promise, selected, top
from discreet.planning import plan as planning
from discreet.planning.choose import Parameters, Verb, choose, stated

__all__ = ["audit", "plan"]

Options: TypeAlias = Callable[[Callable[..., object]], Callable[..., object]]
"""A decorator that adds options to a command."""


@click.group(short_help="Predict the result of a command without data.")
def plan() -> None:
    """Predict the result of a command without data: mechanism, noise, guarantee and the users that an item needs.

    \b
    discreet plan count --epsilon 1 --delta 1e-6 --l0 10
    discreet plan top-k -k 10 --rho 0.5 --delta 1e-6 --json
    """


@click.group(short_help="Verify a guarantee by computing exact distributions.")
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


_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_examined = joined(
    click.option(
        "--pairs",
        type=click.IntRange(min=1),
        default=200,
        show_default=True,
        help="Number of pairs of neighbouring datasets.",
    ),
    click.option(
        "--runs",
        type=click.IntRange(min=0),
        default=0,
        help="Also release both datasets of the pair closest to the guarantee N times (at least 100).",
    ),
    _as_json,
)


def _plan(verb: Verb, as_json: bool, parameters: Parameters) -> None:
    made = planning.plan(verb, **parameters)
    click.echo(made.to_json() if as_json else made)


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

    def planned(as_json: bool, items: str | None = None, others: bool = False, **given: Unpack[Parameters]) -> None:
        if items is not None:
            click.echo(listed.planned(items, others=others, as_json=as_json, parameters=given))
        elif others:
            raise click.UsageError("--others needs --items FILE.")
        else:
            _plan(verb, as_json, given)

    def audited(pairs: int, runs: int, as_json: bool, **given: Unpack[Parameters]) -> None:
        _audit(verb, pairs, runs, as_json, given)

    text = f"`discreet {name}` with these parameters."
    more = known if verb == "count" else joined()
    plan.command(name, help=f"Plan {text}")(promise(parameters(more(_as_json(planned)))))
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
