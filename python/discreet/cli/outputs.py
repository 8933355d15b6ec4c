"""Checks of the output of a command, so that it never overwrites an input, a ledger or a stream."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from discreet.budgets.ledger import Dataset, Ledger
from discreet.engines.files import files_in
from discreet.engines.sql import files_of, reads_files
from discreet.engines.typed_arrays import Foreign
from discreet.engines.versions import require_version
from discreet.errors import AlreadyCharged, about
from discreet.formats import RELEASED
from discreet.release import export, reading

__all__ = [
    "require_apart",
    "require_form",
    "require_new",
    "require_public",
    "require_stored",
    "require_unpublished",
    "require_writable",
    "uncertified",
]


def require_form(output: str | None, form: str | None, *, certificate: bool = False) -> None:
    """Raise UsageError if the output cannot hold the format, or has no certificate."""
    if output is None and sys.stdout is None:
        raise click.UsageError("Standard output is closed. Give -o FILE.")
    if output is None and form in RELEASED and not RELEASED[form].is_text:
        raise click.UsageError(f"{RELEASED[form].name} cannot be written to standard output. Give -o FILE.{form}.")
    if output is not None and form not in (None, export.form_of(output)):
        raise click.UsageError("-f and the suffix of -o FILE name different formats. Leave out -f.")
    if certificate and output is None:
        raise click.UsageError("--certificate needs -o FILE: it is written next to FILE.")
    if certificate and output is not None and export.form_of(output) == "html":
        raise click.UsageError(
            "A report has no certificate. Give -o FILE.csv or another format of rows, or leave out --certificate."
        )


def require_writable(output: str | None, *, certificate: bool = False) -> None:
    """Raise an error if the output cannot be written, before a budget is charged for it."""
    if output is None:
        return
    if export.form_of(output) == "parquet":
        import duckdb  # noqa: F401 - writes Parquet

        require_version("duckdb")
    export.require_replaceable(output, certified=certificate)
    for folder in {export.real(output).parent, Path(output).parent} if certificate else {export.real(output).parent}:
        export.require_space(folder)


def uncertified(output: str, error: AlreadyCharged) -> AlreadyCharged:
    """Return the error for a repeated --certificate if the rows of the key have none."""
    error.remedy = about(
        "Leave out {certificate} to keep the rows, or give a new key and {replaces} {!r}, which is charged in full.",
        error.once,
    )
    error.args = (
        about(
            "{} has the rows that were charged to {} for this key at {}, but they have no certificate, which can only "
            "be written with the rows. Nothing was charged or written. {}",
            export.plain_text(output),
            error.dataset,
            error.time,
            error.remedy,
        ),
    )
    return error


def require_apart(output: str | None, *read: str | None, option: str = "-o") -> None:
    """Raise UsageError if the output would overwrite an input, a ledger or a stream.

    Files are compared by device and inode, which also finds links and other spellings of a path. The certificate next
    to an output counts as an output, too. A file with its name must be a certificate. A new file in a folder of data,
    or one that a pattern of data matches, would be an input of the next command.

    `read` are paths and globs of data, a ledger and a stream, and "-" for standard input.
    """
    used = [status for name in read if name for status in _statuses(name)]
    for what, written in _written(output, option):
        if any(os.path.samestat(written, status) for status in used):
            raise click.UsageError(f"{what}. Choose another file.")
    if output is not None and any(_is_inside(output, name) for name in read if name and name != "-"):
        raise click.UsageError(f"{option} is in a folder that the command reads as data. Choose another folder.")
    if output is not None and any(_is_matched(output, name) for name in read if name and name != "-"):
        raise click.UsageError(
            f"{option} matches the pattern of the input: the next run would read it. Choose another file."
        )
    if output is not None and not export.has_room_for_certificate(output):
        raise click.UsageError(
            f"{option} would overwrite {export.certificate_path(output)}, which is not a certificate. Choose another "
            "file."
        )


def require_public(items: str | None, sql: str | None, *read: str | None) -> None:
    """Raise UsageError if the file of public items is an input, because its lines would be published."""
    if items is None:
        return
    named = [] if sql is None else files_of(sql)
    if named is None:
        raise click.UsageError(
            "With --items, the query must name its files by texts such as read_parquet('log.parquet'), because a file "
            "of items must not be an input."
        )
    listed = [*_status(Path(items))]
    used = [*(status for name in named for status in _status(Path(name)))]
    used += [status for name in read if name for status in _statuses(name)]
    if any(os.path.samestat(status, other) for status in listed for other in used):
        raise click.UsageError(
            "--items names an input of this command. Its lines would be published as they are. Give a list of items "
            "that was made without the data."
        )


def require_stored(table: Foreign) -> None:
    """Raise UsageError if a table of a database is a view that reads files, because one may be that of `--items`."""
    if hasattr(table, "sql_query") and reads_files(table):
        raise click.UsageError(
            "With --items, --table must not be a view that reads files, because a file of items must not be an input. "
            "Make a table of the rows."
        )


def require_new(output: str | None) -> None:
    """Raise UsageError if the output or its certificate exists.

    This check is for --sql, --database and --engine spark, whose inputs are not known beforehand. A query or a view can
    name its files by any expression, and Spark reads folders and patterns.
    """
    for path in () if output is None else (Path(output), export.certificate_path(output)):
        if os.path.lexists(path):
            raise click.UsageError(
                f"{path} exists. With --sql, --database or --engine spark, -o overwrites no file: it may be an input. "
                "Give a new name, or remove the file first."
            )


def require_unpublished(
    output: str | None, budget: Dataset | None, ledger: str | None, once: str | None, *, overwrite: bool
) -> bool:
    """Return whether the key `once` was charged before, so that the command will write nothing.

    Raises UsageError if the output has the rows of another charge and `overwrite` is False: they cannot be drawn again.
    """
    if output is None or budget is None or ledger is None or not os.path.lexists(output):
        return False
    rows = Ledger.open(ledger, create=False).history
    if once is not None and any((row.dataset, row.once.strip()) == (budget.name, once.strip()) for row in rows):
        return True
    digests = set() if overwrite else reading.digests_of(output)
    if found := [row.number for row in rows if row.digest in digests]:
        raise click.UsageError(
            f"{export.plain_text(output)} has the rows of charge {found[-1]} of the ledger, which cannot be drawn "
            "again. Give another -o FILE, or --overwrite."
        )
    return False


def _is_inside(output: str, read: str) -> bool:
    """Return whether an output is in a folder that is read as data."""
    try:
        places = export.real(output).parents
        return any(
            Path(path).is_dir() and Path(path).resolve() in places
            for path in (read, *glob.iglob(read, recursive=True))  # noqa: PTH207 - may be absolute
        )
    except (OSError, ValueError):  # no valid path
        return False


def _is_matched(output: str, read: str) -> bool:
    """Return whether a pattern of files matches an output, which need not exist yet."""
    folder, pattern = os.path.split(read)
    place = Path(output)
    if not glob.has_magic(pattern) or (place.name.startswith(".") and not pattern.startswith(".")):
        return False
    try:
        if Path(read).exists() or not fnmatch.fnmatch(place.name, pattern):
            return False
        parent = export.real(output).parent
        folders = glob.iglob(folder, recursive=True) if folder else ["."]  # noqa: PTH207 - may be absolute
        return any(Path(path).resolve() == parent for path in folders)
    except (OSError, ValueError):  # no valid path
        return False


def _written(output: str | None, option: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the existing files that an output would overwrite or append to."""
    for status in _open_file(sys.stdout):  # also with -o: rows go there if the file fails
        yield "Standard output is a file that the command reads", status
    for path in () if output is None else (Path(output), export.certificate_path(output)):
        for status in _status(path):
            yield f"{option} would overwrite an input", status


def _statuses(name: str) -> Iterator[os.stat_result]:
    if name == "-":
        yield from _open_file(sys.stdin)
        return
    for path in {name, *glob.iglob(name, recursive=True)}:  # noqa: PTH207 - may be absolute
        yield from _status(Path(path))
        if Path(path).is_dir():
            for file in files_in(path):
                yield from _status(Path(file))


def _status(path: Path) -> Iterator[os.stat_result]:
    try:
        yield path.stat()
    except (OSError, ValueError):  # no such file, or not a valid path
        return


def _open_file(stream: TextIO | None) -> Iterator[os.stat_result]:
    """Yield the status of a standard stream that is a regular file; on a terminal, input and output share a device."""
    if stream is None:
        return
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return
    if stat.S_ISREG(status.st_mode):
        yield status
