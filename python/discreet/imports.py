"""Imports on first use, for which a fork and an interrupt wait."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from discreet.startup import ENDS

__all__ = ["Handler", "handling", "held", "importing", "is_ending"]

Handler: TypeAlias = Callable[[int, FrameType | None], object]
"""A signal handler."""

_LONGEST = 30.0
"""The most seconds that a fork waits for imports."""
_PAUSE = 0.0005
_running: list[int] = []
"""The thread of each import in progress."""
_forking: list[int] = []
"""The threads that fork. Lists instead of a lock: an error between its steps would leave a lock locked."""


@contextmanager
def importing() -> Iterator[None]:
    """Let forks of this process wait for an import, because a child could not end what another thread began.

    Other imports do not wait: two threads may import at once, each with modules that the other one needs. An interrupt
    waits too, because some compiled modules end the process if it stops their import.
    """
    own = threading.get_ident()
    with held(twice=True):
        try:
            _begin(own)
            yield
        finally:
            if own in _running:
                _running.remove(own)


def _begin(own: int) -> None:
    """Note an import, after the forks of other threads. An import inside of another one does not wait."""
    is_first, last = own not in _running, time.monotonic() + _LONGEST
    _running.append(own)
    while is_first and {*_forking} - {own} and time.monotonic() < last:
        _running.remove(own)
        time.sleep(_PAUSE)
        _running.append(own)


@contextmanager
def held(*, twice: bool = False) -> Iterator[None]:
    """Let an interrupt wait for a short piece of work; a second one ends the work, unless it waits `twice`."""
    waiting: list[tuple[int, FrameType | None]] = []
    working = True

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting and working and not twice:
            raise KeyboardInterrupt
        waiting.append((number, frame))

    found = {number: signal.getsignal(number) for number in ENDS}
    before = {int(number): handler for number, handler in found.items() if callable(handler)}  # others are ignored
    try:
        with handling(dict.fromkeys(before, wait)):
            try:
                yield
            finally:
                working = False
    finally:
        if waiting:
            number, frame = waiting[0]
            before[number](number, frame)


@contextmanager
def handling(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Replace signal handlers, and restore all of them, also if an interrupt comes meanwhile.

    A handler that raises restores them too: the exception may come at the first step of the end of this context, which
    then runs when its garbage is collected. Outside the main thread, which alone handles signals, this does nothing.
    """
    before = {number: found for number in handlers if (found := signal.getsignal(number)) is not None}

    def restoring(handler: Handler) -> Handler:
        def run(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException:
                _restore(before, own)
                raise

        run.is_ending = is_ending(handler)  # type: ignore[attr-defined]
        return run

    own = {number: restoring(handlers[number]) for number in before}
    try:
        try:
            for number, handler in own.items():
                signal.signal(number, handler)
        except ValueError:  # not the main thread
            before.clear()
        yield
    finally:
        _restore(before, own)


def is_ending(handler: object) -> bool:
    """Return whether a signal handler is sure to raise KeyboardInterrupt."""
    return handler is signal.default_int_handler or getattr(handler, "is_ending", False)


def _restore(handlers: Mapping[int, Handler | int], own: Mapping[int, Handler]) -> None:
    """Restore the handlers of the signals for which the `own` ones are in force."""
    for number, handler in handlers.items():
        if signal.getsignal(number) is own[number]:
            try:
                signal.signal(number, handler)
            finally:  # the handler is in force again, and may raise
                _restore(handlers, own)


def _wait_for_imports() -> None:
    own, last, known = threading.get_ident(), time.monotonic() + _LONGEST, _fork_locks()
    _forking.append(own)
    if not {*_running} - {own}:
        return
    # The fork holds the lock of logging, for which an import may wait, if logging came after this module.
    logs = known.get("logging")
    try:
        if logs is not None:
            logs.release()
    except RuntimeError:  # not held
        logs = None
    while {*_running} - {own} and time.monotonic() < last:
        time.sleep(_PAUSE)
    if logs is not None:
        logs.acquire()
    for module, lock in _fork_locks().items():
        if module not in known:  # it has come meanwhile, and will release its lock after the fork
            lock.acquire()


def _fork_locks() -> dict[str, threading.Lock]:
    """Return the locks that modules of Python acquire before a fork."""
    names = {"logging": "_lock", "concurrent.futures.thread": "_global_shutdown_lock"}
    return {module: lock for module, name in names.items() if (lock := getattr(sys.modules.get(module), name, None))}


def _end_fork() -> None:
    if (own := threading.get_ident()) in _forking:
        _forking.remove(own)


def _begin_child() -> None:
    own = threading.get_ident()
    _running[:] = [thread for thread in _running if thread == own]  # other threads do not exist in a child
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_parent=_end_fork, after_in_child=_begin_child)
