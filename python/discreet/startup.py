"""Handling of Ctrl-C while the command `discreet` imports the library."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["INTERRUPTED", "INTERRUPTED_CODE", "hold", "is_command", "release"]

INTERRUPTED = "discreet: interrupted; nothing was published"
INTERRUPTED_CODE = 130

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_held: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}


def is_command() -> bool:
    """Return whether this process is the command: `python -m discreet`, or the script `discreet` next to `python`.

    Another program with the name `discreet` keeps its own signal handlers.
    """
    name = (getattr(sys, "argv", None) or [""])[0]
    if name == "-m":  # argv[0] until Python has imported the packages of the module
        words = sys.orig_argv[1:]
        place = next((place for place, word in enumerate(words) if word.startswith("-m")), len(words))
        return words[place : place + 2] == ["-m", "discreet"] or words[place : place + 1] == ["-mdiscreet"]
    folder, script = os.path.split(os.path.realpath(name))
    return script in ("discreet", "discreet.exe") and folder in (
        os.path.dirname(sys.executable),  # noqa: PTH120 - every import runs this, and pathlib is slow to import
        os.path.dirname(os.path.realpath(sys.executable)),  # noqa: PTH120
    )


def hold() -> None:
    """Install handlers that end the process with code 130 and one line instead of a traceback, until `release`.

    Signals that another program handles or ignores keep their handlers.
    """
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is default:
            try:
                _held[number] = signal.signal(number, _end)
            except ValueError:  # not the main thread
                return


def release() -> None:
    """Restore the former signal handlers, so that Ctrl-C raises KeyboardInterrupt again."""
    for number in [*_held]:
        signal.signal(number, _held.pop(number))


def _end(number: int, frame: object) -> None:
    """End the process at once. No resource that needs closing is open yet."""
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
    finally:
        os._exit(INTERRUPTED_CODE)


if is_command():
    hold()
