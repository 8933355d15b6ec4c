"""The end of a command: what it says about its charge and its rows, last of all, and its exit code."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import click

from discreet import budgets, startup

if TYPE_CHECKING:
    from discreet.budgets.paid import Receipt
    from discreet.errors import Charged
    from discreet.release.release import Release

__all__ = ["Ending", "begin", "current", "leave", "say"]

_NO_ROWS = "No rows were published, and a new release is charged again."
_LOST = (
    "Not all of its rows were written. The rows cannot be drawn again, and a new release is charged again. Use -o FILE "
    "to keep rows in a file."
)


class Ending:
    """The charge and the rows of the command that runs. All of it is in memory: what it says needs no file."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []
        self.where = ""
        """The sentence that says where the result is."""
        self.begun = False
        """Whether a part of the rows may have been written."""
        self.without = _NO_ROWS
        """The sentence about a charge without a result."""
        self.done = ""
        """The text about the charge of a command that has done all its work."""
        self.options: Mapping[str, str] = {}
        """The options of the command that failed, by parameter."""

    @property
    def charged(self) -> Charged | None:
        """The charge of the command; None if nothing was charged."""
        return self.receipts[-1].charged if self.receipts else None

    @property
    def release(self) -> Release | None:
        """The release, if it is complete and paid for."""
        found: Release | None = None if (charged := self.charged) is None else charged.release  # type: ignore[assignment]
        return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note what is charged in this context."""
        with budgets.watching() as self.receipts:
            yield

    @property
    def sentence(self) -> str:
        """The sentence after an error; empty if nothing was charged or written."""
        charged = self.charged
        if charged is None:
            return self.where
        cost = charged.cost if charged.certain else f"{charged.cost} `discreet budget history` shows whether it was."
        drawn = charged.release is not None or self.begun
        return f"{cost} {self.where or (_LOST if drawn else self.without)}"

    @property
    def interrupted(self) -> str:
        """The line after an interrupt."""
        nothing = not (self.begun or self.sentence)
        return f"{startup.INTERRUPTED}; nothing was published" if nothing else startup.INTERRUPTED


_ending = Ending()


def begin() -> Ending:
    """Begin a command in this process, which runs one at a time."""
    global _ending
    _ending = Ending()
    startup.state.leave = _leave_at_once
    return _ending


def current() -> Ending:
    """Return the ending of the command that runs."""
    return _ending


def say(text: str) -> None:
    """Write text to standard error; if nobody reads it, the exit code still says how the command ended."""
    if text:
        with suppress(OSError):
            click.echo(text, err=True)


def leave(code: int) -> NoReturn:
    """End the process with this code, whatever becomes of its standard streams."""
    atexit._run_exitfuncs()  # noqa: SLF001 - `os._exit` runs none, and another end may replace the exit code
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _leave_at_once() -> None:
    """End the process from another thread: replace the progress line with the interrupt message, and say the charge.

    No file is left behind: DuckDB runs before a command writes any. An interrupt is raised in the main thread before it
    could begin a charge.
    """
    try:
        if "rich.progress" in sys.modules:  # otherwise there is no progress line
            from rich.console import Console
            from rich.control import Control
            from rich.segment import ControlType

            clear = Control(ControlType.SHOW_CURSOR, ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
            Console(stderr=True).control(clear)
        say(_ending.interrupted)
        say(_ending.sentence)
    finally:
        os._exit(startup.state.code)
