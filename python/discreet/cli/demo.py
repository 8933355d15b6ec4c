"""The command `discreet demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import click

from discreet import api
from discreet import demo as demonstration
from discreet.cli import report
from discreet.errors import ParameterError
from discreet.release import export

__all__ = ["demo"]


@click.command(short_help="Count a synthetic log; no data needed.")
@click.option("--rho", type=float, default=1.0, show_default=True, help="Privacy cost rho, in zCDP.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Probability that the guarantee fails.")
@click.option("--write", metavar="FILE", help="Also write the synthetic rows to FILE, a .csv or .parquet file.")
@click.option("--overwrite", is_flag=True, help="With --write, replace an existing FILE.")
def demo(rho: float, delta: float, write: str | None, overwrite: bool) -> None:
    """Make a synthetic log, count it with differential privacy and print the result next to the true counts."""
    if write is not None and export.form_of(write) not in ("csv", "parquet"):
        raise ParameterError("--write needs a file with the suffix .csv or .parquet")
    if write is not None and not overwrite and os.path.lexists(write):
        raise click.UsageError(f"{write} exists. Give another name, or --overwrite to replace it.")
    log = demonstration.synthetic_log()
    table = log.table
    visits, users, pages = (len(values) for values in (log.users, set(log.users.tolist()), set(log.items.tolist())))
    click.echo(f"A synthetic log: {visits:,} visits by {users:,} users to {pages:,} pages.", err=True)
    if write is not None:
        export.write(write, [("user", log.users, "int64"), ("item", table["item"], "string")], {}, overwrite=overwrite)
    release = api.count(table, user="user", item="item", rho=rho, delta=delta)
    click.echo(report.table(release, shown=12, truth=log.true_counts()), nl=False)
    for line in report.guarantee_lines(release):
        click.echo(line, err=True)
    example = write or "FILE"
    count = f"{_command()} count {example} --user user --item item --rho {rho:g} --delta {delta:g}"
    click.echo(f"Now count your own: {count}", err=True)


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
