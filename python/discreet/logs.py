"""Messages of the logger "discreet" at the level DEBUG: the choices of the library and the reasons for them.

A log is shared with operators and stored, so messages have public values alone: parameters, types and choices. They
have no counts, no labels, no numbers of rows or users, and no names of columns or files.
"""

from __future__ import annotations

import sys

__all__ = ["debug"]


def debug(message: str, *values: object) -> None:
    """Log a message at the level DEBUG, if the process uses the module logging."""
    # A program that never imported the module has no handler that could show the message. The import takes
    # milliseconds.
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("discreet").debug(message, *values)
