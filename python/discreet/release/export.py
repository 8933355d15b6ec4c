"""Published columns as CSV, JSON and Parquet files, and labels as text that is safe to show."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from discreet.engines import parquet
from discreet.errors import InputError, ParameterError
from discreet.release.formats import FORMATS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "call",
    "certificate_path",
    "digest",
    "escapes",
    "file_digest",
    "form_of",
    "has_room_for_certificate",
    "plain_text",
    "remove_certificate",
    "require_absent",
    "require_room_for_certificate",
    "text",
    "write",
    "write_certificate",
]

Column: TypeAlias = "tuple[str, Sequence[object] | NDArray[np.generic], str]"
"""The name, values and Arrow type of a column."""

_INVISIBLE = (
    r"\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Spaces, control characters and characters that Unicode lets programs ignore if they cannot display them."""
_SIGNS = r"=+\-@\u207a-\u207c\u208a-\u208c\u2212\u2a75\u2a76\ufb29\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20"
"""The signs that begin formulas, and the characters that compatibility normalisation turns into them."""
_ESCAPED = re.compile(rf"'|[\x00-\x1f\x7f-\x9f\u2028\u2029]|[{_INVISIBLE}]*[{_SIGNS}]")
"""The beginning of text cells that CSV prefixes with an apostrophe.

Text that begins with an apostrophe is prefixed too. So a leading apostrophe always marks an escaped cell, and
different labels stay different. The characters are listed here because the digest of a release must not depend on
Python's Unicode version."""
_END = "\r\n"


def plain_text(label: object) -> str:
    """Return a label as one line of text without control characters, with bytes that are not UTF-8 escaped."""
    shown = label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def text(columns: Sequence[Column], header: Mapping[str, object], form: str) -> str:
    """Return the columns in one of the text formats."""
    out = io.StringIO(newline="")
    _WRITERS[form](out, columns, header)
    return out.getvalue()


def escapes(columns: Sequence[Column]) -> bool:
    """Return whether CSV escapes a cell of the columns."""
    return any(_cell(cell) is not cell for row in _rows(columns) for cell in row)


def form_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a file's suffix.

    Raises:
        ParameterError: The suffix is unknown.
        InputError: The file cannot be written there.
    """
    target = Path(path)
    form = target.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ParameterError(f"the file's suffix must be one of {', '.join('.' + f for f in FORMATS)}")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: make its folder first")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: its folder is read-only; choose another folder")
    return form


def write(
    path: str | os.PathLike[str], columns: Sequence[Column], header: Mapping[str, object], *, overwrite: bool = True
) -> None:
    """Write the columns in the format of the file's suffix, atomically.

    Raises:
        InputError: The file cannot be written, or exists and `overwrite` is False.
    """
    form, target = form_of(path), Path(path)
    if form == "parquet":
        _publish(target, lambda draft: parquet.write(draft, columns), overwrite)
    else:
        content = text(columns, header, form)
        _publish(target, lambda draft: draft.write_text(content, encoding="utf-8", newline=""), overwrite)


def digest(columns: Sequence[Column]) -> str:
    """Return the SHA-256 of the columns as CSV."""
    return _sha256(text(columns, {}, "csv").encode())


def _sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def file_digest(path: str | os.PathLike[str], names: list[str]) -> str:
    """Return the digest of a file that `write` wrote, with columns of these names.

    Raises:
        InputError: The file cannot be read.
    """
    source = Path(path)
    try:
        form = source.suffix.lower().removeprefix(".")
        if form == "csv":
            return _sha256(source.read_bytes())
        if form not in _READERS:
            raise ParameterError(f"the file's suffix must be one of {', '.join('.' + f for f in FORMATS)}")
        rows = _READERS[form](source)
        return digest([(name, [row[name] for row in rows], "") for name in names])
    except ParameterError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"cannot read the rows of {source}: the file is damaged, or was not written by Release.write"
        ) from None


def certificate_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the certificate of a file of rows."""
    return Path(f"{os.fspath(path)}.certificate.json")


def call(made_by: str) -> ast.Call:
    """Return the call that made some rows: a name with keyword arguments.

    Raises:
        ParameterError: The text is not a call with keyword arguments.
    """
    try:
        found = ast.parse(made_by, mode="eval").body
    except (SyntaxError, ValueError):
        found = None
    if not isinstance(found, ast.Call) or found.args:
        raise ParameterError(
            "this mechanism's repr does not show all its parameters, so its release can have no certificate"
        )
    return found


def write_certificate(path: str | os.PathLike[str], content: Mapping[str, object], *, overwrite: bool = True) -> None:
    """Write the certificate of a file of rows, atomically; raise InputError if another file has its name."""
    require_room_for_certificate(path)
    text = json.dumps(content, indent=1) + "\n"
    _publish(certificate_path(path), lambda draft: draft.write_text(text, "utf-8"), overwrite)


