"""Published columns as CSV, JSON and Parquet files, and labels as text that is safe to show."""

from __future__ import annotations

import ast
import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet import _core
from discreet.engines import parquet
from discreet.errors import InputError, ParameterError
from discreet.release.blocks import Column, Values, blocks, csv_of, distinct_keys, escapes, header_of
from discreet.release.formats import FORMATS, WRITTEN

if TYPE_CHECKING:
    import hashlib

__all__ = [
    "FORMATS",
    "Column",
    "ItemType",
    "Values",
    "call",
    "certificate_path",
    "digest",
    "escapes",
    "file_digest",
    "form_of",
    "has_room_for_certificate",
    "item_columns",
    "metadata",
    "plain_text",
    "remove_certificate",
    "require_absent",
    "require_room_for_certificate",
    "shortened",
    "text",
    "write",
    "write_certificate",
    "write_text",
]

ItemType: TypeAlias = "str | tuple[tuple[str, str], ...]"
"""The Arrow type of items, or the name and the type of each of their columns."""


def item_columns(items: list[Any] | _core.Labels, kind: ItemType) -> list[Column]:
    """Return the name, values and Arrow type of each column of items, as labels if `items` are labels."""
    if isinstance(kind, str):
        return [("item", items.columns()[0] if isinstance(items, _core.Labels) else items, kind)]
    split: list[Any]
    if isinstance(items, _core.Labels):
        split = items.columns()
    elif len(kind) == 1:
        split = [items]
    else:
        split = [[item[place] for item in items] for place in range(len(kind))]
    return [(name, values, one) for (name, one), values in zip(kind, split, strict=True)]


def plain_text(label: object) -> str:
    """Return a label as one line of text without control characters, with bytes that are not UTF-8 escaped."""
    if isinstance(label, tuple):
        return ", ".join(map(plain_text, label))
    shown = label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def shortened(label: object, most: int = 60) -> str:
    """Return a label as `plain_text` of at most `most` characters; the last one is an ellipsis if more are cut off."""
    shown = plain_text(label[: most + 1] if isinstance(label, str | bytes) else label)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def text(columns: Sequence[Column], header: Mapping[str, object], form: str) -> str:
    """Return the columns in one of the text formats."""
    return b"".join(blocks(columns, header, form, errors="surrogatepass")).decode("utf-8", "surrogatepass")


def form_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a file's suffix.

    Raises:
        ParameterError: The suffix is unknown.
        InputError: The file cannot be written there.
    """
    target = Path(path)
    form = target.suffix.lower().removeprefix(".")
    if form not in WRITTEN:
        raise ParameterError(f"the file's suffix must be one of {', '.join('.' + f for f in WRITTEN)}")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: make its folder first")
    try:
        certificate_path(target).lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"cannot write {target}: the name of its certificate would be too long; give a name that is shorter by "
                f"{len(certificate_path('').name)} characters"
            ) from None
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: its folder is read-only; choose another folder")
    return form


def write(
    path: str | os.PathLike[str], columns: Sequence[Column], header: Mapping[str, object], *, overwrite: bool = True
) -> str | None:
    """Write the columns in the format of the file's suffix, atomically, and return their digest if it is a CSV file.

    Raises:
        InputError: The file cannot be written, or exists and `overwrite` is False.
    """
    form, target = form_of(path), Path(path)
    if form == "parquet":
        _publish(target, lambda draft: parquet.write(draft, columns, metadata(header)), overwrite)
        return None
    content, hashed = blocks(columns, header, form), _sha256()
    _publish(target, lambda draft: _write_blocks(draft, content, hashed.update if form == "csv" else None), overwrite)
    return hashed.hexdigest() if form == "csv" else None


def write_text(path: str | os.PathLike[str], content: str, *, overwrite: bool = True) -> None:
    """Write a file of text, atomically; raise InputError if it cannot be written, or exists without `overwrite`."""
    form_of(path)
    _publish(Path(path), lambda draft: draft.write_text(content, "utf-8"), overwrite)


def metadata(header: Mapping[str, object]) -> dict[str, str]:
    """Return the header of a release as key-value metadata of Parquet and Arrow: one key with JSON."""
    return {"discreet": json.dumps(header)}


def digest(columns: Sequence[Column]) -> str:
    """Return the SHA-256 of the columns as CSV."""
    hashed = _sha256()
    for block in blocks(columns, {}, "csv"):
        hashed.update(block)
    return hashed.hexdigest()


def file_digest(path: str | os.PathLike[str], names: list[str], header: Mapping[str, object]) -> str:
    """Return the digest of a file that `write` wrote, with columns of these names alone.

    Raises:
        InputError: The file cannot be read, has more than these columns, or has a header that differs from this one.
    """
    source = Path(path)
    try:
        form = source.suffix.lower().removeprefix(".")
        if form == "csv":
            hashed = _sha256()
            with source.open("rb") as file:
                while block := file.read(1 << 18):
                    hashed.update(block)
            return hashed.hexdigest()
        if form == "parquet":
            columns = parquet.read(source)
            found_header = parquet.metadata(source, "discreet")
            own = {} if found_header is None else json.loads(found_header, object_pairs_hook=distinct_keys)
            _require_as_written([[*columns]], names, own, header)
            return digest([(name, columns[name], "") for name in names])
        if form not in FORMATS:
            raise ParameterError(f"the file's suffix must be one of {', '.join('.' + f for f in FORMATS)}")
        content = source.read_bytes()
        if any(f'"{name}": "'.encode() in content for name in ("rank", "count", "sigma")):
            raise ValueError("a number is text")
        if (found := csv_of(content, names, form)) is not None:
            if form == "json":
                _require_as_written([], names, header_of(content), header)
            return _sha256(found).hexdigest()
        own = {}
        if form == "json":
            own = json.loads(content, object_pairs_hook=distinct_keys)
            rows = own.pop("rows")
        else:
            rows = [json.loads(line, object_pairs_hook=distinct_keys) for line in content.splitlines()]
        _require_as_written([[*row] for row in rows], names, own, header)
        if any(isinstance(row.get(name), str) for row in rows for name in ("rank", "count", "sigma")):
            raise ValueError("a number is text")
        return digest([(name, [row[name] for row in rows], "") for name in names])
    except ParameterError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"cannot read the rows of {source}: the file is damaged, or its columns and header are not those that "
            "Release.write wrote with this certificate"
        ) from None


def _require_as_written(
    rows: Iterable[list[str]], names: list[str], own: Mapping[str, object], header: Mapping[str, object]
) -> None:
    """Raise ValueError unless rows have these names alone, and a file's own header says what its certificate says."""
    if any(row != names for row in rows) or any(value != header.get(name) for name, value in own.items()):
        raise ValueError("the file has more than a release, or another header")


def _sha256(content: bytes = b"") -> hashlib._Hash:
    # A release that is only shown needs no hash, and the module takes milliseconds to import.
    import hashlib

    return hashlib.sha256(content)


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


def _write_blocks(draft: Path, content: Iterator[bytes], update: Callable[[bytes], object] | None) -> None:
    """Write a new file, and update a hash with its content."""
    with draft.open("xb") as file:
        for block in content:
            file.write(block)
            if update is not None:
                update(block)


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
