"""Where a command may write: never over a file that the same command reads, charges or keeps."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from discreet.release import export

__all__ = ["require_apart", "require_form", "require_new"]


def require_form(output: str | None, form: str | None) -> None:
    """Refuse, before any work, a format that cannot go where it is to go."""
    if output is None and sys.stdout is None:
        raise click.UsageError("standard output is closed: give -o FILE")
    if output is None and form == "parquet":
        raise click.UsageError("Parquet goes to a file: give -o FILE.parquet")
    if output is not None and form not in (None, export.form_of(output)):
        raise click.UsageError("-f and the suffix of -o disagree; leave out -f")


def require_apart(output: str | None, *read: str | None) -> None:
    """Refuse, before any work, an output that is a file which the command reads, charges or keeps.

    Files are compared by device and inode, so that links and other spellings of a name are found. The name of the
    certificate of an output is one of its outputs; a file there that is no certificate is refused, whatever it is.

    Args:
        output: The file of `-o`; None for standard output.
        read: Paths and globs of data, a ledger and a stream; "-" for standard input.
    """
    used = [status for name in read if name for status in _statuses(name)]
    for written in _written(output):
        if any(os.path.samestat(written, status) for status in used):
            given = "-o would replace what is read" if output else "standard output goes to a file that is read"
            raise click.UsageError(f"{given}: give it another name")
    if output is not None and not export.has_room_for_certificate(output):
        raise click.UsageError(
            f"-o would replace {export.certificate_path(output)}, which is no certificate: give it another name"
        )


def require_new(output: str | None) -> None:
    """Refuse an output that exists, or whose certificate does, for a command whose files nobody can tell beforehand.

    A query names its files by any expression, and Spark by folders and patterns of its own.
    """
    for path in () if output is None else (Path(output), export.certificate_path(output)):
        if os.path.lexists(path):
            raise click.UsageError(
                f"{path} exists, and with --sql or --engine spark -o replaces no file, since it may be one that is "
                "read: give a new name, or remove the file first"
            )


def _written(output: str | None) -> Iterator[os.stat_result]:
    """The files that an output replaces or goes on writing to, where they exist."""
    if output is None:
        yield from _open_file(sys.stdout)
        return
    for path in (Path(output), export.certificate_path(output)):
        yield from _status(path)


def _statuses(name: str) -> Iterator[os.stat_result]:
    if name == "-":
        yield from _open_file(sys.stdin)
        return
    for path in (name, *glob.iglob(name, recursive=True)):  # noqa: PTH207 - may be absolute
        yield from _status(Path(path))


def _status(path: Path) -> Iterator[os.stat_result]:
    try:
        yield path.stat()
    except (OSError, ValueError):  # there is no such file, or the text is no path
        return


def _open_file(stream: object) -> Iterator[os.stat_result]:
    """A standard stream where it is a regular file: two ends of one terminal are the same device, and no file."""
    try:
        status = os.fstat(stream.fileno())  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        return
    if stat.S_ISREG(status.st_mode):
        yield status
