"""The parameters of functions of the package, read from their sources: help imports neither these modules nor numpy.

The signature of a function has the name, type and default of a parameter, and the `Args:` of its docstring describe
it. So an option of a command is written once, where the function is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from typing import NamedTuple

import discreet

__all__ = ["Described", "described"]

_SOURCES = {
    "count": "api.py",
    "top_k": "api.py",
    "select": "api.py",
    "sum": "sums.py",
    "aggregate": "sums.py",
    "recommended": "streams/recommend.py",
    "Columns": "engines/table.py",
    "ReleaseTexts": "release/provenance.py",
}
"""The files of functions, and of the groups of options that all verbs take."""
_ENTRY = re.compile(r"^( +)(\w+): (.*(?:\n\1 +.*)*)", re.MULTILINE)
"""A parameter below "Args:", with its description."""
_QUOTED = re.compile(r"`([^`]*)`")
"""Code in a description: a parameter, one with a value, or something of Python."""


class Described(NamedTuple):
    """A parameter as its function has it.

    Args:
        annotation: Its type.
        default: Its default if that is a literal, else None.
        text: Its description.
        required: Whether it has no default.
    """

    annotation: str
    default: object
    text: str
    required: bool = False

    def help(self, options: Mapping[str, str]) -> str:
        """Return the description for a command, with its options, by parameter.

        A sentence with code in backticks that is no such parameter is about Python alone.
        """

        def parts(code: str) -> tuple[str, str]:
            name, _, value = code.partition("=")
            return name, value.strip('"')

        def shown(found: re.Match[str]) -> str:
            name, value = parts(found[1])
            return f"{options[name]} {value}".rstrip()

        sentences = re.split(r'(?<=\.) (?=[A-Z"`])', self.text)
        kept = [one for one in sentences if all(parts(code)[0] in options for code in _QUOTED.findall(one))]
        return re.sub(r'"([\w+]+)"', r"\1", _QUOTED.sub(shown, " ".join(kept)))


@cache
def described(name: str) -> dict[str, Described]:
    """Return the parameters of a function or the keys of a TypedDict, by name."""
    assert discreet.__spec__ is not None
    path = PurePath(discreet.__path__[0], _SOURCES[name])
    source = discreet.__spec__.loader.get_data(str(path)).decode()  # type: ignore[union-attr]
    is_group = name in ("Columns", "ReleaseTexts")
    code = source.partition(f"\n{'class' if is_group else 'def'} {name}(")[2].partition("\n\n\n")[0]
    head, docstring, body = code.split('"""', 2)
    texts = {found[2]: " ".join(found[3].split()) for found in _ENTRY.finditer(docstring.partition("Args:\n")[2])}
    if is_group:
        keys = ast.parse(body.replace("\n    ", "\n")).body
        types = {ast.unparse(key.target): ast.unparse(key.annotation) for key in keys if isinstance(key, ast.AnnAssign)}
        return {key: Described(kind, None, texts[key]) for key, kind in types.items()}
    function = ast.parse(f"def f({head} ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    own = {
        one.arg: Described(
            ast.unparse(one.annotation) if one.annotation else "",
            default.value if isinstance(default, ast.Constant) else None,
            texts[one.arg],
            required=default is None,
        )
        for one, default in arguments
    }
    shares = function.args.kwarg is not None
    return described("Columns") | own | described("ReleaseTexts") if shares else own
