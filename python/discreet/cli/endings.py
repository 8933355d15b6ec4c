"""The sentence about the charge and the rows of a command that ends with an error, an interrupt or a signal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from discreet import budgets
from discreet.startup import INTERRUPTED

if TYPE_CHECKING:
    from discreet.budgets.paid import Watch
    from discreet.errors import Charged
    from discreet.release.release import Release

__all__ = ["Ending", "current", "following", "report"]

_NO_ROWS = "No rows were published, and a new release is charged again."
_LOST = (
    "Not all of its rows were written. The rows cannot be drawn again, and a new release is charged again. Use -o FILE "
    "to keep rows in a file."
)


class Ending:
    """The charge and the rows of the command that runs."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.where = ""
        """The sentence that says where the result is."""
        self.begun = False
        """Whether a part of the rows may have been written."""
        self.without = _NO_ROWS
        """The sentence about a charge without a result."""
        self.told = False
        """Whether the command has said all of this."""

    @property
    def charged(self) -> Charged | None:
        """The charge of the command; None if nothing was charged."""
        last = None if self.watch is None else self.watch.last
        return None if last is None else last.charged

    @property
    def release(self) -> Release | None:
        """The release, if it is complete and paid for."""
        found: Release | None = None if (charged := self.charged) is None else charged.release  # type: ignore[assignment]
        return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note what is charged in this context."""
        with budgets.watching() as self.watch:
            yield

    def freeze(self) -> None:
        """Let no charge begin any more, so that what is said next stays true until the process ends."""
        if self.watch is not None:
            self.watch.lock.acquire(timeout=0.1)

    @property
    def sentence(self) -> str:
        """The sentence after an error; empty if nothing was charged or written."""
        charged = self.charged
        if self.told or (charged is None and not self.where):
            return ""
        if charged is None:
            return self.where
        cost = charged.cost if charged.certain else f"{charged.cost} `discreet budget history` shows whether it was."
        drawn = charged.release is not None or self.begun
        return f"{cost} {self.where or (_LOST if drawn else self.without)}"

    @property
    def interrupted(self) -> str:
        """The line after an interrupt."""
        if self.begun or self.sentence or self.told:
            return INTERRUPTED.partition(";")[0]
        return INTERRUPTED


_endings: list[Ending] = [Ending()]


def current() -> Ending:
    """Return the ending of the command that runs. A process runs one command at a time."""
    return _endings[-1]


def report() -> None:
    """Print the sentence of the command that runs, once."""
    ending = current()
    if said := ending.sentence:
        ending.told = True
        with suppress(OSError):
            click.echo(said, err=True)


@contextmanager
def following() -> Iterator[None]:
    """Give a command its own ending, and print it if the command ends with an exception."""
    _endings.append(Ending())
    try:
        yield
    except BaseException:
        report()
        raise
    finally:
        _endings.pop()
