"""Ctrl-C while the command `discreet` imports the library, before its own handling of interrupts is there."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

__all__ = ["INTERRUPTED", "INTERRUPTED_CODE", "hold", "is_command", "release"]

INTERRUPTED = "discreet: interrupted; nothing was published"
INTERRUPTED_CODE = 130

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_held: dict[int, Any] = {}


def is_command() -> bool:
    """Return whether this process is the command: `python -m discreet`, or the script `discreet` beside `python`.

    A program of somebody else that has the name `discreet` keeps its own interrupts.
    """
    name = (getattr(sys, "argv", None) or [""])[0]
    if name == "-m":  # so it stands while Python imports the packages of the module
        words = sys.orig_argv[1:]
        place = next((place for place, word in enumerate(words) if word.startswith("-m")), len(words))
        return words[place : place + 2] == ["-m", "discreet"] or words[place : place + 1] == ["-mdiscreet"]
    folder, script = os.path.split(os.path.realpath(name))
    return script in ("discreet", "discreet.exe") and folder in (
        os.path.dirname(sys.executable),  # noqa: PTH120 - every import comes this way, and pathlib is slow to import
        os.path.dirname(os.path.realpath(sys.executable)),  # noqa: PTH120
    )


def hold() -> None:
    """End the process with 130 and one line, not with a traceback, at an interrupt until `release`.

    Signals that somebody else handles or ignores are left alone.
    """
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is default:
            try:
                _held[number] = signal.signal(number, _end)
            except ValueError:  # not the main thread
                return


def release() -> None:
    """Give interrupts back to whom they belonged: Ctrl-C raises KeyboardInterrupt again."""
    for number in [*_held]:
        signal.signal(number, _held.pop(number))


def _end(number: int, frame: object) -> None:
    """End the process at once: nothing was opened yet that would have to be closed."""
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
    finally:
        os._exit(INTERRUPTED_CODE)


if is_command():
    hold()
