"""What can be said of a command before any data: `discreet plan` and `discreet audit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

import discreet
from discreet import audit as auditing
from discreet.cli.options import bounded, counting, joined, promise, selected, top
from discreet.planning.choose import choose
from discreet.planning.plan import stated

__all__ = ["audit", "plan"]


@click.group(short_help="What a command would do, before any data.")
def plan() -> None:
    """What a command would do, before any data: mechanism, noise, guarantee, and which items it names.

    \b
    discreet plan count --epsilon 1 --delta 1e-6 --l0 10
    discreet plan top-k -k 10 --rho 0.5 --delta 1e-6 --json
    """


@click.group(short_help="Checks a guarantee against exact laws and runs.")
def audit() -> None:
    """Verifies a guarantee by computing the exact output distribution on small neighbouring tables.

    Also releases some of the tables 1,000 times each, and fails if the releases do not follow that
    distribution. For a mechanism that follows it, the chance of failing is one in a million.

    The exact distribution is known for `count --l0`, `top-k --method gumbel` and `select --method threshold`.
    The others have too many outcomes: `count` without --l0, and the set unions of `select --method auto`,
    which it takes for an --l0 above 1.

    \b
    discreet audit count --epsilon 1 --delta 1e-2 --l0 2 --runs 10000
    """


_as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")
_examined = joined(
    click.option(
        "--pairs", type=click.IntRange(min=1), default=200, show_default=True, help="How many neighbouring tables."
    ),
    click.option("--runs", type=click.IntRange(min=0), default=0, help="Also release the worst pair N times each."),
    _as_json,
)


def _plan(verb: str, as_json: bool, parameters: dict[str, object]) -> None:
    made = discreet.plan(verb, **parameters)
    click.echo(made.to_json() if as_json else made)


def _audit(verb: str, pairs: int, runs: int, as_json: bool, parameters: dict[str, Any]) -> None:
    """Exits with 1 where a promise is violated, or the mechanism does not follow its exact law."""
    mechanism, _ = choose(verb, **parameters)
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


def _without_data(name: str, parameters: Callable[..., Any], audited_by: Callable[..., Any], limits: str) -> None:
    """Adds the plan and the audit of a command; `limits` says what cannot be audited."""
    verb = name.replace("-", "_")

    def planned(as_json: bool, **given: Any) -> None:
        _plan(verb, as_json, given)

    def audited(pairs: int, runs: int, as_json: bool, **given: Any) -> None:
        _audit(verb, pairs, runs, as_json, given)

    text = f"of `discreet {name}` with these parameters."
    plan.command(name, help=f"The plan {text}")(promise(parameters(_as_json(planned))))
    audit.command(name, help=f"Audits the mechanism {text}\n\n{limits}")(promise(audited_by(_examined(audited))))


_without_data("count", counting, bounded, "Only with --l0: without it there are too many outcomes to enumerate.")
_without_data("top-k", top, top, "Only with --method gumbel: the law of the other is not known.")
_without_data(
    "select",
    selected,
    selected,
    "Only with --method threshold, which auto takes for --l0 1: no set union can be audited.",
)
