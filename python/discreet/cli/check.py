"""The command `discreet check`, for the owner of the data."""

from __future__ import annotations

from typing import Unpack

import click

from discreet.cli import options, sources
from discreet.cli.names_of_files import FILE
from discreet.cli.parsing import Command
from discreet.cli.sources import FileOptions
from discreet.engines.checking import check as checked
from discreet.engines.projection import Period, UserUnit, period_of
from discreet.release.export import plain_text

__all__ = ["check"]

_MARK = "NOT PRIVATE"


@click.command(cls=Command, short_help="Show the data's owner what a count reads; not private.")
@click.argument("file", required=False, type=FILE)
@click.option("--user", multiple=True, metavar="COLUMN", help="Column of users. Give it again for several columns.")
@click.option("--item", multiple=True, metavar="COLUMN", help="Column of items. Give it again for several columns.")
@click.option("--column", "value", metavar="COLUMN", help="Column of numbers that a sum adds up.")
@options.times
@options.files
@options.memory
def check(
    file: str | None,
    user: tuple[str, ...],
    item: tuple[str, ...],
    value: str | None,
    time: str | None,
    every: str | None,
    since: str | None,
    until: str | None,
    unit: UserUnit | None,
    memory: str | None,
    **read: Unpack[FileOptions],
) -> None:
    """Show exact facts about FILE to the owner of the data: rows, rows that a count or sum leaves out and why,
    types, users, items, and the number of items of a user. A sum of a column whose values are not numbers, such as
    3,50, is noise alone: --column shows how many rows a sum reads.

    The lines of the first five rows are shown for CSV rows with too few cells, a cell that is not UTF-8, a cell that is
    too long or an open quote, and for JSON lines that cannot be read or have no label. Other reasons have no lines.

    The output is NOT PRIVATE. It is as sensitive as the data, so do not publish it. No release calls this command. An
    l0 chosen by it depends on the data. To choose l0 with privacy, use discreet count --l0 auto.

    \b
    discreet check visits.csv
    discreet check visits.csv --user user --item country --item page
    discreet check visits.csv --user user --item page --time day
    discreet check sales.csv --user user --item shop --column price
    """
    data = sources.table(file, memory=memory, **read)
    unit = unit or "user"
    is_whole = (every, since, until, unit) == (None, None, None, "user")
    period = Period(time, None, None, None) if time and is_whole else period_of(time, every, since, until, unit)
    found = checked(data, user or None, item or None, value=value, period=period, memory=memory)
    for line in found.lines():
        click.echo(f"{_MARK}  {plain_text(line)}")
