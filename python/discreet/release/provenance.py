"""`Provenance`: what a release was made from and is called, for a ledger, a certificate and a report. PUBLIC."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self, TypedDict

from discreet.engines.csv_rows import CsvFiles
from discreet.engines.table import Table
from discreet.errors import Parameter, ParameterError
from discreet.release.export import shortened

__all__ = ["Provenance", "ReleaseTexts", "inputs_of", "naming_source", "require_label"]

_LONGEST = 200
"""The most characters of a text. A column or a file may have any name, and a ledger holds it for good."""
_START = datetime(1970, 1, 1)
_source: ContextVar[tuple[str, str]] = ContextVar("source", default=("", ""))


class ReleaseTexts(TypedDict, total=False):
    """The texts that a caller gives a release and its charge. docs/how-to/nightly-job.md shows their use.

    Args:
        label: A text for the ledger's history, the certificate and the report.
        once: A key, for a release that is charged once: the same call with a key that was charged before charges
            nothing.
        replaces: The key or label of the earlier charge that this release replaces. It is charged in full.
    """

    label: str | None
    once: str | None
    replaces: str | None


@contextmanager
def naming_source(source: str, inputs: str = "") -> Iterator[None]:
    """Name the files of data that do not name themselves, such as a relation of a database.

    `inputs` is a text that tells this input from others; see `inputs_of`.
    """
    token = _source.set((source, inputs))
    try:
        yield
    finally:
        _source.reset(token)


def require_label(name: str, text: object) -> str:
    """Return a label without surrounding spaces, or an empty text for None.

    Raises:
        ParameterError: The label is not short and printable.
    """
    if text is None:
        return ""
    if not isinstance(text, str) or not text.isprintable() or not text.strip() or len(text) > _LONGEST:
        raise ParameterError.about("{} must be printable text of 1 to {} characters", Parameter(name), _LONGEST)
    return text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin and the label of a release. It depends on the parameters of the call alone, never on the data.

    All fields are texts of printable characters, and empty if there is nothing to say.

    Args:
        label: The caller's label.
        verb: The function that made the release: "count", "top_k", "select", "sum" or
            "aggregate".
        columns: The names of the columns of users, items, times and values.
        period: The times that count, the length of periods, and that of the periods of a user in a unit.
        files: The names of the files as they were given, without their folders.
        once: The caller's key for a release that is charged once.
        replaces: The key or label of the earlier charge that this release replaces.
        begun: The time of the call, before any data was read.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)], "page": ["home"] * 5000}
        >>> dp.count(log, user="user", item="page", rho=1, delta=1e-6, label="the first night").provenance.label
        'the first night'
    """

    label: str = ""
    verb: str = ""
    columns: str = ""
    period: str = ""
    files: str = ""
    once: str = ""
    replaces: str = ""
    begun: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @classmethod
    def of(
        cls,
        verb: str,
        table: Table,
        *,
        values: Sequence[str] = (),
        label: object = None,
        once: object = None,
        replaces: object = None,
    ) -> Self:
        """Return the provenance of a release of a table.

        Args:
            verb: The name of the function.
            table: The table that it reads.
            values: The columns of values, if the function names them.
            label: The caller's label, or None.
            once: The caller's key, or None.
            replaces: The key or label of an earlier charge, or None.

        Raises:
            ParameterError: A label or a key is no printable text of 1 to 200 characters.
        """
        period = table.period
        named = {"users": table.user, "items": table.item, "times": period and period.column}
        named["values"] = table.value or values
        columns = "; ".join(
            f"{what}: {name if isinstance(name, str) else ', '.join(name)}" for what, name in named.items() if name
        )
        span = "" if period is None else _span(period.since, period.until)
        every = "" if period is None or period.every is None else f"per {period.every}"
        return cls(
            label=require_label("label", label),
            verb=verb,
            columns=shortened(columns, _LONGEST),
            period=", ".join(filter(None, (span, every, "" if table.unit == "user" else f"{table.unit}s"))),
            files=shortened(_source.get()[0] or ", ".join(map(os.path.basename, _paths(table.data))), _LONGEST),
            once=require_label("once", once),
            replaces=require_label("replaces", replaces),
        )

    @classmethod
    def read(cls, given: object) -> Self:
        """Return the provenance in a file, read as untrusted input.

        Args:
            given: The texts by name. Other names are ignored.

        Raises:
            ValueError: It is no mapping to texts.
        """
        if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
            raise ValueError("provenance must be texts by name")
        return cls(**{name: shortened(given.get(name, ""), _LONGEST) for name in cls.__slots__})

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over the names and texts of the fields that are not empty."""
        return ((name, text) for name in self.__slots__ if (text := getattr(self, name)))


def inputs_of(data: object) -> str:
    """Return a text that tells the input of a release from others: the paths as they were given, made absolute.

    CSV files that are not written in the usual way have their dialect, too. The text is empty for data without a name,
    such as a frame.
    """
    paths = (path if "://" in path else os.path.abspath(path) for path in _paths(data))  # noqa: PTH100 - a pattern
    tables = data if isinstance(data, list | tuple) else [data]
    dialects = (repr(one.dialect) for one in tables if isinstance(one, CsvFiles) and not one.dialect.is_usual)
    return "\0".join([_source.get()[1] or "\0".join(paths), *dialects])


def _paths(data: object) -> list[str]:
    """Return the paths of files as they were given, or an empty list for other data.

    The files that a pattern or a folder holds are not listed: their names may say who is in the data.
    """
    names = []
    for one in data if isinstance(data, list | tuple) else [data]:
        path = one.path if isinstance(one, CsvFiles) else one
        if isinstance(path, str | os.PathLike):
            with suppress(Exception):  # the engine refuses what is no path
                names.append(os.path.normpath(os.fsdecode(path)) if "://" not in str(path) else str(path))
    return names


def _span(since: int | None, until: int | None) -> str:
    """Return the times that count as text."""
    if since is not None and until is not None:
        return f"{_moment(since)} to {_moment(until)}"
    return "" if since is until is None else f"before {_moment(until)}" if since is None else f"from {_moment(since)}"


def _moment(moment: int | None) -> str:
    try:
        return (_START + timedelta(microseconds=moment or 0)).isoformat().removesuffix("T00:00:00")
    except OverflowError:
        return f"{moment} microseconds since 1970"
