"""Versions of the libraries that read tables, for errors that blame the library and not the data."""

from __future__ import annotations

import re
import sys

from discreet.errors import MissingLibraryError

__all__ = ["require_version", "version_hint"]

_LEAST = {"duckdb": (2, 0), "pandas": (2, 2), "polars": (1, 30), "pyarrow": (17, 0)}
"""The first version of each library that the tests cover."""


def version_hint(library: str) -> str:
    """Return a sentence if the installed version of a library is older than the first one tested, else ""."""
    installed, least = _installed(library), _LEAST.get(library)
    if installed is None or least is None or _numbers(installed) >= least:
        return ""
    needed = ".".join(map(str, least))
    return (
        f"{library} {installed} is installed, and discreet needs {needed} or later: pip install '{library}>={needed}'"
    )


def require_version(library: str) -> None:
    """Raise MissingLibraryError if the installed version of a library is older than the first one tested."""
    if hint := version_hint(library):
        raise MissingLibraryError(hint)


def _installed(library: str) -> str | None:
    """Return the version of a library that was imported, or None."""
    version: str | None = getattr(sys.modules.get(library), "__version__", None)
    return version


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(number) for number in re.findall("[0-9]+", version)[:2])
