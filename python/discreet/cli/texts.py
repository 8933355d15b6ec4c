"""Texts of the library in the words of the command line."""

from __future__ import annotations

import re
from contextlib import suppress

import click

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
_BEGINNINGS = re.compile(
    r"^(?:(?:every, since and until|time|others) needs?"
    r"|(?:since|until) must|user, item and time must|percentile|kept_share needs"
    r"|l0 (?:excludes|needs|must|is missing))\b"
)
"""Errors about parameters, by their beginnings. Some parameters are words of English, so their names are replaced in
these errors alone."""
_PARAMETERS = re.compile(r"(?<![\w-])(every|since|until|time|others|user|item|percentile|l0|items)(?![\w=])")
_EXPLAINED = re.compile(r": |; |, the | such as | must be ")
"""What ends the part of an error that names parameters."""
_COSTS = re.compile(r"(?<![\w(-])(rho|epsilon)\b")
_L0 = re.compile(r"(?<![\w-])(l0)(?![\w=])")


def in_options(text: str) -> str:
    """Return an error text with Python parameters replaced by options, such as unit='event' by `--unit event`."""
    for step, other in _IN_PYTHON.items():
        text = text.replace(step, other)
    if text.startswith("give exactly one of rho and epsilon:"):
        return _COSTS.sub(r"--\1", text)
    if _BEGINNINGS.match(text):
        end = found.start() if (found := _EXPLAINED.search(text)) else len(text)
        text = _PARAMETERS.sub(r"--\1", text[:end]) + _L0.sub(r"--\1", text[end:])
    text = _BARE.sub(r"--\1", text)
    text = _NAMES.sub(lambda found: "--" + found[1].replace("_", "-"), text)
    text = _WORDS.sub(lambda found: f"--{found[1] or f'{found[2]} {found[4]}'}", text)
    said, tried, advice = text.partition(" Try ")
    return said + tried + _NUMBERS.sub(r"--\1 ", advice).replace("without epsilon", "without --epsilon")


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