def remove_certificate(path: str | os.PathLike[str]) -> None:
    """Remove the certificate of earlier rows in this file; raise InputError if that fails."""
    require_room_for_certificate(path)
    try:
        certificate_path(path).unlink(missing_ok=True)
    except OSError:
        raise InputError(
            f"cannot remove {certificate_path(path)}, the certificate of earlier rows; remove it yourself"
        ) from None


def has_room_for_certificate(path: str | os.PathLike[str]) -> bool:
    """Return whether the path of the certificate is free or holds a certificate."""
    place = certificate_path(path)
    if not os.path.lexists(place):
        return True
    try:
        if not stat.S_ISREG(place.lstat().st_mode):
            return False
        with place.open("rb") as file:
            # Only JSON begins with a brace: a database, which may be large, is not read.
            content = json.load(file) if file.peek(1)[:1] == b"{" else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"made_by", "digest", "columns"} <= {*content}


def require_room_for_certificate(path: str | os.PathLike[str]) -> None:
    """Raise InputError if the path of the certificate holds another kind of file, such as a ledger or data."""
    if not has_room_for_certificate(path):
        raise InputError(
            f"cannot write {os.fspath(path)}: {certificate_path(path)} is no certificate and would be overwritten; "
            "give another name"
        )


def require_absent(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a file of rows or its certificate exists."""
    for place in (Path(path), certificate_path(path)):
        if os.path.lexists(place):
            raise _exists(place)


def _exists(place: Path) -> InputError:
    return InputError(f"cannot write {place}: a file of this name has appeared; give another name")


def _publish(target: Path, write: Callable[[Path], object], overwrite: bool) -> None:
    """Write a temporary file and rename it to `target`, which may exist only with `overwrite`."""
    import tempfile

    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".discreet-") as folder:
            draft = Path(folder) / "draft"
            write(draft)
            draft.replace(target) if overwrite else _name(draft, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or 'is the disk full?'}") from None


def _name(draft: Path, target: Path) -> None:
    """Give a complete file a new name; raise FileExistsError if the name is taken."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # a file system without hard links
        with target.open("xb") as copy:
            try:
                copy.write(draft.read_bytes())
                copy.flush()
                os.fsync(copy.fileno())
            except BaseException:
                target.unlink(missing_ok=True)
                raise


def _rows(columns: Sequence[Column]) -> Iterator[tuple[object, ...]]:
    lists = [values.tolist() if hasattr(values, "tolist") else values for _, values, _ in columns]
    for row in zip(*lists, strict=True):
        yield tuple(_decoded(cell) if isinstance(cell, bytes) else cell for cell in row)


def _decoded(label: bytes) -> str:
    r"""Return bytes as text, injectively: a byte that is not UTF-8 as `\xff`, and a backslash as two."""
    return label.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def _csv(out: TextIO, columns: Sequence[Column], header: Mapping[str, object]) -> None:
    """Write RFC 4180, with cells of text escaped by `_cell`."""
    # Before Python 3.13 a writer quotes only characters of its own line terminator. With "\n" alone, a carriage
    # return in a cell would stay unquoted and forge a row.
    writer = csv.writer(_Lines(out), lineterminator=_END)
    writer.writerow([name for name, _, _ in columns])
    for row in _rows(columns):
        writer.writerow([_cell(cell) for cell in row])


class _Lines:
    """A file that ends lines with a line feed instead of CRLF."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, line: str) -> object:
        return self._out.write(line.removesuffix(_END) + "\n")


def _cell(cell: object) -> object:
    """Return a cell, prefixed with an apostrophe if a spreadsheet might run or change it."""
    return f"'{cell}" if isinstance(cell, str) and _ESCAPED.match(cell) else cell


def _jsonl(out: TextIO, columns: Sequence[Column], header: Mapping[str, object]) -> None:
    names = [name for name, _, _ in columns]
    for row in _rows(columns):
        out.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")


def _json(out: TextIO, columns: Sequence[Column], header: Mapping[str, object]) -> None:
    names = [name for name, _, _ in columns]
    rows = [dict(zip(names, row, strict=True)) for row in _rows(columns)]
    json.dump({**header, "rows": rows}, out, ensure_ascii=False, indent=1)
    out.write("\n")


_READERS: dict[str, Callable[[Path], list[dict[str, object]]]] = {
    "json": lambda path: json.loads(path.read_bytes())["rows"],
    "jsonl": lambda path: [json.loads(line) for line in path.read_bytes().splitlines()],
    "parquet": parquet.read,
}
_WRITERS = {"csv": _csv, "json": _json, "jsonl": _jsonl}
