"""The command `discreet doctor`, which tests an installation."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable

import click

from discreet import _core, api
from discreet.cli.parsing import Command
from discreet.engines import local, sql
from discreet.engines.table import Table
from discreet.engines.versions import version_hint
from discreet.wording import counted

__all__ = ["doctor"]


@click.command(cls=Command)
def doctor() -> None:
    """Check that this installation works."""
    failed = 0
    for name, check in _CHECKS.items():
        try:
            click.echo(f"ok      {name}: {check()}")
        except Exception as error:  # report every failure and go on
            failed += 1
            click.echo(f"FAILED  {name}: {type(error).__name__}: {error}")
    if failed:
        raise click.ClickException("This installation does not work. Install discreet again in a new environment.")


def _check_count() -> str:
    users = 1000
    data = {"user": [*range(users), users], "item": ["common"] * users + ["rare"]}
    release = api.count(data, user="user", item="item", rho=1.0, delta=1e-6)
    return f"{counted(len(release), 'item')} released; the data has an item of {users:,} users and an item of one user"


def _check_duckdb() -> str:
    import duckdb

    if version_hint("duckdb"):
        return f"version {duckdb.__version__} is too old for Parquet, databases, --sql and relations, which need 2.0"
    counted_rows = local.histogram(Table(sql.query("SELECT 1 AS u, 'x' AS i"), user="u", item="i"))
    if counted_rows.counts.tolist() != [1]:
        raise RuntimeError("the count of a table with one row is not 1")
    return f"version {duckdb.__version__} scans rows"


def _check_entropy() -> str:
    if _core.Rng().bits64() == _core.Rng().bits64():
        raise RuntimeError("two random streams are equal")
    return "the operating system provides random bits"


_CHECKS: dict[str, Callable[[], str]] = {
    "discreet": lambda: f"version {_core.__version__}",
    "python": lambda: f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    "numpy": lambda: str(sys.modules["numpy"].__version__),
    "duckdb": _check_duckdb,
    "entropy": _check_entropy,
    "count": _check_count,
}
