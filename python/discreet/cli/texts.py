"""Texts of the library in the words of the command line."""

from __future__ import annotations

import re
from contextlib import suppress

import click

from discreet.errors import DiscreetError

__all__ = ["in_options", "restore_help"]

_WORDS = re.compile(r"\b(?:(certificate|others)=True|(unit|method|items|l0)=(['\"])([\w+]+)\3)")
_NUMBERS = re.compile(r"\b(rho|epsilon|delta)=(?=[\d.])")
_NAMES = re.compile(r"(?<![\w-])(kept_share|l0_share|relative_error|k_bar)(?![\w=])")
_BARE = re.compile(r"\b(user|item|like)=(?=[\s,.:;]|$)")
_IN_PYTHON = {
    " If you still have the Release, write it again with certificate=True, which costs no budget.": "",
    ", or write the Release again with certificate=True": "",
    "leave these parameters out, repeat them, or choose another name": "repeat them, or choose another --dataset",
}
"""Steps that only a caller of the library can take, and what replaces them in the command."""
_OPTIONS = {
    "delta",
    "epsilon",
    "every",
    "items",
    "item",
    "l0",
    "others",
    "percentile",
    "rho",
    "since",
    "time",
    "until",
    "user",
}
"""The parameters that options have, besides those of `_NAMES`."""
_ENGLISH = {"every", "item", "items", "others", "since", "time", "until", "user"}
"""The parameters that are words of English too. Only the first such word of an error is one."""


def in_options(error: DiscreetError) -> str:
    """Return the text of an error with the parameters that it names as options, such as --l0 for l0."""
    rest, remedy = str(error).removesuffix(error.remedy), error.remedy
    for step, other in _IN_PYTHON.items():
        rest = rest.replace(step, other)
    for name in error.names:
        if name in _OPTIONS:
            rest = re.sub(rf"(?<![\w(-]){name}(?![\w=])", f"--{name}", rest, count=name in _ENGLISH)
    rest = _BARE.sub(r"--\1", rest)
    rest = _NAMES.sub(lambda found: "--" + found[1].replace("_", "-"), rest)
    rest = _WORDS.sub(lambda found: f"--{found[1] or f'{found[2]} {found[4]}'}", rest)
    return rest + _NUMBERS.sub(r"--\1 ", remedy).replace("without epsilon", "without --epsilon")


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
