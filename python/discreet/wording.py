"""Numbers with their nouns, and the names that wrong names may mean."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["counted", "meant", "number"]


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
