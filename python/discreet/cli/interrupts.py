"""How Ctrl-C and a polite kill end a command."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console

__all__ = ["INTERRUPTED", "INTERRUPTED_CODE", "sigterm_as_interrupt", "within_a_second"]

INTERRUPTED = "discreet: interrupted; nothing was published"
INTERRUPTED_CODE = 130


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Lets a polite kill clean up as Ctrl-C does."""
    if not _is_main():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def within_a_second() -> Iterator[None]:
    """Ends the process where work goes on for a second after an interrupt, as DuckDB's does while it sorts.

    Nothing is cleaned up then: for work that leaves nothing behind.
    """
    if not _is_main():
        yield
        return
    ours, pythons = socket.socketpair()
    ended = threading.Event()

    def watch() -> None:
        while number := ours.recv(1):
            if number[0] in (signal.SIGINT, signal.SIGTERM) and not ended.wait(1):
                Console(stderr=True).show_cursor()
                click.echo(INTERRUPTED, err=True)
                os._exit(INTERRUPTED_CODE)

    with ours, pythons:
        pythons.setblocking(False)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        before = signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            ended.set()
            signal.set_wakeup_fd(before)
            pythons.close()
            watcher.join()


def _is_main() -> bool:
    """Whether this is the main thread, which alone can say how signals are handled."""
    return threading.current_thread() is threading.main_thread()
