"""The mechanism that the text `made_by` of a release describes, and its facts.

What would break: a text that runs code. Only literals, and public mechanisms of literals, are evaluated.
"""

from __future__ import annotations

import ast
from typing import Protocol

from discreet.errors import ParameterError
from discreet.names import public
from discreet.privacy.guarantee import Guarantee
from discreet.release import export
from discreet.release.facts import Facts, Summed

__all__ = ["Stating", "facts_of", "mechanism_of"]

_FORMER = {"spend": "meet_relative_error", "together": "shared_order"}
"""The current name of each renamed parameter. Old certificates have the former name."""


class Stating(Protocol):
    """A mechanism: it states its guarantee and the facts of its releases."""

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of one release."""

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts: ...


def mechanism_of(made_by: str) -> Stating:
    """Return the mechanism that a text such as "GumbelTopK(k=10, scale=2.0)" describes.

    Raises:
        ParameterError: The text is no call with keyword arguments, or a parameter is out of range.
        ValueError: It names no public mechanism. Untrusted texts raise other errors, too.
    """
    return _made(export.call(made_by))


def _made(call: ast.Call) -> Stating:
    kind = public(ast.unparse(call.func))
    given = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
    made = None if kind is None else kind(**{_FORMER.get(name, name): value for name, value in given.items()})
    if not hasattr(made, "_facts"):
        raise ValueError("a mechanism must be a public class of the package")
    return made  # type: ignore[return-value]


def _value(node: ast.expr) -> object:
    """Return a parameter: a literal, a mechanism, or a tuple of these."""
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    return _made(node) if isinstance(node, ast.Call) else ast.literal_eval(node)


def facts_of(made_by: str, l0: int | None, summed: Summed | None) -> Facts | None:
    """Return the facts of a release by its mechanism, or None if this version does not know the mechanism.

    A refinement has those of the mechanism that it refines.
    """
    start = 0
    while made_by.startswith("Refinement(", start):
        if (end := made_by.find(") of ", start)) < 0:
            return None
        start = end + len(") of ")
    try:
        return mechanism_of(made_by[start:])._facts(l0, summed)
    except (ParameterError, ValueError, TypeError, ImportError, AttributeError, RecursionError, MemoryError):
        return None
