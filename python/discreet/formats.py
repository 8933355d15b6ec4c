"""The formats of files: their names, their suffixes, and what a file of each holds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from discreet.errors import ParameterError

__all__ = [
    "CSV",
    "DATA",
    "DATA_NAMES",
    "JSON_LINES",
    "PARQUET",
    "RELEASED",
    "RELEASED_NAMES",
    "TEXTS",
    "WRITTEN",
    "Format",
    "alternatives",
    "require_suffix",
    "suffix_of",
]


class Format(NamedTuple):
    """A format of files that tables are read from, that releases are written in, or both."""

    name: str
    data: tuple[str, ...] = ()
    """The suffixes of files of data."""
    released: tuple[str, ...] = ()
    """The suffixes of files of released rows."""
    is_text: bool = False
    """Whether cells are text. Data may then be compressed by gzip, and standard output may have the rows."""
    dataset: str | None = None
    """The name of the format in `pyarrow.dataset`, if that reads the data."""


PARQUET = Format("Parquet", ("parquet", "pq"), ("parquet",))
CSV = Format("CSV", ("csv", "tsv", "txt"), ("csv",), is_text=True)
JSON_LINES = Format("JSON lines", ("jsonl", "ndjson"), ("jsonl",), is_text=True)
_FORMATS = (
    PARQUET,
    CSV,
    Format("JSON", (), ("json",), is_text=True),
    JSON_LINES,
    Format("Arrow", ("arrow", "feather", "ipc"), dataset="ipc"),
)
DATA = {suffix: form for form in _FORMATS for suffix in form.data}
"""The formats of data by the suffixes of files, without their dots."""
RELEASED = {suffix: form for form in sorted(_FORMATS, key=lambda form: not form.is_text) for suffix in form.released}
"""The formats of released rows by the suffixes of files, without their dots: formats of text first."""
TEXTS = [suffix for suffix, form in RELEASED.items() if form.is_text]
"""The suffixes of released rows as text."""
WRITTEN = (*RELEASED, "html")
"""The suffixes of files that a release is written to: rows, or a report for readers."""


def alternatives(names: Iterable[str]) -> str:
    """Return names such as `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


DATA_NAMES = alternatives(form.name for form in _FORMATS if form.data)
"""The names of the formats of data."""
RELEASED_NAMES = alternatives(dict.fromkeys(form.name for form in RELEASED.values()))
"""The names of the formats of released rows."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file's name in lower case, without its dot."""
    return Path(path).suffix.lower().removeprefix(".")


def require_suffix(path: str | os.PathLike[str], suffixes: Iterable[str] = RELEASED) -> str:
    """Return the suffix of a file of released rows; raise ParameterError unless it is one of `suffixes`."""
    found = suffix_of(path)
    if found not in suffixes:
        raise ParameterError(f"the file's suffix must be one of {', '.join('.' + suffix for suffix in suffixes)}")
    return found
