"""The handling of Ctrl-C, SIGTERM and SIGHUP while a command runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from discreet.cli import endings
from discreet.imports import handling
from discreet.startup import ENDS, INTERRUPTED_CODE

__all__ = ["ends_as_interrupts", "within_a_second"]


@contextmanager
def ends_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, so that cleanup runs as after Ctrl-C.

    An ignored SIGHUP stays ignored, as `nohup` needs it.
    """
    found = {int(number): signal.getsignal(number) for number in ENDS if number != signal.SIGINT}
    ends = [number for number, each in found.items() if number == signal.SIGTERM or each != signal.SIG_IGN]
    with handling(dict.fromkeys(ends, signal.default_int_handler)):
        yield


@contextmanager
def within_a_second() -> Iterator[None]:
    """End the process if work continues for a second after an interrupt, as DuckDB does while it sorts.

    The process then ends without cleanup. Use this only for work that leaves no files behind. A ledger charge may be
    interrupted at any point.
    """
    import socket

    try:
        read_end, write_end = socket.socketpair()
    except OSError:  # without the watcher, an interrupt waits for the work
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        with read_end, suppress(OSError):
            while number := read_end.recv(1):
                if number[0] in ENDS and not ended.wait(1):
                    _end()

    with write_end:
        write_end.setblocking(False)
        try:
            threading.Thread(target=watch, daemon=True).start()
        except RuntimeError:  # the system refused the thread
            read_end.close()
            yield
            return
        try:
            before = signal.set_wakeup_fd(write_end.fileno(), warn_on_full_buffer=False)
        except ValueError:  # not the main thread
            yield
            return
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            ended.set()


def _end() -> None:
    """Replace the progress line with the interrupt message, then end the process."""
    try:
        if "rich.progress" in sys.modules:  # otherwise there is no progress line
            from rich.console import Console
            from rich.control import Control
            from rich.segment import ControlType

            clear = Control(ControlType.SHOW_CURSOR, ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
            Console(stderr=True).control(clear)
        endings.current().freeze()
        click.echo(endings.current().interrupted, err=True)
        endings.report()
    finally:
        os._exit(INTERRUPTED_CODE)
