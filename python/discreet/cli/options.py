"""The options that commands have in common."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from discreet.mechanisms.union.set_union import METHODS
from discreet.release import export

__all__ = ["bounded", "counting", "in_options", "joined", "promise", "published", "selected", "table", "top", "written"]


_WORDS = re.compile(r"\b(?:(certificate)=True|(unit|method|items)=(['\"])([\w+]+)\3)")
_NUMBERS = re.compile(r"\b(rho|epsilon|delta)=(?=[\d.])")


def in_options(text: str) -> str:
    """Return the text of an error in which the parameters to give are options: `--unit event`, not unit='event'."""
    text = _WORDS.sub(lambda found: f"--{found[1] or f'{found[2]} {found[4]}'}", text)
    said, tried, advice = text.partition(" Try ")
    return said + tried + _NUMBERS.sub(r"--\1 ", advice).replace("without epsilon", "without --epsilon")


def joined(*options: Callable[..., object]) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Several options as one decorator, in the order in which help shows them."""

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


table = joined(
    click.argument("file", required=False),
    click.option("--user", required=True, metavar="COLUMN", help="The column of users: integers or text."),
    click.option("--item", required=True, metavar="COLUMN", help="The column of items: integers or text."),
)
promise = joined(
    click.option("--rho", type=float, help="The privacy cost, in delta-approximate rho-zCDP."),
    click.option("--epsilon", type=float, help="Or the total promise, (epsilon, delta)-DP."),
    click.option(
        "--delta", type=float, required=True, help="The chance that the promise may fail: far below 1 / users."
    ),
)
counting = joined(
    click.option("--l0", type=int, metavar="N", help="Count at most N items of each user, by a threshold mechanism."),
    click.option(
        "--relative-error",
        type=float,
        default=0.1,
        show_default=True,
        help="How close counts should be, as a share of them; a smaller one names fewer items.",
    ),
    click.option("--k-bar", type=int, default=2**14, show_default=True, help="How many ranked counts are looked at."),
)
top = joined(
    click.option("-k", "--k", type=int, required=True, metavar="N", help="How many items."),
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
bounded = click.option("--l0", type=int, required=True, metavar="N", help="Count at most N items of each user.")
selected = joined(
    bounded,
    click.option(
        "--method",
        type=click.Choice(["auto", "threshold", "dp_sips", *METHODS]),
        default="auto",
        show_default=True,
        help="By counts above a threshold, or by weights (see the docs on set union).",
    ),
)
written = joined(
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write here, in place of what is there unless the command reads that; the suffix picks the format.",
    ),
    click.option(
        "-f", "--format", "form", type=click.Choice(["table", *export.FORMATS]), help="The format of the rows."
    ),
)
published = joined(
    click.option(
        "--sql",
        metavar="QUERY",
        help="Count the rows of this SELECT instead of FILE. A query is the data owner's code: it says who the users "
        "are, and it can fail on a value. It only reads, and -o must name a new file.",
    ),
    click.option("--engine", type=click.Choice(["local", "spark"]), default="local", help="What counts the rows."),
    click.option("--master", metavar="URL", help="Where Spark is: local[*], spark://host:7077, yarn, sc://host."),
    click.option("--memory", metavar="SIZE", help="What counting may take, such as 2GB.  [default: half of all]"),
    written,
    click.option("--ledger", metavar="FILE", help="Charge this ledger's dataset before any noise is drawn."),
    click.option("--dataset", metavar="NAME", help="The dataset of the ledger; see `discreet budget`."),
    click.option("--certificate", is_flag=True, help="With -o, write a certificate of the rows beside them."),
    click.option("-q", "--quiet", is_flag=True, help="Print rows and errors only."),
)
