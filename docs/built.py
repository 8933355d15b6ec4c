"""A check of built pages: their text shows no markup and each picture has a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

__all__ = ["markup"]

_MARKUP = re.compile(r"\{[A-Za-z_]+\}|\]\(|\.md\)")
"""A placeholder that was not filled in, a link of Markdown, and the path of a page in the source."""
_CODE = ("code", "pre", "script", "style", "svg", "dt")
"""The elements whose text may have braces: code, and the signatures of functions."""
_VOID = ("area", "br", "col", "hr", "img", "input", "link", "meta", "path", "source", "wbr")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "img" and re.fullmatch(r"[\w/.-]+\.(png|svg)", dict(attributes).get("alt") or ""):
            self.found.append(f"a picture whose text is the name of its file: {dict(attributes)['alt']}")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if _MARKUP.search(data) and not {*_CODE} & {*self.open}:
            self.found.append(" ".join(data.split()))


def markup(page: str) -> Iterator[str]:
    """Yield the texts of a page that have markup, outside of code, and the pictures whose text is a file's name."""
    reader = _Reader()
    reader.feed(page)
    yield from reader.found
