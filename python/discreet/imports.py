"""Imports on first use, for which a fork waits, and work for which an interrupt of the command waits."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from discreet.startup import state

__all__ = ["Handler", "handling", "held", "importing"]

Handler: TypeAlias = Callable[[int, FrameType | None], object]
"""A signal handler."""

_LONGEST = 30.0
"""The most seconds that a fork waits for imports."""
_running: set[int] = set()
"""The threads that import."""
_fork_lock = threading.RLock()
"""A lock that a fork holds, so that no thread begins an import. Imports hold no lock: two threads may import at once,
each with modules that the other one needs."""


@contextmanager
def importing() -> Iterator[None]:
    """Let forks of this process wait for an import, because a child could not end what another thread began.

    An interrupt of the command waits too, because some compiled modules end the process if it stops their import.
    """
    own = threading.get_ident()
    if own in _running:
        yield
        return
    with held():
        with _fork_lock:
            _running.add(own)
        try:
            yield
        finally:
            _running.discard(own)


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


def _wait_for_imports() -> None:
    _fork_lock.acquire()
    last = time.monotonic() + _LONGEST
    while _running - {threading.get_ident()} and time.monotonic() < last:
        time.sleep(0.0005)


def _begin_child() -> None:
    _running.intersection_update({threading.get_ident()})  # other threads do not exist in a child
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_parent=_fork_lock.release, after_in_child=_begin_child)
