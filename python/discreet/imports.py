"""Imports on first use, for which a fork and an interrupt wait."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from discreet.startup import ENDS

__all__ = ["held", "importing"]

_LONGEST = 30.0
"""The most seconds that a fork waits for imports."""
_imports = threading.Condition()
_running: list[int] = []
"""The thread of each import in progress."""


@contextmanager
def importing() -> Iterator[None]:
    """Let forks of this process wait for an import, because a child could not end what another thread began.

    Other imports do not wait: two threads may import at once, each with modules that the other one needs. An interrupt
    waits too, because some compiled modules end the process if it stops their import.
    """
    own = threading.get_ident()
    with _imports:
        _running.append(own)
    try:
        with held(twice=True):
            yield
    finally:
        with _imports:
            _running.remove(own)
            _imports.notify_all()


@contextmanager
def held(*, twice: bool = False) -> Iterator[None]:
    """Let an interrupt wait for a short piece of work; a second one ends the work, unless it waits `twice`."""
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting and not twice:
            raise KeyboardInterrupt
        waiting.append((number, frame))

    found = {number: signal.getsignal(number) for number in ENDS}
    before = {int(number): handler for number, handler in found.items() if callable(handler)}  # others are ignored
    try:
        for number in before:
            signal.signal(number, wait)
    except ValueError:  # not the main thread
        before.clear()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            number, frame = waiting[0]
            before[number](number, frame)


def _wait_for_imports() -> None:
    _imports.acquire()
    _imports.wait_for(lambda: {*_running} <= {threading.get_ident()}, _LONGEST)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_parent=_imports.release, after_in_child=_imports.release)
