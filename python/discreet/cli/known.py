"""Public items in a file of a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from discreet.engines.files import require_regular
from discreet.errors import InputError, ItemTypeError
from discreet.release import Release
from discreet.wording import counted

__all__ = ["known_items", "released"]

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,19})")


def released(release: Callable[[Sequence[str | int]], Release], items: Sequence[str]) -> Release:
    """Return the release of public items: as text, or as numbers if the column of items holds integers.

    The schema of the data decides: a column of integers refuses text before the budget is charged.
    """
    try:
        return release(items)
    except ItemTypeError as error:
        if error.charged is not None or not all(map(_NUMBER.fullmatch, items)):
            raise
    return release([int(item) for item in items])


def known_items(path: str, columns: Sequence[str]) -> list[str]:
    """Return the items in a file, one on each line, in UTF-8.

    Raises:
        UsageError: An item has several columns.
        InputError: The file cannot be read.
    """
    if len(columns) > 1:
        raise click.UsageError(
            "--items lists items of one column. With --every or several --item columns, use it in Python."
        )
    try:
        require_regular(path)
        lines = Path(path).read_text("utf-8-sig").split("\n")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError(f"cannot read {path}: {reason or 'the system reported an error'}") from None
    except ValueError:
        raise InputError(f"cannot read {path}: it must be a text file in UTF-8, with one item on each line") from None
    found = dict.fromkeys(line.removesuffix("\r") for line in lines)
    found.pop("", None)
    padded = sum(label != label.strip() for label in found)
    if padded:
        click.echo(
            f"Note: {counted(padded, 'line')} of {path} with a space at an end. The space is part of the item.",
            err=True,
        )
    return [*found]
