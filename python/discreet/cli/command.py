"""The command `discreet` and its exit codes."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

import discreet
from discreet import startup
from discreet.cli import commands, endings, work
from discreet.cli.parsing import ExtraWordsError, restore_help
from discreet.errors import AlreadyCharged, BudgetExceeded, DiscreetError, MissingLibraryError, ParameterError

__all__ = ["main"]

_MISSING = {
    "delta": "Choose it far below 1 / number of users, such as --delta 1e-6.",
    "k": "It is the most items to release, such as -k 10.",
    "l0": "It is the most items of a user, or of an event, that count, such as --l0 10. Choose it without the data.",
    "user": "It is the column that says whose row it is, such as --user user. `discreet check FILE` lists the columns.",
    "item": "It is the column to count, such as --item page. `discreet check FILE` lists the columns.",
}
"""The remedy for a missing option, by its name."""
_UNKNOWN = {
    **dict.fromkeys(("--seed", "--random-state"), "There is no seed: a release that can be repeated gives no privacy."),
    **dict.fromkeys(
        ("--value", "--values", "--column", "--columns"),
        "To add up a column, use `discreet sum` with --column NAME --bounds LOW HIGH, or `discreet aggregate` with "
        "--sum NAME LOW HIGH.",
    ),
    **dict.fromkeys(
        ("--by", "--group-by", "--groupby"),
        "To count combinations of columns, give --item once for each, such as --item country --item page.",
    ),
}
"""The remedy for an option that no command has, or that another command has, by its name."""
_EXIT = {ParameterError: 2, BudgetExceeded: 3, AlreadyCharged: 5}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line, and end the process with one of the codes that `discreet --help` lists.

    With arguments it raises SystemExit instead, for a caller in the same process.
    """
    if arguments is None:
        startup.hasten()
        endings.leave(_run(sys.argv[1:]))
    try:
        code = _run(arguments)
    finally:
        startup.restore()
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command. What it says at its end no signal interrupts, so a charge is said in any case."""
    startup.hold()
    ending, error = endings.begin(), None
    code = 1
    try:
        try:
            code = _called(arguments)
        except BaseException as raised:
            error = raised
        startup.end()
    except KeyboardInterrupt as raised:  # a signal came before the line above
        error = raised
        startup.end()
    if error is None:
        endings.say(ending.done)
        return code
    try:
        return _code_of(error, ending)
    finally:
        endings.say(ending.sentence)


def _called(arguments: list[str]) -> int:
    _fill_closed_descriptors()
    _write_utf8()
    _require_utf8(arguments)
    code = int(cli.main(arguments, prog_name="discreet", standalone_mode=False) or 0)
    if sys.stdout is not None:  # closed by the caller
        sys.stdout.flush()  # a failure at the exit would be silent
    return code


def _code_of(error: BaseException, ending: endings.Ending) -> int:
    """Return the exit code after an error, and say the error."""
    try:
        raise error
    except click.ClickException as error:
        with suppress(OSError):
            _with_remedy(error).show()
        return error.exit_code
    except DiscreetError as error:
        endings.say(f"discreet: {error.in_options(ending.options)}")
        return next((code for kind, code in _EXIT.items() if isinstance(error, kind)), 1)
    except MissingLibraryError as error:
        endings.say(f"discreet: {error}")
        return 1
    except (KeyboardInterrupt, click.Abort):
        endings.say(ending.interrupted)
        return startup.state.code
    except (BrokenPipeError, SystemExit) as error:
        # click makes one of the other, and writes an empty line after an interrupt. It exits after a completion, too.
        code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
        return startup.state.code if code and startup.state.received else code
    except MemoryError:
        endings.say(ending.interrupted.replace("interrupted", "out of memory"))
        return 1
    except OSError as error:
        reason = error.strerror or "the system reported an error while reading or writing"
        endings.say(
            f"discreet: {reason}. To fix this, check standard output, the folder for temporary files and the disk."
        )
        return 1


def _fill_closed_descriptors() -> None:
    """Open closed standard streams as /dev/null, so that no ledger gets the descriptor of a standard stream."""
    with suppress(OSError):
        while (opened := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(opened)


def _require_utf8(arguments: list[str]) -> None:
    """Raise UsageError for bytes that are not UTF-8: SQLite and DuckDB reject them with tracebacks."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(
                f"Argument {number} has bytes that are not UTF-8. Give UTF-8 text, or rename the file."
            ) from None


