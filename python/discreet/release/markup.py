"""HTML fragments for notebooks and reports. All text in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["escaped", "paragraph", "table"]

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
"""The entities of `html.escape`, whose module takes milliseconds to import. The ampersand is the first."""


def escaped(text: str) -> str:
    """Return text for HTML, in content and in attributes."""
    for character, entity in _ENTITIES.items():
        text = text.replace(character, entity)
    return text


def paragraph(text: str, *, bold: bool = False) -> str:
    """Return a paragraph of text."""
    shown = escaped(text)
    return f"<p><b>{shown}</b></p>" if bold else f"<p>{shown}</p>"


def table(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", notes: Iterable[str] = (), more: int = 0
) -> str:
    """Return a table of text.

    `more` is the number of rows that the table lacks; nothing is said unless it is above zero.
    """
    head = "".join(f"<th><bdi>{escaped(name)}</bdi></th>" for name in names)
    # A label in a script that runs from right to left must not reorder the cells next to it.
    body = "".join("<tr>" + "".join(f"<td><bdi>{escaped(cell)}</bdi></td>" for cell in row) + "</tr>" for row in rows)
    above = (paragraph(title, bold=True) if title else "") + "".join(map(paragraph, notes))
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
