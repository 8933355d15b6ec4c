"""Imports on first use, for which a fork waits."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["importing"]

_LONGEST = 30.0
"""The most seconds that a fork waits for imports."""
_imports = threading.Condition()
_running: list[int] = []
"""The thread of each import in progress."""


@contextmanager
def importing() -> Iterator[None]:
    """Let forks of this process wait for an import, because a child could not end what another thread began.

    Other imports do not wait: two threads may import at once, each with modules that the other one needs.
    """
    own = threading.get_ident()
    with _imports:
        _running.append(own)
    try:
        yield
    finally:
        with _imports:
            _running.remove(own)
            _imports.notify_all()


def _wait_for_imports() -> None:
    _imports.acquire()
    _imports.wait_for(lambda: {*_running} <= {threading.get_ident()}, _LONGEST)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_parent=_imports.release, after_in_child=_imports.release)
