"""Texts of the library in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["in_options"]

_WORDS = re.compile(r"\b(?:(certificate)=True|(unit|method|items)=(['\"])([\w+]+)\3)")
_NUMBERS = re.compile(r"\b(rho|epsilon|delta)=(?=[\d.])")


def in_options(text: str) -> str:
    """Return an error text with Python parameters replaced by options, such as unit='event' by `--unit event`."""
    text = _WORDS.sub(lambda found: f"--{found[1] or f'{found[2]} {found[4]}'}", text)
    said, tried, advice = text.partition(" Try ")
    return said + tried + _NUMBERS.sub(r"--\1 ", advice).replace("without epsilon", "without --epsilon")
