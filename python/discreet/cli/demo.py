"""The command `discreet demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

import click
import numpy as np

from discreet import api
from discreet import demo as demonstration
from discreet.cli import demo_table, outputs, report
from discreet.cli.names_of_files import FILE
from discreet.cli.parsing import FLOAT, Command
from discreet.errors import ParameterError
from discreet.release import export
from discreet.release.blocks import Column

__all__ = ["demo"]


@click.command(cls=Command, short_help="Count a synthetic log; no data needed.")
@click.option("--rho", type=FLOAT, default=1.0, show_default=True, help="Privacy cost rho, in zCDP.")
@click.option("--delta", type=FLOAT, default=1e-6, show_default=True, help="Probability that the guarantee fails.")
@click.option("--shape", type=click.Choice(list(demonstration.SHAPES)), help="Make a table in the shape of a real one.")
@click.option(
    "--write", metavar="FILE", type=FILE, help="Also write the synthetic rows to FILE, a .csv or .parquet file."
)
@click.option("--overwrite", is_flag=True, help="With --write, replace an existing FILE.")
def demo(rho: float, delta: float, shape: str | None, write: str | None, overwrite: bool) -> None:
    """Make a synthetic log, count it with differential privacy and print the result next to the true counts.

    The last columns are of a second release, in which at most five items of each user count. With --shape the log is
    like a table of Rogers (2024), with fewer items of each user.
    """
    if write is not None and export.form_of(write) not in ("csv", "parquet"):
        raise ParameterError("--write needs a file with the suffix .csv or .parquet")
    if write is not None and not overwrite and os.path.lexists(write):
        raise click.UsageError(f"{write} exists. Give another name, or --overwrite to replace it.")
    outputs.require_writable(write)
    columns, truth = _made(shape)
    if write is not None:
        export.write(write, columns, {}, overwrite=overwrite)
    table = {name: values for name, values, _ in columns}
    release = api.count(table, user="user", item="item", rho=rho, delta=delta)
    bounded = demo_table.clipped_release(table, rho=rho, delta=delta)
    click.echo(demo_table.table(release, bounded, truth), nl=False)
    for line in [*report.guarantee_lines(release), *demo_table.lines(release, bounded, truth)]:
        click.echo(line, err=True)
    example = write or "FILE"
    count = f"{_command()} count {example} --user user --item item --rho {rho:g} --delta {delta:g}"
    click.echo(f"Now count your own: {count}", err=True)


def _made(shape: str | None) -> tuple[list[Column], dict[Any, int]]:
    """Return the columns user and item of a generated table, and the number of users of each item."""
    if shape is None:
        log = demonstration.synthetic_log()
        visits, users, pages = (len(values) for values in (log.users, set(log.users.tolist()), set(log.items.tolist())))
        click.echo(f"A synthetic log: {visits:,} visits by {users:,} users to {pages:,} pages.", err=True)
        return [("user", log.users, "int64"), ("item", log.table["item"], "string")], log.true_counts()
    table = demonstration.SHAPES[shape].table(1)
    truth = {item: count for item, count in enumerate(np.bincount(table["item"]).tolist()) if count}
    rows, users = len(table["user"]), demonstration.SHAPES[shape].users
    size = f"{rows:,} rows of {users:,} users and {len(truth):,} items"
    click.echo(f"A synthetic table in the shape {shape}: {size}. Item 0 is the most popular one.", err=True)
    return [(name, table[name], "int64") for name in ("user", "item")], truth


def _command() -> str:
    """Return how to call this installation: `discreet` if PATH finds it, else its path or `python -m discreet`."""
    script = Path(sysconfig.get_path("scripts")) / ("discreet.exe" if os.name == "nt" else "discreet")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m discreet"
    found = shutil.which("discreet")
    if found is not None and Path(found).samefile(script):
        return "discreet"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))
