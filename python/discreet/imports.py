"""Forks that wait for imports of other threads, and work for which an interrupt of the command waits."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from discreet.startup import state

__all__ = ["Handler", "handling", "held"]

Handler: TypeAlias = Callable[[int, FrameType | None], object]
"""A signal handler."""

_LONGEST = 30.0
"""The most seconds that a fork waits for imports."""
_LIBRARIES = frozenset(
    ["discreet", "duckdb", "ibis", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "pyspark", "rich"]
)
"""The packages that a call may import. Imports of other packages may take as long as a program runs."""


@contextmanager
def held() -> Iterator[None]:
    """Let an interrupt of the command wait for a short piece of work in the main thread."""
    if not state.stage or threading.current_thread() is not threading.main_thread():
        yield
        return
    state.holding += 1
    try:
        yield
    finally:
        state.holding -= 1
        if state.waits and not state.holding:
            state.waits = False
            raise KeyboardInterrupt


@contextmanager
def handling(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Replace signal handlers. Outside the main thread, which alone handles signals, this does nothing."""
    before: dict[int, Handler | int] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                if (found := signal.getsignal(number)) is not None:
                    before[number] = found
                    signal.signal(number, handler)
        yield
    finally:
        for number, found in before.items():
            signal.signal(number, found)


def _others_import() -> bool:
    """Return whether another thread imports a module of `_LIBRARIES`. Python has a lock for each module meanwhile."""
    locks = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    found = [lock for name, made in [*locks.items()] if name.partition(".")[0] in _LIBRARIES and (lock := made())]
    return any(lock.owner != threading.get_ident() for lock in found)


def _wait_for_imports() -> None:
    """Wait for imports of other threads, whose locks a child would hold for good.

    An import may begin between this and the fork. To keep Python's lock of imports until then could end in a deadlock
    with the locks that other packages take before a fork.
    """
    last = time.monotonic() + _LONGEST
    while _others_import() and time.monotonic() < last:
        time.sleep(0.0005)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)
