"""Numbers with their nouns, and the notes that name a measure."""

from __future__ import annotations

__all__ = ["counted", "is_measure"]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_measure(note: str) -> bool:
    """Return whether a note says which clipped counts a release has; see `Release.measure`."""
    return note.startswith(("counts of ", "sums of ")) and "clipped to" in note
