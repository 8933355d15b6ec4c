"""Parameters that several functions share, as `**options: Unpack[Group]`: in their signatures and docstrings.

A group is a TypedDict, which mypy reads. Its docstring describes its keys, so an option is written once. `showing`
makes `inspect.signature`, notebooks and the reference show the keys as if each function had written them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from textwrap import indent
from typing import TypeVar

from discreet.wording import meant

__all__ = ["described", "refuse_unknown", "showing"]

_Shown = TypeVar("_Shown", bound=Callable[..., object])
_OPEN = re.compile(r"^( *)\*\*\w+:.*\n(?:\1 +.*\n)*", re.MULTILINE)
"""The description of `**options` in a docstring."""


def showing(*groups: type, **defaults: object) -> Callable[[_Shown], _Shown]:
    """Return a decorator that shows the keys of groups in a signature and a docstring, in place of `**options`.

    Args:
        *groups: TypedDicts. The keys of the first one follow the positional parameters, and those of others come last.
        **defaults: The defaults that are not None, by key.
    """

    def decorate(function: _Shown) -> _Shown:
        text = "\n".join(filter(None, map(described, groups)))
        if function.__doc__ and text:
            function.__doc__ = _OPEN.sub(lambda found: indent(text, found[1]) + "\n", function.__doc__)
        if not isinstance(function, type):
            first, *others = (
                [_shown(key, of, defaults) for key, of in group.__annotations__.items()] for group in groups
            )
            given = signature(function)
            named = [one for one in given.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
            places = [one for one in named if one.kind is not Parameter.KEYWORD_ONLY]
            shown = [*places, *first, *named[len(places) :], *(one for other in others for one in other)]
            function.__signature__ = given.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return decorate


def _shown(key: str, kind: object, defaults: dict[str, object]) -> Parameter:
    annotation = getattr(kind, "__forward_arg__", kind)
    return Parameter(key, Parameter.KEYWORD_ONLY, default=defaults.get(key), annotation=annotation)


def described(group: type) -> str:
    """Return the descriptions of a group's keys, as they stand below "Args:"; empty without docstrings."""
    _, _, text = (group.__doc__ or "").partition("Args:\n")
    lines = text.rstrip().splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return "\n".join(line[margin:] for line in lines)


def refuse_unknown(function: Callable[..., object], names: Iterable[str], known: Iterable[str], hint: str = "") -> None:
    """Raise TypeError for the first name that is not known, with the parameter of the function that it may mean."""
    for name in names:
        if name not in known:
            near = hint or meant(name, signature(function).parameters)
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}{near}")
