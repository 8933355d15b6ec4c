"""A name for the current process that a forked child never shares."""

from __future__ import annotations

import os

__all__ = ["process"]

_forks = 0


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


def process() -> tuple[int, int]:
    """Return the process id and the number of forks since the first import.

    A child in a new PID namespace may get the id of its parent; the number of forks still differs.
    """
    return os.getpid(), _forks
