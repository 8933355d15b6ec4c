"""Texts of the library in the words of the command line."""

from __future__ import annotations

import re
from contextlib import suppress

import click

from discreet.errors import DiscreetError, InputError, LedgerError, ResourceError, StateError

__all__ = ["in_options", "restore_help"]

_WORDS = re.compile(
    r"\b(?:(certificate|others)=True|(unit|method|items|l0)=(['\"])([\w+-]+)\3|(user|item|like)=(?=[\s,.:;]|$))"
    r"|(?<!\w)(?:'[^']*'|\"[^\"]*\")"
)
"""Parameters with values, and quoted texts. A quoted text may be a name in the data, so it stays as it is."""
_NUMBERS = re.compile(r"\b(rho|epsilon|delta)=(?=[\d.])")
_OPTIONS = {
    *("bounds", "bounds_percentile", "delta", "delimiter", "encoding", "epsilon", "every", "horizon", "item", "items"),
    *(
        "k",
        "k_bar",
        "kept_share",
        "l0",
        "l0_share",
        "label",
        "linf",
        "max_epsilon",
        "means",
        "memory",
        "method",
        "once",
    ),
    *("others", "percentile", "relative_error", "replaces", "resolution", "rho", "rounds", "rows", "since"),
    *("sums", "time", "title", "unit", "until", "user", "value"),
}
"""The parameters that are options."""
_SPELT = {"k": "-k", "means": "--mean", "sums": "--sum", "value": "--column"}
"""The options whose names are not those of their parameters."""
_ENGLISH = _OPTIONS - {
    "delta",
    "epsilon",
    "k",
    "k_bar",
    "kept_share",
    "l0",
    "l0_share",
    "linf",
    "max_epsilon",
    "relative_error",
    "rho",
}
"""The parameters that are words of English too. Only the first such word of an error is one."""
_OF_PATHS = (InputError, LedgerError, ResourceError, StateError)
"""The errors that name files, as they are spelt, and no parameters."""


def in_options(error: DiscreetError) -> str:
    """Return the text of an error with the parameters that it names as options, such as --l0 for l0."""
    rest, remedy = str(error).removesuffix(error.remedy), error.remedy
    if error.only_in_python:
        rest = rest.replace(error.only_in_python, "")
    if not isinstance(error, _OF_PATHS):
        names = [name for name in error.names if name in _OPTIONS]
        rest, remedy = _options(rest, names), _options(remedy, names) if names else remedy
    return rest + _NUMBERS.sub(r"--\1 ", remedy).replace("without epsilon", "without --epsilon")


def _options(text: str, names: list[str]) -> str:
    """Return a text with these parameters, and parameters with values, as options; quoted texts stay."""
    parts, end, left = [], 0, dict.fromkeys(names, 0) | {name: 1 for name in names if name in _ENGLISH}
    for found in [*_WORDS.finditer(text), None]:
        part = text[end : found.start() if found else len(text)]
        for name in [*left]:
            option = _SPELT.get(name, f"--{name.replace('_', '-')}")
            part, times = re.subn(rf"(?<![\w(-]){name}(?![\w=])", option, part, count=left[name])
            if times and left[name]:
                del left[name]
        parts.append(part)
        if found:
            flag, name, _, value, bare = found.groups()
            parts.append(f"--{flag or bare or f'{name} {value}'}" if flag or name or bare else found[0])
            end = found.end()
    return "".join(parts)


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
