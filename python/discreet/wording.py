"""Numbers with their nouns, and the names that wrong names may mean."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["counted", "meant", "number", "shown_down", "shown_up"]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def meant(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name that is most like a wrong one, in any case; empty if none is."""
    from difflib import get_close_matches

    shown = {one.lower(): one for one in reversed([*known])}
    near = get_close_matches(name.lower(), shown, n=1)
    return f"; did you mean {shown[near[0]]!r}?" if near else ""


def number(value: float) -> str:
    """Return an integer with all its digits, or a float with at most twelve."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.12g}"


def shown_up(value: float, digits: int = 6) -> str:
    """Return a cost or a guarantee as text: never below the value, apart from digits after the fourteenth.

    Those are rounding errors of sums, such as of 0.1 + 0.2, by which true costs are below stated ones
    (docs/decisions/total-and-parts.md).
    """
    return _shown(value, digits, "ROUND_CEILING")


def shown_down(value: float, digits: int = 6) -> str:
    """Return what is left as text: never above the value, apart from digits after the fourteenth."""
    return _shown(value, digits, "ROUND_FLOOR")


def _shown(value: float, digits: int, rounding: str) -> str:
    from decimal import Context

    exact = Context(prec=14).create_decimal(repr(float(value)))
    return f"{float(Context(prec=digits, rounding=rounding).plus(exact)):.{digits}g}"
