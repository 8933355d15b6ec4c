"""Commands and types of options whose errors are classes or texts of this project, and not of click."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypeAlias

import click

from discreet.cli import endings
from discreet.errors import DiscreetError
from discreet.formats import DATA_NAMES, RELEASED_NAMES
from discreet.privacy.validation import is_comma

__all__ = [
    "BOUND",
    "BOUNDED",
    "DECIMAL",
    "FLOAT",
    "ROWS",
    "WHOLE",
    "BoundedCommand",
    "Command",
    "ExtraWordsError",
    "Form",
    "Given",
    "Group",
    "restore_help",
]


Given: TypeAlias = dict[str, Any]
"""Options that were given, by the names of parameters; or properties of an option."""
_GROUPS = {
    "Data": "user item value time every since until items others like users sql engine master database table delimiter "
    "encoding no_header memory",
    "Privacy": "rho epsilon delta unit",
    "Output": "output form overwrite title fail_if_empty certificate as_json quiet help",
    "Budget": "ledger dataset charge label once replaces",
}
"""The options of the groups of a help text, in their order. All others are about the mechanism."""
_MANY = 10
"""The fewest options that a help text shows in groups."""


class ExtraWordsError(click.UsageError):
    """A command was called with more words than it takes."""

    def __init__(self, words: list[str], ctx: click.Context) -> None:
        super().__init__(f"Got unexpected extra argument{'s' * (len(words) > 1)} ({' '.join(words)})", ctx)


class Command(click.Command):
    """A command that raises ExtraWordsError. Its help names the formats of files for `{data}` and `{released}`."""

    @property
    def help(self) -> str | None:
        """The text of the help."""
        return self._help and self._help.replace("{data}", DATA_NAMES).replace("{released}", RELEASED_NAMES)

    @help.setter  # noqa: A003 - the name of click
    def help(self, text: str | None) -> None:
        self._help = text

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raise ExtraWordsError if some are left."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            raise ExtraWordsError(left, ctx)
        return left

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups if the command releases, plans or audits rows."""
        help_option = self.get_help_option(ctx)
        shown = {
            "help" if one is help_option else one.name: record
            for one in self.get_params(ctx)
            if isinstance(one, click.Option) and (record := one.get_help_record(ctx)) is not None
        }
        if "rho" not in shown or len(shown) < _MANY:
            super().format_options(ctx, formatter)
            return
        named = {name: [*names.split()] for name, names in _GROUPS.items()}
        grouped = {name for names in named.values() for name in names}
        named["Mechanism"] = [str(name) for name in shown if name not in grouped]
        for title in ("Data", "Privacy", "Mechanism", "Output", "Budget"):
            if records := [shown[name] for name in named[title] if name in shown]:
                with formatter.section(title):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. An error that it raises then knows the options of the command."""
        try:
            return super().invoke(ctx)
        except DiscreetError:
            endings.current().options = {one.name or "": min(one.opts, key=len) for one in self.params}
            raise


class BoundedCommand(Command):
    """A command with options whose value is a column, alone or with two numbers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. The words of such an option become one, which no argument of a program can be."""
        names = {name for one in self.params if one.type is BOUNDED for name in one.opts}
        joined, rest = list[str](), [*args]
        while rest:
            joined.append(rest.pop(0))
            if joined[-1] in names and rest:
                words = [rest.pop(0)]
                # A column is followed by no number or by two: a single word is the file.
                if len(rest) > 1 and all(map(_is_number, rest[:2])):
                    words += [rest.pop(0), rest.pop(0)]
                joined.append(_BETWEEN.join(words))
        return super().parse_args(ctx, joined)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


_BETWEEN = "\0"
_SUCH = {2: "0 20.5", 3: "price 0 20.5"}
"""Examples of options with several values, by their number."""


class Number(click.ParamType[Any]):
    """A number in ASCII digits without underscores: Python reads other digits too, and 1_0 as 10.

    Args:
        name: The name of the type.
        make: Returns the number of a text, or raises ValueError or ArithmeticError.
        such: Examples of such numbers.
        words: Texts that are taken besides numbers.
    """

    def __init__(self, name: str, make: Callable[[str], object], such: str, words: tuple[str, ...] = ()) -> None:
        self.name, self._make, self._such, self._words = name, make, such, words

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return a number; say how one is written."""
        if not isinstance(value, str) or value in self._words:
            return value
        with suppress(ValueError, ArithmeticError):
            if _is_plain(value):
                return self._make(value)
        what = " or ".join((self.name, *self._words))
        raise click.BadParameter(f"{value!r} is not a valid {what}. {self._remedy(value, param)}", ctx, param)

    def _remedy(self, value: str, param: click.Parameter | None) -> str:
        is_whole = self.name == "integer"
        point = "Use a point as the decimal separator" if is_comma(value) and not is_whole else ""
        if value == "auto" and param is not None and param.name == "l0":
            return "Only `discreet count --l0 auto` finds the number in the data. Give a number here, such as --l0 10."
        if value == "auto" and param is not None and param.name == "bounds":
            return "--bounds-percentile P, such as 95, finds bounds with privacy."
        if param is not None and param.nargs > 1:
            takes = f"{param.opts[0]} takes {param.metavar}, such as {_SUCH[param.nargs]}."
            return f"{takes} {point}." if point else takes
        how = "Write digits alone" if is_whole else "Write a number"
        return f"{point or (how if _is_plain(value) else 'Use the digits 0 to 9 alone')}, such as {self._such}."


def _is_plain(text: str) -> bool:
    return text.isascii() and "_" not in text


def _finite(text: str) -> Decimal:
    """Return a number as it is written, without rounding to a float."""
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError
    return number


class Form(click.Choice[str]):
    """A format of rows."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a format; say how a report is written."""
        if value == "html":
            self.fail(
                "'html' is no format of rows. A report is a file: give -o report.html, and leave out -f.", param, ctx
            )
        return super().convert(value, param, ctx)


FLOAT = Number("float", float, "0.5 or 1e-6")
"""The type of an option for a float."""
WHOLE = Number("integer", int, "10")
"""The type of an option for a whole number."""
BOUND = Number("integer", int, "10", words=("auto",))
"""The type of an option for a whole number, or auto for one that is found with privacy."""
DECIMAL = Number("number", _finite, "0.5")
"""The type of an option for a number that is not rounded to a float."""


def _is_number(word: str) -> bool:
    with suppress(ArithmeticError):
        return _is_plain(word) and Decimal(word) is not None
    return False


class _Bounded(click.ParamType[Any]):
    """A column, alone or with the least and the largest value."""

    name = "column"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return the column and the numbers."""
        if not isinstance(value, str):
            return value
        column, *numbers = value.split(_BETWEEN)
        return (column, *(DECIMAL.convert(number, param, ctx) for number in numbers))


BOUNDED = _Bounded()
"""The type of an option for a column with or without bounds."""
ROWS = Number("integer", int, "10", words=("all",))
"""The type of an option for the most rows of a user that count, or all of them."""


def restore_help(command: click.Command) -> None:
    """Read the help of a command and its commands from their source, because `python -OO` drops docstrings."""
    import ast
    import inspect
    from textwrap import dedent

    if command.help is None and command.callback is not None:
        with suppress(OSError, SyntaxError):
            function = ast.parse(dedent(inspect.getsource(command.callback))).body[0]
            command.help = ast.get_docstring(function) if isinstance(function, ast.FunctionDef) else None
    for other in command.commands.values() if isinstance(command, click.Group) else ():
        restore_help(other)