def _write_utf8() -> None:
    """Write UTF-8 to files and pipes; a terminal keeps its encoding and shows other characters as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")


def _with_remedy(error: click.ClickException) -> click.ClickException:
    """Return an error of click, with a remedy added to texts that lack one."""
    # Without the options or commands that click suggests.
    message = error.message if isinstance(error, click.NoSuchOption | click.NoSuchCommand) else error.format_message()
    if isinstance(error, click.NoSuchOption) and error.option_name in _UNKNOWN:
        remedy = _UNKNOWN[error.option_name]
    elif isinstance(error, click.NoSuchCommand | ExtraWordsError) and _reads_no_data(error):
        remedy = _without_data(error)
    elif isinstance(error, ExtraWordsError):
        remedy = "Give several files as one quoted glob, such as 'logs/*.csv'."
    elif isinstance(error, click.MissingParameter) and error.param is not None and error.param.name in _MISSING:
        remedy = _MISSING[error.param.name]
    else:
        return error
    return click.UsageError(f"{message.rstrip('.')}. {remedy}", ctx=getattr(error, "ctx", None))


def _without_data(error: click.NoSuchCommand | ExtraWordsError) -> str:
    """Return the remedy for an extra word after `plan` or `audit`: another command, or a file."""
    words = _command_of(error)
    known = "count, top-k and select"
    if isinstance(error, click.NoSuchCommand) and error.command_name in commands.SUMMARIES:
        streams = ", and `discreet stream plan` plans a stream" if words[:1] == ["plan"] else ""
        return f"`discreet {' '.join(words)}` knows {known}{streams}."
    more = "" if "stream" in words else f", and give one of {known} with its parameters"
    return f"This reads no data. Leave out the file{more}."


def _command_of(error: click.UsageError) -> list[str]:
    """Return the names of the command that raised an error, and of its groups."""
    names, context = list[str](), error.ctx
    while context is not None and context.parent is not None:
        names, context = [str(context.info_name), *names], context.parent
    return names


def _reads_no_data(error: click.UsageError) -> bool:
    """Return whether an error is about `plan`, `audit` or `stream plan`."""
    words = _command_of(error)
    return words[:1] in (["plan"], ["audit"]) or words == ["stream", "plan"]


class _Commands(click.Group):
    """A group that imports a command when it is called; until then it has a summary of the command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command, the command and its arguments."""
        name, summary, rest = super().resolve_command(ctx, args)
        if name is None or summary is None:
            return name, summary, rest
        command: click.Command = getattr(commands, name.replace("-", "_"))
        if sys.flags.optimize > 1:
            restore_help(command)
        if name in work.OF and not {"-h", "--help"} & {*rest}:
            getattr(work, work.OF[name])  # before `release`
        return name, command, rest


def _show_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Show the version of the code that runs: the metadata of an editable install is stale."""
    if is_asked:
        click.echo(f"discreet, version {discreet.__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
def cli() -> None:
    """Publish how many users visited each page or searched each term, even if the list of items is unknown and itself
    sensitive, with a differential-privacy guarantee.

    Start with `discreet demo`, which needs no data.

    \b
    Exit codes:
      0    done
      1    input error or any other error; `audit` found a violated guarantee;
           `verify` found rows without their certificate or an exceeded policy
      2    wrong parameters
      3    insufficient privacy budget
      4    no item was released (with --fail-if-empty)
      5    charged before (with --once), and FILE does not have the rows
      130  interrupted; 143 by SIGTERM, 129 by SIGHUP
    """
    # The command is imported by now.
    startup.release()


for name, summary in commands.SUMMARIES.items():
    cli.add_command(click.Command(name, short_help=summary))
if sys.flags.optimize > 1:
    restore_help(cli)
