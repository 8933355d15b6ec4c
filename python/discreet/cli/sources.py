"""The table that the options of a command name: files, a table of a database, or standard input."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from discreet.engines.csv_rows import CsvFiles, Dialect
from discreet.engines.databases import open_database

__all__ = ["FileOptions", "dialect", "table"]


class FileOptions(TypedDict):
    """The options that say how a file is read."""

    database: str | None
    table: str | None
    delimiter: str | None
    encoding: str
    no_header: bool


def dialect(read: FileOptions) -> Dialect:
    """Return how CSV is written, from the options."""
    mark = read["delimiter"]
    mark = "\t" if mark in ("\\t", "tab") else mark
    return Dialect(delimiter=mark, encoding=read["encoding"], header=not read["no_header"])


def table(file: str | None, *, memory: str | None, **read: Unpack[FileOptions]) -> object:
    """Return the data that the options name, except standard input.

    Raises:
        UsageError: The options contradict each other.
    """
    database, name, how = read["database"], read["table"], dialect(read)
    if (database is None) != (name is None):
        raise click.UsageError("Give --database and --table together.")
    if database is not None and name is not None:
        if file is not None or not how.is_usual:
            raise click.UsageError("--database is read instead of FILE, and has no delimiter, encoding or header.")
        return open_database(database, name, memory=memory)
    if file is None:
        raise click.UsageError("Give FILE, or --database and --table.")
    if how.is_usual:
        return file
    return CsvFiles(path=file, delimiter=how.delimiter, encoding=how.encoding, header=how.header)
