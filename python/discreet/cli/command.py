"""The command `discreet` and how it ends."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

import discreet
from discreet.cli.budget import budget, verify
from discreet.cli.demo import demo
from discreet.cli.doctor import doctor
from discreet.cli.interrupts import sigterm_as_interrupt
from discreet.cli.options import in_options
from discreet.cli.releases import count, select, top_k
from discreet.cli.stream import stream
from discreet.cli.without_data import audit, plan
from discreet.errors import BudgetExceeded, DiscreetError, ParameterError
from discreet.startup import INTERRUPTED, INTERRUPTED_CODE, release

__all__ = ["main"]

_EXIT = {ParameterError: 2, BudgetExceeded: 3}


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits: 0 done, 1 input or other error, 2 parameters, 3 budget, 130 interrupt."""
    sys.exit(_run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: list[str]) -> int:
    try:
        release()
        _fill_closed_descriptors()
        _write_utf8()
        _require_utf8(arguments)
        with sigterm_as_interrupt():
            return int(cli.main(arguments, prog_name="discreet", standalone_mode=False) or 0)
    except click.ClickException as error:
        _with_remedy(error).show()
        return error.exit_code
    except DiscreetError as error:
        click.echo(f"discreet: {in_options(str(error))}", err=True)
        return next((code for kind, code in _EXIT.items() if isinstance(error, kind)), 1)
    except (KeyboardInterrupt, click.Abort):
        click.echo(INTERRUPTED, err=True)
        return INTERRUPTED_CODE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        click.echo("discreet: out of memory; nothing was published", err=True)
        return 1
    except OSError as error:
        reason = error.strerror or "the system refused to read or write"
        click.echo(f"discreet: {reason}; check standard output, the folder for temporary files and the disk", err=True)
        return 1


def _fill_closed_descriptors() -> None:
    """Open nothing as the standard streams that are closed, so that no ledger is opened as one of them."""
    with suppress(OSError):
        while (opened := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(opened)


def _require_utf8(arguments: list[str]) -> None:
    """Refuse bytes that are not UTF-8: neither SQLite nor DuckDB takes them, and their errors would be tracebacks."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(
                f"argument {number} has bytes that are not UTF-8; give text in UTF-8, and rename such a file"
            ) from None


def _write_utf8() -> None:
    """Makes rows the same on every system; a terminal shows what it has no letters for as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")


def _with_remedy(error: click.ClickException) -> click.ClickException:
    """What click says of a wrong option or argument, with what helps here."""
    if isinstance(error, click.NoSuchOption) and error.option_name in ("--seed", "--random-state"):
        remedy = "There is no seed: rows that can be drawn again protect nobody."
    elif _reads_no_data(error):
        remedy = "This reads no data: leave out the file, and give count, top-k or select with its parameters."
    elif isinstance(error, click.UsageError) and error.message.startswith("Got unexpected extra argument"):
        remedy = "Several files are one quoted glob, such as 'logs/*.csv'."
    else:
        return error
    return click.UsageError(f"{error.message.rstrip('.')}. {remedy}", ctx=getattr(error, "ctx", None))


def _reads_no_data(error: click.ClickException) -> bool:
    """Whether a file or another word was given to `plan` or `audit`, which take a command and its parameters."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return False
    begins = ("No such command", "Got unexpected extra argument")
    return error.ctx.command_path.split()[1:2] in (["plan"], ["audit"]) and error.message.startswith(begins)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(discreet.__version__, prog_name="discreet")
def cli() -> None:
    """Publish counts of items with differential privacy, when nobody knows the items in advance.

    Try `discreet demo` first: it needs no data.

    \b
    Exit codes: 0 done, 1 input or any other error, 2 parameters, 3 a budget does
    not pay, 130 interrupted. `audit` ends with 1 where a promise is violated.
    """


for command in (audit, budget, count, demo, doctor, plan, select, stream, top_k, verify):
    cli.add_command(command)
